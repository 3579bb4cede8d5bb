"""What a model must beat to be worth serving: the most common act, and what the record itself would replay. Pure.

If looking up the most similar past decision does as well, nobody needs the model.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from herdbook.slowloop.models.acts import Act, Function

WORD = re.compile(r"\w+")


class Majority:
    """Always the act that was taken most often at this entity path, or where nothing was, anywhere."""

    def __init__(self, taught: Sequence[Act]) -> None:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for act in taught:
            for place in (act.entity, ""):
                counts[place][json.dumps(act.call, sort_keys=True)] += 1
        self.calls = {place: json.loads(min(count, key=lambda call: (-count[call], call))) for place, count in counts.items()}

    def call(self, act: Act) -> Function | None:
        found: Function | None = self.calls.get(act.entity, self.calls.get(""))
        return found


class Replay:
    """What was done in the most similar situation: the nearest prompt by its words, rare ones counting more (tf-idf cosine)."""

    def __init__(self, taught: Sequence[Act]) -> None:
        self.taught = taught
        words = [Counter(words_of(act)) for act in taught]
        seen = Counter(word for found in words for word in found)
        self.rarity = {word: math.log(1 + len(words) / count) for word, count in seen.items()}
        self.postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, found in enumerate(words):
            weights = {word: count * self.rarity[word] for word, count in found.items()}
            size = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
            for word, weight in weights.items():
                self.postings[word].append((number, weight / size))

    def call(self, act: Act) -> Function | None:
        scores: dict[int, float] = defaultdict(float)
        for word, count in Counter(words_of(act)).items():
            for number, weight in self.postings.get(word, ()):
                scores[number] += count * self.rarity[word] * weight
        best = min(scores, key=lambda number: (-scores[number], number), default=None)
        return None if best is None else self.taught[best].call


def words_of(act: Act) -> list[str]:
    """The words of the conversation so far, and how far it is: the third call resembles a third call."""
    text = " ".join(message["content"] for message in act.prompt if message["role"] != "system")
    calls = [call["function"]["name"] for message in act.prompt for call in message.get("tool_calls") or ()]
    return [*WORD.findall(text.casefold()), *(f"called {name}" for name in calls), f"step {len(calls)}"]
