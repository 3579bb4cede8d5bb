"""Vectors as they are kept: bytes under a space, of which the record knows only the version. A cache, made again at will."""

from __future__ import annotations

import json
from collections.abc import Sequence

from herdbook.record.store.protocol import Reader, Transaction


def load(reader: Reader, tenant: int, space: str, versions: Sequence[int]) -> dict[int, bytes]:
    """Those of these versions that have one in this space."""
    asked = {"tenant": tenant, "space": space, "versions": json.dumps(list(versions))}
    return dict(reader.rows("vectors", asked)) if versions else {}


def keep(tx: Transaction, tenant: int, space: str, rows: Sequence[tuple[int, bytes]]) -> None:
    """For who looks them up; not of what was erased while a model was at work on it."""
    asked = {"tenant": tenant, "versions": json.dumps([version for version, _ in rows])}
    gone = {row[0] for row in tx.rows("erased_versions", asked)}
    tx.many("insert_vector", [(tenant, space, version, pieces, tx.next_id()) for version, pieces in rows if version not in gone])


def waiting(reader: Reader, tenant: int, space: str, *, after: int, limit: int) -> list[int]:
    """Current versions without a vector in this space, oldest first."""
    rows = reader.rows("unembedded", {"tenant": tenant, "space": space, "after": after, "limit": limit})
    return [row[0] for row in rows]


def page(reader: Reader, tenant: int, space: str, *, after: int, limit: int) -> list[tuple[int, bytes, int]]:
    """The vectors of a space as they came, each with the number that the next page begins after."""
    rows = reader.rows("vectors_after", {"tenant": tenant, "space": space, "after": after, "limit": limit})
    return [(row[0], row[1], row[2]) for row in rows]


def counts(reader: Reader, tenant: int, space: str) -> tuple[int, int]:
    """How many current versions there are, and how many of them have a vector."""
    row = reader.row("vector_counts", {"tenant": tenant, "space": space})
    assert row is not None
    return row[0], row[1]


def drop_others(tx: Transaction, tenant: int, space: str) -> None:
    tx.run("drop_other_vectors", {"tenant": tenant, "space": space})


def current(reader: Reader, tenant: int, versions: Sequence[int]) -> list[int]:
    """Those of these versions that are current, in their order."""
    rows = reader.rows("current_of", {"tenant": tenant, "versions": json.dumps(list(versions))}) if versions else []
    return [row[0] for row in rows]
