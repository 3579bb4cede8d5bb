"""How entries, moves of trust and times look to a person. Every text is made harmless on its way through."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from herdbook.surfaces.cli.terminal import Answer, Terminal, clipped, compact, line, prose

STANDING_COLOURS: Final = {
    "unproven": "yellow",
    "observed": "green",
    "corroborated": "green",
    "contested": "red",
    "retired": "dim",
}


def when(at: object) -> str:
    """`2026-01-01 10:00:03Z` from the answer's ISO time."""
    text = line(at or "")
    return text[:19].replace("T", " ") + "Z" if len(text) >= 20 else text


def clock(at: object) -> str:
    """`10:00:03.120` of an ISO time, for lines of one day."""
    text = line(at or "")
    return text[11:23] if len(text) >= 24 else when(at)


def age(days: object) -> str:
    """How long ago, in the largest unit that fits."""
    if not isinstance(days, int | float):
        return ""
    seconds = max(0.0, float(days)) * 86_400
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "just now"


def decimal(number: object, places: int = 2) -> str:
    return f"{number:.{places}f}" if isinstance(number, int | float) else "–"


def name(entry: Answer) -> str:
    """`acme/ci tz v3`"""
    if entry.get("refused"):
        return f"refused: {line(entry['refused'])}"
    version = entry.get("version")
    place = f"{line(entry['entity'])}  " if entry.get("entity") else ""
    return f"{place}{line(entry.get('key', ''))}" + (f"  v{version}" if version else "")


def standing(entry: Answer, terminal: Terminal) -> str:
    word = line(entry.get("standing", "unproven"))
    return terminal.paint(word, STANDING_COLOURS.get(word, "dim"))


def verdict(word: str, terminal: Terminal) -> str:
    return terminal.paint(word, "green" if word == "success" else "red")


def author(entry: Answer) -> str:
    """Who wrote it, as whom, and where."""
    parts = [f"by {line(entry.get('author') or '?')}"]
    if entry.get("identity") and entry["identity"] != entry.get("author"):
        parts.append(f"as {line(entry['identity'])}")
    if entry.get("box"):
        parts.append(f"in box {line(entry['box'])}")
    return " ".join(parts)


def kind(entry: Answer) -> str:
    word = line(entry.get("kind", "fact"))
    if entry.get("worked") is False:
        return "dead end" if word == "experience" else f"{word}, did not work"
    return word


def card(entry: Answer, terminal: Terminal) -> list[str]:
    """One entry in full."""
    numbers = f"confidence {decimal(entry.get('confidence'))}"
    if entry.get("effective_confidence") is not None:
        numbers += f" (now {decimal(entry['effective_confidence'])})"
    lines = [
        terminal.paint(name(entry), "bold"),
        f"  {standing(entry, terminal)} {kind(entry)} · {numbers} · evidence {signed(entry.get('evidence'))}",
        f"  {compact(entry.get('value'), 4_000)}",
        f"  why: {indented(entry['why'])}" if entry.get("why") else "  no why was given",
        f"  {author(entry)}, {when(entry.get('at'))} {age(entry.get('age_days'))}".rstrip(),
    ]
    return [*lines, *conditions(entry), *record_of(entry), *seal(entry, terminal)]


def indented(text: object) -> str:
    return prose(text).replace("\n", "\n       ")


def signed(number: object) -> str:
    return f"{number:+.2f}" if isinstance(number, int | float) else "–"


def conditions(entry: Answer) -> list[str]:
    lines = []
    if entry.get("applies_when"):
        lines.append(f"  applies when: {line(entry['applies_when'])}")
    if entry.get("expires_at"):
        lines.append(f"  expires: {when(entry['expires_at'])}")
    return [*lines, *(f"  {line(each.get('rel', ''))}: {name(each)}" for each in entry.get("links") or [])]


def record_of(entry: Answer) -> list[str]:
    """How it has done so far."""
    parts = []
    if entry.get("moves"):
        parts.append(counted(entry["moves"], "outcome") + " moved it")
    if entry.get("recalls"):
        parts.append("read " + counted(entry["recalls"], "time"))
    if entry.get("affirmed"):
        parts.append("said again " + counted(entry["affirmed"], "time"))
    last = entry.get("last_outcome")
    if last:
        parts.append(f"last: {line(last.get('type'))} {line(last.get('ref'))}, {when(last.get('at'))}")
    return [f"  {' · '.join(parts)}"] if parts else []


def seal(entry: Answer, terminal: Terminal) -> list[str]:
    if entry.get("seal") == "unverified":
        return [terminal.paint("  unverified: the seal key is away, so nobody can say that this is what was written", "yellow")]
    return []


def counted(count: Any, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def move(each: Answer) -> str:
    """`0.500 → 0.515  ×1.030`; a failed attempt moves no confidence, whatever the outcome: its charge is evidence alone."""
    if is_attempt(each):
        return "failed attempt, charged"
    factor = each.get("factor")
    shown = f"  ×{factor:.3f}" if isinstance(factor, int | float) else ""
    return f"{decimal(each.get('before'), 3)} → {decimal(each.get('after'), 3)}{shown}"


def move_rows(moved: Iterable[Answer]) -> list[list[str]]:
    """Rows for a table of what an outcome moved."""
    return [[*where(each), move(each), "" if is_attempt(each) else line(each.get("how") or "")] for each in moved]


def is_attempt(each: Answer) -> bool:
    return each.get("how") == "attempt"


def where(each: Answer) -> list[str]:
    """Path, key and version as cells of a table."""
    if each.get("refused"):
        return [f"refused: {line(each['refused'])}", "", ""]
    return [line(each.get("entity") or ""), line(each.get("key") or ""), f"v{each.get('version') or '?'}"]


def brief_line(entry: Answer, terminal: Terminal) -> list[str]:
    """An entry in a list: what, how sure, and why."""
    sure = f"{standing(entry, terminal)} {decimal(entry.get('confidence'))}"
    lines = [f"{name(entry)}  {sure}  {author(entry)}, {when(entry.get('at'))}", f"    {compact(entry.get('value'))}"]
    return [*lines, f"    why: {clipped(entry['why'])}"] if entry.get("why") else lines


def nearest(wanted: str, known: Sequence[str], *, count: int = 3) -> list[str]:
    """The known names most like this one."""
    folded = {each.casefold(): each for each in known}
    return [folded[each] for each in difflib.get_close_matches(wanted.casefold(), list(folded), n=count, cutoff=0.5)]


def explanations(answer: Answer, entries: Iterable[Answer]) -> Iterator[str]:
    """Which score and rank every leg gave each entry, where that was asked for; legs that are missing, with the reason."""
    told = [entry for entry in entries if entry.get("explain")]
    if not told:
        return
    ranking = answer.get("ranking") or {}
    yield f"ordered by {line(ranking.get('rule', ''))}: score, then each leg's score and rank"
    for entry in told:
        why = entry["explain"]
        legs = [f"{line(name)} {leg['score']:.3f} #{leg['rank'] or '-'}" for name, leg in why["legs"].items()]
        yield f"  {line(entry.get('key', ''))} {why['score']:.4f}: {', '.join(legs)}"
    for name, reason in (ranking.get("left_out") or {}).items():
        yield f"  left out: {line(name)}, since {line(reason)}"
