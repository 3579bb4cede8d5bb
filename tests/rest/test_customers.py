"""Two customers, a path each, a new box for every request, gone after it: what was learnt stays, and stays with its customer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from herdbook.service.callers import local_caller
from herdbook.service.door import Service
from tests.rest.serving import Server, open_service, serving

pytestmark = pytest.mark.slow

ANN = local_caller("ann")
CUSTOMERS = ("acme", "globex")
REQUESTS = 12


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Service, list[Server]]]:
    one, two = open_service(tmp_path), open_service(tmp_path)
    with serving(one) as first, serving(two) as second:
        yield one, [first, second]
    one.close()
    two.close()


def served(service: Service, server: Server, customer: str, number: int) -> tuple[int, str]:
    """One request in a box of its own: brief, do, write down, tell; then the box is gone. How much was known, and the pass."""
    path, box = f"customers/{customer}", f"{customer}-{number}"
    row = {"box": box, "provider": "p", "isolation": "namespace", "label": customer, "owner": "host"}
    service.perform(ANN, "box_open", row)
    token = service.perform(ANN, "box_pass", {"box": box, "reach": [path]})["token"]

    def ask(verb: str, **fields: object) -> dict[str, object]:
        reply = server.post(verb, dict(fields), Authorization=f"Bearer {token}")
        assert 200 == reply.status, reply
        for other in CUSTOMERS:
            assert other == customer or other.encode() not in reply.body
        return reply.json

    ask("start_session", session=f"run-{box}", agent="agent", entity=path)
    briefed = ask("brief", entity=path, session=f"run-{box}")
    ask("write", entity=path, key=f"seen-{number}", value=f"{customer} asked {number}", why="it was asked", session=f"run-{box}")
    ask("commit_outcome", session=f"run-{box}", type="success", task_input="answer")
    for verb, fields in (("brief", {"entity": "customers"}), ("search", {"query": "asked"}), ("list", {})):
        ask(verb, **fields)
    service.perform(ANN, "box_close", {"box": box, "detail": "done"})
    return int(str(briefed["known"])), token


def test_context_outlives_each_box_and_crosses_to_nobody(servers: tuple[Service, list[Server]]) -> None:
    """A customer would start anew with every request, or be told what another one asked."""
    service, both = servers
    for number in range(REQUESTS):
        for customer in CUSTOMERS:
            known, token = served(service, both[number % 2], customer, number)
            assert number == known
            assert 401 == both[0].post("list", {}, Authorization=f"Bearer {token}").status
