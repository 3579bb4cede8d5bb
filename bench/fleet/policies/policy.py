"""What every policy does, and the plain ones: nothing, a file read newest first, and a vector store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from bench.fleet.likeness import Likeness
from bench.fleet.world import COMMON, Note, Run
from herdbook.fastloop.tokens import estimate_tokens


@dataclass(frozen=True, slots=True)
class Briefing:
    """What an agent is shown, in order."""

    notes: list[Note] = field(default_factory=list)
    tokens: int = 0


class Policy(Protocol):
    """Told everything agents tell; asked once a run what to show."""

    def brief(self, run: Run) -> Briefing: ...
    def write(self, run: Run, note: Note) -> None: ...
    def plant(self, run: Run, note: Note) -> None:
        """A note from another hand than this run's."""
        ...

    def attempt(self, run: Run, used: list[Note]) -> None:
        """A try failed, because of these if the agent knows."""
        ...

    def finish(self, run: Run, result: str, used: list[Note]) -> None: ...
    def worth(self, note: Note) -> float | None:
        """What the policy thinks of a note, for the AUC; None if it has no opinion."""
        ...

    def close(self) -> None: ...


class Nothing:
    """Every run starts from scratch: what a fleet is without a record."""

    def __init__(self, tokens_max: int) -> None:
        self.tokens_max = tokens_max

    def brief(self, run: Run) -> Briefing:
        return Briefing()

    def write(self, run: Run, note: Note) -> None:
        """Forgotten with the box."""

    def plant(self, run: Run, note: Note) -> None:
        self.write(run, note)

    def attempt(self, run: Run, used: list[Note]) -> None:
        """Nobody is told."""

    def finish(self, run: Run, result: str, used: list[Note]) -> None:
        """Nobody is told."""

    def worth(self, note: Note) -> float | None:
        return None

    def close(self) -> None:
        """Nothing is held."""


class NewestFirst(Nothing):
    """A file such as AGENTS.md: everything is appended, nothing deleted, read from its end within the budget."""

    def __init__(self, tokens_max: int) -> None:
        super().__init__(tokens_max)
        self.lines: list[Note] = []

    def brief(self, run: Run) -> Briefing:
        return packed(reversed(reachable(self.lines, run)), self.tokens_max)

    def write(self, run: Run, note: Note) -> None:
        self.lines.append(note)


class NearestFirst(Nothing):
    """A vector store: a write to a key overwrites its row, and the nearest to the task come first within the budget."""

    def __init__(self, tokens_max: int, likeness: Likeness) -> None:
        super().__init__(tokens_max)
        self.rows: dict[tuple[str, str], Note] = {}
        self.likeness = likeness

    def brief(self, run: Run) -> Briefing:
        notes = reachable(self.rows.values(), run)
        scores = self.likeness.cosines(run.task, [note.text for note in notes])
        ranked = sorted(zip(scores, range(len(notes)), strict=True), key=lambda pair: (-pair[0], pair[1]))
        return packed((notes[at] for _, at in ranked), self.tokens_max)

    def write(self, run: Run, note: Note) -> None:
        self.rows[note.entity, note.key] = note


def reachable(notes: Iterable[Note], run: Run) -> list[Note]:
    """What a briefing on the run's entity may draw from: its own path and the common one, as for everybody."""
    return [note for note in notes if note.entity in (run.entity.path, COMMON)]


def line_of(note: Note) -> str:
    return f"- {note.text}"


def packed(notes: Iterable[Note], tokens_max: int) -> Briefing:
    """As many lines as fit, in order, counted the way herdbook counts its own."""
    shown: list[Note] = []
    spent = 0
    for note, cost in priced(notes):
        if spent + cost > tokens_max:
            break
        shown.append(replace(note))
        spent += cost
    return Briefing(shown, spent)


def priced(notes: Iterable[Note]) -> Iterator[tuple[Note, int]]:
    for note in notes:
        yield note, estimate_tokens(line_of(note)) + 1
