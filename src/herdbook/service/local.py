"""The record in this process, behind the same client that speaks to a server: one set of methods, local or remote."""

from __future__ import annotations

from typing import Any

from herdbook.service.callers import Caller
from herdbook.service.door import Service


class LocalTransport:
    """Answers a client's calls from a service in this process."""

    def __init__(self, service: Service, caller: Caller) -> None:
        self.service = service
        self.caller = caller

    def call(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        return self.service.perform(self.caller, verb, fields)

    def close(self) -> None:
        self.service.close()
