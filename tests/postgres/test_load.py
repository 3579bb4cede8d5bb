"""Many at once on PostgreSQL, while it dies and comes back: what they saw has one order, and everything counts once."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from herdbook.base.errors import HerdbookError, Unavailable
from herdbook.record.store.postgres import setup
from herdbook.record.store.postgres import store as postgres
from herdbook.testing.record_book import Desk
from tests.access.test_changes import followed
from tests.crash.histories import impossible
from tests.crash.running import figures, seeded
from tests.postgres.test_restart import DURABLE, Load, desk, hold_up, nothing_lost
from tests.postgres_server import LOGIN, Server
from tests.postgres_server import server as shared

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
WRITERS, READERS = 16, 8


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server(settings=dict(DURABLE)).make_template()
    yield found
    found.remove()


def test_ten_restarts_under_load(server: Server, tmp_path: Path) -> None:
    """After each of them somebody would have to restart ours, or look for what was lost."""
    load = Load(server, tmp_path, writers=WRITERS)
    hold_up(server, load, times=10, more=100)
    figures("restarts", {"writes": sum(map(len, load.told)), "outcomes": sum(map(len, load.moved)), "refused": len(load.refused)})
    assert [] == load.refused
    nothing_lost(server, load, tmp_path)


@pytest.mark.parametrize("keys", [1, 64])
def test_what_everybody_saw_has_one_order(server: Server, tmp_path: Path, keys: int) -> None:
    """A read would go back, or two writers be told the same version, once in many thousands."""
    writes_wanted, kills = 3_000, 3
    desks = [desk(server, tmp_path, f"w{n}") for n in range(2)]
    for number in range(keys):
        desks[0].write(f"k{number}", "first")
    history: list[dict[str, Any]] = []
    counter, over = iter(range(writes_wanted)), threading.Event()

    def work(role: str, who: int) -> None:
        dice = random.Random(who)
        for number in counter if role == "write" else iter(over.is_set, True):
            key = f"k{dice.randrange(keys)}"
            history.append(one(desks[who % 2], role, key, f"{who}-{number}"))

    with ThreadPoolExecutor(WRITERS + READERS) as pool:
        writing = [pool.submit(work, "write", n) for n in range(WRITERS)]
        reading = [pool.submit(work, "read", n) for n in range(READERS)]
        try:
            for left in range(kills):
                while len([1 for each in history if each["role"] == "write"]) < writes_wanted * (left + 1) / (kills + 1):
                    assert not all(each.done() for each in writing), "the writers ended too soon"
                    threading.Event().wait(0.1)
                server.stop(3)
                server.start()
            for each in writing:
                each.result()
        finally:
            over.set()
        for each in reading:
            each.result()
    writes = [operation for operation in history if operation["role"] == "write"]
    figures("history", {"keys": keys, "operations": len(history), "writes": len(writes)})
    assert [] == impossible(history)
    there = {f"k{number}": [each["version"] for each in desks[0].history(f"k{number}")] for number in range(keys)}
    for key, versions in there.items():
        assert list(range(1, len(versions) + 1)) == versions
        told = sorted(operation["version"] for operation in writes if operation["key"] == key)
        assert sorted(set(told)) == told
        assert set(told) <= set(versions)
    close(*desks)


def close(*desks: Desk) -> None:
    for each in desks:
        each.service.close()


def one(desk: Desk, role: str, key: str, name: str) -> dict[str, Any]:
    """One operation as its client saw it: the same request, again and again, until it is answered."""
    begun = time.monotonic()
    while True:
        with suppress(Unavailable):
            answer = desk.read(key) if role == "read" else desk.write(key, name, request_id=name)
            seen = {"version": answer["version"], "saw": answer.get("value")}
            return {"role": role, "key": key, "name": name, "begun": begun, "ended": time.monotonic(), **seen}


def reached(condition: Callable[[], bool]) -> None:
    while not condition():
        threading.Event().wait(0.01)


def test_outcomes_that_are_delivered_again_and_again_count_once(server: Server, tmp_path: Path) -> None:
    """Confidence would drift with the quality of the network instead of with what worked."""
    chance = seeded()
    desks = [desk(server, tmp_path, "ann") for _ in range(2)]
    for number in range(20):
        desks[0].write(f"k{number}", number, confidence=0.9)
    for number in range(WRITERS):
        desks[0].begin(f"run-{number}")
    plan: list[dict[str, Any]] = []
    for nth in range(1_000):
        used = [desks[0].named(f"k{number}") for number in chance.sample(range(20), 5)]
        plan.append(
            {"ref": f"o{nth}", "type": chance.choice(("success", "failure")), "used": used, "session": f"run-{nth % WRITERS}"}
        )
    deliveries = [fields for fields in plan for _ in range(chance.randint(1, 6))]
    chance.shuffle(deliveries)
    with ThreadPoolExecutor(WRITERS) as pool:
        answers = list(pool.map(lambda nth: desks[nth % 2].do("commit_outcome", **deliveries[nth]), range(len(deliveries))))
    assert len(plan) == len({str(answer) for answer in answers}), "a ref was answered in two ways"
    expected = Counter(used["key"] for fields in plan for used in fields["used"])
    for key, moves in expected.items():
        claim = desks[0].claim(key)
        confidence = 0.9
        for move in claim["moves"]:
            assert move["before"] == pytest.approx(confidence, abs=1e-12)
            confidence = min(1.0, max(0.0, confidence * move["factor"]))
        assert (moves, pytest.approx(confidence, abs=1e-12)) == (len(claim["moves"]), claim["confidence"])
    figures("outcomes", {"outcomes": len(plan), "deliveries": len(deliveries), "moves": expected.total()})
    close(*desks)


def test_the_feed_misses_none_of_fifty_thousand(server: Server, tmp_path: Path) -> None:
    """What was committed late would never be indexed, exported or shown."""
    batch, batches = 50, 1_000
    desks = [desk(server, tmp_path, f"w{n}") for n in range(2)]
    reader = desk(server, tmp_path, "reader")
    numbers, seen, after = iter(range(batches)), list[str](), None
    dice = random.Random(13)

    def work(who: int) -> None:
        for number in numbers:
            service, caller = desks[who % 2].service, desks[who % 2].caller
            fields = [{"entity": f"acme/{who}", "key": f"{number}-{n}", "value": n, "why": "w"} for n in range(batch)]
            plans = [service.plan(caller, "write", each) for each in fields]
            threading.Event().wait(dice.random() / 100)  # some are late
            assert all(isinstance(answer, dict) for answer in service.commit(plans))

    with ThreadPoolExecutor(WRITERS) as pool:
        running = [pool.submit(work, n) for n in range(WRITERS)]
        while not all(each.done() for each in running):
            found, after = followed(reader, after, limit=1_000)
            seen += [change["key"] for change in found]
        for each in running:
            each.result()
    found, after = followed(reader, after, limit=1_000)
    seen += [change["key"] for change in found]
    assert batch * batches == len(seen) == len(set(seen))
    close(*desks, reader)


def test_what_is_acknowledged_was_synced_before(server: Server, tmp_path: Path) -> None:
    """A power cut would take back what an agent was told is safe. Each process of the database is watched."""
    strace = subprocess.run(["sh", "-c", "command -v strace"], capture_output=True, text=True, check=False).stdout.strip()
    if not strace:
        pytest.skip("cannot run here: no strace")

    def synced(setting: str) -> int:
        with server.admin() as admin:
            admin.execute(f"ALTER ROLE {LOGIN} SET synchronous_commit = {setting}".encode())
            ann = desk(server, tmp_path, "ann")
            ann.write("k", setting)
            pids = [
                str(row[0]) for row in admin.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()").fetchall()
            ]
        log = tmp_path / f"{setting}.trace"
        command = [strace, "-f", "-ttt", "-e", "trace=fdatasync,fsync", "-o", str(log), "-p", ",".join(pids)]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as watching:
            assert watching.stderr is not None
            for _ in pids:
                watching.stderr.readline()  # it is attached to one more
            acknowledged = []
            for number in range(200):
                begun = time.time()
                ann.write("k", number)
                acknowledged.append((begun, time.time()))
            watching.terminate()
        close(ann)
        times = [float(line.split()[1]) for line in log.read_text().splitlines() if "sync(" in line]
        return sum(any(begun <= at <= ended for at in times) for begun, ended in acknowledged)

    on, off = synced("on"), synced("off")
    figures("synced before acknowledged", {"on": on, "off": off})
    assert (200, True) == (on, off < 100)


def test_two_tenants_share_two_connections(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection would go on as the tenant before it, once in many thousands: errors and cancelled statements among them."""
    monkeypatch.setattr(postgres, "CONNECTIONS_MAX", 2)
    with shared().admin(database) as admin:
        admin.execute("INSERT INTO herdbook.tenant (id, name) VALUES (2, 'two')")
    store = postgres.PostgresStore(shared().url(database, login=LOGIN))
    dice = random.Random(23)
    kinds = [dice.choices(("rows", "broken", "cancelled"), (85, 10, 5))[0] for _ in range(5_000)]
    try:
        for tenant in (1, 2):
            store.write(
                lambda tx: tx.run("insert_path", {"tenant": tx.tenant, "id": tx.next_id(), "path": f"of/{tx.tenant}"}),
                tenant=tenant,
            )

        def ask(n: int) -> None:
            tenant = 1 + n % 2

            def work(tx: Any) -> None:
                found = tx.rows("path_ids_below", {"tenant": tenant, "path": "of", "low": "of/", "high": "of0"})
                assert [f"of/{tenant}"] == [row[1] for row in found]
                assert [] == tx.rows("path_ids_below", {"tenant": 3 - tenant, "path": "of", "low": "of/", "high": "of0"})
                if kinds[n] == "broken":
                    raise ZeroDivisionError
                if kinds[n] == "cancelled":
                    tx.raw.execute("SET LOCAL statement_timeout = '1ms'")
                    tx.raw.execute("SELECT pg_sleep(1)").fetchall()

            with suppress(ZeroDivisionError, HerdbookError, psycopg.Error):
                (store.look if n % 3 else store.write)(work, tenant=tenant)
                assert kinds[n] == "rows"

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(len(kinds))))
    finally:
        store.close()


def test_a_migration_under_load(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade would stop a fleet: a migration that old servers survive is applied to a large record while they write."""
    url = server.url("herdbook_template")
    ann = desk(server, tmp_path, "ann")
    for start in range(0, 100_000, 2_000):
        fields = [{"entity": f"acme/{n % 500}", "key": f"k{n}", "value": n, "why": "w"} for n in range(start, start + 2_000)]
        assert all(
            isinstance(one, dict) for one in ann.service.commit([ann.service.plan(ann.caller, "write", each) for each in fields])
        )
    later = (
        setup.SCHEMA + 1,
        f"{setup.SCHEMA + 1:04}_later",
        (
            "ALTER TABLE version ADD COLUMN later bigint;"
            "CREATE TABLE later (tenant bigint NOT NULL REFERENCES tenant (id), id bigint NOT NULL, PRIMARY KEY (tenant, id));"
            "CREATE INDEX version_later ON version (tenant, later) WHERE later IS NOT NULL;"
        ),
    )
    load = Load(server, tmp_path, writers=8)
    reached(lambda: sum(map(len, load.told)) > 20)
    monkeypatch.setattr(setup, "MIGRATIONS", [*setup.MIGRATIONS, later])
    begun = time.monotonic()
    assert [later[1]] == setup.Setup.bring_up(url)
    seconds, told = time.monotonic() - begun, sum(map(len, load.told))
    reached(lambda: sum(map(len, load.told)) > told + 20)
    load.end()
    figures("migration", {"seconds": round(seconds, 2), "writes": sum(map(len, load.told)), "refused": len(load.refused)})
    assert [] == load.refused
    assert seconds < 30
    nothing_lost(server, load, tmp_path)
    close(ann, load.desk)
