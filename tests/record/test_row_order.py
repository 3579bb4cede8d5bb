"""No answer rests on the order in which an engine happens to find rows: a query that asks for no order may get any.

So whatever is asked without one is answered here the other way round, over histories of which the answers are known.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from herdbook.record.store.sqlite import QUERIES
from tests.postgres.test_engines_agree import history, played
from tests.record.files import sqlite_book

SEEDS = (*range(1, 10), 1_142)  # in the last one, an attestation told what it changed in another order


def unordered() -> dict[str, str]:
    """What asks for rows, and not for their order."""
    return {
        name: sql for name, sql in QUERIES.items() if re.match(r"SELECT|WITH|\(SELECT", sql) and not re.search(r"ORDER BY", sql)
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_in_another_order_give_the_same_answers(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One engine would answer what the other one does not, or the same one otherwise once its statistics have changed."""
    told = history(seed, steps=60)

    def answered(name: str) -> list[str]:
        book = sqlite_book(tmp_path / name, synchronous="NORMAL")
        try:
            return played(book, told)
        finally:
            book.close()

    expected = answered("plain.db")
    for name, sql in unordered().items():
        monkeypatch.setitem(QUERIES, name, f"SELECT * FROM ({sql}) ORDER BY row_number() OVER () DESC")
    for (who, verb, fields), one, other in zip(told, expected, answered("turned.db"), strict=True):
        assert one == other, f"seed {seed}: {who} {verb} {fields}"
