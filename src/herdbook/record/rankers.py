"""Rankers as they are kept: canonical JSON under the digest of its content, sealed, never changed, never a pickle.

A ranker is not in force by being kept: `tune ranker=<id>` puts it there, and takes it back.
"""

from __future__ import annotations

import json
from typing import Any

from herdbook.base import strict_json
from herdbook.base.errors import NotFound, SealBroken
from herdbook.record import seals
from herdbook.record.record import Record
from herdbook.record.store.protocol import Reader, Row, Transaction
from herdbook.record.types import Stamp

ID_DIGITS = 16
ARTEFACT_BYTES_MAX = 4 * 1024 * 1024


def keep(record: Record, tx: Transaction, stamp: Stamp, artefact: dict[str, Any], *, at: int) -> str:
    """Keep an artefact; its id says what is in it, so keeping it twice keeps it once."""
    text = strict_json.canonical(artefact, bytes_max=ARTEFACT_BYTES_MAX)
    name = seals.digest("ranker", text).hex()[:ID_DIGITS]
    where = {"tenant": stamp.tenant, "ranker": name}
    if tx.row("ranker", where) is None:
        seal = record.seal("ranker", stamp.tenant, name, text, stamp.identity, at)
        tx.run("insert_ranker", where | {"artefact": text, "identity": stamp.identity, "at": at, "seal": seal})
    return name


def load(record: Record, reader: Reader, tenant: int, name: str) -> dict[str, Any]:
    """An artefact as it was kept. Raises NotFound, and SealBroken for one that was changed or came from elsewhere."""
    row = reader.row("ranker", {"tenant": tenant, "ranker": name})
    if row is None:
        raise NotFound(f"there is no ranker {name!r}: train one, or tune ranker=none")
    return checked(record, tenant, row)


def checked(record: Record, tenant: int, row: Row) -> dict[str, Any]:
    name, text, identity, at, seal = row
    record.verify(seal, "ranker", tenant, name, text, identity, at)
    if seals.digest("ranker", text).hex()[:ID_DIGITS] != name:
        raise SealBroken(f"the ranker {name!r} is not what its name says: tune ranker=none, and train another")
    found: dict[str, Any] = json.loads(text)
    return found
