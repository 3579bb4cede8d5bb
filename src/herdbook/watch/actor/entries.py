"""What a watch leaves in the record: the deploy, a diagnosis of what was wrong, and an incident that may become a class."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from herdbook.watch.findings import KnownClass
from herdbook.watch.rules import NOISE, REGRESSION
from herdbook.watch.sources.moments import iso_of, readable, well_formed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from herdbook.client import Client
    from herdbook.watch.actor.observing import Watched

VALUE_BYTES_MAX = 60_000  # somewhat less than the record keeps of one value
TEXT_CHARS_MAX = 4_000
ITEMS_MAX = 100
WHY_CHARS_MAX = 2_000
WORDS_MAX = 8
SLUG_CHARS_MAX = 48
CHANGELOG_CHARS_MAX = 2_000
FRESH_DAYS = 14  # after that a single watch leaves briefings, never the history, and classes keep the room
COMMON = re.compile(
    "errors?|warning|info|debug|critical|fatal|traceback|most|recent|call|last|file|line|the|and|for|with|from|that|this"
)


def classes_of(briefing: Mapping[str, Any]) -> list[KnownClass]:
    """Entries of a briefing that hold a label and patterns, whatever their standing: whoever relies on one asks for that."""
    found = []
    for block in ("entries", "contested"):
        for entry in briefing.get(block) or ():
            value = entry["value"]
            if (
                isinstance(value, dict)
                and isinstance(value.get("label"), str)
                and isinstance(value.get("patterns"), list)
                and value["patterns"]
            ):
                found.append(
                    KnownClass(
                        entity=entry["entity"],
                        key=entry["key"],
                        version=entry["version"],
                        label=value["label"],
                        patterns=tuple(map(str, value["patterns"])),
                        standing=entry["standing"],
                        confidence=entry["confidence"],
                        fix=value.get("fix") if isinstance(value.get("fix"), dict) else None,
                    )
                )
    return found


def write_deploy(
    book: Client, entity: str, key: str, changes: Mapping[str, Any], watched: Iterable[Watched], log: str, *, quiet: bool
) -> dict[str, Any]:
    seen = list(watched)
    value = {
        "repositories": dict(changes),
        "changelog": log[:CHANGELOG_CHARS_MAX],
        "services": {each.name: label_of(each) for each in seen},
        "revisions": {each.name: asdict(each.state) for each in seen},
        "outcome": "quiet" if quiet else "noisy",
    }
    labels = ", ".join(f"{each.name} {label_of(each)}" for each in seen)
    why = f"watched after the release: {labels or 'no service'}"
    return book.write(entity, key, fitting(value), why=words(why), kind="experience", expires_at=fresh_until())


def label_of(seen: Watched) -> str:
    """What a service was taken for; nobody who could not read its log has found it quiet."""
    return "unwatched" if seen.unreadable and seen.found.label == NOISE else seen.found.label


def write_diagnosis(
    book: Client, entity: str, component: str, seen: Watched, about: Mapping[str, Any], links: list[dict[str, Any]]
) -> dict[str, Any]:
    found = seen.found
    value = {
        "label": found.label,
        "signals": asdict(found.signals),
        "revision": asdict(seen.state),
        "class": None if found.matched is None else found.matched.key,
        "unreadable": seen.unreadable or None,
        **about,
    }
    why = (
        "; ".join([*found.signals.states, *(line.split("\n", 1)[0][:200] for line in found.signals.lines[:3])])
        or "nothing in its logs"
    )
    return book.write(
        entity,
        f"diagnosis-{component}",
        fitting(value),
        why=words(why),
        kind="experience",
        links=links,
        expires_at=fresh_until(),
    )


def write_incident(
    book: Client, entity: str, component: str, seen: Watched, links: list[dict[str, Any]], *, at: float
) -> dict[str, Any]:
    """An instance of its class; at a first sighting the proposal of one, which a person may take over under a better name."""
    found, day = seen.found, time.strftime("%Y-%m-%d", time.gmtime(at))
    evidence = next(iter(found.signals.lines), "")
    if found.matched is not None:
        key = f"incident-{day}-{component}-{slug(found.label)}"
        link = {"rel": "see_also", "entity": found.matched.entity, "key": found.matched.key, "version": found.matched.version}
        value = {"of_class": found.matched.key, "component": component, "seen": evidence[:600]}
        why = f"matches {found.matched.key}"
        return book.write(entity, key, value, why=why, kind="experience", links=[*links, link], expires_at=fresh_until())
    words = telling_words(evidence)
    name = slug(" ".join(words) or found.label)
    key = f"regression-{day}-{name}" if found.label == REGRESSION else f"incident-{day}-{component}-{name}"
    proposal = {
        "label": found.label,
        "patterns": [" ".join(words)] if words else [],
        "component": component,
        "seen": evidence[:600],
    }
    return book.write(
        entity, key, proposal, why="first sighting: proposed by the actor, to be named by a person", kind="fact", links=links
    )


def words(text: str) -> str:
    """A reason that can be kept, whatever a platform said in it."""
    return readable(text)[:WHY_CHARS_MAX]


def fitting(value: Any, bytes_max: int = VALUE_BYTES_MAX) -> Any:
    """The value, or one with shorter texts and lists that says so of itself: a large release is written down all the same."""
    texts, items = TEXT_CHARS_MAX, ITEMS_MAX
    fits = well_formed(value)
    while len(json.dumps(fits, ensure_ascii=False).encode()) > bytes_max and items > 1:
        fits = {**shortened(value, texts, items), "shortened": True}
        texts, items = texts // 2, items // 2
    return fits


def shortened(value: Any, texts: int, items: int) -> Any:
    if isinstance(value, str):
        return well_formed(value if len(value) <= texts else f"{value[:texts]}...")
    if isinstance(value, (list, tuple)):
        return [shortened(each, texts, items) for each in value[:items]]
    return {name: shortened(each, texts, items) for name, each in value.items()} if isinstance(value, dict) else value


def fresh_until() -> str:
    return iso_of(time.time() + FRESH_DAYS * 86_400)


def telling_words(evidence: str) -> list[str]:
    """The words that name this kind of event: the last line of a stack trace, without numbers, times, paths and common words."""
    lines = [line for line in evidence.split("\n") if line.strip() and not line[:1].isspace()] or [evidence]
    found = re.findall(r"(?<![\w/.])[A-Za-z][A-Za-z_-]{2,30}(?![\w/])", lines[-1])
    return list(dict.fromkeys(word.lower() for word in found if not COMMON.fullmatch(word.lower())))[:WORDS_MAX]


def slug(text: str) -> str:
    """A short name for a key, cut between words."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return (name if len(name) <= SLUG_CHARS_MAX else name[: SLUG_CHARS_MAX + 1].rpartition("-")[0]) or "unnamed"
