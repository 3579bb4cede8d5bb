"""First answers, kept for ever: a retry with the same id gets the same answer, the same id with another body is refused.

What is kept is as short as it can be: rows of this table land at random places, and each page they dirty is paid at the commit.
"""

from __future__ import annotations

import json
from typing import Any

from herdbook.base.errors import RequestConflict
from herdbook.record.store.protocol import Row, Transaction

ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":")
)  # in the order they were given: a retry is equal to the byte


def first(tx: Transaction, tenant: int, verb: str, name: str, digest: bytes) -> Any:
    """What was answered to this id, or None. Raises RequestConflict where the body was another."""
    row = tx.row("first_answer", {"tenant": tenant, "verb": verb, "id": name})
    return None if row is None else unless_another(row, verb, name, digest)


def unless_another(row: Row, verb: str, name: str, digest: bytes) -> Any:
    if row[0] != digest:
        raise RequestConflict(f"{name!r} was already used for a {verb} with another body: use a new id for a new request")
    return json.loads(row[1])


def keep(tx: Transaction, tenant: int, verb: str, name: str, digest: bytes, answer: Any) -> None:
    """Keep a first answer, in the transaction that made it true."""
    text = ENCODER.encode(answer)
    tx.run("keep_answer", {"tenant": tenant, "verb": verb, "id": name, "digest": digest, "answer": text})
