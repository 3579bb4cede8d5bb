"""Peers at free addresses, closed after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from herdbook.client import Client
from tests.client.peer import Peer


@pytest.fixture
def make_peer() -> Iterator[Callable[..., Peer]]:
    made: list[Peer] = []

    def make(where: str | Path | int = 0, *, prefix: str = "") -> Peer:
        made.append(Peer(where, prefix=prefix))
        return made[-1]

    yield make
    for peer in made:
        peer.close()


@pytest.fixture
def peer(make_peer: Callable[..., Peer]) -> Peer:
    return make_peer()


@pytest.fixture
def make_client() -> Iterator[Callable[..., Client]]:
    made: list[Client] = []

    def make(*args: object, **settings: object) -> Client:
        made.append(Client(*args, **settings))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for client in made:
        client.transport.close()  # type: ignore[attr-defined]
