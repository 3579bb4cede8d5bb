"""The batching writer: what arrived while the last commit was on its way to the disk goes into the next one.

It promises that a request is acknowledged only after its commit, in the order of arrival, and that what it accepted is
committed before `close` returns. It refuses, with `busy`, to hold more than a bounded number of requests and bytes.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from herdbook.base import limits
from herdbook.base.errors import Busy, HerdbookError, Unavailable
from herdbook.base.http_edge import Internal
from herdbook.service.door import Plan

LOG = logging.getLogger("herdbook.rest")
WAITING_MAX: Final = 4_096
WAITING_BYTES_MAX: Final = 64 * limits.REQUEST_BYTES_MAX
BATCH_MAX: Final = 256  # beyond that a batch only delays its first request
# How long a free writer waits for as many requests as came together last time. Measured with 8 clients on two cores: 7.6 a batch
# instead of 2.1, and a third less processor time a write, since parsing and committing then don't fight over the interpreter.
GATHER_SECONDS: Final = 0.001

Result = dict[str, Any] | HerdbookError


class Waiting(NamedTuple):
    """One accepted request and the promise to answer it."""

    plan: Plan
    size: int
    answer: asyncio.Future[dict[str, Any]]


class BatchingWriter:
    """One thread that commits, fed by one event loop. All methods but `work` and `commit_all` belong to the loop's thread."""

    def __init__(
        self,
        commit: Callable[[Sequence[Plan]], Sequence[Result]],
        *,
        on_batch: Callable[[int], None] = lambda size: None,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self.commit = commit
        self.on_batch = on_batch
        self.waiting_max = waiting_max
        self.waiting: deque[Waiting] = deque()
        self.accepted = 0  # waiting, or in the batch that is being committed
        self.accepted_bytes = 0
        self.expected = 1  # how many requests are likely to come together
        self.committing = False
        self.patience: asyncio.TimerHandle | None = None
        self.handed: queue.SimpleQueue[list[Waiting] | None] = queue.SimpleQueue()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        self.settled = asyncio.Event()
        self.settled.set()
        self.closing = False

    def full(self) -> bool:
        return self.accepted >= self.waiting_max

    def submit(self, plan: Plan, *, size: int) -> asyncio.Future[dict[str, Any]]:
        """Accept a request; the future is done after its commit. Raises Busy when too much waits already."""
        if self.closing:
            raise Unavailable("the server is stopping: retry with the same ids in a moment")
        if self.full() or self.accepted_bytes + size > WAITING_BYTES_MAX:
            raise Busy(f"{self.accepted} requests wait for the disk already: retry with the same ids in a second")
        loop = self.loop or self.start()
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()
        self.waiting.append(Waiting(plan, size, answer))
        self.accepted += 1
        self.accepted_bytes += size
        self.settled.clear()
        if not self.committing:
            self.gather(loop)
        return answer

    def start(self) -> asyncio.AbstractEventLoop:
        self.loop = asyncio.get_running_loop()
        self.thread = threading.Thread(target=self.work, args=(self.loop,), name="herdbook-writer", daemon=True)
        self.thread.start()
        return self.loop

    def gather(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin the next batch when as many wait as are likely to come together, or a moment later with those that did."""
        if len(self.waiting) >= min(self.expected, BATCH_MAX) or self.closing:
            self.hand_over()
        elif self.patience is None:
            self.patience = loop.call_later(GATHER_SECONDS, self.hand_over)

    def hand_over(self) -> None:
        if self.patience is not None:
            self.patience.cancel()
            self.patience = None
        batch = [self.waiting.popleft() for _ in range(min(len(self.waiting), BATCH_MAX))]
        self.committing = True
        self.on_batch(len(batch))
        self.handed.put(batch)

    def work(self, loop: asyncio.AbstractEventLoop) -> None:
        """The writer's thread."""
        while (batch := self.handed.get()) is not None:
            results = self.commit_all([each.plan for each in batch])
            try:
                loop.call_soon_threadsafe(self.acknowledge, loop, batch, results)
            except RuntimeError:  # the loop was cut off: committed, and nobody is left to tell
                return

    def commit_all(self, plans: Sequence[Plan]) -> Sequence[Result]:
        """Commit together; after a failure nobody foresaw, which stored nothing, each alone, so that one cannot harm others."""
        try:
            return self.commit(plans)
        except HerdbookError as refusal:  # of the whole batch, such as a full disk
            return [refusal] * len(plans)
        except Exception:  # because whoever waits must be answered, and the writer must go on to the next batch
            if len(plans) > 1:
                return [result for plan in plans for result in self.commit_all([plan])]
            LOG.exception("a write failed")
            return [Internal("the write failed in a way nobody foresaw, and nothing was stored: the server's log says why")]

    def acknowledge(self, loop: asyncio.AbstractEventLoop, batch: list[Waiting], results: Sequence[Result]) -> None:
        for each, result in zip(batch, results, strict=True):
            self.accepted -= 1
            self.accepted_bytes -= each.size
            if each.answer.done():  # its client was cut off
                continue
            if isinstance(result, HerdbookError):
                each.answer.set_exception(result)
            else:
                each.answer.set_result(result)
        self.committing = False
        self.expected = len(batch) + len(self.waiting)
        if self.waiting:
            self.gather(loop)
        else:
            self.settled.set()

    async def close(self) -> None:
        """Accept nothing more, commit what was accepted, end the thread."""
        self.closing = True
        if self.waiting and not self.committing:
            self.hand_over()
        await self.settled.wait()
        if self.thread is not None:
            self.handed.put(None)
            await asyncio.to_thread(self.thread.join)
