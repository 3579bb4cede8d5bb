"""What a text must have for a pattern to match anywhere in it: one of a few short texts, and a run of so many characters.

It is read off the pattern itself, so that a scanner's new version is screened as rightly as its old one. What is not understood
needs nothing: such a pattern is always tried. Texts are compared as shapes: in small letters, every digit a 0.
"""

from __future__ import annotations

import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

PARSER_NAME: Final = "re._parser"  # what `re` itself reads patterns with; it is private, so a Python may come that has none
PARSER: Final[Any] = importlib.import_module(PARSER_NAME) if importlib.util.find_spec(PARSER_NAME) else None
TEXTS_MAX: Final = 64  # of one part of a pattern; more are looked for at no gain
CHARACTERS_MAX: Final = 8
BESIDE_WORDS: Final = "+/=\\-[]^`_"
SAME_LETTERS: Final = {"İ": "i", "ı": "i", "ſ": "s", "\u212a": "k"}  # as `re` holds them to be where it ignores case
EMPTY: Final = frozenset({""})


class Needs(NamedTuple):
    """Both are needed; an empty set and 0 need nothing."""

    any_of: frozenset[str]
    run: int


class Part(NamedTuple):
    """A part of a pattern: every shape it can have, where those are few, and what it needs."""

    exact: frozenset[str] | None
    needs: Needs


class Shapes(dict[int, str]):
    """The shape of every character, found when it is first asked for."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = "0" if letter.isdecimal() else SAME_LETTERS.get(letter, letter.lower())
        return self[code]


SHAPES: Final = Shapes()
UNKNOWN: Final = Part(None, Needs(frozenset(), 0))


class Words(dict[int, str]):
    """Each character as what it is in a run: part of it, or its end."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = "w" if letter.isalnum() or letter in BESIDE_WORDS else " "
        return self[code]


WORDS: Final = Words()


def shape(text: str) -> str:
    return text.translate(SHAPES)


Member = tuple[str, str, int]  # a text that is needed, a run, and whose number needs them


class Suspects(NamedTuple):
    """A text's shape, and the numbers of what could match in it."""

    shape: str
    numbers: set[int]


class Screen:
    """Which of many patterns could match in a text, asked of all at once: what several of them need is looked for once."""

    def __init__(self, needed: Sequence[Sequence[Needs]]) -> None:
        """Of each number, what each of its patterns needs."""
        members = sorted(
            (text, "w" * run, number) for number, each in enumerate(needed) for any_of, run in each for text in any_of or ("",)
        )
        asked = defaultdict[str, list[tuple[str, list[Member]]]](list)
        for part, texts in shared({text for text, *_ in members}):
            held = [member for member in members if member[0] in texts]
            asked[min(run for _, run, _ in held)].append((part, held))
        self.asked = sorted(asked.items())  # shorter runs first: where one is not, no longer one is

    def suspects(self, text: str) -> Suspects:
        """Of a text of several lines, whatever one of its lines is suspected of."""
        looks, runs, found = text.translate(SHAPES), text.translate(WORDS), set[int]()
        for least, parts in self.asked:
            if least not in runs:
                break
            for part, members in parts:
                if part in looks:
                    for has, run, number in members:
                        if number not in found and run in runs and has in looks:
                            found.add(number)
        return Suspects(looks, found)


def shared(texts: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Parts of texts, few and long, so that each text has one; with those that have it."""
    left = set(texts)
    while left:
        parts = {text[start:end] for text in left for start in range(len(text)) for end in range(start + 2, len(text) + 1)}
        holding = {part: {text for text in left if part in text} for part in parts}
        part = max(holding, key=lambda each: ((len(holding[each]) - 1) * len(each) ** 2, each), default="")
        held = holding.get(part, set())
        if len(held) < 2:
            yield from ((text, {text}) for text in sorted(left))
            return
        yield part, held
        left -= held


def needs(pattern: re.Pattern[str]) -> Needs:
    """Of one compiled pattern."""
    if PARSER is None:
        return UNKNOWN.needs
    return sequence(PARSER.parse(pattern.pattern, pattern.flags)).needs


def sequence(nodes: Iterable[tuple[Any, Any]]) -> Part:
    """One part after the other: what stands side by side is looked for as one text, as long as the texts are few."""
    found, run, side_by_side, whole = list[frozenset[str]](), 0, EMPTY, True
    for kind, value in nodes:
        part = node(str(kind), value)
        run = max(run, part.needs.run)
        if part.exact is not None and len(side_by_side) * len(part.exact) <= TEXTS_MAX:
            side_by_side = product(side_by_side, part.exact)
            continue
        found += [side_by_side, part.needs.any_of]
        side_by_side, whole = part.exact or EMPTY, False
    return Part(side_by_side if whole else None, Needs(best([*found, side_by_side]), run))


def node(kind: str, value: Any) -> Part:
    match kind:
        case "LITERAL":
            return Part(frozenset({shape(chr(value))}), Needs(frozenset(), 0))
        case "IN":
            return one_of(value)
        case "SUBPATTERN" | "ATOMIC_GROUP":
            return sequence(value[-1] if kind == "SUBPATTERN" else value)
        case "BRANCH":
            return branch([sequence(each) for each in value[1]])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return repeated(*value)
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return Part(EMPTY, Needs(frozenset(), 0))  # it takes no room; what it asks for besides is not needed here
    return UNKNOWN


def one_of(items: Sequence[tuple[Any, Any]]) -> Part:
    """A class of characters."""
    characters, few, of_words = set[str](), True, True
    for kind, value in items:
        first, last = value if str(kind) == "RANGE" else (value, value)
        if str(kind) in ("LITERAL", "RANGE") and last - first < 128:
            shapes = {shape(chr(code)) for code in range(first, last + 1)}
            characters |= shapes
            of_words = of_words and all(each.isalnum() or each in BESIDE_WORDS for each in shapes)
        elif str(kind) == "CATEGORY" and str(value) == "CATEGORY_DIGIT":
            characters.add("0")
        else:
            few, of_words = False, of_words and str(value) == "CATEGORY_WORD"
    exact = frozenset(characters) if few and len(characters) <= CHARACTERS_MAX else None
    return Part(exact, Needs(frozenset(), int(of_words)))


def branch(parts: Sequence[Part]) -> Part:
    """One of several."""
    run = min(part.needs.run for part in parts)
    if all(part.exact is not None for part in parts):
        exact = frozenset().union(*(part.exact or EMPTY for part in parts))
        return Part(exact if len(exact) <= TEXTS_MAX else None, Needs(best([exact]), run))
    each = [best([part.exact]) if part.exact is not None else part.needs.any_of for part in parts]
    return Part(None, Needs(fewest(frozenset().union(*each)) if all(each) else frozenset(), run))


def repeated(least: int, most: Any, body: Any) -> Part:
    part = sequence(body)
    if least == 0:
        once = part.exact is not None and most == 1
        return Part((part.exact or EMPTY) | EMPTY if once else None, Needs(frozenset(), 0))
    exact = part.exact
    for _ in range(least - 1) if exact is not None else ():
        exact = product(exact or EMPTY, part.exact or EMPTY)
        if len(exact) > TEXTS_MAX:
            exact = part.exact
            break
    alone = len(body) == 1 and str(body[0][0]) == "IN"
    run = part.needs.run * least if alone else part.needs.run
    any_of = part.needs.any_of if exact is None else best([exact])
    return Part(exact if least == most and whole(exact, part, least) else None, Needs(any_of, run))


def whole(exact: frozenset[str] | None, part: Part, times: int) -> bool:
    """Whether these are all the shapes of a part that comes so many times."""
    return exact is not None and (times == 1 or exact != part.exact)


def product(first: frozenset[str], second: frozenset[str]) -> frozenset[str]:
    return frozenset(one + other for one in first for other in second)


def best(found: Iterable[frozenset[str]]) -> frozenset[str]:
    """The set whose shortest text is the longest: it is seldom there by chance."""
    useful = [texts for texts in found if texts and "" not in texts]
    return fewest(max(useful, key=lambda texts: (min(map(len, texts)), -len(texts)), default=frozenset()))


def fewest(texts: frozenset[str]) -> frozenset[str]:
    """Without those that hold another of them."""
    return frozenset(text for text in texts if not any(other != text and other in text for other in texts))
