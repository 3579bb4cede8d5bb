"""An old backup does not bring back what was erased after it was made, or it is said that it does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from herdbook.base.errors import Erased, SealBroken
from herdbook.record import backup, erasures_file
from herdbook.testing.records import ENTITY, person
from tests.record.files import key_file, sqlite_book


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A backup of a record in which something was erased afterwards; the record itself is lost."""
    book = sqlite_book(tmp_path / "record.db")
    ann = person(book.open())
    ann.begin("run", agent="robin")
    ann.write("tz", "UTC", session="run")
    backup.take(tmp_path / "record.db", tmp_path / "copy", at=1)
    assert ann.do("erase", kind="author", subject="robin")["backups"]
    book.close()
    return tmp_path / "copy"


def restored(copy: Path, name: str) -> Path:
    place = copy.with_name(name)
    place.mkdir()
    backup.restore(copy, place / "record.db", key_file=key_file(copy), at=2)
    return place / "record.db"


def test_what_was_erased_since_is_erased_again(old: Path) -> None:
    """A restore would bring back whoever asked to be forgotten."""
    where = restored(old, "new")
    assert 1 == backup.erase_again(where, key_file=key_file(old))
    assert 0 == backup.erase_again(where, key_file=key_file(old))
    book = sqlite_book(where)
    key_file(where).write_bytes(key_file(old).read_bytes())
    ann = person(book.open())
    with pytest.raises(Erased):
        ann.do("read", entity=ENTITY, key="tz")
    assert 1 == len(ann.do("erasures", kind="author", subject="robin")["erasures"])
    book.close()


def test_a_lost_list_is_said(old: Path) -> None:
    """An operator would believe that the restored record forgets what the lost one did."""
    key_file(old).with_name(erasures_file.NAME).unlink()
    assert None is backup.erase_again(restored(old, "new"), key_file=key_file(old))


def test_the_list_names_nobody_and_is_private(old: Path) -> None:
    """The list of who was erased would be what is left of them."""
    path = key_file(old).with_name(erasures_file.NAME)
    assert 0o600 == path.stat().st_mode & 0o777
    assert "robin" not in path.read_text(encoding="utf-8")


def test_a_changed_list_is_refused(old: Path) -> None:
    """Whoever can write to the folder could make a record forget what they choose."""
    path = key_file(old).with_name(erasures_file.NAME)
    line = json.loads(path.read_text(encoding="utf-8"))
    line["said"] = line["said"].replace('"run"', '"run-2"')
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    with pytest.raises(SealBroken, match="line 1"):
        backup.erase_again(restored(old, "new"), key_file=key_file(old))
