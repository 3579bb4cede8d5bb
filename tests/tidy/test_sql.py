"""SQL is in files, named, and says why."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from tests.tidy import tree

SQL_FILES = sorted((tree.PACKAGE / "record" / "sql").rglob("*.sql"))
STATEMENT = re.compile(
    r"\s*(?:SELECT\s+\S|INSERT\s+(?:OR \w+ )?INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s|REPLACE\s+INTO\s|PRAGMA\s+\w"
    r"|CREATE\s+(?:UNIQUE |TEMP )?(?:TABLE|INDEX|TRIGGER|VIEW)\s|WITH\s+\w+\s+AS\s*\(|BEGIN\s+IMMEDIATE|SAVEPOINT\s)"
)
NAME_LINE = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
THING = re.compile(r"^CREATE\s+(?:UNIQUE\s+|VIRTUAL\s+|TEMP\s+)?(?:TABLE|INDEX|VIEW)\b", re.MULTILINE)
TABLE = re.compile(r"^CREATE TABLE (\w+) .*?^\)(.*?);", re.MULTILINE | re.DOTALL)
TRIGGER = re.compile(r"^CREATE TRIGGER\s+(\w+)", re.MULTILINE)


def short(path: Path) -> str:
    return path.relative_to(tree.ROOT).as_posix()


def test_there_is_sql_to_check() -> None:
    """With no file found, every check here would pass on nothing."""
    assert [] != SQL_FILES


def test_every_query_says_why() -> None:
    """A query without a reason under its name could not be changed safely by anybody else."""
    silent = []
    for path in SQL_FILES:
        lines = [*path.read_text(encoding="utf-8").splitlines(), ""]
        silent += [f"{short(path)}: {line}" for line, after in itertools.pairwise(lines) if unexplained(line, after)]
    assert [] == silent


def unexplained(line: str, after: str) -> bool:
    return line.startswith("-- name:") and (NAME_LINE.match(line) is None or not re.match(r"-- \w", after))


def test_query_names_are_unique_per_engine() -> None:
    """Of two queries of one name, one would never run."""
    for engine in {path.parent for path in SQL_FILES}:
        names = [name for path in sorted(engine.glob("*.sql")) for name in NAME_LINE.findall(path.read_text(encoding="utf-8"))]
        assert sorted(set(names)) == sorted(names)


def test_every_table_and_index_has_a_sentence() -> None:
    """A table or an index without its reason would be dropped, or never dropped, by people who cannot know."""
    silent = []
    for path in SQL_FILES:
        text = path.read_text(encoding="utf-8")
        bare = [match.start() for match in THING.finditer(text) if not line_before(text, match.start()).startswith("--")]
        silent += [f"{short(path)}: {text[start:].splitlines()[0]}" for start in bare]
    assert [] == silent


def test_tables_are_strict_and_triggers_are_versioned() -> None:
    """A loose table would keep text in a number's column; a trigger without a version could not be replaced by a migration."""
    texts = [(path, path.read_text(encoding="utf-8")) for path in SQL_FILES if path.parent.parent.name == "sqlite"]
    loose = [f"{short(path)}: {name}" for path, text in texts for name, tail in TABLE.findall(text) if "STRICT" not in tail]
    assert [] == loose
    names = [name for _, text in texts for name in TRIGGER.findall(text)]
    assert [] == [name for name in names if not re.search(r"_v\d+$", name)]


def line_before(text: str, start: int) -> str:
    return text[:start].splitlines()[-1] if text[:start].strip() else ""


def test_sql_stays_in_the_store() -> None:
    """SQL outside the store would be SQL for one engine only, and unseen by whoever changes the schema."""
    found = []
    for source in tree.package():
        if not source.name.startswith(("src/herdbook/record/store/", "src/herdbook/testing/")):
            found += [f"{source.name}:{line}" for line, text in tree.texts(source) if STATEMENT.match(text)]
    assert [] == found


def test_the_detector_knows_sql_from_prose() -> None:
    """A detector that sees no SQL would let all of it through."""
    assert all(map(STATEMENT.match, ["SELECT 1", "\n  insert into x".upper(), "PRAGMA user_version", "WITH a AS (SELECT 1)"]))
    assert not any(map(STATEMENT.match, ["Select a box", "UPDATE is not a word here", "WITH care", "CREATE a box"]))
