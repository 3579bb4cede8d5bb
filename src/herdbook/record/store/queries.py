"""Queries have names and reasons: SQL lives in files, one query under each `-- name:`, and is called by that name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any

QUERY = re.compile(r"^-- name: (\w+)\n((?:-- .*\n)+)", re.MULTILINE)
VALUES = re.compile(r"VALUES (\((?:[^()]|\([^()]*\))*\))")
BLOCKS = (64, 8, 1)  # rows a statement: few sizes, since each is a statement of its own to prepare


def load_queries(engine: str) -> dict[str, str]:
    """Every query of an engine as {name: sql}. A query without a reason, or a name used twice, is a mistake in this package."""
    found: dict[str, str] = {}
    for file in sorted((resources.files("herdbook.record") / "sql" / engine / "queries").iterdir(), key=lambda f: f.name):
        text = file.read_text(encoding="utf-8")
        starts = list(QUERY.finditer(text))
        assert text.count("-- name:") == len(starts), f"a query in {file.name} has no reason"
        for start, following in zip(starts, [*starts[1:], None], strict=True):
            assert start[1] not in found, f"two queries are named {start[1]}"
            found[start[1]] = text[start.end() : following.start() if following else len(text)].strip().rstrip(";")
    return found


def load_migrations(engine: str) -> list[tuple[int, str, str]]:
    """Migrations as (number, name, sql), numbered from 1 without a gap; a dot in a file's name begins one more part."""
    folder = resources.files("herdbook.record") / "sql" / engine / "migrations"
    texts: dict[str, str] = {}
    for file in sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name):
        name = file.name.partition(".")[0]
        texts[name] = texts.get(name, "") + file.read_text(encoding="utf-8")
    migrations = [(int(name[:4]), name, text) for name, text in texts.items()]
    assert [number for number, _, _ in migrations] == list(range(1, len(migrations) + 1)), "migrations are numbered 1, 2, 3, ..."
    return migrations


def blocks_of(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    """Rows in as few blocks as there are sizes for."""
    at = 0
    while at < len(rows):
        size = next(size for size in BLOCKS if size <= len(rows) - at)
        yield rows[at : at + size]
        at += size


@cache
def for_rows(statement: str, rows: int) -> str:
    """An INSERT of one row as one of several, in their order: a statement costs more than the row in it."""
    values = VALUES.search(statement)
    assert values is not None and values[1].count("?") == statement.count("?"), f"this is not an INSERT of one row: {statement}"
    return statement[: values.start(1)] + ", ".join([values[1]] * rows) + statement[values.end(1) :]
