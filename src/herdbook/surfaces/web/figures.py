"""Pictures as SVG, made of numbers only: whatever text goes in is escaped. Pure.

Colours come from the style sheet by class, so that they follow light and dark, and each mark says in words what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

WIDTH: Final = 640
Interval = tuple[str, float | None, float | None, float | None]  # its name, low, estimate, high


def confidence(claim: dict[str, Any]) -> str:
    """Confidence from the first moment through every move, as steps. Empty where nothing has moved it."""
    moves = claim["moves"]
    if not moves:
        return ""
    height, left, right, top, bottom = 140, 36, 12, 10, 18
    inner, step = height - top - bottom, (WIDTH - left - right) / len(moves)

    def y(value: float) -> float:
        return top + (1 - value) * inner

    parts = [svg_open(height, "Confidence through every move")]
    parts += [
        f'<path class="grid" d="M{left} {y(mark):.1f}H{WIDTH - right}"/><text x="2" y="{y(mark) + 4:.1f}">{mark:.1f}</text>'
        for mark in (0.0, 0.5, 1.0)
    ]
    path, x = f"M{left} {y(claim['initial']):.1f}", float(left)
    dots = []
    for move in moves:
        x += step
        path += f"H{x:.1f}V{y(move['after']):.1f}"
        what = "good" if move["after"] >= move["before"] else "bad"
        says = escape(f"{move['at']}: {move['type']}, {move['how']}, {move['before']:.3f} to {move['after']:.3f}")
        dots.append(f'<circle class="{what}" cx="{x:.1f}" cy="{y(move["after"]):.1f}" r="3.5"><title>{says}</title></circle>')
    parts += [f'<path class="line" d="{path}"/>', *dots]
    parts.append(f'<text x="{left}" y="{height - 4}">{len(moves)} move{"s" * (len(moves) > 1)}, in order of arrival</text></svg>')
    return "".join(parts)


def intervals(rows: Sequence[Interval]) -> str:
    """Estimates with their 95 % intervals around no difference; rows without one are left out. Empty where none has one."""
    known = [
        (name, low, middle, high)
        for name, low, middle, high in rows
        if low is not None and middle is not None and high is not None
    ]
    if not known:
        return ""
    most = max(0.05, *(max(abs(low), abs(high)) for _, low, _, high in known))
    line, left, right = 24, 260, 16
    height = line * len(known) + 26

    def x(value: float) -> float:
        return left + (value / most + 1) / 2 * (WIDTH - left - right)

    parts = [svg_open(height, "Estimates with 95 % intervals"), f'<path class="grid" d="M{x(0):.1f} 0V{height - 20}"/>']
    for number, (name, low, middle, high) in enumerate(known):
        y = line * number + line / 2
        what = "good" if low > 0 else "bad" if high < 0 else "open"
        says = escape(f"{name}: {middle:+.3f}, from {low:+.3f} to {high:+.3f}")
        short = escape(name if len(name) <= 40 else f"…{name[-39:]}")
        parts.append(f'<text x="4" y="{y + 4:.1f}">{short}</text>')
        parts.append(f'<path class="{what}" d="M{x(low):.1f} {y:.1f}H{x(high):.1f}"><title>{says}</title></path>')
        parts.append(f'<circle class="{what}" cx="{x(middle):.1f}" cy="{y:.1f}" r="4"><title>{says}</title></circle>')
    marks = [(min(x(value), WIDTH - 24), value) for value in (-most, 0.0, most)]
    parts += [f'<text class="middle" x="{at:.1f}" y="{height - 6}">{value:+.2f}</text>' for at, value in marks]
    return "".join(parts) + "</svg>"


def shares(parts: Sequence[tuple[str, int]]) -> str:
    """How many there are of each, as one bar; the class of a part is its name."""
    total = sum(count for _, count in parts)
    if not total:
        return ""
    width, at, found = 160, 0.0, ['<svg class="bar" viewBox="0 0 160 10" role="img">']
    says = ", ".join(f"{count} {name}" for name, count in parts if count)
    found.append(f"<title>{escape(says)}</title>")
    for name, count in parts:
        if count:
            wide = width * count / total
            found.append(f'<rect class="{escape(name)}" x="{at:.1f}" y="0" width="{wide:.1f}" height="10"/>')
            at += wide
    return "".join(found) + "</svg>"


def svg_open(height: int, title: str) -> str:
    return f'<svg class="figure" viewBox="0 0 {WIDTH} {height}" role="img"><title>{escape(title)}</title>'
