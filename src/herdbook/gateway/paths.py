"""One spelling for a path, or none: what a rule is matched against is, byte for byte, what goes upstream.

Servers disagree on what `%2e`, `//`, `;` or a second decoding mean, and every disagreement is a way around a rule. So whatever
could be read in two ways is refused, never repaired. Pure: no I/O.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes

from herdbook.base import limits
from herdbook.base.errors import InvalidRequest

LITERAL: Final = re.compile(rb"[A-Za-z0-9\-_~.!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2}")
WHOLE: Final = re.compile(rb"(?:[A-Za-z0-9\-_~.!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*")
TRIPLET: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~")
# Decoded, these would make another path: a separator, a dot segment, the end of a string, a query, or a second decoding.
REFUSED: Final = frozenset(b"/\\.%?#\x00")
STRUCTURE: Final = frozenset("/\\.%?#;")


class AmbiguousPath(InvalidRequest):
    """This path could be read in two ways: send it plain, without encoded slashes or dots, empty parts, `.` and `..`."""

    code = "ambiguous_path"


@dataclass(frozen=True, slots=True)
class CanonicalPath:
    """A path in its one spelling."""

    sent: bytes  # as it goes upstream: reserved characters stay encoded as they came
    text: str  # decoded once, for rules and for people


def canonical(raw: bytes) -> CanonicalPath:
    """The one spelling of this path, which begins with a slash. Raises AmbiguousPath or InvalidRequest."""
    if len(raw) > limits.GATEWAY_PATH_BYTES_MAX:
        raise AmbiguousPath(f"the path has {len(raw)} bytes, the limit is {limits.GATEWAY_PATH_BYTES_MAX}: send a shorter one")
    if not raw.startswith(b"/") or not WHOLE.fullmatch(raw):
        raise AmbiguousPath("the path holds a character that is not allowed in one: percent-encode it, once")
    sent = TRIPLET.sub(normal_triplet, raw)
    try:
        text = unquote_to_bytes(sent).decode()
    except UnicodeDecodeError as problem:
        raise AmbiguousPath("the path is not UTF-8 after decoding: encode its characters as UTF-8") from problem
    refuse_disguises(text)
    refuse_segments(text)
    return CanonicalPath(sent, text)


def normal_triplet(found: re.Match[bytes]) -> bytes:
    """An encoded letter or digit is that letter or digit; what is reserved stays encoded, in upper case."""
    value = int(found[1], 16)
    if value in REFUSED or value < 0x20 or value == 0x7F:
        raise AmbiguousPath(f"the path holds {found[0].decode()}, which servers read in different ways: leave it out")
    return bytes([value]) if value in UNRESERVED else b"%" + found[1].upper()


def refuse_disguises(text: str) -> None:
    """Some servers fold wide and composed characters into plain ones: no character may become structure that way."""
    if text.isascii():
        return
    for character in text:
        folded = unicodedata.normalize("NFKC", character)
        if folded != character and STRUCTURE & set(folded):
            raise AmbiguousPath(f"the path holds U+{ord(character):04X}, which some servers read as {folded!r}: leave it out")
        if unicodedata.category(character) in ("Cc", "Cf", "Cs"):
            raise AmbiguousPath(f"the path holds U+{ord(character):04X}, which is not printable: leave it out")


def refuse_segments(text: str) -> None:
    segments = text.split("/")[1:]
    if len(segments) > limits.GATEWAY_PATH_PARTS_MAX:
        raise AmbiguousPath(f"the path has over {limits.GATEWAY_PATH_PARTS_MAX} parts, the limit (rules are matched by part)")
    for number, segment in enumerate(segments, 1):
        name = segment.partition(";")[0].strip()  # some servers cut parameters off, and spaces, before they look at dots
        if not segment and number < len(segments):
            raise AmbiguousPath("the path has an empty part (`//`), which servers read in different ways: leave it out")
        if segment and (not name or not name.strip(".")):
            raise AmbiguousPath(f"the path has the part {segment!r}, which could mean another place: write out the place meant")
