"""How a briefing words one entry: one line of Markdown in which everything that others wrote stands inside code spans.

What was noted comes first, `key = value (why)` in one span, then who, age, version and last outcome in a dozen tokens;
headings say the rest. Outside the spans are only our words, numbers and plain names: no note forges a line, a heading, an order.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import Final, NamedTuple

from herdbook.base.clock import iso
from herdbook.fastloop.candidates import ANYWAY, DEAD_ENDS, Candidate
from herdbook.fastloop.tokens import estimate_tokens
from herdbook.record.types import Head, Version

# Line ends, controls, and what is invisible or turns the text around: shown by code point. Joiners stay, letters need them.
INVISIBLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
SHORT_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
BACKTICKS: Final = re.compile("`+")
PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@/-]*")  # a name that Markdown and a shell both take literally
CHARS_PER_TOKEN_MAX: Final = 4  # the estimate never gives more characters than this for a token: three letters and a space
WHY_TOKENS: Final = 3  # the marks around a why
AGAIN_CHARS_MAX: Final = 1_000  # longer texts are priced each time
PART_TOKENS_MIN: Final = 8  # less of a value or a why than this says nothing
LINE_TOKENS_MIN: Final = estimate_tokens("- `a = 1` a new v1")  # no line costs less


class Line(NamedTuple):
    text: str
    tokens: int
    clipped: bool


def entry_line(candidate: Candidate, *, path: str, now: int, tokens_max: int, share: int, part_min: int = 0) -> Line | None:
    """One entry in at most `tokens_max`, or None when it does not fit.

    Where its value and why are over their `share`, and by more than the pointer to the whole costs, they are clipped to it. Then
    what is left of them has to be worth that pointer too, unless less (`part_min`) is better than nothing.
    """
    version = candidate.version
    lead = "> - " if candidate.standing == "unproven" else "- "
    about = about_entry(candidate, path=path, now=now)
    room = tokens_max - priced_phrase(f"{lead} {about}")
    named = priced_phrase(version.key)
    pointer = f"(clipped: herdbook read {argument(version.path)} {argument(version.key)})"
    pointed = priced_phrase(pointer)
    if len(version.value_text) + len(version.why or "") <= (share + pointed) * CHARS_PER_TOKEN_MAX:
        quoted, tokens = whole(noted(version.key, version.value_text, version.why))
        if tokens <= min(room, share + named + pointed):
            # The parts are counted apart, which never gives less than the line as a whole.
            return Line(f"{lead}{quoted} {about}", tokens_max - room + tokens, clipped=False)
    part = min(share, room - named - pointed)
    said = None if part < (part_min or pointed) else said_within(version, part + named)
    if said is None:
        return None
    quoted, tokens = said
    return Line(f"{lead}{quoted} {pointer} {about}", tokens_max - room + pointed + tokens, clipped=True)


def noted(key: str, value: str, why: str | None) -> str:
    """An entry in its author's words. One author wrote it all, so nothing is gained by telling its parts apart with marks."""
    return f"{key} = {value} ({why})" if why else f"{key} = {value}"


def said_within(version: Version, room: int) -> tuple[str, int] | None:
    """The beginning of the value and of the why in so many tokens, the why in a third of them; None where there is no room."""
    left = room - priced_phrase(f"`{version.key} = `")
    why, spent = beginning(version.why, left // 3 - WHY_TOKENS) if version.why else ("", 0)
    value, _ = beginning(version.value_text, left - (spent + WHY_TOKENS if why else 0))
    if not value:
        return None
    quoted, tokens = whole(noted(version.key, value, why))
    return (quoted, tokens) if tokens <= room else None


def about_entry(candidate: Candidate, *, path: str, now: int) -> str:
    """Who wrote it, when, which version, and what happened since; what the heading above it says is not said again."""
    version, head = candidate.version, candidate.head
    parts = [f"{word(version.author)} {ago(now - version.at)} v{version.number}"]
    if version.path != path:
        parts.append(f"from {word(version.path)}")
    if version.kind == "belief":
        parts.append("belief")
    if version.applies_when:
        parts.append(f"when {word(version.applies_when)}")
    if version.expires_at is not None:
        parts.append(f"until {iso(version.expires_at)[:16]}Z")
    if not version.sealed:
        parts.append("unverified")
    if candidate.block in (DEAD_ENDS, ANYWAY) and candidate.standing != "unproven":
        parts.append(candidate.standing)
    if candidate.standing == "contested":
        parts.append(contested_note(head))
    if candidate.instead_of is not None:
        parts.append(f"v{candidate.instead_of} is newer but does not stand")
    if head.last_at is not None:
        parts.append(f"{head.last_type} {ago(now - head.last_at, least='now')}")
    return ", ".join(parts)


def contested_note(head: Head) -> str:
    """What changed, in the words a person would say it with."""
    held, failed = round(head.held), round(head.failed_since)
    return f"held {held} times, failed the last {failed}" if held else f"has not held, failed the last {failed}"


def ago(microseconds: int, *, least: str = "new") -> str:
    seconds = max(0, microseconds) // 1_000_000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return least


def surely_over(version: Version, tokens_max: int) -> bool:
    """Whether the value is too large for so many tokens, whatever it says."""
    return len(version.value_text) > tokens_max * CHARS_PER_TOKEN_MAX


def excerpt(text: str, room: int) -> str:
    """The text as a code span of at most `room` tokens; empty when there is no room."""
    part, _ = beginning(text, room)
    return span(part) if part else ""


def beginning(text: str, room: int) -> tuple[str, int]:
    """As much of the text as a code span of `room` tokens holds, and what that costs; empty when there is no room."""
    if len(text) <= room * CHARS_PER_TOKEN_MAX:
        _, tokens = whole(text)
        if tokens <= room:
            return text, tokens
    if room < PART_TOKENS_MIN:
        return "", 0
    return clipped_again(text, room) if len(text) <= AGAIN_CHARS_MAX else clipped(text, room)


def clipped(text: str, room: int) -> tuple[str, int]:
    """The beginning of a text that does not fit."""
    cut = min(len(text), room * CHARS_PER_TOKEN_MAX)
    while cut:
        part = text[:cut] + "…"
        tokens = estimate_tokens(span(part))
        if tokens <= room:
            return part, tokens
        cut = min(cut - 1, cut * room // tokens)
    return "", 0


def whole(text: str) -> tuple[str, int]:
    """The text as a code span, and what that costs."""
    return priced_again(text) if len(text) <= AGAIN_CHARS_MAX else priced(text)


def priced(text: str) -> tuple[str, int]:
    quoted = span(text)
    return quoted, estimate_tokens(quoted)


# The same few entries are briefed again and again, in the same words for a while; 10 MB together when all are full of ASCII.
priced_again = lru_cache(maxsize=4_096)(priced)
clipped_again = lru_cache(maxsize=4_096)(clipped)
priced_phrase = lru_cache(maxsize=4_096)(estimate_tokens)


def word(text: str) -> str:
    """A name, bare when it is plainly one."""
    return text if is_plain(text) else span(text)


@lru_cache(maxsize=4_096)
def is_plain(text: str) -> bool:
    return PLAIN.fullmatch(text) is not None


def argument(text: str) -> str:
    """A name as it is typed in a shell."""
    return text if is_plain(text) else span(shlex.quote(text))


def span(text: str) -> str:
    """The text as one code span on one line, behind a fence longer than any run of backticks inside."""
    text = visible(text)
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (1 + max(map(len, BACKTICKS.findall(text))))
    return f"{fence} {text} {fence}"


def visible(text: str) -> str:
    """Every character that would break the line or hide is written out."""
    return INVISIBLE.sub(escaped, text)


def escaped(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return SHORT_ESCAPES.get(character) or (f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")
