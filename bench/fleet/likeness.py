"""How like two texts are: the embedder herdbook itself would use where it is installed, else weighted words, and it says which.

Texts of a fleet repeat, so each is turned into a vector once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from herdbook.fastloop.text import tokenize


class Likeness:
    """Cosines by words weighted by their rarity among the notes compared."""

    name = "weighted words"

    def __init__(self) -> None:
        self.words: dict[str, Counter[str]] = {}

    def counted(self, text: str) -> Counter[str]:
        if text not in self.words:
            self.words[text] = Counter(tokenize(text))
        return self.words[text]

    def rarities(self, texts: Sequence[str]) -> dict[str, float]:
        seen = Counter(word for text in texts for word in self.counted(text))
        return {word: math.log(1 + len(texts) / count) for word, count in seen.items()}

    def cosines(self, query: str, texts: Sequence[str]) -> list[float]:
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
