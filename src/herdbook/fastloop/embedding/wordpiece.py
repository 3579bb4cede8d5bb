"""The tokens of uncased BERT models, without a tokenizer library: words, then the longest known pieces of each.

It promises the ids that the reference tokenizer gives, for any text in any script. It cuts nothing: what is longer than a model
reads is its caller's to split.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Final

WORD_CHARS_MAX: Final = 100  # the reference's own rule: a longer word is unknown
CJK: Final = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
ASCII_MARKS: Final = frozenset(map(chr, (*range(33, 48), *range(58, 65), *range(91, 97), *range(123, 127))))


@cache
def vocabulary() -> dict[str, int]:
    """Pieces with their ids."""
    text = (resources.files(__package__) / "bert_vocab.txt").read_text(encoding="utf-8")
    return {piece: number for number, piece in enumerate(text.rstrip("\n").split("\n"))}


def encode(text: str) -> list[int]:
    """The ids of a text between the two marks that every text stands between."""
    known = vocabulary()
    return [known["[CLS]"], *(number for word in words(text) for number in pieces(word, known)), known["[SEP]"]]


def words(text: str) -> Iterator[str]:
    """Lower case without accents; marks and ideographs are words of their own."""
    word: list[str] = []
    for character in unicodedata.normalize("NFD", text.lower()):
        kind = unicodedata.category(character)
        if kind == "Mn" or character == "\ufffd" or (kind[0] == "C" and character not in "\t\n\r"):
            continue
        if character.isspace() or stands_alone(character, kind):
            if word:
                yield "".join(word)
                word = []
            if not character.isspace():
                yield character
        else:
            word.append(character)
    if word:
        yield "".join(word)


def stands_alone(character: str, kind: str) -> bool:
    code = ord(character)
    return character in ASCII_MARKS or kind[0] == "P" or any(low <= code <= high for low, high in CJK)


def pieces(word: str, known: dict[str, int]) -> list[int]:
    """The longest known beginning, then the longest known continuation, and so on; one unknown part makes the word unknown."""
    found: list[int] = []
    start = 0 if len(word) <= WORD_CHARS_MAX else len(word) + 1
    while start < len(word):
        end = len(word)
        while end > start and (("##" if start else "") + word[start:end]) not in known:
            end -= 1
        if end == start:
            return [known["[UNK]"]]
        found.append(known[("##" if start else "") + word[start:end]])
        start = end
    return found if start == len(word) else [known["[UNK]"]]
