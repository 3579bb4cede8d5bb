"""How like two texts are: by the embedder that herdbook itself would use, so that every policy has the same; else by words.

Texts of a fleet repeat, so each is turned into a vector once in a process.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from herdbook.fastloop.text import tokenize


class Likeness:
    """Cosines of texts, by meaning where an embedder is installed, else by words weighted by their rarity."""

    def __init__(self, embed: str = "off") -> None:
        self.words: dict[str, Counter[str]] = {}
        found = "off" if embed == "off" else embedder()
        self.embedder = None if isinstance(found, str) else found

    @property
    def embeds(self) -> bool:
        return self.embedder is not None

    def vector(self, text: str) -> list[float]:
        """Of length one."""
        return [float(number) for number in embedded(text)]

    def counted(self, text: str) -> Counter[str]:
        if text not in self.words:
            self.words[text] = Counter(tokenize(text))
        return self.words[text]

    def rarities(self, texts: Sequence[str]) -> dict[str, float]:
        seen = Counter(word for text in texts for word in self.counted(text))
        return {word: math.log(1 + len(texts) / count) for word, count in seen.items()}

    def cosines(self, query: str, texts: Sequence[str]) -> list[float]:
        if self.embedder is not None:
            return [float(embedded(query) @ embedded(text)) for text in texts]
        rarity = self.rarities(texts)
        asked = {word: count * rarity.get(word, 0.0) for word, count in self.counted(query).items()}
        return [cosine(asked, {word: n * rarity[word] for word, n in self.counted(text).items()}) for text in texts]

    def coverages(self, query: str, texts: Sequence[str]) -> list[float]:
        """BM25 of each text."""
        rarity = self.rarities(texts)
        lengths = [sum(self.counted(text).values()) for text in texts]
        mean = sum(lengths) / max(1, len(lengths))
        found = []
        for text, length in zip(texts, lengths, strict=True):
            words = self.counted(text)
            damp = 1.2 * (0.25 + 0.75 * length / mean)
            found.append(sum(rarity[w] * words[w] * 2.2 / (words[w] + damp) for w in self.counted(query) if w in words))
        return found


def cosine(one: dict[str, float], other: dict[str, float]) -> float:
    top = sum(weight * other.get(word, 0.0) for word, weight in one.items())
    size = math.sqrt(sum(w * w for w in one.values()) * sum(w * w for w in other.values()))
    return top / size if size else 0.0


@cache
def embedder() -> Any:
    """The embedder of this machine, or why there is none."""
    if find_spec("herdbook.fastloop.embedding") is None:
        return "this herdbook has no embedder"
    return import_module("herdbook.fastloop.embedding.models").chosen("auto")


@cache
def embedded(text: str) -> Any:
    return embedder().question(text)
