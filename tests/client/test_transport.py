"""What goes over the wire, how often, and for how long: against a real peer on real sockets."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from herdbook.client import Client, HerdbookError, HttpTransport, split_url
from tests.client.peer import ERROR, Peer

pytestmark = pytest.mark.slow

Clients = Callable[..., Client]


@pytest.fixture
def client(peer: Peer, make_client: Clients) -> Client:
    return make_client(url=peer.url, tracked=False)


@pytest.mark.parametrize("prefix", ["", "/acme", "/a/b%20c"])
@pytest.mark.parametrize("unix", [False, True])
def test_prefixes_work_over_tcp_and_unix(
    make_peer: Callable[..., Peer], make_client: Clients, tmp_path: Path, unix: bool, prefix: str
) -> None:
    """A record behind a gateway's path, or behind a socket, could not be reached."""
    peer = make_peer(tmp_path / "s.sock" if unix else 0, prefix=prefix)
    assert "status" == make_client(url=peer.url + ("" if unix else "/"), tracked=False).status()["verb"]


@pytest.mark.parametrize(
    "url, parts",
    [
        ("http://h", ("http", ("h", 80), "")),
        ("https://h/", ("https", ("h", 443), "")),
        ("http://h:8080/a/b/", ("http", ("h", 8080), "/a/b")),
        ("http://[::1]:1/a", ("http", ("::1", 1), "/a")),
        ("http://[::1]", ("http", ("::1", 80), "")),
        ("unix:/run/a.sock", ("unix", "/run/a.sock", "")),
        ("unix:///run/a.sock", ("unix", "/run/a.sock", "")),
        ("unix:/run/a b.sock:/x/y", ("unix", "/run/a b.sock", "/x/y")),
        ("unix:a.sock", ("unix", "a.sock", "")),
    ],
)
def test_addresses(url: str, parts: object) -> None:
    """An address would lead somewhere else than it says."""
    assert parts == split_url(url)


@pytest.mark.parametrize(
    "url",
    ["", "h", "ftp://h", "http:/h", "http://", "http://u:p@h", "http://h:x", "http://h/a b", "http://h/a?b", "http://h/#",
     "http://h/\r\nX: y", "http://h\n", "unix:", "unix:/a:/b\r\nX: y", "unix:/a\n", "http://h/\u00e9", "HTTP ://h"],
)  # fmt: skip
def test_what_is_no_address_is_refused(url: str) -> None:
    """A password in an address would end up in logs, and a line end in it would smuggle a header."""
    with pytest.raises(HerdbookError) as refused:
        HttpTransport(url)
    assert ("invalid_request", 400) == (refused.value.code, refused.value.status)


def test_a_key_is_sent_only_when_there_is_one(peer: Peer, make_client: Clients) -> None:
    """A box behind a gateway would send a header it must not have, or a caller with a key would be nobody."""
    make_client(url=peer.url, tracked=False).status()
    make_client(url=peer.url, key="k-1", tracked=False).status()
    assert [None, "Bearer k-1"] == [headers.get("authorization") for headers in peer.headers]


@pytest.mark.parametrize("key", ["a\r\nX: y", "a b", "\u00e9"])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    """A key pasted with a line end would smuggle a header."""
    with pytest.raises(HerdbookError):
        HttpTransport("http://h", key)


def test_the_environments_key_stays_with_its_address(peer: Peer, make_client: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key meant for one server would be shown to another."""
    monkeypatch.setenv("HERDBOOK_URL", peer.url)
    monkeypatch.setenv("HERDBOOK_KEY", "secret")
    make_client(tracked=False).status()
    make_client(url=peer.url, tracked=False).status()
    assert ["Bearer secret", None] == [headers.get("authorization") for headers in peer.headers]


def test_one_connection_serves_many_calls(peer: Peer, client: Client) -> None:
    """Every call would pay for a new connection."""
    for _ in range(5):
        client.status()
    assert 1 == len(peer.connections)


def test_a_stale_connection_is_opened_again_at_once(peer: Peer, client: Client) -> None:
    """The first call after a pause would fail, or wait for a retry."""
    client.write("a", "k", 1)
    peer.cut()
    started = time.monotonic()
    client.write("a", "k", 2)
    assert 2 == len(peer.performed)
    assert 0.5 > time.monotonic() - started


@pytest.mark.parametrize("word", ["lose", "drop", "halve"])
@pytest.mark.parametrize("verb", ["write", "record_action", "record_context", "attempt", "revise_outcome", "commit_outcome"])
def test_a_lost_reply_is_asked_for_with_the_same_id(peer: Peer, client: Client, verb: str, word: str) -> None:
    """A retry would make a second version, action or outcome."""
    peer.plan = [word, word]
    client.call(verb, {"value": 1})
    name = "ref" if verb == "commit_outcome" else "request_id"
    ids = [fields[name] for _, fields in peer.calls]
    assert 3 == len(ids)
    assert [(verb, ids[0])] == peer.performed
    assert len(ids[0]) >= 20


def test_an_id_of_the_callers_choice_is_kept(peer: Peer, client: Client) -> None:
    """Two programs that agree on an id would still do the thing twice."""
    client.write("a", "k", 1, request_id="mine")
    client.commit_outcome("success", ref="build-7")
    assert ("mine", "build-7") == (peer.fields("write")["request_id"], peer.fields("commit_outcome")["ref"])


def test_a_tell_without_an_id_is_not_sent_twice(peer: Peer) -> None:
    """A caller who brings no id would have the thing done twice."""
    peer.plan = ["lose"]
    transport = HttpTransport(peer.url)
    with pytest.raises(HerdbookError, match="look before you repeat it"):
        transport.call("write", {"value": 1})
    assert 1 == len(peer.calls)
    transport.close()


def test_an_attest_is_not_sent_twice(peer: Peer, client: Client) -> None:
    """Two attestations would be kept for one run."""
    peer.plan = ["lose"]
    with pytest.raises(HerdbookError) as lost:
        client.attest("o_1", exit_code=0)
    assert (1, "unreachable", False) == (len(peer.calls), lost.value.code, lost.value.retry)


@pytest.mark.parametrize("word, tries", [("503", 2), ("429", 2), ("gateway", 2), ("400", 1), ("409", 1), ("404", 1), ("500", 1)])
def test_what_is_tried_again(peer: Peer, client: Client, word: str, tries: int) -> None:
    """A refusal would be repeated, or a pause of the server would reach the caller."""
    peer.plan = [word]
    with suppress(HerdbookError):
        client.write("a", "k", 1)
    assert tries == len(peer.calls)


def test_a_busy_server_says_when(peer: Peer, client: Client) -> None:
    """A server that asks for a pause would be hammered instead."""
    peer.plan = ["later"]
    started = time.monotonic()
    client.read("a", "k")
    assert 1.0 <= time.monotonic() - started < 3


def test_a_pause_longer_than_the_deadline_is_not_waited_for(peer: Peer, client: Client) -> None:
    """A caller with seconds would sleep for an hour."""
    peer.plan = ["much_later"]
    started = time.monotonic()
    with pytest.raises(HerdbookError) as refused:
        client.read("a", "k")
    assert ("busy", 429, True) == (refused.value.code, refused.value.status, refused.value.retry)
    assert 1 > time.monotonic() - started


def test_retries_come_to_an_end(peer: Peer, client: Client) -> None:
    """A server that always fails would be asked for ever."""
    peer.plan = ["drop"] * 50
    with pytest.raises(HerdbookError) as lost:
        client.read("a", "k")
    assert ("unreachable", 503, True) == (lost.value.code, lost.value.status, lost.value.retry)
    assert 3 <= len(peer.calls) <= 8


@pytest.mark.parametrize("word", ["hang", "trickle"])
def test_a_hung_server_does_not_hang_the_caller(peer: Peer, client: Client, word: str) -> None:
    """A box would not start while the record hangs."""
    peer.plan = [word] * 10
    started = time.monotonic()
    with pytest.raises(HerdbookError) as lost:
        client.brief("a", deadline_seconds=0.4)
    assert "unreachable" == lost.value.code
    assert "timed out" in lost.value.message
    assert 0.3 <= time.monotonic() - started < 1


def test_a_server_that_accepts_nothing_does_not_hang_the_caller(tmp_path: Path, make_client: Clients) -> None:
    """A record that is stopped, its queue full, would stop everybody."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as waiting:
        listener.bind(str(tmp_path / "s"))
        listener.listen(0)
        waiting.connect(str(tmp_path / "s"))
        started = time.monotonic()
        with pytest.raises(HerdbookError, match="no answer from"):
            make_client(url=f"unix:{tmp_path / 's'}", tracked=False, timeout_seconds=0.4).status()
        assert 1.5 > time.monotonic() - started


@pytest.mark.parametrize("word", ["chunk", "close_after", "answer"])
def test_forms_of_an_answer(peer: Peer, client: Client, word: str) -> None:
    """A gateway that sends the same answer in another form would break the client."""
    peer.plan = [word, word]
    assert ["status", "status"] == [client.status()["verb"] for _ in range(2)]


def test_an_answer_nobody_asked_for_is_not_taken_for_the_next(peer: Peer, client: Client) -> None:
    """Whoever gets a second answer into a connection would answer the next question."""
    peer.plan = ["say_more"]
    assert ["status", "history"] == [client.status()["verb"], client.history("a", "k")["verb"]]


@pytest.mark.parametrize("word, retry", [("page", True), ("missing_page", False), ("redirect", True), ("ssh", True)])
def test_what_is_not_herdbook_is_not_believed(peer: Peer, client: Client, word: str, retry: bool) -> None:
    """A login page would pass for a briefing, or a redirect would carry the key away."""
    peer.plan = [word] * 10
    with pytest.raises(HerdbookError) as lost:
        client.brief("a")
    assert ("unreachable", retry) == (lost.value.code, lost.value.retry)


def test_a_refusal_arrives_whole(peer: Peer, client: Client) -> None:
    """The caller would not learn what to do about it."""
    peer.refuse["k"] = dict(ERROR)
    with pytest.raises(HerdbookError) as refused:
        client.write("a", "k", 1)
    error = refused.value
    assert ("invalid_value", ERROR["message"], 400, False, {"field": "value"}) == (
        error.code, error.message, error.status, error.retry, error.details,
    )  # fmt: skip


@pytest.mark.parametrize("unix", [False, True])
def test_a_refusal_that_comes_before_the_body_was_read_is_heard(
    make_peer: Callable[..., Peer], make_client: Clients, tmp_path: Path, unix: bool
) -> None:
    """Something too large would look like an outage, and be tried or kept for ever."""
    peer = make_peer(tmp_path / "s" if unix else 0)
    peer.plan = ["early"]
    with pytest.raises(HerdbookError) as refused:
        make_client(url=peer.url, tracked=False).write("a", "k", "x" * 6_000_000)
    assert ("too_large", 413) == (refused.value.code, refused.value.status)


def deep() -> list[object]:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value, code",
    [(float("nan"), "invalid_value"), (float("inf"), "invalid_value"), ({1: 2}, "invalid_value"),
     ([{"a": {None: 1}}], "invalid_value"), (b"x", "invalid_value"), ({1, 2}, "invalid_value"), (deep(), "too_large")],
    ids=["nan", "infinity", "number key", "null key", "bytes", "set", "deep"],
)  # fmt: skip
def test_what_json_cannot_say_is_refused_before_it_is_sent(peer: Peer, client: Client, value: object, code: str) -> None:
    """The record would be told something else than what was meant."""
    with pytest.raises(HerdbookError) as refused:
        client.write("a", "k", value)
    assert code == refused.value.code
    assert 400 <= refused.value.status < 500
    assert [] == peer.calls


@pytest.mark.parametrize("value", [None, False, 0, "", [], {"\u652f\u4ed8": "\U0001f402"}, (1, 2), 2**80, 1e-300])
def test_values_arrive_as_they_are(peer: Peer, client: Client, value: object) -> None:
    """A value would be stored as another."""
    client.write("a", "k", value)
    assert (list(value) if isinstance(value, tuple) else value) == peer.fields("write")["value"]


def test_threads_share_a_client(peer: Peer, client: Client) -> None:
    """Two threads would read each other's answers."""
    failures: list[object] = []

    def work(name: str) -> None:
        for number in range(20):
            answer = client.history(name, str(number))
            if answer["verb"] != "history":
                failures.append(answer)
            told = client.write(name, str(number), number, request_id=f"{name}-{number}")
            if peer.first["write" + f"{name}-{number}"] != told:
                failures.append(told)

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == failures
    assert 120 == len({known for verb, known in peer.performed if verb == "write"})


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_does_not_use_its_parents_connection(peer: Peer, client: Client) -> None:
    """Parent and child would read each other's answers."""
    client.status()
    child = os.fork()
    if child == 0:
        try:
            client.status()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    client.status()
    assert 2 == len(peer.connections)
