"""Writes to a record in process until it is killed: says what it is about to do, then what was acknowledged.

One long-lived process forks a child for each line it is told, so that a kill costs a fork and not an interpreter.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import herdbook
from tests.crash.running import say

KEYS = 5
ENTITY = "acme/ci"


def main(record: str) -> None:
    warm = herdbook.open(f"{record}.warm", agent="writer")  # what is imported late is imported now
    warm.write(ENTITY, "k", 1)
    warm.commit_outcome("success", used=[{"entity": ENTITY, "key": "k"}])
    warm.close()
    say({"ready": True})
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                write_on(record, json.loads(line))
            finally:
                os._exit(1)
        say({"child": child})
        _, status = os.waitpid(child, 0)
        say({"dead": os.waitstatus_to_exitcode(status)})


def write_on(record: str, told: dict[str, Any]) -> None:
    """First what nobody knows the end of, with the same ids; then on and on."""
    client = herdbook.open(record, agent="writer", session=f"run-{told['generation']}")
    for operation in told["again"]:
        perform(client, operation)
    for nth in range(1_000_000):
        perform(client, operation_of(client.session, told["generation"], nth))


def operation_of(session: str, generation: int, nth: int) -> dict[str, Any]:
    """The n-th thing this child does: writes, with a read between and an outcome now and then."""
    name, key = f"{generation}.{nth}", f"k{(generation + nth) % KEYS}"
    if nth % 8 == 7:
        used = [{"entity": ENTITY, "key": f"k{(generation + earlier) % KEYS}"} for earlier in (nth - 7, nth - 6)]
        fields: dict[str, Any] = {
            "session": session,
            "type": ("success", "failure")[nth % 16 // 8],
            "ref": f"o{name}",
            "used": used,
        }
        return {"id": name, "verb": "commit_outcome", "fields": fields}
    if nth % 4 == 2:
        earlier = f"k{(generation + nth - 1) % KEYS}"
        return {"id": name, "verb": "read", "fields": {"session": session, "entity": ENTITY, "key": earlier}}
    fields = {"session": session, "entity": ENTITY, "key": key, "value": {"op": name}, "why": "w", "request_id": f"r{name}"}
    return {"id": name, "verb": "write", "fields": fields}


def perform(client: herdbook.Client, operation: dict[str, Any]) -> None:
    say({"begun": operation})
    fields = operation["fields"]
    if fields["session"] != client.session or not client.begun:
        client.transport.call("start_session", {"session": fields["session"], "agent": "writer"})
        client.begun = client.begun or fields["session"] == client.session
    answer = client.transport.call(operation["verb"], fields)
    say({"done": operation["id"], "version": answer.get("version"), "moved": len(answer.get("moved", ()))})


if __name__ == "__main__":
    main(sys.argv[1])
