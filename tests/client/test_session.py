"""Sessions the client begins by itself, and the fields its methods send: checked against the request types of the service."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from herdbook.client import Client, HerdbookError
from herdbook.service import requests
from tests.client.peer import Peer

Clients = Callable[..., Client]


class Recorder:
    """A transport in this process that keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.conflict = False

    def call(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((verb, fields))
        if self.conflict and verb == "start_session":
            raise HerdbookError("request_conflict", "that run is another agent's", 409)
        return {"verb": verb}

    def close(self) -> None:
        self.calls.append(("close", {}))

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.calls]


def every_method(client: Client) -> None:
    client.brief("acme/ci", task="green", tokens=300, names=True)
    client.read("acme/ci", "k", version=1)
    client.search("port", entity="acme", limit=3)
    client.history("acme/ci", "k")
    client.diff("acme/ci", "k", old=1, new=2)
    client.list("acme", after="acme/ci", limit=10)
    client.list()
    client.trace("o_1")
    client.why("acme/ci", "k")
    client.box_list(label="x", live=True)
    client.status()
    links = [{"rel": "see_also", "entity": "acme", "key": "k"}]
    client.write("acme/ci", "k", None, why="so", kind="belief", confidence=0.4, applies_when="load", links=links, if_version=0)
    client.write("acme/ci", "k", 1, worked=True, kind="experience", expires_at="2030-01-01T00:00:00Z", request_id="r")
    client.dead_end("acme/ci", "d", "no", why="it failed", applies_when="load")
    client.action("suite", {"a": 1}, {"b": 2}, ok=False)
    client.context("prompt", "text")
    client.attempt("failure", used=["k", {"entity": "acme", "key": "k"}], note="half")
    client.commit_outcome("success", used=["k"], observed=["load"], artifacts={"a": 1}, verified_by="ci")
    client.attest("o_1", exit_code=0, note="seen")
    client.revise_outcome("o_1", "failure", why="late")
    client.box_open(box="b", provider="p", isolation="namespace", label="l", owner="o")
    client.box_beat(box="b", lease_seconds=5)
    client.box_close(box="b", detail="done")
    client.end_session()


def test_every_method_sends_what_its_verb_takes() -> None:
    """A method would be refused by every server, in process or not."""
    transport = Recorder()
    every_method(Client(transport))
    for verb, fields in transport.calls:
        name = "".join(word.capitalize() for word in verb.split("_"))
        msgspec.convert(fields, getattr(requests, name))


# What servers, workers and operators ask by `call("verb", {...})`: no box needs a method for it, and the client has 500 lines.
BY_NAME = re.compile(r"job_\w+|runs|outcomes|contradictions|box_pass|box_check|box_promote|box_runs")


def test_every_verb_has_a_method() -> None:
    """A verb of the service could not be used from a box."""
    types = [one for one in vars(requests).values() if isinstance(one, type) and issubclass(one, requests.Request)]
    verbs = {re.sub(r"(?<!^)([A-Z])", r"_\1", one.__name__).lower() for one in types} - {"request"}
    assert [] == [verb for verb in sorted(verbs) if not (callable(getattr(Client, verb, None)) or BY_NAME.fullmatch(verb))]
    assert 22 <= len(verbs)


def test_what_is_not_given_is_not_sent() -> None:
    """The server's defaults would be overruled by ours."""
    transport = Recorder()
    client = Client(transport, tracked=False)
    client.brief("a")
    client.read("a", "k")
    assert [("brief", {"entity": "a"}), ("read", {"entity": "a", "key": "k"})] == transport.calls


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.brief("acme/ci"),
        lambda client: client.read("acme/ci", "k"),
        lambda client: client.search("k", entity="acme/ci"),
        lambda client: client.write("acme/ci", "k", 1),
    ],
)
def test_the_first_call_begins_the_session(peer: Peer, make_client: Clients, call: Callable[[Client], Any]) -> None:
    """What an agent reads and does would belong to no run."""
    client = make_client(url=peer.url, agent="fixer", task="green")
    assert [] == peer.calls
    call(client)
    call(client)
    assert 3 == len(peer.calls)
    assert re.fullmatch(r"s_[0-9a-f]{20}", client.session)
    assert {"session": client.session, "agent": "fixer", "task": "green", "entity": "acme/ci"} == peer.fields("start_session")
    assert {client.session} == {fields["session"] for _, fields in peer.calls}


def test_asks_that_belong_to_no_run_begin_none(peer: Peer, make_client: Clients) -> None:
    """Looking at the history would leave an empty run behind."""
    client = make_client(url=peer.url)
    client.history("a", "k")
    client.status()
    client.attest("o_1", result="success")
    assert ["history", "status", "attest"] == peer.verbs


@pytest.mark.parametrize("settings", [{"session": ""}, {"tracked": False}, {"session": "s_1", "tracked": False}])
def test_one_may_stay_out_of_sessions(peer: Peer, make_client: Clients, settings: dict[str, Any]) -> None:
    """A monitor's reads would count as an agent's."""
    client = make_client(url=peer.url, **settings)
    client.brief("a")
    client.write("a", "k", 1)
    assert ("", ["brief", "write"]) == (client.session, peer.verbs)
    assert "session" not in peer.fields("write")


def test_the_session_begins_once_though_the_reply_is_lost(peer: Peer, make_client: Clients) -> None:
    """A run would be begun twice."""
    peer.plan = ["lose"]
    client = make_client(url=peer.url)
    client.brief("a")
    assert ["start_session", "start_session", "brief"] == peer.verbs
    assert 1 == sum(verb == "start_session" for verb, _ in peer.performed)


def test_closing_ends_what_the_client_began(peer: Peer) -> None:
    """Runs would stay open for ever, or a shared run would be ended by its first guest."""
    with Client(url=peer.url) as run:
        run.brief("a")
    with Client(url=peer.url, session="s_shared") as guest:
        guest.brief("a")
    with Client(url=peer.url) as idle:
        idle.status()
    assert [run.session] == [fields["session"] for verb, fields in peer.calls if verb == "end_session"]


def test_an_ended_session_is_not_ended_again(peer: Peer) -> None:
    """An outcome that comes late would be followed by a second end."""
    with Client(url=peer.url) as run:
        run.brief("a")
        run.end_session()
        run.commit_outcome("success")
    assert ["start_session", "brief", "end_session", "commit_outcome"] == peer.verbs


def test_the_error_that_ended_the_run_is_the_one_that_is_seen() -> None:
    """An outage at the end would hide why the run failed."""

    class Gone(Recorder):
        def call(self, verb: str, fields: dict[str, Any]) -> dict[str, Any]:
            if verb == "end_session":
                raise HerdbookError("unreachable", "gone", 503)
            return super().call(verb, fields)

    def run(work: Callable[[], object]) -> None:
        with Client(Gone()) as run:
            run.brief("a")
            work()

    with pytest.raises(ZeroDivisionError):
        run(lambda: 1 // 0)
    with pytest.raises(HerdbookError):
        run(lambda: 1)


def test_closing_lets_go_of_the_transport() -> None:
    """The record in this process would stay open."""
    transport = Recorder()
    with Client(transport) as run:
        run.brief("a")
    assert ["start_session", "brief", "end_session", "close"] == transport.verbs


def test_a_session_may_be_begun_by_hand(peer: Peer, make_client: Clients) -> None:
    """A host could not name the run it starts for a box."""
    client = make_client(url=peer.url)
    client.start_session(session="s_mine", agent="fixer", task="green", entity="acme")
    client.brief("acme/ci")
    assert ["start_session", "brief"] == peer.verbs
    assert {"session": "s_mine", "agent": "fixer", "task": "green", "entity": "acme"} == peer.fields("start_session")
    assert "s_mine" == client.session == peer.fields("brief")["session"]


@pytest.mark.parametrize("settings, joins", [({"session": "s_1"}, True), ({"session": "s_1", "agent": "me"}, False), ({}, False)])
def test_who_does_not_say_its_agent_may_join_a_run(settings: dict[str, str], joins: bool) -> None:
    """A command inside somebody's run would be refused for not repeating the agent's name."""
    transport = Recorder()
    transport.conflict = True
    client = Client(transport, **settings)  # type: ignore[arg-type]
    if joins:
        client.brief("a")
        client.brief("a")
        assert ["start_session", "brief", "brief"] == transport.verbs
    else:
        with pytest.raises(HerdbookError):
            client.brief("a")


def test_the_agent_comes_from_the_environment(peer: Peer, make_client: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every box would write under one name."""
    make_client(url=peer.url).brief("a")
    assert "agent" == peer.fields("start_session")["agent"]
    monkeypatch.setenv("HERDBOOK_AGENT", "fixer")
    make_client(url=peer.url).brief("a")
    assert "fixer" == peer.fields("start_session")["agent"]


def test_an_outcome_names_the_task(peer: Peer, make_client: Clients) -> None:
    """A run could not be trained on, for want of the task it was given."""
    make_client(url=peer.url, task="green").commit_outcome("success")
    assert "green" == peer.fields("commit_outcome")["task_input"]
    briefed = make_client(url=peer.url)
    briefed.brief("a", task="asked in the briefing")
    briefed.commit_outcome("success")
    assert "asked in the briefing" == peer.fields("commit_outcome")["task_input"]
    briefed.commit_outcome("success", task_input="said at the end")
    assert "said at the end" == peer.fields("commit_outcome")["task_input"]


@pytest.mark.parametrize(
    "say, sent",
    [
        (lambda run: run.commit_outcome("success"), {"type": "success"}),
        (lambda run: run.commit_outcome("success", ref="build-17"), {"ref": "build-17", "type": "success"}),
        (lambda run: run.commit_outcome("build-17", "success", task_input="t"), {"ref": "build-17", "type": "success"}),
        (lambda run: run.commit_outcome("build-17", type="success"), {"ref": "build-17", "type": "success"}),
        (lambda run: run.commit_outcome(ref="build-17", type="success"), {"ref": "build-17", "type": "success"}),
        (lambda run: run.commit_outcome(""), {"type": ""}),
    ],
)
def test_an_outcome_may_be_said_in_each_form(
    say: Callable[[Client], Any], sent: dict[str, str], peer: Peer, make_client: Clients
) -> None:
    """The documented call would fail, or a ref be taken for a type."""
    say(make_client(url=peer.url))
    assert sent == {name: peer.fields("commit_outcome").get(name) for name in sent}
    assert peer.fields("commit_outcome")["ref"]


@pytest.mark.parametrize("said, more", [((), {}), ((), {"ref": "r"}), (("a", "b", "c"), {}), (("a", "b"), {"ref": "r"})])
def test_an_outcome_that_says_too_much_or_too_little_is_a_mistake(said: tuple[str, ...], more: dict[str, str]) -> None:
    """Half of what was said would be dropped without a word."""
    transport = Recorder()
    with pytest.raises(TypeError, match="a ref and a type"):
        Client(transport).commit_outcome(*said, **more)
    assert [] == transport.calls


def test_steps_go_by_the_name_of_their_verb_too(peer: Peer, make_client: Clients) -> None:
    """Whoever knows the verbs from REST would have to learn other names here."""
    client = make_client(url=peer.url)
    client.record_action("pytest", ok=True)
    client.record_context("README", "read me")
    assert ["start_session", "record_action", "record_context"] == peer.verbs
    assert ("pytest", "README") == (peer.fields("record_action")["tool"], peer.fields("record_context")["name"])


def test_what_was_used_may_come_straight_from_the_briefing(peer: Peer, make_client: Clients) -> None:
    """An agent would have to take entries apart, and many would not name what they used."""
    entry = {"entity": "acme", "key": "k", "version": 3, "value": {"env": {}}, "rank": 1, "why": None}
    client = make_client(url=peer.url)
    used = [entry, "plain", {"entity": "a", "key": "b"}, {"entity": "a", "key": "c", "version": None}]
    expected = [{"entity": "acme", "key": "k", "version": 3}, "plain", {"entity": "a", "key": "b"}, {"entity": "a", "key": "c"}]
    client.commit_outcome("success", used=used)
    client.attempt("failure", (one for one in used))
    assert expected == peer.fields("commit_outcome")["used"] == peer.fields("attempt")["used"]
    client.commit_outcome("success", used=[])
    assert [] == peer.fields("commit_outcome")["used"]
    client.commit_outcome("success")
    assert "used" not in peer.fields("commit_outcome")


def test_a_dead_end_is_an_experience_that_did_not_work(peer: Peer, make_client: Clients) -> None:
    """The next run would try it again."""
    make_client(url=peer.url).dead_end("a", "k", "retry 1", why="rejected twice", if_version=0)
    sent = peer.fields("write")
    assert ("experience", False, 0.8, "rejected twice", 0) == tuple(
        sent[name] for name in ("kind", "worked", "confidence", "why", "if_version")
    )


def test_a_dead_end_may_be_its_approach_alone(peer: Peer, make_client: Clients) -> None:
    """What was tried in the same words would be one entry for each name that somebody thought of."""
    make_client(url=peer.url).dead_end("a", approach="retry 1", why="rejected twice")
    sent = peer.fields("write")
    assert ("retry 1", None, 0.8) == (sent["approach"], sent["value"], sent["confidence"])
    assert "key" not in sent
