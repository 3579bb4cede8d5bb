"""The door for names and prose: canonical NFC, printable, bounded. What passes here is trusted inside."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from herdbook.base import limits
from herdbook.base.errors import InvalidText, TooLarge

# Cf holds the bidirectional overrides and zero-width characters that make two different names look alike.
REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
JOINERS = frozenset("\u200c\u200d")  # Cf, but letters of Persian and Indic words and parts of emoji
NORMALISED_MAX = 4  # NFC makes a name at most this much shorter, but for names made of marks alone
REFUSED_IN_PROSE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")  # controls but for tab and line ends


@lru_cache(maxsize=16_384)  # the same few names pass here all day
def entity_path(text: str) -> str:
    """Canonical form of an entity path such as `acme/checkout/tests`: no empty part, any printable Unicode."""
    path = name(text, what="entity path", chars_max=limits.ENTITY_PATH_CHARS_MAX)
    parts = path.split("/")
    if not all(part.strip() for part in parts):
        raise InvalidText(f"the entity path {path!r} has an empty part: write it as 'acme/checkout/tests'")
    if len(parts) > limits.ENTITY_PATH_PARTS_MAX:
        raise TooLarge(f"the entity path has {len(parts)} parts, the limit is {limits.ENTITY_PATH_PARTS_MAX}")
    return path


@lru_cache(maxsize=16_384)
def key(text: str) -> str:
    """Canonical form of a key; slashes and dots are only text."""
    return name(text, what="key", chars_max=limits.KEY_CHARS_MAX)


def identifier(text: object, *, what: str) -> str:
    """A session id, request id, outcome ref or box id."""
    return name(text, what=what, chars_max=limits.ID_CHARS_MAX)


def name(text: object, *, what: str, chars_max: int = limits.NAME_CHARS_MAX) -> str:
    """One printable line, NFC, not blank, at most `chars_max` characters."""
    if not isinstance(text, str):
        raise InvalidText(f"the {what} must be text, not {type(text).__name__}")
    if text.isascii():
        if not text.isprintable():
            raise InvalidText(f"the {what} {text!r} holds a control character: send printable text")
    else:
        if len(text) > chars_max * NORMALISED_MAX:  # normalising takes the square of a long run of combining marks
            raise TooLarge(f"the {what} has {len(text)} characters, the limit is {chars_max}")
        text = unicodedata.normalize("NFC", text)
        refuse_unprintable(text, what=what)
    if not text.strip():
        raise InvalidText(f"the {what} is empty")
    if len(text) > chars_max:
        raise TooLarge(f"the {what} has {len(text)} characters, the limit is {chars_max}")
    return text


def prose(text: object, *, what: str, chars_max: int) -> str:
    """Text that may run over lines: tabs and line ends are allowed, other controls and lone surrogates are not."""
    if not isinstance(text, str):
        raise InvalidText(f"the {what} must be text, not {type(text).__name__}")
    if len(text) > chars_max:
        raise TooLarge(f"the {what} has {len(text)} characters, the limit is {chars_max}")
    control = REFUSED_IN_PROSE.search(text)
    if control:
        raise InvalidText(f"the {what} holds the control character U+{ord(control[0]):04X}")
    return whole_characters(text, what=what)


def whole_characters(text: str, *, what: str) -> str:
    """Refuse lone surrogates, which no UTF-8 store can keep."""
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise InvalidText(f"the {what} holds a lone surrogate at {problem.start}: send well-formed Unicode") from problem
    return text


def refuse_unprintable(text: str, *, what: str) -> None:
    """The first character that is not printable, by its code point, so that the sender can find it."""
    for character in text:
        if unicodedata.category(character) in REFUSED_CATEGORIES and character not in JOINERS:
            raise InvalidText(f"the {what} holds U+{ord(character):04X}, which is not printable: remove it")
