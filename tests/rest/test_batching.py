"""The batching writer alone: order, isolation, bounds, and what closing promises. Commits are plain functions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from herdbook.base.errors import Busy, Conflict, DiskFull, HerdbookError, Unavailable
from herdbook.base.http_edge import Internal
from herdbook.surfaces.rest import batching
from herdbook.surfaces.rest.batching import BatchingWriter

Plan = Any  # here a function without arguments; the writer only hands plans on


class Disk:
    """Commits plans, when it is told to, and remembers what came together."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.stored: list[Any] = []
        self.turn = threading.Semaphore(0)
        self.free = True

    def commit(self, plans: Sequence[Plan]) -> list[Any]:
        if not self.free:
            self.turn.acquire()
        self.batches.append(len(plans))
        results = [plan() for plan in plans]
        self.stored += [result for result in results if not isinstance(result, HerdbookError)]
        return results


def plan(result: Any) -> Any:
    return lambda: result


def failing(problem: Exception) -> Any:
    def work() -> None:
        raise problem

    return work


def test_each_gets_its_own_answer() -> None:
    """A client would be told that another's write was stored."""

    async def main() -> None:
        disk = Disk()
        writer = BatchingWriter(disk.commit)
        futures = [writer.submit(plan({"n": n}) if n % 3 else plan(Conflict(str(n))), size=1) for n in range(10)]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        assert [{"n": n} if n % 3 else str(n) for n in range(10)] == [a if isinstance(a, dict) else str(a) for a in answers]
        await writer.close()

    asyncio.run(main())


def test_what_arrives_during_a_commit_goes_into_the_next() -> None:
    """Each request would cost a turn of the disk."""

    async def main() -> None:
        disk = Disk()
        disk.free = False
        writer = BatchingWriter(disk.commit)
        first = writer.submit(plan({"n": 0}), size=1)
        rest = [writer.submit(plan({"n": n}), size=1) for n in range(1, 8)]
        disk.turn.release()
        assert await first == {"n": 0}
        assert not any(future.done() for future in rest), "acknowledged before its commit"
        disk.turn.release()
        assert [{"n": n} for n in range(1, 8)] == await asyncio.gather(*rest)
        assert [1, 7] == disk.batches
        await writer.close()

    asyncio.run(main())


def test_those_who_came_together_are_waited_for() -> None:
    """Clients that write in step would be split over many small commits."""

    async def main() -> None:
        disk = Disk()
        writer = BatchingWriter(disk.commit)

        async def client(turns: int) -> None:
            for n in range(50):
                for _ in range(turns):  # each takes its own time between an answer and its next request
                    await asyncio.sleep(0)
                await writer.submit(plan({"n": n}), size=1)

        await asyncio.gather(*(client(turns) for turns in range(4)))
        assert len(disk.batches) < 80, "two hundred requests of four clients in step take little more than fifty commits"
        writer.submit(plan({"n": "alone"}), size=1)
        await writer.close()
        assert disk.stored[-1] == {"n": "alone"}

    asyncio.run(main())


def test_a_failure_nobody_foresaw_harms_only_its_own_request() -> None:
    """One client's odd request would fail the requests of all that came with it."""

    async def main() -> None:
        disk = Disk()
        disk.free = False
        writer = BatchingWriter(disk.commit)
        held = writer.submit(plan({"n": "held"}), size=1)
        futures = [writer.submit(p, size=1) for p in (plan({"n": 1}), failing(OverflowError("too large")), plan({"n": 2}))]
        disk.free = True
        disk.turn.release()
        await held
        answers = await asyncio.gather(*futures, return_exceptions=True)
        assert [{"n": 1}, {"n": 2}] == [answers[0], answers[2]]
        assert isinstance(answers[1], Internal)
        await writer.close()

    asyncio.run(main())


def test_a_full_disk_is_told_to_each() -> None:
    """Clients would wait for ever when a commit fails as a whole."""

    async def main() -> None:
        def full(plans: Sequence[Plan]) -> list[Any]:
            raise DiskFull

        writer = BatchingWriter(full)
        answers = await asyncio.gather(*(writer.submit(plan({}), size=1) for _ in range(5)), return_exceptions=True)
        assert all(isinstance(answer, DiskFull) for answer in answers)
        await writer.close()

    asyncio.run(main())


def test_too_much_is_refused_at_once() -> None:
    """A slow disk would fill the memory with requests that time out anyway."""

    async def main() -> None:
        disk = Disk()
        disk.free = False
        writer = BatchingWriter(disk.commit, waiting_max=3)
        futures = [writer.submit(plan({"n": n}), size=1) for n in range(3)]
        with pytest.raises(Busy):
            writer.submit(plan({}), size=1)
        disk.free = True
        disk.turn.release(5)
        await asyncio.gather(*futures)
        large = writer.submit(plan({"n": "large"}), size=batching.WAITING_BYTES_MAX)
        with pytest.raises(Busy):
            writer.submit(plan({}), size=1)
        assert await large == {"n": "large"}
        await writer.close()
        assert 0 == writer.accepted == writer.accepted_bytes

    asyncio.run(main())


def test_closing_commits_what_was_accepted() -> None:
    """A stop would lose writes that were on their way."""

    async def main() -> None:
        disk = Disk()
        disk.free = False
        writer = BatchingWriter(disk.commit)
        futures = [writer.submit(plan({"n": n}), size=1) for n in range(600)]
        closing = asyncio.create_task(writer.close())
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            writer.submit(plan({}), size=1)
        disk.free = True
        disk.turn.release(10)
        await closing
        assert [{"n": n} for n in range(600)] == disk.stored
        assert all(future.done() for future in futures)
        assert max(disk.batches) <= batching.BATCH_MAX

    asyncio.run(main())


def test_a_client_that_gave_up_does_not_stop_the_others() -> None:
    """A cancelled request would break the acknowledgement of its whole batch."""

    async def main() -> None:
        disk = Disk()
        disk.free = False
        writer = BatchingWriter(disk.commit)
        gone, stays = writer.submit(plan({"n": 0}), size=1), writer.submit(plan({"n": 1}), size=1)
        gone.cancel()
        disk.free = True
        disk.turn.release()
        assert await stays == {"n": 1}
        assert [{"n": 0}, {"n": 1}] == disk.stored, "what was accepted is committed all the same"
        await writer.close()

    asyncio.run(main())


def test_closing_without_a_write_is_nothing() -> None:
    """A server that never wrote could not stop."""
    asyncio.run(BatchingWriter(Disk().commit).close())
