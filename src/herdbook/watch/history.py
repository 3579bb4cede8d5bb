"""A class and what became of those who acted on it, read from the record itself: what a box says of either is not asked."""

from __future__ import annotations

from typing import Any

from herdbook.client import Client
from herdbook.watch.findings import Instance, KnownClass, Signals


def class_of(book: Client, named: dict[str, Any] | None) -> KnownClass | None:
    """The class as the record has it, at the version that was matched; None for what is no class."""
    if named is None:
        return None
    entry = book.read(named["entity"], named["key"], version=named["version"])
    value = entry["value"]
    if not isinstance(value, dict) or not isinstance(value.get("label"), str):
        return None
    return KnownClass(
        entity=entry["entity"],
        key=entry["key"],
        version=entry["version"],
        label=value["label"],
        patterns=tuple(map(str, value.get("patterns") or ())),
        standing=entry["standing"],
        confidence=entry["confidence"],
        fix=value.get("fix") if isinstance(value.get("fix"), dict) else None,
    )


def instances_of(book: Client, matched: KnownClass | None) -> list[Instance]:
    """Every outcome that named this class as what it acted on, oldest first, as revisions left it."""
    if matched is None:
        return []
    claims = book.why(matched.entity, matched.key)["claims"]
    moves = [move for claim in claims for move in claim["moves"] if move["how"] == "used" and move["n"] is not None]
    return [
        Instance(
            ref=each["ref"],
            outcome=each["effective_type"] or each["type"],
            version=each["version"],
            attested=each["attested"],
            at=each["at"],
        )
        for each in sorted(moves, key=lambda move: (move["at"], move["n"]))
    ]


def signals_of(told: dict[str, Any]) -> Signals:
    """Signals out of what the box said, as texts and nothing else."""
    return Signals(**{name: tuple(map(str, told.get(name) or ())) for name in Signals.__dataclass_fields__})
