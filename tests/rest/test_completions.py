"""Models under names of our own: an unmodified client is answered, each call is kept, and nobody gets further than their key."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import openai
import pytest

from herdbook.base.errors import Forbidden, InvalidRequest
from herdbook.service.callers import local_caller
from herdbook.service.door import Service
from herdbook.slowloop.models import upstreams
from tests.rest.serving import KEY, Server, serving
from tests.slowloop.model_server import model_server

pytestmark = pytest.mark.slow

ANN = local_caller("ann")
CALL = {"name": "set", "arguments": '{"TZ": "UTC"}'}
TOOLS: Any = [{"type": "function", "function": {"name": "set", "parameters": {"type": "object", "properties": {}}}}]
SECRET = "an-upstream-key-of-ours"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Two upstreams: one with a key for the first tenant, one for another tenant."""
    found, key = tmp_path / "upstreams", tmp_path / "upstream.key"
    key.write_text(SECRET + "\n")
    with model_server(tmp_path) as url:
        upstreams.put(found, "laptop", url, key_file=key)
        upstreams.put(found, "theirs", url, tenants=[2])
        upstreams.put(found, "away", "http://127.0.0.1:9/v1")
        yield found


def route(service: Service, alias: str = "fixer", name: str = "echo", upstream: str = "laptop") -> None:
    service.perform(ANN, "model_route", {"alias": alias, "upstream": upstream, "name": name})


@pytest.fixture
def server(service: Service, folder: Path) -> Iterator[Server]:
    route(service)
    with serving(service, key=KEY, upstreams=folder) as running:
        yield running


def client(server: Server, key: str = KEY, **headers: str) -> openai.OpenAI:
    base = f"http://127.0.0.1:{server.address[1]}/v1"
    return openai.OpenAI(base_url=base, api_key=key, default_headers=headers, max_retries=0)


def ask(server: Server, said: str, *, model: str = "fixer", key: str = KEY, **headers: str) -> Any:
    with client(server, key, **headers) as asking:
        return asking.chat.completions.create(model=model, messages=[{"role": "user", "content": said}], tools=TOOLS)


def runs(service: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.perform(ANN, "runs", {})["runs"]
    return found


def test_an_unmodified_client_gets_a_call_and_the_run_is_kept(server: Server, service: Service) -> None:
    """Agents would need a client of ours, or the record would not know what the model did."""
    with client(server, **{"X-Herdbook-Session": "run-1", "X-Herdbook-Entity": "acme/ci", "X-Herdbook-Agent": "fixer"}) as asking:
        messages: list[Any] = [{"role": "user", "content": json.dumps(CALL)}]
        message = asking.chat.completions.create(model="fixer", messages=messages, tools=TOOLS).choices[0].message
        assert message.tool_calls
        call: Any = message.tool_calls[0]
        assert ("set", '{"TZ": "UTC"}') == (call.function.name, call.function.arguments)
        messages += [message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "ok"}]
        last = asking.chat.completions.create(model="fixer", messages=messages, tools=TOOLS)
        assert ("fixer", 10) == (last.model, last.usage.total_tokens if last.usage else 0)
    (run,) = runs(service)
    assert ("run-1", "acme/ci", "fixer") == (run["session"], run["entity"], run["agent"])
    assert [("set", {"TZ": "UTC"}, "ok")] == [(each["tool"], each["args"], each["result"]) for each in run["actions"]]
    assert ["tools", "model", "user", "assistant"] == [each["name"] for each in run["contexts"]]


def test_a_stream_comes_through_under_the_name_that_was_asked_for(server: Server, service: Service) -> None:
    """Agents that stream would get nothing, or the upstream's own name."""
    with client(server, **{"X-Herdbook-Session": "run-2"}) as asking:
        said: Any = [{"role": "user", "content": "hello"}]
        chunks: Any = list(asking.chat.completions.create(model="fixer", messages=said, stream=True))
        assert {"fixer"} == {chunk.model for chunk in chunks}
        assert "echoheardhello" == "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        said = [{"role": "user", "content": json.dumps(CALL)}]
        chunks = list(asking.chat.completions.create(model="fixer", messages=said, stream=True))
        calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
        assert [('{"TZ": "UTC"}', "set")] == [(call.function.arguments, call.function.name) for call in calls]
    contexts = [(each["name"], each["text"]) for each in runs(service)[0]["contexts"]]
    assert ("assistant", "echoheardhello") in contexts


def test_names_are_listed(server: Server) -> None:
    """Clients that look first would find nothing."""
    with client(server) as asking:
        assert ["fixer"] == [each.id for each in asking.models.list()]
        assert "fixer" == asking.models.retrieve("fixer").id
        with pytest.raises(openai.NotFoundError):
            asking.models.retrieve("nobody")


def test_without_a_run_each_conversation_gets_one_that_the_answer_names(server: Server, service: Service) -> None:
    """Whoever wants to say how it went could not say what."""
    with client(server) as asking:
        said: Any = [{"role": "user", "content": "hello"}]
        raw = asking.chat.completions.with_raw_response.create(model="fixer", messages=said)
        session = raw.headers["x-herdbook-session"]
    assert [session] == [run["session"] for run in runs(service)]
    service.perform(ANN, "model_routes", {})


def test_a_key_gets_as_far_as_its_scopes(server: Server, service: Service) -> None:
    """A key to read with would spend money, one of another path would write there, and a stranger's run be continued."""
    keys = {
        "reader": service.perform(ANN, "key_create", {"name": "reader", "role": "reader"})["key"],
        "near": service.perform(ANN, "key_create", {"name": "near", "role": "writer", "reach": ["acme/ci"]})["key"],
        "other": service.perform(ANN, "key_create", {"name": "other", "role": "writer"})["key"],
    }
    with pytest.raises(openai.PermissionDeniedError):
        ask(server, "hello", key=keys["reader"])
    with pytest.raises(openai.PermissionDeniedError):
        ask(server, "hello", key=keys["near"], **{"X-Herdbook-Entity": "globex/ci"})
    with pytest.raises(openai.AuthenticationError):
        ask(server, "hello", key="nobody's")
    assert [] == runs(service)
    ask(server, "hello", key=keys["near"], **{"X-Herdbook-Entity": "acme/ci/tests", "X-Herdbook-Session": "run-n"})
    with pytest.raises(openai.NotFoundError):
        ask(server, "hello", key=keys["other"], **{"X-Herdbook-Session": "run-n"})
    assert 1 == len(runs(service))


def test_what_the_upstream_refuses_is_told_without_its_key(server: Server, service: Service) -> None:
    """The credential of a model server would be read by whoever may ask a question."""
    route(service, "broken", "broken")
    with pytest.raises(openai.InternalServerError) as failed:
        ask(server, "hello", model="broken")
    assert 503 == failed.value.status_code
    assert SECRET not in str(failed.value)
    route(service, "picky", "picky")
    with pytest.raises(openai.BadRequestError, match="max_tokens is too large"):
        ask(server, "hello", model="picky")
    assert SECRET in str(ask(server, "hello").choices[0].message.content), "the upstream is shown it"


def test_what_is_not_there_is_said(server: Server, service: Service) -> None:
    """An outage, another tenant's upstream and a name nobody routes would be told apart by nobody, or hang."""
    for alias, upstream, status in (("dead", "away", 503), ("foreign", "theirs", 404), ("unnamed", "nowhere", 404)):
        route(service, alias, "echo", upstream)
        with pytest.raises(openai.APIStatusError) as failed:
            ask(server, "hello", model=alias)
        assert status == failed.value.status_code, alias
    with pytest.raises(openai.NotFoundError):
        ask(server, "hello", model="nobody")
    assert 400 == server.ask("POST", "/v1/chat/completions", b'{"model": "fixer"}').status
    assert 405 == server.get("/v1/chat/completions").status
    assert [] == runs(service)


def test_a_share_of_the_runs_is_answered_by_the_new_model(server: Server, service: Service) -> None:
    """A model on trial would answer everybody, or a run be answered by both in turn."""
    gain = {"mean": 0.4, "low": 0.2, "high": 0.6}
    report = {"tasks": 40, "bad_acts": 0, "gains": dict.fromkeys(("base", "majority", "replay"), gain)}
    kept = {"kind": "model", "name": "mine", "hash": "7e" * 32, "metrics": {"evaluation": report}}
    artefact = service.perform(ANN, "artefact_keep", kept)["artefact"]
    new = {"artefact": artefact, "alias": "fixer", "upstream": "laptop", "name": "mute"}
    service.perform(ANN, "model_promote", new | {"percent": 50, "entities": ["acme/new"]})

    def who(session: str, entity: str = "acme/ci") -> str:
        headers = {"X-Herdbook-Session": session, "X-Herdbook-Entity": entity}
        return str(ask(server, "hello", **headers).choices[0].message.content).partition("|")[0]

    first = [who(f"run-{number}") for number in range(12)]
    assert {"echo", "mute"} == set(first)
    assert first == [who(f"run-{number}") for number in range(12)]
    assert {"mute"} == {who(f"new-{number}", "acme/new/tests") for number in range(4)}
    for number, model in enumerate(first):
        result = {"session": f"run-{number}", "ref": f"end-{number}", "type": "success" if model == "mute" else "failure"}
        assert 200 == server.post("commit_outcome", result).status
    found = service.perform(ANN, "model_routes", {"alias": "fixer", "compare": True})["routes"][0]["compared"]
    assert (first.count("mute"), first.count("mute")) == tuple(found["models"][artefact].values())
    assert (first.count("echo"), 0) == tuple(found["models"]["laptop/echo"].values())
    assert found["difference"]["estimate"] > 0


def test_an_upstream_is_a_place_for_models(tmp_path: Path) -> None:
    """A credential would go over the wire in clear, or be fetched from where clouds hand them out."""
    key = tmp_path / "key"
    for url in ("ftp://a/v1", "http://user:pass@127.0.0.1/v1", "http://127.0.0.1/v1?key=1", "127.0.0.1:8000/v1"):
        with pytest.raises(InvalidRequest):
            upstreams.put(tmp_path, "a", url)
    for url in ("http://169.254.169.254/v1", "http://[::ffff:169.254.169.254]/v1", "http://[fd00:ec2::254]/v1"):
        with pytest.raises(Forbidden):
            upstreams.put(tmp_path, "a", url)
    with pytest.raises(Forbidden, match="only by https"):
        upstreams.put(tmp_path, "a", "http://10.0.0.7:8000/v1", key_file=key)
    with pytest.raises(InvalidRequest):
        upstreams.put(tmp_path, "../a", "http://127.0.0.1/v1")
    assert 0o600 == upstreams_mode(tmp_path)


def upstreams_mode(folder: Path) -> int:
    upstreams.put(folder / "made", "a", "http://127.0.0.1/v1")
    return (folder / "made" / "a.json").stat().st_mode & 0o777


def test_a_redirect_is_not_followed(service: Service, tmp_path: Path) -> None:
    """An upstream would send the conversation, and the key, wherever it likes."""
    asked: list[str] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(307)
            self.send_header("location", "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as elsewhere:
        thread = threading.Thread(target=elsewhere.serve_forever)
        thread.start()
        try:
            upstreams.put(tmp_path / "upstreams", "laptop", f"http://127.0.0.1:{elsewhere.server_port}/v1")
            route(service)
            with serving(service, key=KEY, upstreams=tmp_path / "upstreams") as server, pytest.raises(openai.InternalServerError):
                ask(server, "hello")
        finally:
            elsewhere.shutdown()
            thread.join()
    assert ["/v1/chat/completions"] == asked
