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
from herdbook.fastloop.candidates import (
    CONTESTED,
    DEAD_ENDS,
    FADING,
    IRRELEVANCE,
    Candidate,
    Gathered,
    best_first,
    gather,
    narrow,
)
from herdbook.fastloop.features import FORM, features_of
from herdbook.fastloop.lines import contested_note, excerpt, span
from herdbook.fastloop.packing import Packed, Packer, reach_of
from herdbook.fastloop.scope import StatsCache
from herdbook.fastloop.sources import BriefRequest, Record, reach
from herdbook.fastloop.tokens import estimate_tokens
from herdbook.fastloop.view import EntryView, entry_view
from herdbook.record.types import Served, Shown, Version

SIMILAR_PATHS_MAX: Final = 5
NAMES_MAX: Final = limits.PAGE_MAX
POLICY: Final = f"standing/{FORM}"  # the rule by which this orders, and the form of its features
UNMATCHED: Final = ": nothing names it, so all is shown"
HEADER_PART: Final = 6  # the path and the task take a sixth of the budget each, at most
FOOTER_PART: Final = 3  # a footer that would take more than a third is said in two words


@dataclass(frozen=True, slots=True)
class Briefed:
    """The answer, and what it showed."""

    answer: dict[str, Any]
    exposures: list[Shown]
    serving: Served


@dataclass(slots=True)
class Briefer:
    """Briefs from one record; keeps token counts between briefings and nothing else."""

    record: Record
    cache: StatsCache = field(default_factory=StatsCache)

    def brief(self, tenant: int, request: BriefRequest, *, now: int) -> Briefed:
        """What is known at this path, and inherited from its ancestors, within `request.tokens`."""
        path = entity_path(request.entity)
        if not limits.BRIEFING_TOKENS_MIN <= request.tokens <= limits.BRIEFING_TOKENS_MAX:
            bounds = f"{limits.BRIEFING_TOKENS_MIN} and {limits.BRIEFING_TOKENS_MAX}"
            raise InvalidRequest(f"tokens must be between {bounds}, got {request.tokens}")
        gathered = gather(self.record, tenant, reach(path), now=now)
        task = prose(request.task or "", what="task", chars_max=limits.TASK_CHARS_MAX).strip()
        narrowed = bool(task and gathered.rows) and narrow(gathered, tenant, task, self.cache)
        looked_at = len(gathered.rows) if request.names else reach_of(request.tokens)
        gathered.rows = best_first(gathered.rows, looked_at, by=IRRELEVANCE if narrowed else FADING)
        similar = [] if gathered.known else self.record.near(tenant, path, SIMILAR_PATHS_MAX)
        text = Text(path, task, request.tokens, gathered, similar)
        packed = Packer(path, now, text.room, partial(self.record.trust_of, tenant)).pack(gathered.rows)
        left_out = list(left_out_versions(gathered, packed))[:NAMES_MAX] if request.names else []
        markdown = text.markdown(packed, left_out)
        bases = self.record.base_rates(tenant, sorted({shown.version.path for shown, _ in packed.shown})) if packed.shown else {}
        views = [
            shown_view(candidate, clipped=clipped, rank=rank, path=path, now=now, bases=bases)
            for rank, (candidate, clipped) in enumerate(packed.shown, start=1)
        ]
        exposures = [
            exposure(candidate, rank=rank, asked=path, now=now, base=bases[candidate.version.path])
            for rank, (candidate, _) in enumerate(packed.shown, start=1)
        ]
        answer = {
            "entity": path,
            "session": request.session,
            "tracked": request.session is not None,
            "task": request.task,
            "known": gathered.known,
            **blocks(packed, views),
            "left_out": counted(gathered, packed, named(left_out)),
            "refused": gathered.refusals(),
            "similar": similar,
            "tokens": estimate_tokens(markdown),
            "tokens_max": request.tokens,
            "markdown": markdown,
            "at": iso(now),
        }
        return Briefed(answer, exposures, Served(path, "briefing", "on", POLICY, gathered.known))


def exposure(candidate: Candidate, *, rank: int, asked: str, now: int, base: float) -> Shown:
    """What is logged of one entry that was shown."""
    coverage = -candidate.irrelevance
    features = features_of(
        candidate, asked=asked, now=now, base=base, score=coverage, relevance=coverage, cosine=0.0, coverage=coverage
    )
    return Shown(candidate.version_id, rank, "briefing", features=features)


def blocks(packed: Packed, views: list[EntryView]) -> dict[str, list[EntryView]]:
    """The three blocks, each in the order of the text."""
    found: dict[str, list[EntryView]] = {"entries": [], "dead_ends": [], "contested": []}
    for (candidate, _), view in zip(packed.shown, views, strict=True):
        if candidate.block == CONTESTED:
            view["note"] = contested_note(candidate.head)
        name = {DEAD_ENDS: "dead_ends", CONTESTED: "contested"}.get(candidate.block, "entries")
        found[name].append(view)
    return found


def shown_view(candidate: Candidate, *, clipped: bool, rank: int, path: str, now: int, bases: dict[str, float]) -> EntryView:
    """The entry as every answer shows it, with its place in this one. The value is whole here, also where the text clips it."""
    version = candidate.version
    view = entry_view(version, candidate.head, now=now, base=bases.get(version.path, 0.5))
    view["rank"] = rank
    view["inherited_from"] = None if version.path == path else version.path
    view["instead_of"] = candidate.instead_of
    view["clipped"] = clipped
    return view


def left_out_versions(gathered: Gathered, packed: Packed) -> Iterator[tuple[Version, str]]:
    """Everything that is known here and not in the text, with the reason, the best first."""
    for row in packed.over:
        yield row[7], "budget"
    for reason, versions in (("faded", gathered.faded), ("expired", gathered.expired)):
        for version in versions:
            yield version, reason
    for version in gathered.off_task:
        yield version, "not about the task"
    for version in gathered.shadowed:
        yield version, "shadowed by a deeper path"


def counted(gathered: Gathered, packed: Packed, names: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "faded": len(gathered.faded),
        "expired": len(gathered.expired),
        "filtered": len(gathered.off_task) + len(gathered.shadowed),
        "budget": len(packed.over),
        "names": names,
    }


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
    header: list[str] = field(init=False)
    terse: bool = field(init=False, default=False)
    room: int = field(init=False)

    def __post_init__(self) -> None:
        self.header = self.headed()
        # The footer is at its longest when no line fits: what is kept for that is enough for every other case.
        longest = Packed(over=self.gathered.rows)
        self.terse = estimate_tokens(self.footer(longest)) * FOOTER_PART > self.tokens_max
        footer = self.footer(longest)
        self.room = max(0, self.tokens_max - cost(self.header) - (cost(["", footer]) if footer else 0))

    def headed(self) -> list[str]:
        part = self.tokens_max // HEADER_PART
        path, _, _ = excerpt(self.path, part)
        if not self.gathered.known:
            return [f"Nothing is known about {path} yet.", *self.nearest(part * 2)]
        lines = [f"# Known about {path}"]
        if self.task and self.tokens_max >= 2 * limits.BRIEFING_TOKENS_MIN:
            task, _, _ = excerpt(self.task, part - 4)
            if task:
                lines.append(f"For the task {task}" + ("" if self.gathered.task_matched else UNMATCHED))
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
        filtered, refused = len(gathered.off_task) + len(gathered.shadowed), len(gathered.refused)
        faded, expired, over = len(gathered.faded), len(gathered.expired), len(packed.over)
        counts = {"faded": faded, "expired": expired, "filtered": filtered, "budget": over}
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
        lines = [*self.header, *packed.lines, *(["", footer] if footer else [])]
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
