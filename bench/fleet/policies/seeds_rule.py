"""Ranking by fused ranks with a confidence that is multiplied: the rule herdbook keeps as `fusion="rrf"`, in its plainest form.

Four lists - likeness, keywords, age, confidence - are fused by reciprocal rank (k = 60; 0.4, 0.2, 0.2, 0.2). Each outcome
multiplies the confidence of all its run was shown: success 1.03, failure 0.90, critical failure 0.85, within 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.fleet.likeness import Likeness
from bench.fleet.policies.policy import Briefing, NearestFirst, packed, reachable
from bench.fleet.world import Note, Run

K = 60
WEIGHTS = (0.4, 0.2, 0.2, 0.2)
FACTORS = {"success": 1.03, "failure": 0.90, "critical_failure": 0.85}
FRESH = 0.5


class FusedRanks(NearestFirst):
    """The four lists over one in-memory table."""

    def __init__(self, tokens_max: int, likeness: Likeness) -> None:
        super().__init__(tokens_max, likeness)
        self.confidence: dict[tuple[str, str], float] = {}
        self.written: dict[tuple[str, str], int] = {}
        self.shown: list[Note] = []

    def brief(self, run: Run) -> Briefing:
        notes = reachable(self.rows.values(), run)
        texts = [note.text for note in notes]
        places = [(note.entity, note.key) for note in notes]
        lists = (
            self.likeness.cosines(run.task, texts),
            self.likeness.coverages(run.task, texts),
            [float(self.written[place]) for place in places],
            [self.confidence[place] for place in places],
        )
        fused = [0.0] * len(notes)
        for weight, scores in zip(WEIGHTS, lists, strict=True):
            for at, rank in enumerate(ranks(scores)):
                fused[at] += weight / (K + rank)
        order = sorted(range(len(notes)), key=lambda at: (-fused[at], at))
        briefing = packed((notes[at] for at in order), self.tokens_max)
        self.shown = briefing.notes
        return briefing

    def write(self, run: Run, note: Note) -> None:
        super().write(run, note)
        self.confidence[note.entity, note.key] = FRESH if note.confidence is None else note.confidence
        self.written[note.entity, note.key] = run.number

    def finish(self, run: Run, result: str, used: list[Note]) -> None:
        for note in self.shown:
            place = note.entity, note.key
            self.confidence[place] = max(0.0, min(1.0, self.confidence[place] * FACTORS[result]))

    def worth(self, note: Note) -> float | None:
        return self.confidence.get((note.entity, note.key))


def ranks(scores: Sequence[float]) -> list[int]:
    """1 for the highest; equal ones in the order they were written."""
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    found = [0] * len(scores)
    for rank, at in enumerate(order, start=1):
        found[at] = rank
    return found
