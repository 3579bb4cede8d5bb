"""How a briefing words one entry: one line of Markdown in which everything that others wrote stands inside code spans.

Outside the spans are only our own words, numbers and plain names, so no note can forge a line, a heading, a standing or an order.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import Final, NamedTuple

from herdbook.base.clock import iso
from herdbook.fastloop.candidates import Candidate
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
WHY_TOKENS: Final = 3  # the words around a why
FADED_SHOWN: Final = 0.05  # a line has no room for smaller differences
AGAIN_CHARS_MAX: Final = 1_000  # longer texts are priced each time
PART_TOKENS_MIN: Final = 8  # less of a value or a why than this says nothing
LINE_TOKENS_MIN: Final = estimate_tokens("- `a` = `1` (a, new, v1, observed 0.50, no outcome)")  # no line costs less


class Line(NamedTuple):
    text: str
    tokens: int
    clipped: bool


class Said(NamedTuple):
    """What others wrote, as it goes into a line."""

    value: str
    why: str
    tokens: int


def entry_line(candidate: Candidate, *, path: str, now: int, tokens_max: int, share: int) -> Line | None:
    """One entry in at most `tokens_max`, its value and why clipped to `share` of them; None when not even a pointer fits."""
    version = candidate.version
    lead = "> - " if candidate.standing == "unproven" else "- "
    key, about = span(version.key), about_entry(candidate, path=path, now=now)
    fixed = priced_phrase(f"{lead}{key} = ({about})") + 1
    said, pointer = said_whole(version, min(share, tokens_max - fixed)), ""
    if said is None:
        pointer = f" (clipped, read it with: herdbook read {argument(version.path)} {argument(version.key)})"
        fixed += priced_phrase(pointer)
        said = said_within(version, min(share, tokens_max - fixed))
    if not said.value:
        return None
    why = f"why {said.why}; " if said.why else ""
    # The parts are counted apart, which never gives less than the line as a whole.
    return Line(f"{lead}{key} = {said.value}{pointer} ({why}{about})", fixed + said.tokens, bool(pointer))


def said_whole(version: Version, room: int) -> Said | None:
    """The value and the why in so many tokens, or None where one of them has to be clipped."""
    why_text = version.why or ""
    if len(version.value_text) + len(why_text) > room * CHARS_PER_TOKEN_MAX:
        return None
    value, tokens = whole(version.value_text)
    why = ""
    if why_text:
        why, why_tokens = whole(why_text)
        tokens += why_tokens + WHY_TOKENS
    return Said(value, why, tokens) if tokens <= room else None


def said_within(version: Version, room: int) -> Said:
    """The value and the why in so many tokens, the why in a third of them if both are long; no value where there is no room."""
    why, why_tokens, why_clipped = excerpt(version.why, room // 3 - WHY_TOKENS) if version.why else ("", 0, False)
    around = WHY_TOKENS if why else 0
    value, value_tokens, _ = excerpt(version.value_text, room - why_tokens - around)
    left = room - value_tokens - WHY_TOKENS
    if version.why and why_clipped and value and left > why_tokens:
        why, why_tokens, _ = excerpt(version.why, left)
        around = WHY_TOKENS if why else 0
    return Said(value, why, value_tokens + why_tokens + around)


def about_entry(candidate: Candidate, *, path: str, now: int) -> str:
    """Who wrote it, when, and how far it may be relied on."""
    version, head = candidate.version, candidate.head
    parts = [f"{word(version.author)} in {word(version.box)}" if version.box else word(version.author)]
    parts.append(f"{ago(now - version.at)}, v{version.number}")
    if version.path != path:
        parts.append(f"from {word(version.path)}")
    if version.kind == "belief":
        parts.append("a belief")
    if version.applies_when:
        parts.append(f"when {word(version.applies_when)}")
    if version.expires_at is not None:
        parts.append(f"until {iso(version.expires_at)[:16]}Z")
    if not version.sealed:
        parts.append("unverified")
    parts.append(f"{candidate.standing} {shown_confidence(head.confidence, -candidate.fading)}")
    if candidate.standing == "contested":
        parts.append(contested_note(head))
    if candidate.instead_of is not None:
        parts.append(f"v{candidate.instead_of} is newer but does not stand")
    parts.append("no outcome" if head.last_at is None else f"last {head.last_type} {outcome_age(now - head.last_at)}")
    return ", ".join(parts)


def shown_confidence(confidence: float, effective: float) -> str:
    """Both numbers where the difference matters."""
    return f"{confidence:.2f}" if confidence - effective < FADED_SHOWN else f"{confidence:.2f} faded to {effective:.2f}"


def contested_note(head: Head) -> str:
    """What changed, in the words a person would say it with."""
    held, failed = round(head.held), round(head.failed_since)
    return f"held {held} times, failed the last {failed}" if held else f"has not held, failed the last {failed}"


def outcome_age(microseconds: int) -> str:
    age = ago(microseconds)
    return "just now" if age == "new" else f"{age} ago"


def ago(microseconds: int) -> str:
    seconds = max(0, microseconds) // 1_000_000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return "new"


def surely_over(version: Version, tokens_max: int) -> bool:
    """Whether the value is too large for so many tokens, whatever it says."""
    return len(version.value_text) > tokens_max * CHARS_PER_TOKEN_MAX


def excerpt(text: str, room: int) -> tuple[str, int, bool]:
    """The text as a code span of at most `room` tokens, its cost, and whether it was clipped; empty when there is no room."""
    if len(text) <= room * CHARS_PER_TOKEN_MAX:
        quoted, tokens = whole(text)
        if tokens <= room:
            return quoted, tokens, False
    if room < PART_TOKENS_MIN:
        return "", 0, True
    return clipped_again(text, room) if len(text) <= AGAIN_CHARS_MAX else clipped(text, room)


def clipped(text: str, room: int) -> tuple[str, int, bool]:
    """The beginning of a text that does not fit."""
    cut = min(len(text), room * CHARS_PER_TOKEN_MAX)
    while cut:
        part = span(text[:cut] + "…")
        tokens = estimate_tokens(part)
        if tokens <= room:
            return part, tokens, True
        cut = min(cut - 1, cut * room // tokens)
    return "", 0, True


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
