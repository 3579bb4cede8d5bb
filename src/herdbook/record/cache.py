"""A bounded cache for immutable things: oldest out first, safe among threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Holds at most `size_max` of what `size` counts: bytes, or by default the members themselves."""

    def __init__(self, size_max: int, *, size: Callable[[V], int] = lambda _: 1) -> None:
        self._held: OrderedDict[K, V] = OrderedDict()
        self._size, self._size_max, self._sum = size, size_max, 0
        self._turn = threading.Lock()
        self.get = self._held.get

    def clear(self) -> None:
        with self._turn:
            self._held.clear()
            self._sum = 0

    def put(self, key: K, value: V) -> None:
        with self._turn:
            if key in self._held:
                return
            self._held[key] = value
            self._sum += self._size(value)
            while self._sum > self._size_max and len(self._held) > 1:
                _, gone = self._held.popitem(last=False)
                self._sum -= self._size(gone)
