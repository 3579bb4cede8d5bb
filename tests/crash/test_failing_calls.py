"""The n-th call to the engine fails, for every n of a fixed story: a typed error, and a retry ends where it would have."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.base.clock import TickClock
from herdbook.base.errors import HerdbookError
from herdbook.base.ids import RowIds
from herdbook.record import keyfile
from herdbook.record.record import Record
from herdbook.record.store.sqlite import Connection, SqliteStore
from herdbook.service.callers import local_caller
from herdbook.service.door import Service
from tests.crash import invariants
from tests.crash.running import figures, seeded

CALLER = local_caller("tester")
ENTITY = "acme/ci"
K0 = {"entity": ENTITY, "key": "k0"}
TRIES_MAX = 3
MESSAGES = ("disk I/O error", "database or disk is full", "database is locked")

STORY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("start_session", {"session": "run", "agent": "tester"}),
    ("read", {**K0, "session": "run", "version": 1}),
    ("write", {**K0, "value": 2, "why": "superseded", "request_id": "w1", "session": "run"}),
    ("write", {"entity": "acme/new", "key": "k1", "value": 3, "request_id": "w2", "links": [{"rel": "derived_from", **K0}]}),
    ("record_action", {"session": "run", "tool": "make", "request_id": "a1"}),
    ("attempt", {"session": "run", "result": "failure", "used": [{**K0, "version": 2}], "request_id": "t1"}),
    ("commit_outcome", {"session": "run", "type": "success", "ref": "o1", "used": [{**K0, "version": 1}], "task_input": "t"}),
    ("attest", {"ref": "o1", "exit_code": 0}),
    ("write", {**K0, "value": 1, "why": "as before", "request_id": "w3", "session": "run"}),
    ("revise_outcome", {"ref": "o1", "type": "failure", "request_id": "v1"}),
    ("brief", {"entity": ENTITY}),
    ("search", {"query": "superseded"}),
    ("why", K0),
    ("trace", {"ref": "run"}),
    ("end_session", {"session": "run"}),
)


class Fault:
    """Counts the calls of all connections; the n-th fails in its way."""

    def __init__(self, nth: int, how: str) -> None:
        self.nth, self.how, self.count = nth, how, 0
        self.message = MESSAGES[nth % len(MESSAGES)]

    def meet(self, connection: sqlite3.Connection, call: Callable[[], Any]) -> Any:
        self.count += 1
        if self.count != self.nth:
            return call()
        if self.how == "after":  # done, but the caller is told that it failed: an unknown commit
            call()
        elif self.how == "undone" and connection.in_transaction:  # as the engine does by itself when it finds the disk full
            sqlite3.Connection.execute(connection, "ROLLBACK")
        raise sqlite3.OperationalError(self.message)


class FailingRaw(sqlite3.Connection):
    fault: Fault

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        found: sqlite3.Cursor = self.fault.meet(self, lambda: sqlite3.Connection.execute(self, *arguments))
        return found

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        found: sqlite3.Cursor = self.fault.meet(self, lambda: sqlite3.Connection.executemany(self, *arguments))
        return found


class FailingConnection(Connection):
    def __init__(self, path: Path, ids: RowIds, fault: Fault) -> None:
        super().__init__(path, ids, synchronous="NORMAL")
        self.raw.close()
        raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=FailingRaw)
        raw.fault = fault
        sqlite3.Connection.execute(raw, "PRAGMA synchronous=OFF")
        sqlite3.Connection.execute(raw, "PRAGMA foreign_keys=ON")
        self.raw, self._execute = raw, raw.execute


class FailingStore(SqliteStore):
    def __init__(self, path: Path, fault: Fault) -> None:
        self.fault = fault
        super().__init__(path)

    def _connect(self) -> Connection:
        connection = FailingConnection(self.path, self._ids, self.fault)
        self._open.add(connection)
        return connection


class Run:
    """One record, one fault, one story; how each step was told."""

    def __init__(self, home: Path, nth: int, how: str, *, batched: bool) -> None:
        self.fault = Fault(0, how)
        self.path = home / "record.db"
        store = FailingStore(self.path, self.fault)
        self.service = Service(Record(store, keyfile.load(home / "seal.key")), TickClock())
        self.batched = batched
        self.refused: list[str] = []
        self.answers: list[dict[str, Any]] = []
        self.fault.nth, self.fault.count = nth, 0
        self.fault.message = MESSAGES[nth % len(MESSAGES)]

    def tell(self) -> Run:
        for verb, fields in STORY:
            while (answer := self.perform(verb, fields)) is None:
                assert self.refused.count(verb) < TRIES_MAX, f"{verb} never comes back"
            self.answers.append(answer)
        self.service.close()
        return self

    def perform(self, verb: str, fields: dict[str, Any]) -> dict[str, Any] | None:
        """The answer, or None for a refusal that asks to be retried. Anything else is the finding."""
        try:
            answer = self.asked(verb, fields)
        except HerdbookError as problem:
            answer = problem
        except Exception as problem:
            raise AssertionError(f"{verb}, call {self.fault.nth} {self.fault.how}: untyped {problem!r}") from problem
        if not isinstance(answer, HerdbookError):
            return answer
        if answer.code not in ("disk_full", "busy") or not answer.retry:
            raise AssertionError(f"{verb}, call {self.fault.nth} {self.fault.how}: {answer.code} {answer}") from answer
        self.refused.append(verb)
        return None

    def asked(self, verb: str, fields: dict[str, Any]) -> dict[str, Any] | HerdbookError:
        if not (self.batched and verb in TOLD):
            return self.service.perform(CALLER, verb, fields)
        name = f"other-{len(self.answers)}-{len(self.refused)}"
        other = {"entity": "acme/other", "key": "k", "value": self.fault.count, "request_id": name}
        plans = [self.service.plan(CALLER, "write", other), self.service.plan(CALLER, verb, fields)]
        return self.service.commit(plans)[1]


TOLD = frozenset(
    {"start_session", "write", "record_action", "attempt", "commit_outcome", "attest", "revise_outcome", "end_session"}
)


@pytest.fixture(scope="module")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record with one entry in it, to be copied."""
    home = tmp_path_factory.mktemp("beginning")
    service = Service(Record.open(home / "record.db", key_file=home / "seal.key"), TickClock())
    service.perform(CALLER, "write", {**K0, "value": 1, "why": "first", "request_id": "w0"})
    service.close()
    return home


def copies(beginning: Path, place: Path) -> Iterator[Path]:
    nth = 0
    while True:
        nth += 1
        home = place / str(nth)
        shutil.copytree(beginning, home)
        yield home


def said(run: Run) -> dict[str, Any]:
    """But for what the other member of each batch wrote, and what a retried read adds."""
    found = invariants.says(run.path)
    return {
        name: [row for row in rows if "other" not in str(row)]
        for name, rows in found.items()
        if name not in ("heads", "rates", "reads")
    }


@pytest.mark.parametrize(
    "step", [pytest.param(4, marks=pytest.mark.slow), pytest.param(1, marks=[pytest.mark.long, pytest.mark.timeout(300)])]
)
@pytest.mark.parametrize("batched", [False, True], ids=["alone", "batched"])
@pytest.mark.parametrize("how", ["before", "after", "undone"])
def test_whichever_call_fails(tmp_path: Path, beginning: Path, how: str, batched: bool, step: int) -> None:
    """One failing call would leave half a write behind, poison the connection, or come out as a traceback."""
    homes = copies(beginning, tmp_path)
    undisturbed = Run(next(homes), 0, how, batched=batched).tell()
    expected, count = said(undisturbed), undisturbed.fault.count
    assert count > 100
    refused = 0
    for nth in range(1 + seeded().randrange(step), count + 1, step):
        run = Run(next(homes), nth, how, batched=batched).tell()
        invariants.check(run.path)
        assert expected == said(run), f"call {nth} failed ({how}) in {run.refused}, and the record says something else"
        refused += bool(run.refused)
    figures(f"failing {how}", {"calls": count, "refused and told again": refused})
