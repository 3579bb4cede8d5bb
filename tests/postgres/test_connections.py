"""Connections are few: whatever holds one while it asks for another must not wait for others that do the same."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from herdbook.record.store.postgres.store import CONNECTIONS_MAX
from herdbook.record.store.protocol import Reader
from herdbook.service.callers import DEFAULT_TENANT
from herdbook.testing.records import Desk

pytestmark = pytest.mark.slow


def test_as_many_transactions_as_connections_may_each_ask_beside_themselves(ann: Desk) -> None:
    """Sixteen traces at once, or writers in one process, would all stand still until a time was over."""
    store = ann.service.record.store
    all_inside = threading.Barrier(CONNECTIONS_MAX)

    def work(reader: Reader) -> int:
        with suppress(threading.BrokenBarrierError):  # as it should be: they are not all let in
            all_inside.wait(0.3)
        return len(store.rows("erasure_count", {"tenant": DEFAULT_TENANT}))

    with ThreadPoolExecutor(CONNECTIONS_MAX) as pool:
        looks = [pool.submit(store.look, work, tenant=DEFAULT_TENANT) for _ in range(CONNECTIONS_MAX)]
        assert [1] * CONNECTIONS_MAX == [look.result(timeout=30) for look in looks]
