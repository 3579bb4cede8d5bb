"""The ranked, budgeted answer to "what is known about this, for this task?", as data and as Markdown.

It promises that the text never costs more than was asked for, that everything left out is counted, that a broken seal is said,
and that exactly what stands in the text is handed back as exposures. Where nothing is known, it says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from herdbook.base import limits
from herdbook.base.clock import iso
from herdbook.base.errors import InvalidRequest
from herdbook.base.text import entity_path, prose
from herdbook.fastloop import contradictions
from herdbook.fastloop.candidates import (
    CONTESTED,
    DEAD_ENDS,
    VERSION,
    VERSION_ID,
    Gathered,
    Row,
    Scale,
    best_first,
    scale_of,
)
from herdbook.fastloop.contradictions import Contradiction
from herdbook.fastloop.decay import FLOOR
from herdbook.fastloop.features import as_text
from herdbook.fastloop.holdback import CONTROL, HOLDBACK, Chance, Draw, explore
from herdbook.fastloop.kept import Scene, gather
from herdbook.fastloop.lines import contested_note, excerpt, span
from herdbook.fastloop.ordering import Ordered, Orderer, explained
from herdbook.fastloop.packing import Packed, Packer, reach_of
from herdbook.fastloop.precedents import lifts
from herdbook.fastloop.sources import BriefRequest, Record, reach
from herdbook.fastloop.tokens import estimate_tokens
from herdbook.fastloop.view import EntryView, entry_view
from herdbook.record.tunables import Tuning
from herdbook.record.types import Served, Shown, Version

SIMILAR_PATHS_MAX: Final = 5
NAMES_MAX: Final = limits.PAGE_MAX
UNMATCHED: Final = "The task: nothing names it, so all is shown."
WITHHELD: Final = "This run is a control: what is known about {path} is kept from it, to see what knowing it is worth."
LEGEND: Final = ": note, author, age, version, last outcome if any"
ROOMY: Final = 2 * limits.BRIEFING_TOKENS_MIN  # with less, the header is only the path
HEADER_PART: Final = 6  # the path takes a sixth of the budget at most
FOOTER_PART: Final = 3  # a footer that would take more than a third is said in two words


@dataclass(frozen=True, slots=True)
class Briefed:
    """The answer, and what it showed."""

    answer: dict[str, Any]
    exposures: list[Shown]
    serving: Served


@dataclass(slots=True)
class Briefer:
    """Briefs from one record; keeps token counts and rankings between briefings, and nothing else."""

    record: Record
    orderer: Orderer = field(default_factory=Orderer)

    def brief(self, tenant: int, request: BriefRequest, *, now: int) -> Briefed:
        """What is known at this path, and inherited from its ancestors, within `request.tokens`."""
        path = entity_path(request.entity)
        if not limits.BRIEFING_TOKENS_MIN <= request.tokens <= limits.BRIEFING_TOKENS_MAX:
            bounds = f"{limits.BRIEFING_TOKENS_MIN} and {limits.BRIEFING_TOKENS_MAX}"
            raise InvalidRequest(f"tokens must be between {bounds}, got {request.tokens}")
        task = prose(request.task or "", what="task", chars_max=limits.TASK_CHARS_MAX).strip()
        paths, tuning = reach(path), self.record.tuning(tenant, path)
        scale = scale_of(self.record, tenant, paths, tuning)
        kept = self.orderer.kept.of(("brief", tenant, self.record.reach, *paths), floor=FLOOR, place_of=in_block)
        wanted = None if request.names or request.explain else reach_of(request.tokens)
        with kept.turn:
            kept.follow(self.record, tenant, paths, now=now, scale=scale)
            scene = gather(self.record, tenant, kept, now=now)
            ordered = self.ordered(tenant, scene, task, path=path, now=now, scale=scale, tuning=tuning, wanted=wanted)
            disputed = scene.contradictions()
        self.orderer.kept.tidy()
        gathered = scene.gathered
        gathered.rows = best_first(ordered.rows, len(ordered.rows) if request.names else reach_of(request.tokens))
        gathered.behind = ordered.behind + len(ordered.rows) - len(gathered.rows)
        similar = [] if gathered.known else self.record.near(tenant, path, SIMILAR_PATHS_MAX)
        near = {row[VERSION_ID] for row in gathered.rows}
        disputed = [each for each in disputed if near & each.versions()][: contradictions.IN_BRIEFING_MAX]
        text = Text(path, task, request.tokens, gathered, similar, disputed)
        packer = Packer(path, now, text.room, partial(self.record.trust_of, tenant), behind=gathered.behind)
        packer.pack(gathered.rows)
        draw = None if request.session is None else partial(self.record.draw, tenant, request.session)
        chance = left_to_chance(packer, path, tuning, draw)
        exposures = exposed(packer.packed, chance, ordered, control=tuning.control if draw else 0.0)
        packed = Packed() if chance.arm == CONTROL else packer.packed
        left_out = list(left_out_versions(gathered, packed))[:NAMES_MAX] if request.names and chance.arm != CONTROL else []
        markdown = WITHHELD.format(path=span(path)) if chance.arm == CONTROL else text.markdown(packed, left_out)
        views = shown_views(packed, path=path, now=now, scale=scale, tuning=tuning)
        if request.explain:
            why = explained(ordered, [entry.version_id for entry, _ in packed.shown])
            for view, (entry, _) in zip(views, packed.shown, strict=True):
                view["explain"] = why.get(entry.version_id)
        answer = {
            "entity": path,
            "session": request.session,
            "tracked": request.session is not None,
            "task": request.task,
            "known": gathered.known,
            **blocks(packed, views),
            "contradictions": contradictions.views(disputed if packed.picked else (), packed.versions),
            "left_out": counted(gathered, packer.packed, named(left_out), chance),
            "refused": gathered.refusals(),
            "similar": similar,
            "ranking": ordered.said(),
            "arm": chance.arm,
            "tokens": estimate_tokens(markdown),
            "tokens_max": request.tokens,
            "markdown": markdown,
            "at": iso(now),
        }
        return Briefed(answer, exposures, Served(path, "briefing", chance.arm, ordered.policy, gathered.known))

    def contradictions(self, tenant: int, entity: str, *, now: int) -> list[dict[str, Any]]:
        """Every pair of entries that set one thing differently at a path, or at it and its ancestors."""
        path = entity_path(entity)
        paths, tuning = reach(path), self.record.tuning(tenant, path)
        kept = self.orderer.kept.of(("brief", tenant, self.record.reach, *paths), floor=FLOOR, place_of=in_block)
        with kept.turn:
            kept.follow(self.record, tenant, paths, now=now, scale=scale_of(self.record, tenant, paths, tuning))
            found = gather(self.record, tenant, kept, now=now).contradictions()
        self.orderer.kept.tidy()
        return contradictions.views(found, {version_id for each in found for version_id in each.versions()})

    def ordered(
        self, tenant: int, scene: Scene, task: str, *, path: str, now: int, scale: Scale, tuning: Tuning, wanted: int | None
    ) -> Ordered:
        """The candidates with their scores; what is not about the task is set aside, unless it stands.

        A setting that every run needs seldom names the task, and an agent acts on it: words alone must not take it away. Where
        the task touches nothing, all is kept, and that is said.
        """
        gathered = scene.gathered
        ordered = self.orderer.first(
            tenant,
            scene,
            task,
            asked=path,
            now=now,
            scale=scale,
            tuning=tuning,
            wanted=wanted,
            standing_stays=True,
            precedents=self.precedents(tenant, path, task) if task and tuning.fusion == "relevance" else {},
        )
        gathered.task_matched, gathered.passed_over = ordered.matched, ordered.passed_over
        if not ordered.behind and not ordered.passed_over:
            kept = {row[VERSION_ID] for row in ordered.rows}
            gathered.off_task = [row[VERSION] for row in scene.rows() if row[VERSION_ID] not in kept]
        return ordered

    def precedents(self, tenant: int, path: str, task: str) -> dict[int, float]:
        """What runs with such a task came to use, of the path and its ancestors."""
        asked = self.record.parts_asked(tenant, reach(path))
        paths = {row[0] for row in asked}
        return lifts(asked, task, lambda names: self.record.precedents(tenant, paths, names)) if asked else {}


def in_block(row: Row) -> tuple[int, int]:
    """Its block; equals are told apart by what follows in the row."""
    return row[0], 0


def left_to_chance(packer: Packer, path: str, tuning: Tuning, draw: Draw | None) -> Chance:
    """What of this briefing is an experiment; a run that is not tracked is in none."""
    if draw is None:
        return Chance()
    chance = explore(packer, holdback=tuning.holdback, draw=partial(draw, path))
    if tuning.control and draw(CONTROL) < tuning.control and packer.packed.picked:
        chance.arm = CONTROL
    return chance


def exposed(packed: Packed, chance: Chance, ordered: Ordered, *, control: float) -> list[Shown]:
    """What is logged: everything in the text, and what by chance is not."""
    rows = {row[VERSION_ID]: row for row in ordered.rows}
    shown = [entry for entry, _ in packed.shown]
    return [
        Shown(
            entry.version_id,
            rank,
            "briefing",
            served=served and chance.arm != CONTROL,
            probability=chance.probability(entry.version_id, control=control),
            features=as_text(ordered.numbers(rows[entry.version_id])),
        )
        for served, entries, first in ((True, shown, 1), (False, chance.withheld, len(shown) + 1))
        for rank, entry in enumerate(entries, start=first)
    ]


def blocks(packed: Packed, views: list[EntryView]) -> dict[str, list[EntryView]]:
    """The three blocks, each in the order of the text."""
    found: dict[str, list[EntryView]] = {"entries": [], "dead_ends": [], "contested": []}
    for (candidate, _), view in zip(packed.shown, views, strict=True):
        if candidate.block == CONTESTED:
            view["note"] = contested_note(candidate.head)
        name = {DEAD_ENDS: "dead_ends", CONTESTED: "contested"}.get(candidate.block, "entries")
        found[name].append(view)
    return found


def shown_views(packed: Packed, *, path: str, now: int, scale: Scale, tuning: Tuning) -> list[EntryView]:
    """Entries as every answer shows them, with their place in this one. A value is whole here, also where the text clips it."""
    views = []
    for rank, (candidate, line) in enumerate(packed.shown, start=1):
        version = candidate.version
        base = scale.bases.get(version.path, 0.5)
        view = entry_view(version, candidate.head, now=now, base=base, base_days=tuning.half_life_days)
        view["rank"] = rank
        view["inherited_from"] = None if version.path == path else version.path
        view["instead_of"] = candidate.instead_of
        view["clipped"] = line.clipped
        views.append(view)
    return views


def left_out_versions(gathered: Gathered, packed: Packed) -> Iterator[tuple[Version, str]]:
    """Everything that is known here and not in the text, with the reason, the best first."""
    for row in packed.over:
        yield row[VERSION], "budget"
    for row in packed.same:
        yield row[VERSION], "said by another entry"
    for reason, versions in (("faded", gathered.faded), ("expired", gathered.expired)):
        for version in versions:
            yield version, reason
    for version in gathered.off_task:
        yield version, "not about the task"
    for version in gathered.shadowed:
        yield version, "shadowed by a deeper path"


def counted(gathered: Gathered, packed: Packed, names: list[dict[str, Any]], chance: Chance) -> dict[str, Any]:
    control = len(packed.picked) if chance.arm == CONTROL else 0
    return {
        "faded": len(gathered.faded),
        "expired": len(gathered.expired),
        "filtered": filtered(gathered, packed),
        "budget": len(packed.over) + gathered.behind,
        "withheld": control + (chance.arm == HOLDBACK),
        "names": names,
    }


def filtered(gathered: Gathered, packed: Packed) -> int:
    """What is known here and not about the task, hidden by a deeper path, or said by another entry."""
    return len(gathered.off_task) + gathered.passed_over + len(gathered.shadowed) + len(packed.same)


def named(left_out: list[tuple[Version, str]]) -> list[dict[str, Any]]:
    return [
        {"entity": version.path, "key": version.key, "version": version.number, "reason": reason} for version, reason in left_out
    ]


@dataclass(slots=True)
class Text:
    """The Markdown around the lines: what it is about, and what is not in it. `room` is what remains for the lines."""

    path: str
    task: str
    tokens_max: int
    gathered: Gathered
    similar: list[str]
    disputed: list[Contradiction]
    header: list[str] = field(init=False)
    terse: bool = field(init=False, default=False)
    dispute_room: int = field(init=False)
    room: int = field(init=False)

    def __post_init__(self) -> None:
        self.header = self.headed()
        # The footer is at its longest when no line fits: what is kept for that is enough for every other case.
        rows = self.gathered.rows
        longest = Packed(over=rows, same=[row for row in rows if row[VERSION].why])
        self.terse = estimate_tokens(self.footer(longest)) * FOOTER_PART > self.tokens_max
        footer = self.footer(longest)
        self.dispute_room = self.tokens_max // contradictions.PART
        all_shown = self.disputes({version_id for each in self.disputed for version_id in each.versions()})
        longer = sum(len(each.sides) for each in self.disputed) * contradictions.UNSHOWN_TOKENS
        self.dispute_room = min(self.dispute_room, cost(all_shown) + longer) if all_shown else 0
        self.room = max(0, self.tokens_max - cost(self.header) - (cost(["", footer]) if footer else 0) - self.dispute_room)

    def disputes(self, shown: set[int]) -> list[str]:
        """What entries set differently."""
        return contradictions.worded(self.disputed, path=self.path, shown=shown, room=self.dispute_room)

    def headed(self) -> list[str]:
        part = self.tokens_max // HEADER_PART
        path = excerpt(self.path, part)
        if not self.gathered.known:
            return [f"Nothing is known about {path} yet.", *self.nearest(part * 2)]
        if self.tokens_max < ROOMY:
            return [f"# Known about {path}"]
        lines = [f"# Known about {path}{LEGEND}"]
        if self.task and not self.gathered.task_matched:
            lines.append(UNMATCHED)  # the task itself is what the reader came with
        return lines

    def nearest(self, room: int) -> list[str]:
        """The nearest known paths, as many as fit."""
        line = ""
        for other in self.similar:
            longer = f"{line}, {span(other)}" if line else f"Nearest known: {span(other)}"
            if estimate_tokens(longer) > room:
                break
            line = longer
        return [line] if line else []

    def footer(self, packed: Packed) -> str:
        """What is not in the text, by number and reason; in few words where there is little room."""
        gathered = self.gathered
        faded, expired, refused = len(gathered.faded), len(gathered.expired), len(gathered.refused)
        over = len(packed.over) + gathered.behind
        counts = {"faded": faded, "expired": expired, "filtered": filtered(gathered, packed), "budget": over}
        parts = [f"{count} {reason}" for reason, count in counts.items() if count]
        if self.terse:
            return " ".join(f"{word} {n}." for word, n in (("Left out", sum(counts.values())), ("Refused", refused)) if n)
        sentences = ["Left out: " + ", ".join(parts) + "."] if parts else []
        if refused:
            sentences.append(f"Refused: {refused} whose seal does not hold; run herdbook doctor.")
        return " ".join(sentences)

    def markdown(self, packed: Packed, left_out: list[tuple[Version, str]]) -> str:
        """The final text. A blank line keeps the footer from being read as part of the last entry."""
        footer = self.footer(packed)
        disputes = self.disputes(packed.versions) if packed.picked else []
        lines = [*self.header, *packed.lines, *disputes, *(["", footer] if footer else [])]
        spare = self.tokens_max - (cost(lines) if left_out else 0)
        for version, reason in left_out:
            line = f"- {span(version.key)} v{version.number}, {reason}"
            spare -= estimate_tokens(line) + 1
            if spare < 0:
                break
            lines.append(line)
        return "\n".join(lines)


def cost(lines: list[str]) -> int:
    return sum(estimate_tokens(line) + 1 for line in lines)
