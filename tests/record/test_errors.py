"""One error for whoever uses the client: what is refused in process and what is refused by a server are caught alike."""

from __future__ import annotations

from pathlib import Path

import pytest

import herdbook
from herdbook.base import errors


def test_a_refusal_in_process_is_the_clients_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program would have to catch one error for a file and another for an address."""
    monkeypatch.setenv("HERDBOOK_HOME", str(tmp_path))
    with herdbook.open(tmp_path / "record.db", session="") as book, pytest.raises(herdbook.HerdbookError) as caught:
        book.read("acme/ci", "tz")
    assert ("not_found", 404, False) == (caught.value.code, caught.value.status, caught.value.retry)
    assert isinstance(caught.value, errors.NotFound)


def test_what_keeps_a_record_from_opening_is_the_clients_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call of a program would raise what it does not catch."""
    monkeypatch.setenv("HERDBOOK_HOME", str(tmp_path))
    (tmp_path / "record.db").mkdir()
    with pytest.raises(herdbook.HerdbookError):
        herdbook.open(tmp_path / "record.db")


def test_an_absent_server_is_caught_by_the_same_name() -> None:
    """It would not be, if there were two classes."""
    with pytest.raises(herdbook.HerdbookError) as caught:
        herdbook.open("http://127.0.0.1:1", session="", timeout_seconds=1).brief("acme/ci")
    assert "unreachable" == caught.value.code
