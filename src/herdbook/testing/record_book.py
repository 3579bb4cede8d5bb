"""A record under test, and somebody who uses it: what the record's conformance suite is written in.

A `Book` is given by whoever tests a store. It opens the same record as often as asked, each time as another process would see it,
and hands the record a clock that moves only when a test says so.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest

from herdbook.base.clock import TickClock
from herdbook.base.errors import HerdbookError
from herdbook.service.callers import DEFAULT_TENANT, Caller, box_caller, local_caller
from herdbook.service.door import Service

T = TypeVar("T")
ENTITY = "acme/checkout"
WHY = "it was seen"
FLEET = "fleet"  # the identity behind every box here, as one key stands behind a fleet


@dataclass(slots=True)
class Book:
    """One record, and how to come by it."""

    opener: Callable[[TickClock], Service]  # the same record, with nothing shared in memory
    tenant_maker: Callable[[int], None]  # there is no verb for it
    clock: TickClock = field(default_factory=TickClock)
    opened: list[Service] = field(default_factory=list)

    def open(self) -> Service:
        """The record as another process has it."""
        service = self.opener(self.clock)
        self.opened.append(service)
        return service

    def close(self) -> None:
        while self.opened:
            self.opened.pop().close()


class Desk:
    """A caller at a service, with short words for what tests do all day."""

    def __init__(self, service: Service, caller: Caller) -> None:
        self.service = service
        self.caller = caller

    def do(self, verb: str, **fields: Any) -> dict[str, Any]:
        """Any verb."""
        return self.service.perform(self.caller, verb, fields)

    def begin(self, session: str, *, agent: str = "agent") -> str:
        self.do("start_session", session=session, agent=agent)
        return session

    def write(self, key: str, value: Any, *, why: str | None = WHY, entity: str = ENTITY, **more: Any) -> dict[str, Any]:
        return self.do("write", entity=entity, key=key, value=value, **({"why": why} if why else {}), **more)

    def read(self, key: str, *, entity: str = ENTITY, **more: Any) -> dict[str, Any]:
        return self.do("read", entity=entity, key=key, **more)

    def brief(self, *, entity: str = ENTITY, **more: Any) -> dict[str, Any]:
        return self.do("brief", entity=entity, **more)

    def history(self, key: str, *, entity: str = ENTITY) -> list[dict[str, Any]]:
        versions: list[dict[str, Any]] = self.do("history", entity=entity, key=key)["versions"]
        return versions

    def claims(self, key: str, *, entity: str = ENTITY) -> list[dict[str, Any]]:
        """Every claim of an entry with all its moves, newest first."""
        claims: list[dict[str, Any]] = self.do("why", entity=entity, key=key)["claims"]
        return claims

    def claim(self, key: str, *, entity: str = ENTITY) -> dict[str, Any]:
        """The one claim an entry ever made."""
        [only] = self.claims(key, entity=entity)
        return only

    def outcome(self, session: str, kind: str = "success", **more: Any) -> dict[str, Any]:
        return self.do("commit_outcome", session=session, type=kind, **more)

    def run(self, session: str, kind: str = "success", *, used: Sequence[Any] | None = None, **more: Any) -> str:
        """A whole run that was served these keys and used them, or only served them: the ref of its outcome."""
        self.begin(session)
        served = [*(more.pop("served", None) or ()), *(key for key in used or () if isinstance(key, str))]
        for key in served:
            self.read(key, session=session)
        named = None if used is None else [self.named(key) for key in used]
        ref: str = self.outcome(session, kind, **({"used": named} if named is not None else {}), **more)["ref"]
        return ref

    def named(self, item: Any) -> Any:
        """A key as `used` names an entry that the session was not served."""
        return {"entity": ENTITY, "key": item} if isinstance(item, str) else item

    def standing(self, key: str, *, entity: str = ENTITY) -> str:
        standing: str = self.read(key, entity=entity)["standing"]
        return standing


def person(service: Service, identity: str = "ann", *, tenant: int = DEFAULT_TENANT) -> Desk:
    """Somebody at the machine itself, who may do everything."""
    return Desk(service, replace(local_caller(identity), tenant=tenant))


def box(service: Service, name: str, *, identity: str = FLEET) -> Desk:
    """What runs inside a box."""
    return Desk(service, box_caller(name, identity=identity))


@contextmanager
def refused(code: str, *, saying: str = "") -> Iterator[None]:
    """What is inside is refused with this code, and a sentence that holds this."""
    with pytest.raises(HerdbookError) as caught:
        yield
    problem = caught.value
    assert code == problem.code, f"{problem.code}: {problem.message}"
    assert saying in problem.message


def refusal(ask: Callable[..., object], *args: Any, **fields: Any) -> dict[str, Any]:
    """What is answered instead of an answer."""
    with pytest.raises(HerdbookError) as caught:
        ask(*args, **fields)
    return caught.value.as_dict()


def as_bytes(answer: Any) -> bytes:
    """An answer as a surface would send it: in its own order, so that equal means equal to the byte."""
    return json.dumps(answer).encode()


def at_once(works: Sequence[Callable[[], T]]) -> list[T | HerdbookError]:
    """What these give when each runs in a thread of its own and all start together."""
    gate = threading.Barrier(len(works))

    def go(work: Callable[[], T]) -> T | HerdbookError:
        gate.wait()
        try:
            return work()
        except HerdbookError as problem:
            return problem

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(go, works))


def told_at_once(works: Sequence[Callable[[], T]]) -> list[T]:
    """The same where nothing may be refused."""
    answers: list[T] = []
    for answer in at_once(works):
        if isinstance(answer, HerdbookError):
            raise answer
        answers.append(answer)
    return answers
