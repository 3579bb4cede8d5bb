"""Entries that set one thing differently: the same variable of `env`, the same field, or the same key at two paths.

Only what lives and applies at once is compared: nothing expired or faded, no dead ends, and only entries with the same condition.
Which of them is right nobody can tell from here; both are named, the one that a briefing puts first before the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from herdbook.base import strict_json
from herdbook.fastloop.candidates import NAME, VERSION, VERSION_ID, Row
from herdbook.fastloop.lines import excerpt, span, word
from herdbook.fastloop.text import stem
from herdbook.fastloop.tokens import estimate_tokens
from herdbook.record.trust import acts
from herdbook.record.types import Version

ENV: Final = "env"
DEPTH_MAX: Final = 3  # of fields within fields
FIELDS_MAX: Final = 32  # of one value
SETTING_CHARS_MAX: Final = 80  # a longer text, or one of several words, says something; it sets nothing
SHARED_MAX: Final = 8  # a field that more entries have names a form, not one thing
SIDES_MAX: Final = 4
IN_BRIEFING_MAX: Final = 5
VALUE_TOKENS: Final = 12
UNSHOWN_TOKENS: Final = 8  # so much longer may a side be for not being shown
PART: Final = 8  # a briefing gives them an eighth of its budget at most
HEADING: Final = "## Set differently by two entries"
WORDS: Final = re.compile(r"[^\W\d_]{3,}")


Thing = tuple[str, str | None]  # what is set, and the condition under which


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One thing, and the entries that set it differently, the best first."""

    what: str  # `env HTTP_PROXY`, `field retry.limit`, `key port`
    sides: list[tuple[Row, str]]  # each with what it sets, as JSON

    def versions(self) -> set[int]:
        return {row[VERSION_ID] for row, _ in self.sides}


@dataclass(slots=True)
class Settings:
    """What the entries of some paths set, as they come and go."""

    setters: dict[Thing, dict[int, str]] = field(default_factory=dict)  # by version, what it sets
    several: set[Thing] = field(default_factory=set)  # things with more than one setter
    there: set[int] = field(default_factory=set)
    known: dict[int, dict[str, str]] = field(default_factory=dict)  # of versions, which never change

    def put(self, rows: Iterable[Row]) -> None:
        for row in rows:
            version = row[VERSION]
            if version.worked is False or version.id in self.there:
                continue
            self.there.add(version.id)
            if version.id not in self.known:
                self.known[version.id] = set_by(version)
            for what, value in self.known[version.id].items():
                setters = self.setters.setdefault((what, version.applies_when), {})
                setters[version.id] = value
                if len(setters) > 1:
                    self.several.add((what, version.applies_when))

    def drop(self, version: Version) -> None:
        if version.id not in self.there:
            return
        self.there.discard(version.id)
        for what in self.known[version.id]:
            thing = what, version.applies_when
            setters = self.setters[thing]
            del setters[version.id]
            if len(setters) < 2:
                self.several.discard(thing)
            if not setters:
                del self.setters[thing]

    def forget(self, version_id: int) -> None:
        """It will not come again."""
        self.known.pop(version_id, None)

    def clear(self) -> None:
        self.setters.clear()
        self.several.clear()
        self.there.clear()

    def disputed(self, row_of: Callable[[int], Row]) -> Iterator[Contradiction]:
        """Every thing that is set in more than one way."""
        for what, condition in self.several:
            setters = self.setters[what, condition]
            if what.startswith("field ") and len(setters) > SHARED_MAX:
                continue
            rows = sorted(map(row_of, setters), key=lambda row: (not acts(row[NAME]), row))
            sides = list(one_a_value([(row, setters[row[VERSION_ID]]) for row in rows], alone=what.startswith("field ")))
            if len(sides) > 1:
                yield Contradiction(what, sides[:SIDES_MAX])


def one_a_value(sides: Sequence[tuple[Row, str]], *, alone: bool) -> Iterator[tuple[Row, str]]:
    """The best entry for each way of setting it; of a field only those whose keys may be about one thing."""
    said = set[str]()
    first = sides[0][0][VERSION]
    for row, value in sides:
        if value not in said and (not said or not alone or may_be_one(first, row[VERSION])):
            said.add(value)
            yield row, value


def may_be_one(one: Version, other: Version) -> bool:
    """Whether two entries with one field may be about one thing: their keys share a word, or say nothing that tells them apart.

    `http-timeout` and `timeouts` may; `api` and `db` are two things that both have a port, `host-1` and `host-2` are two hosts.
    """
    if one.key == other.key:
        return True
    if re.sub(r"\d+", "", one.key) == re.sub(r"\d+", "", other.key):
        return not WORDS.search(one.key)
    words = [set(map(stem, WORDS.findall(key.lower()))) for key in (one.key, other.key)]
    return not words[0] or not words[1] or bool(words[0] & words[1])


def set_by(version: Version) -> dict[str, str]:
    """What a version sets, each with its canonical value."""
    if not version.value_text.startswith("{"):
        return {f"key {version.key}": version.value_text}
    value = json.loads(version.value_text)
    env = value.get(ENV)
    found = {f"env {name}": strict_json.canonical(text) for name, text in env.items()} if isinstance(env, dict) else {}
    for name, leaf in leaves(value, depth=DEPTH_MAX):
        if len(found) < FIELDS_MAX:
            found[f"field {name}"] = strict_json.canonical(leaf)
    return found


def leaves(value: Mapping[str, Any], *, depth: int) -> Iterator[tuple[str, Any]]:
    """The fields of a value that set something, by their path."""
    for name, member in value.items():
        if name == ENV and depth == DEPTH_MAX:
            continue
        if isinstance(member, dict) and depth > 1:
            for inner, leaf in leaves(member, depth=depth - 1):
                yield f"{name}.{inner}", leaf
        elif isinstance(member, bool | int | float) or (isinstance(member, str) and is_setting(member)):
            yield name, member


def is_setting(text: str) -> bool:
    return 0 < len(text) <= SETTING_CHARS_MAX and not any(map(str.isspace, text))


def views(found: Iterable[Contradiction], shown: set[int]) -> list[dict[str, Any]]:
    """As answers have them. What an entry sets is told only where the entry itself is shown."""
    return [{"what": each.what, "sides": [side_view(row, value, shown) for row, value in each.sides]} for each in found]


def side_view(row: Row, value: str, shown: set[int]) -> dict[str, Any]:
    version = row[VERSION]
    return {
        "entity": version.path,
        "key": version.key,
        "version": version.number,
        "standing": row[NAME],
        "shown": version.id in shown,
        "value": json.loads(value) if version.id in shown else None,
    }


def worded(found: Sequence[Contradiction], *, path: str, shown: set[int], room: int) -> list[str]:
    """As the text has them, as many as fit."""
    lines = [HEADING]
    left = room - estimate_tokens(HEADING) - 1
    for each in found:
        line = f"- {span(each.what)}: " + "; ".join(side(row, value, path=path, shown=shown) for row, value in each.sides)
        left -= estimate_tokens(line) + 1
        if left < 0:
            break
        lines.append(line)
    return lines if len(lines) > 1 else []


def side(row: Row, value: str, *, path: str, shown: set[int]) -> str:
    version = row[VERSION]
    place = "" if version.path == path else f" from {word(version.path)}"
    said = excerpt(value, VALUE_TOKENS) if version.id in shown else "otherwise, not shown here"
    return f"{span(version.key)} v{version.number}{place} ({row[NAME]}) says {said}"
