"""The log of what was done with keys: one line at a time, one file a day, on the disk soon."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from herdbook.base.clock import TickClock
from herdbook.gateway import audit
from herdbook.gateway.audit import Audit, lines


def test_a_line_is_with_the_system_before_the_call_goes_out(tmp_path: Path) -> None:
    """A crash of the gateway would take with it what was done."""

    async def crash() -> None:
        Audit(tmp_path, TickClock()).write("sent", "call_1", box="one")
        assert ["call_1"] == [each["call"] for each in lines(tmp_path)]  # nobody has closed or flushed anything

    asyncio.run(crash())


def test_lines_are_brought_to_the_disk_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut would take hours of it."""
    synced: list[int] = []
    monkeypatch.setattr(audit, "SYNC_SECONDS", 0.01)
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))

    async def write() -> None:
        log = Audit(tmp_path, TickClock())
        for number in range(100):
            log.write("sent", f"call_{number}")
        assert [] == synced
        assert log.syncing is not None
        await asyncio.wait_for(log.syncing, 20)
        await log.close()

    asyncio.run(write())
    size = next(tmp_path.glob("*.jsonl")).stat().st_size
    assert [size, size] == synced  # once for a hundred lines, and once at the end


def test_each_day_has_its_file(tmp_path: Path) -> None:
    """One file would grow for ever, and nobody could throw away a part."""
    clock = TickClock()

    async def write() -> None:
        log = Audit(tmp_path, clock)
        for number in range(3):
            log.write("sent", f"call_{number}")
            clock.tick(days=0.6)
        await log.close()

    asyncio.run(write())
    files = sorted(tmp_path.iterdir())
    assert ["audit-2026-01-01.jsonl", "audit-2026-01-02.jsonl"] == [path.name for path in files]
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in files}
    assert ["call_0", "call_1", "call_2"] == [each["call"] for each in lines(tmp_path)]


def test_a_line_cut_short_hides_no_other(tmp_path: Path) -> None:
    """After a power cut the whole log would be unreadable, or the cut would not be seen."""
    whole = b'{"event":"sent","call":"a"}\n'
    (tmp_path / "audit-2026-01-01.jsonl").write_bytes(whole + b'{"event":"se\n\xff\n' + whole)
    assert ["sent", "unreadable", "unreadable", "sent"] == [each["event"] for each in lines(tmp_path)]


def test_two_processes_write_one_log(tmp_path: Path) -> None:
    """The gateway on boxes' sockets and the served one would overwrite each other's lines."""

    async def write() -> None:
        logs = [Audit(tmp_path, TickClock()) for _ in range(2)]
        for number in range(50):
            logs[number % 2].write("sent", f"call_{number}", path="/x" * 500)
        for log in logs:
            await log.close()

    asyncio.run(write())
    assert [f"call_{number}" for number in range(50)] == [each["call"] for each in lines(tmp_path)]
