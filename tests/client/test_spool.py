"""When the server is away: what is told is kept, in order, and delivered once."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import herdbook.client
from herdbook.client import Client, HerdbookError
from tests.client.peer import ERROR, Peer

pytestmark = pytest.mark.slow

Clients = Callable[..., Client]
Peers = Callable[..., Peer]


@pytest.fixture
def box(tmp_path: Path, make_client: Clients) -> Client:
    """A client whose server is not there yet."""
    return make_client(url=f"unix:{tmp_path / 's'}", spool=str(tmp_path / "spool"), timeout_seconds=0.5, agent="fixer")


def spooled(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "spool").read_bytes().splitlines()]


def test_what_is_told_to_an_absent_server_is_kept_with_its_ids(box: Client, tmp_path: Path) -> None:
    """An outage would lose what a box found out, in the minutes before it is deleted."""
    told = [
        box.write("a", "k", {"n": 1}, why="so"),
        box.action("suite", ok=True),
        box.context("prompt", "text"),
        box.attempt("success", ["k"]),
        box.commit_outcome("success"),
        box.end_session(),
    ]
    lines = spooled(tmp_path)
    verbs = ["start_session", "write", "record_action", "record_context", "attempt", "commit_outcome", "end_session"]
    assert verbs == [line["verb"] for line in lines]
    assert all(answer["spooled"] is True and answer["because"] for answer in told)
    assert [line["fields"].get("request_id") for line in lines[1:5]] == [answer["request_id"] for answer in told[:4]]
    assert lines[5]["fields"]["ref"] == told[4]["ref"]
    assert {box.session} == {line["fields"]["session"] for line in lines}


def test_only_its_owner_reads_the_spool(box: Client, tmp_path: Path) -> None:
    """Everybody on the machine would read what boxes wrote."""
    old = os.umask(0)
    try:
        box.write("a", "k", 1)
    finally:
        os.umask(old)
    assert 0o600 == stat.S_IMODE((tmp_path / "spool").stat().st_mode)


def test_a_link_in_place_of_the_spool_is_not_followed(box: Client, tmp_path: Path) -> None:
    """Somebody who guesses the name could have us write into another file."""
    (tmp_path / "victim").write_bytes(b"precious\n")
    (tmp_path / "spool").symlink_to(tmp_path / "victim")
    with pytest.raises(HerdbookError) as lost:
        box.write("a", "k", 1)
    assert "unreachable" == lost.value.code
    assert b"precious\n" == (tmp_path / "victim").read_bytes()


def test_the_next_call_delivers_in_order_first(box: Client, tmp_path: Path, make_peer: Peers) -> None:
    """A read would not see what the same box wrote before it, or versions would come out of order."""
    for number in range(5):
        box.write("a", "k", number)
    peer = make_peer(tmp_path / "s")
    box.brief("a")
    assert ["start_session", *["write"] * 5, "brief"] == peer.verbs
    assert list(range(5)) == [fields["value"] for verb, fields in peer.calls if verb == "write"]
    assert 0 == (tmp_path / "spool").stat().st_size
    box.history("a", "k")
    assert 8 == len(peer.calls)


def test_flush_says_what_it_did(box: Client, tmp_path: Path, make_peer: Peers) -> None:
    """Nobody would know whether the box may be deleted."""
    assert {"delivered": 0, "refused": [], "left": 0} == box.flush()
    box.write("a", "k", 1)
    with pytest.raises(HerdbookError) as lost:
        box.flush()
    assert "unreachable" == lost.value.code
    assert 2 == len(spooled(tmp_path))
    make_peer(tmp_path / "s")
    assert {"delivered": 2, "refused": [], "left": 0} == box.flush()


def test_a_lost_reply_while_delivering_does_it_once(box: Client, tmp_path: Path, make_peer: Peers) -> None:
    """What was spooled would be done twice."""
    for number in range(4):
        box.write("a", "k", number)
    peer = make_peer(tmp_path / "s")
    peer.plan = ["answer", "lose", "answer", "drop", "lose"]
    box.flush()
    assert 5 == len(peer.performed)
    assert [0, 1, 2, 3] == list(dict.fromkeys(fields["value"] for verb, fields in peer.calls if verb == "write"))


def test_a_tell_whose_reply_was_lost_is_spooled_and_done_once(tmp_path: Path, make_peer: Peers, make_client: Clients) -> None:
    """The spool would repeat what had been done before the server went away."""
    peer = make_peer()
    client = make_client(url=peer.url, spool=str(tmp_path / "spool"), tracked=False)
    peer.plan = ["lose"] * 6
    answer = client.write("a", "k", 1)
    assert answer["spooled"]
    client.flush()
    assert [("write", answer["request_id"])] == peer.performed


def test_delivery_goes_on_where_it_stopped(box: Client, tmp_path: Path, make_peer: Peers) -> None:
    """A server that comes and goes would be told the beginning again and again, and never the end."""
    for number in range(6):
        box.write("a", "k", number)
    peer = make_peer(tmp_path / "s")
    peer.plan = ["answer"] * 3 + ["drop"] * 20
    with pytest.raises(HerdbookError):
        box.flush()
    peer.plan = []
    seen = len(peer.calls)
    assert {"delivered": 4, "refused": [], "left": 0} == box.flush()
    assert [2, 3, 4, 5] == [fields["value"] for _, fields in peer.calls[seen:]]


def test_a_tell_does_not_overtake_the_spool(box: Client, tmp_path: Path, make_peer: Peers) -> None:
    """A late old version would supersede a new one."""
    box.write("a", "k", "old")
    peer = make_peer(tmp_path / "s")
    peer.plan = ["answer"] + ["drop"] * 20
    box.away_until = 0.0
    assert box.write("a", "k", "new")["spooled"]
    peer.plan = []
    box.flush()
    assert ["old", "new"] == list(dict.fromkeys(fields["value"] for verb, fields in peer.calls if verb == "write"))


def test_a_refused_line_is_set_aside_and_said(box: Client, tmp_path: Path, make_peer: Peers) -> None:
    """One bad line would hold up all behind it, or vanish."""
    for key in ("good", "bad", "fine"):
        box.write("a", key, 1)
    peer = make_peer(tmp_path / "s")
    peer.refuse["bad"] = dict(ERROR)
    report = box.flush()
    assert (3, 0) == (report["delivered"], report["left"])
    (refused,) = report["refused"]
    assert ("write", "bad", "invalid_value") == (refused["verb"], refused["fields"]["key"], refused["error"]["code"])
    assert [refused] == box.refused == [json.loads(line) for line in (tmp_path / "spool.refused").read_bytes().splitlines()]
    assert 0o600 == stat.S_IMODE((tmp_path / "spool.refused").stat().st_mode)
    assert ["start_session", "write", "write"] == [verb for verb, _ in peer.performed]


def test_a_line_torn_by_a_crash_is_set_aside(box: Client, tmp_path: Path, make_peer: Peers) -> None:
    """The half line would swallow the whole one behind it."""
    box.write("a", "k", 1)
    with (tmp_path / "spool").open("ab") as file:
        file.write(b'{"verb": "write", "fie')
    box.write("a", "k", 2)
    peer = make_peer(tmp_path / "s")
    report = box.flush()
    assert (3, ["torn"]) == (report["delivered"], [line["error"]["code"] for line in report["refused"]])
    assert [1, 2] == [fields["value"] for verb, fields in peer.calls if verb == "write"]


@pytest.mark.parametrize("word", ["500", "missing_page", "page"])
def test_lines_outlive_a_server_that_cannot_take_them(box: Client, tmp_path: Path, make_peer: Peers, word: str) -> None:
    """A broken server, or a wrong address, would count as a refusal of every line."""
    box.write("a", "k", 1)
    peer = make_peer(tmp_path / "s")
    peer.plan = [word] * 20
    with pytest.raises(HerdbookError):
        box.flush()
    assert 2 == len(spooled(tmp_path))
    assert not (tmp_path / "spool.refused").exists()


def test_a_key_that_is_refused_does_not_refuse_the_lines(box: Client, tmp_path: Path, make_peer: Peers) -> None:
    """An expired key would empty the spool into the refused file."""
    box.write("a", "k", 1)
    peer = make_peer(tmp_path / "s")
    peer.plan = ["401"]
    with pytest.raises(HerdbookError):
        box.flush()
    assert 2 == len(spooled(tmp_path))


def test_a_direct_refusal_is_raised_not_spooled(tmp_path: Path, peer: Peer, make_client: Clients) -> None:
    """A bad request would be kept for later, and be as bad then."""
    client = make_client(url=peer.url, spool=str(tmp_path / "spool"))
    peer.refuse["k"] = dict(ERROR)
    with pytest.raises(HerdbookError):
        client.write("a", "k", 1)
    assert not (tmp_path / "spool").exists()


@pytest.mark.parametrize("ask", ["brief", "read", "search", "attest", "revise_outcome"])
def test_an_ask_is_told_that_the_server_is_away(box: Client, tmp_path: Path, ask: str) -> None:
    """An outage would look like an empty record, or an attestation like a success."""
    calls: dict[str, Callable[[], Any]] = {
        "brief": lambda: box.brief("a"),
        "read": lambda: box.read("a", "k"),
        "search": lambda: box.search("x"),
        "attest": lambda: box.attest("o", exit_code=0),
        "revise_outcome": lambda: box.revise_outcome("o", "failure"),
    }
    with pytest.raises(HerdbookError) as lost:
        calls[ask]()
    assert ("unreachable", 503) == (lost.value.code, lost.value.status)
    assert not (tmp_path / "spool").exists()


def test_reads_go_on_while_the_record_takes_no_writes(box: Client, tmp_path: Path, make_peer: Peers) -> None:
    """A full disk under the record would also take its briefings from the boxes."""
    box.write("a", "k", 1)
    peer = make_peer(tmp_path / "s")
    peer.plan = ["500"]
    assert "brief" == box.brief("a")["verb"]


def test_a_long_outage_costs_one_wait_not_many(tmp_path: Path, make_peer: Peers, make_client: Clients) -> None:
    """An agent of a hundred steps would wait a hundred deadlines."""
    peer = make_peer()
    peer.plan = ["hang"] * 100
    client = make_client(url=peer.url, spool=str(tmp_path / "spool"), timeout_seconds=0.4)
    started = time.monotonic()
    for number in range(50):
        client.action("step", number)
    assert 2.5 > time.monotonic() - started
    assert 51 == len(spooled(tmp_path))


def test_without_a_spool_an_outage_is_an_error(tmp_path: Path, make_client: Clients) -> None:
    """A tell would be lost in silence."""
    with pytest.raises(HerdbookError) as lost:
        make_client(url=f"unix:{tmp_path / 's'}", timeout_seconds=0.2).write("a", "k", 1)
    assert lost.value.retry


def test_the_spool_comes_from_the_environment(tmp_path: Path, make_client: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host could not give its boxes a place that outlives them."""
    monkeypatch.setenv("HERDBOOK_SPOOL", str(tmp_path / "spool"))
    assert make_client(url=f"unix:{tmp_path / 's'}", timeout_seconds=0.2).write("a", "k", 1)["spooled"]
    assert make_client(url=f"unix:{tmp_path / 's'}", spool="", timeout_seconds=0.2).spool is None


WRITER = """
import sys
_, folder, url, spool, name, seconds, count, flush = sys.argv
sys.path.insert(0, folder)
from client import Client
book = Client(url=url, spool=spool, session="s_" + name, agent=name, timeout_seconds=float(seconds))
for number in range(int(count)):
    book.write(name, str(number), number, request_id=name + "-" + str(number))
if flush == "flush":
    print(book.flush())
"""


def writer(tmp_path: Path, name: str, *, count: int, flush: str = "no", seconds: float = 0.05) -> subprocess.Popen[bytes]:
    folder = str(Path(herdbook.client.__file__).parent)
    arguments = [folder, f"unix:{tmp_path / 's'}", str(tmp_path / "spool"), name, str(seconds), str(count), flush]
    return subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE)


def finish(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.communicate(timeout=60)
    assert [0] * len(processes) == [process.returncode for process in processes]


def test_two_processes_spool_and_deliver_together(tmp_path: Path, make_peer: Peers) -> None:
    """Two commands in one box would tear each other's lines, lose some, or do some twice."""
    finish([writer(tmp_path, name, count=40) for name in ("p", "q")])
    assert 82 == len(spooled(tmp_path))
    peer = make_peer(tmp_path / "s")
    finish([writer(tmp_path, name, count=20, flush="flush", seconds=20) for name in ("r", "t")])
    written = [known for verb, known in peer.performed if verb == "write"]
    assert 120 == len(written) == len(set(written))
    for name, count in (("p", 40), ("q", 40), ("r", 20), ("t", 20)):
        assert [f"{name}-{number}" for number in range(count)] == [known for known in written if known.startswith(name)]
    assert 0 == (tmp_path / "spool").stat().st_size
    assert not (tmp_path / "spool.refused").exists()


def test_a_process_killed_while_it_delivers_loses_nothing(tmp_path: Path, make_peer: Peers) -> None:
    """A box that is deleted in the middle would lose lines, or keep others from delivering them."""
    finish([writer(tmp_path, "p", count=200)])
    peer = make_peer(tmp_path / "s")
    doomed = writer(tmp_path, "q", count=0, flush="flush", seconds=20)
    while len(peer.performed) < 20:
        time.sleep(0.001)
    doomed.send_signal(signal.SIGKILL)
    doomed.communicate()
    finish([writer(tmp_path, "q", count=0, flush="flush", seconds=20)])
    assert [f"p-{number}" for number in range(200)] == [known for verb, known in peer.performed if verb == "write"]
