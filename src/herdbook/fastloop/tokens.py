"""An estimate of how many tokens a model will count, leaning upwards, without any tokenizer's vocabulary.

It promises not to count fewer than the tokenizers in use do, so that a briefing fits the space it was asked for. On 35 kinds of
text it gave 1.0 to 2.8 times the largest count of three of them, 1.3 on briefing lines. Joined lines cost no more than apart.
"""

from __future__ import annotations

import re
from typing import Final

LETTERS_PER_TOKEN: Final = 3
LOWER: Final = b"abcdefghijklmnopqrstuvwxyz"
CONSONANTS: Final = b"bcdfghjklmnpqrstvwxz"
LETTERS_AND_SPACE: Final = LOWER + LOWER.upper() + b" "
LETTERS_ELSE_SPACE: Final = bytes(code if code in LETTERS_AND_SPACE else 32 for code in range(256))
# The shape of a text: c for a consonant, v for a vowel, U for a capital.
SHAPE: Final = bytes.maketrans(LOWER + LOWER.upper(), bytes(99 if code in CONSONANTS else 118 for code in LOWER) + b"U" * 26)
# Where a word is not one a vocabulary knows whole: consonants hard to pronounce, capitals in a row, a change of case.
BREAKS: Final = (b"ccc", b"cccc", b"UU", b"vU", b"cU")

FOREIGN: Final = re.compile("[^\x00-\x7f]")
# Scripts that every vocabulary holds character by character. Of the others, the rarer ones fall back to single bytes.
ONE_TOKEN: Final = re.compile("[\u0080-\u00ff\u0410-\u044f]")
TWO_TOKENS: Final = re.compile("[\u0100-\u07ff\u2000-\u206f\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef]")


def estimate_tokens(text: str) -> int:
    """How many tokens the text will cost, rather too many than too few."""
    if text.isascii():
        return ascii_tokens(text.encode("ascii"))
    # Every other character becomes one "?", which counts as one; what it costs beyond that is added.
    return ascii_tokens(text.encode("ascii", "replace")) + foreign_extra(text)


def ascii_tokens(data: bytes) -> int:
    """Words by the third letter and by their breaks, every digit and mark by itself; one space belongs to the word after it."""
    words = data.translate(LETTERS_ELSE_SPACE).split()
    pieces = sum([(length + LETTERS_PER_TOKEN - 1) // LETTERS_PER_TOKEN for length in map(len, words)])
    breaks = sum(map(data.translate(SHAPE).count, BREAKS))
    marks = len(data.translate(None, LETTERS_AND_SPACE))
    loose_spaces = data.count(b" ") - len(words)
    return pieces + breaks + marks + max(0, loose_spaces)


def foreign_extra(text: str) -> int:
    """What characters outside ASCII cost beyond the one already counted for each."""
    found = FOREIGN.findall(text)
    return sum(map(character_tokens, found)) - len(found)


def character_tokens(character: str) -> int:
    if ONE_TOKEN.match(character):
        return 1
    if TWO_TOKENS.match(character):
        return 2
    return 3 if character <= "\uffff" else 4
