"""Whether confidence means what it says: of what was used at a confidence of 0.8, did eight in ten work? With a picture. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from herdbook.slowloop.intervals import Z95
from herdbook.slowloop.runs import Run

BINS: Final = 10
SIZE, MARGIN, FOOT = 320, 40, 20


@dataclass(frozen=True, slots=True)
class Bin:
    """What was used within a tenth of confidence, and how often the run then succeeded."""

    low: float
    high: float
    count: int
    said: float
    came: float
    half: float  # of the 95 % interval of `came`

    def as_dict(self) -> dict[str, float]:
        names = ("low", "high", "count", "said", "came", "half")
        return {name: round(getattr(self, name), 4) for name in names}


def pairs(runs: Iterable[Run], confidence_at: dict[str, int]) -> list[tuple[float, float]]:
    """(confidence when it was shown, 1 if it then held) for everything a run used."""
    return [
        (exposure.features[confidence_at[exposure.form]], float(run.success and exposure.used != "attempt"))
        for run in runs
        for exposure in {each.claim: each for each in run.exposures if each.served and each.used}.values()
        if exposure.form in confidence_at and exposure.features
    ]


def bins(found: Sequence[tuple[float, float]]) -> list[Bin]:
    """By tenths of confidence; those in which nothing fell are left out."""
    told = []
    for nth in range(BINS):
        inside = [pair for pair in found if min(BINS - 1, int(pair[0] * BINS)) == nth]
        if inside:
            said = sum(pair[0] for pair in inside) / len(inside)
            came = sum(pair[1] for pair in inside) / len(inside)
            held = (sum(pair[1] for pair in inside) + 2) / (len(inside) + 4)
            told.append(
                Bin(nth / BINS, (nth + 1) / BINS, len(inside), said, came, Z95 * (held * (1 - held) / (len(inside) + 4)) ** 0.5)
            )
    return told


def brier(found: Sequence[tuple[float, float]]) -> float | None:
    """Mean squared distance between what was said and what came."""
    return sum((said - came) ** 2 for said, came in found) / len(found) if found else None


def svg(found: Sequence[Bin]) -> str:
    """A reliability diagram: on the diagonal, confidence means what it says. Dots are as large as what is behind them."""
    side = SIZE - MARGIN - FOOT

    def x(value: float) -> float:
        return MARGIN + value * side

    def y(value: float) -> float:
        return FOOT + (1 - value) * side

    most = max((each.count for each in found), default=1)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" font-family="sans-serif" font-size="11">']
    parts.append("<title>Confidence against later success</title>")
    parts.append(f'<rect x="{MARGIN}" y="{FOOT}" width="{side}" height="{side}" fill="none" stroke="#999"/>')
    parts.append(f'<path d="M{x(0)} {y(0)}L{x(1)} {y(1)}" stroke="#bbb" stroke-dasharray="4"/>')
    for each in found:
        low, high = max(0.0, each.came - each.half), min(1.0, each.came + each.half)
        parts.append(f'<path d="M{x(each.said):.1f} {y(low):.1f}V{y(high):.1f}" stroke="#07a"/>')
        radius = 2 + 5 * (each.count / most) ** 0.5
        dot = f'<circle cx="{x(each.said):.1f}" cy="{y(each.came):.1f}" r="{radius:.1f}" fill="#07a">'
        parts.append(f"{dot}<title>{each.count} uses</title></circle>")
    parts.append(f'<text x="{MARGIN}" y="{SIZE - 6}">confidence when shown, 0 to 1</text>')
    parts.append(f'<text x="4" y="{FOOT - 6}">share that held</text></svg>')
    return "\n".join(parts) + "\n"


def as_dict(found: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """The diagram with the data behind it."""
    told, score = bins(found), brier(found)
    return {
        "uses": len(found),
        "brier": None if score is None else round(score, 4),
        "bins": [each.as_dict() for each in told],
        "svg": svg(told),
    }
