"""The record in this process, behind the same client that speaks to a server: one set of methods, local or remote."""

from __future__ import annotations

from typing import Any

from herdbook.base.errors import HerdbookError
from herdbook.client import HerdbookError as ClientError
from herdbook.service.callers import Caller
from herdbook.service.door import Service


class LocalTransport:
    """Answers a client's calls from a service in this process."""

    def __init__(self, service: Service, caller: Caller) -> None:
        self.service = service
        self.caller = caller

    def call(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        try:
            return self.service.perform(self.caller, verb, fields)
        except HerdbookError as problem:
            raise for_clients(problem) from problem

    def close(self) -> None:
        self.service.close()


KINDS: dict[type[HerdbookError], type[HerdbookError]] = {}


def for_clients(problem: HerdbookError) -> HerdbookError:
    """The same refusal, caught by whoever catches the client's errors: code that works remotely works in process."""
    kind = type(problem)
    if kind not in KINDS:
        KINDS[kind] = type(kind.__name__, (kind, ClientError), {"__doc__": kind.__doc__, "__module__": kind.__module__})
    told = KINDS[kind](problem.message, **problem.details)
    vars(told).update(away=kind.retry, again_seconds=None)  # what a client's error has beside, without its way of being made
    return told
