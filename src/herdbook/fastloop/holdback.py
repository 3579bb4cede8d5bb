"""Leaving a little to chance, so that what an entry does can be told from what it stands beside.

With a probability that a path sets, one entry of a briefing is left out, or another shown in place of the last one: at most one
such swap, drawn after packing, so that every entry's probability of being served is known exactly. Never for dead ends, contested
entries, what a human put there, or what stands beside a newer version. A whole run may be told nothing: the control arm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from herdbook.fastloop.candidates import ENTRIES, VERSION_ID, Candidate
from herdbook.fastloop.lines import Line
from herdbook.fastloop.packing import Packer

INSERTABLE_MAX: Final = 4  # of those just outside, so many may be shown instead of the last one inside
ON, HOLDBACK, CONTROL = "on", "holdback", "control"

Draw = Callable[..., float]  # from 0 to 1 for any words, the same for the same words
Pick = tuple[Candidate, Line]


@dataclass(slots=True)
class Chance:
    """What was left to chance in one briefing: nothing, unless said otherwise."""

    arm: str = ON
    probabilities: dict[int, float] = field(default_factory=dict)  # of being served, by version; 1 for all others
    withheld: list[Candidate] = field(default_factory=list)  # might have been served, and were not

    def probability(self, version_id: int, *, control: float) -> float:
        return self.probabilities.get(version_id, 1.0) * (1.0 - control)


def explore(packer: Packer, *, holdback: float, draw: Draw) -> Chance:
    """Swap at most one entry of what was packed. Afterwards `packer.packed` is what will be served."""
    chance = Chance()
    picked = packer.packed.picked
    inside = [pick for pick in picked if eligible(pick[0])]
    if not holdback or not inside:
        return chance
    last = inside[-1]
    outside = insertable(packer, last[1])
    each = holdback / (len(inside) + len(outside))
    chance.probabilities = {entry.version_id: 1.0 - each for entry, _ in inside} | {
        entry.version_id: each for entry, _ in outside
    }
    chance.probabilities[last[0].version_id] -= each * len(outside)
    drawn = min([*inside, *outside], key=lambda pick: draw("which", str(pick[0].version.entry_id)))
    chance.withheld = [entry for entry, _ in outside]
    if draw("whether") < holdback:
        chance.arm = HOLDBACK
        leaves = last if drawn in outside else drawn
        picked.remove(leaves)
        chance.withheld.append(leaves[0])
        if drawn in outside:
            picked.append(drawn)
            chance.withheld.remove(drawn[0])
            packer.packed.over = [row for row in packer.packed.over if row[VERSION_ID] != drawn[0].version_id]
    return chance


def eligible(entry: Candidate) -> bool:
    """Whether leaving it out can do no more harm than not having known it."""
    return entry.block == ENTRIES and entry.instead_of is None and entry.version.origin != "principal"


def insertable(packer: Packer, last: Line) -> Sequence[Pick]:
    """The first entries there was no room for that fit in the place of this line."""
    found: list[Pick] = []
    rows = [row for row in packer.packed.over if row[0] == ENTRIES][:INSERTABLE_MAX]
    for at in range(len(rows)):
        entry = packer.candidate(rows, at)
        if entry is not None and eligible(entry):
            line = packer.line_within(entry, last.tokens)
            if line is not None:
                found.append((entry, line))
    return found
