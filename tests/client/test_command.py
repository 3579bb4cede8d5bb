"""`python3 client.py ...`: what it prints, how it exits, and how quickly it starts."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import herdbook.client
from tests.client.peer import ERROR, Peer

pytestmark = pytest.mark.slow

FILE = herdbook.client.__file__
Commands = Callable[..., subprocess.CompletedProcess[str]]


def settings(peer: Peer | None, home: Path, more: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HERDBOOK_", "XDG_"))}
    return {**kept, "HOME": str(home), **({"HERDBOOK_URL": peer.url} if peer else {}), **more}


@pytest.fixture
def peer(make_peer: Callable[..., Peer], tmp_path: Path) -> Peer:
    return make_peer(tmp_path / "s")


@pytest.fixture
def run(tmp_path: Path) -> Commands:
    def command(*arguments: str, peer: Peer | None = None, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        env = settings(peer, tmp_path, more)
        return subprocess.run(
            [sys.executable, FILE, *arguments], env=env, input=stdin, capture_output=True, text=True, timeout=60, check=False
        )

    return command


def sentence(text: str) -> bool:
    """One line, no traceback."""
    return text.count("\n") == 1 and text.startswith("herdbook: ") and "Traceback" not in text


def test_brief_prints_the_briefing(peer: Peer, run: Commands) -> None:
    """An agent in a box could not ask what is known."""
    answer = run(
        "brief", "acme/ci", "--task", "green", "--tokens", "300", peer=peer, HERDBOOK_AGENT="fixer", HERDBOOK_SESSION="s_1"
    )
    assert (0, "# brief\n\n", "") == (answer.returncode, answer.stdout, answer.stderr)
    assert {"entity": "acme/ci", "task": "green", "tokens": 300, "session": "s_1"} == peer.fields("brief")
    assert {"session": "s_1", "agent": "fixer", "entity": "acme/ci", "task": "green"} == peer.fields("start_session")


def test_json_is_one_line_of_it(peer: Peer, run: Commands) -> None:
    """A script could not read the answer."""
    answer = run("brief", "acme/ci", "--json", peer=peer)
    assert "brief" == json.loads(answer.stdout)["verb"]
    assert (1, "") == (answer.stdout.count("\n"), answer.stderr)


def test_a_session_of_its_own_is_said(peer: Peer, run: Commands) -> None:
    """The outcome could not be told for what was read."""
    answer = run("brief", "acme/ci", peer=peer)
    assert f"export HERDBOOK_SESSION={peer.fields('brief')['session']}\n" in answer.stderr


@pytest.mark.parametrize(
    "arguments, verb, expected",
    [
        (["read", "a", "k", "--version", "2"], "read", {"entity": "a", "key": "k", "version": 2}),
        (["search", "ssh port", "--entity", "a", "--limit", "3"], "search", {"query": "ssh port", "entity": "a", "limit": 3}),
        (["write", "a", "k", '{"n": 1}', "--why", "so"], "write", {"value": {"n": 1}, "why": "so", "kind": "fact"}),
        (
            ["write", "a", "k", "plain text", "--confidence", "0.7", "--kind", "belief"],
            "write",
            {"value": "plain text", "confidence": 0.7},
        ),
        (["write", "a", "k", "-1"], "write", {"value": -1}),
        (["write", "a", "k", "null"], "write", {"value": None}),
        (["dead-end", "a", "k", "no", "--why", "failed"], "write", {"worked": False, "kind": "experience", "confidence": 0.8}),
        (["dead-end", "a", "--approach", "retry 1", "--why", "failed"], "write", {"approach": "retry 1", "value": None}),
        (
            ["attempt", "failure", "--used", "a", "b", "--note", "n"],
            "attempt",
            {"result": "failure", "used": ["a", "b"], "note": "n"},
        ),
        (["action", "suite", "--args", "[1]", "--ok", "false"], "record_action", {"tool": "suite", "args": [1], "ok": False}),
        (
            ["outcome", "success", "--used", "a", "b", "--ref", "r"],
            "commit_outcome",
            {"type": "success", "used": ["a", "b"], "ref": "r"},
        ),
    ],
)
def test_commands(peer: Peer, run: Commands, arguments: list[str], verb: str, expected: dict[str, object]) -> None:
    """A command would send something else than what was typed."""
    answer = run(*arguments, peer=peer, HERDBOOK_SESSION="s_1")
    assert (0, "") == (answer.returncode, answer.stderr)
    assert expected == {name: peer.fields(verb).get(name) for name in expected}


def test_the_run_may_be_named_on_the_line(peer: Peer, run: Commands) -> None:
    """Every command of a run would need a variable set before it, and one that is set could not be overruled."""
    answer = run("brief", "a", "--session", "monday", peer=peer, HERDBOOK_SESSION="s_1")
    assert (0, "") == (answer.returncode, answer.stderr)
    assert "monday" == peer.fields("start_session")["session"] == peer.fields("brief")["session"]


def test_a_value_may_come_from_standard_input(peer: Peer, run: Commands) -> None:
    """A value that is too long for a command line could not be written."""
    run("write", "a", "k", "-", peer=peer, stdin='{"long": "' + "x" * 200_000 + '"}')
    assert 200_000 == len(peer.fields("write")["value"]["long"])


def test_a_key_goes_along(peer: Peer, run: Commands) -> None:
    """A box with a key would be refused."""
    run("brief", "a", peer=peer, HERDBOOK_KEY="k-1")
    assert {"Bearer k-1"} == {headers.get("authorization") for headers in peer.headers}


@pytest.mark.parametrize(
    "arguments",
    [[], ["nothing"], ["brief"], ["write", "a", "k"], ["dead-end", "a", "k", "v"], ["read", "a", "k", "--version", "x"]],
)
def test_usage_is_two(run: Commands, arguments: list[str]) -> None:
    """A script could not tell its own mistake from an outage."""
    answer = run(*arguments)
    assert 2 == answer.returncode
    assert "Traceback" not in answer.stderr


def test_what_is_not_there_is_refused_too(peer: Peer, run: Commands) -> None:
    """A missing entry would look like an outage; the help says which code it is."""
    peer.refuse["k"] = {"code": "not_found", "message": "there is no entry", "retry": False}
    answer = run("read", "a", "k", peer=peer, HERDBOOK_SESSION="s_1")
    assert (1, True) == (answer.returncode, sentence(answer.stderr))
    assert "1 refused or not found" in run("--help").stdout


def test_refused_is_one(peer: Peer, run: Commands) -> None:
    """A refusal would pass for done."""
    peer.refuse["k"] = dict(ERROR)
    answer = run("write", "a", "k", "1", peer=peer)
    assert (1, "", True) == (answer.returncode, answer.stdout, sentence(answer.stderr))
    assert "that is not a value: send another" in answer.stderr


@pytest.mark.parametrize("value", ['{"a": 1, "a": 2}', "[" * 100_000, "NaN", "1e999", "9" * 5_000])
def test_values_the_record_would_misread_are_refused(peer: Peer, run: Commands, value: str) -> None:
    """The record would be told something else than what was typed."""
    answer = run("write", "a", "k", "-", peer=peer, stdin=value)
    assert answer.returncode in (1, 2) or peer.fields("write")["value"] == int(value)
    assert "Traceback" not in answer.stderr


def test_unavailable_is_three_and_is_said(run: Commands, tmp_path: Path) -> None:
    """An outage would read as: nothing is known here."""
    answer = run("brief", "acme/ci", HERDBOOK_URL=f"unix:{tmp_path / 'none'}")
    assert (3, "", True) == (answer.returncode, answer.stdout, sentence(answer.stderr))
    assert answer.stderr.startswith("herdbook: unavailable: ")


def test_a_hung_record_is_unavailable_within_seconds(peer: Peer, run: Commands) -> None:
    """A box would not start while the record hangs."""
    peer.plan = ["hang"] * 10
    started = time.monotonic()
    answer = run("brief", "acme/ci", peer=peer)
    assert 3 == answer.returncode
    assert 3.5 > time.monotonic() - started


def test_a_write_while_away_is_kept_and_delivered_by_the_next_command(
    make_peer: Callable[..., Peer], run: Commands, tmp_path: Path
) -> None:
    """A box would lose what it wrote during an outage."""
    url = f"unix:{tmp_path / 'later'}"
    answer = run("write", "a", "k", "1", "--json", HERDBOOK_URL=url, HERDBOOK_SESSION="s_1")
    assert (0, True) == (answer.returncode, json.loads(answer.stdout)["spooled"])
    assert "unavailable: kept in the spool" in answer.stderr
    peer = make_peer(tmp_path / "later")
    flushed = run("flush", "--json", HERDBOOK_URL=url)
    assert {"delivered": 2, "refused": [], "left": 0} == json.loads(flushed.stdout)
    assert ["start_session", "write"] == peer.verbs
    assert 0 == run("flush", HERDBOOK_URL=url).returncode


def test_spools_of_two_servers_are_two_files(make_peer: Callable[..., Peer], run: Commands, tmp_path: Path) -> None:
    """What was meant for one record would be told to another."""
    run("write", "a", "k", "1", HERDBOOK_URL=f"unix:{tmp_path / 'one'}")
    other = make_peer(tmp_path / "two")
    run("brief", "a", peer=other)
    assert ["start_session", "brief"] == other.verbs


def test_a_flush_that_was_refused_is_one(make_peer: Callable[..., Peer], run: Commands, tmp_path: Path) -> None:
    """Nobody would look into the refused lines."""
    url = f"unix:{tmp_path / 'later'}"
    run("write", "a", "k", "1", HERDBOOK_URL=url)
    make_peer(tmp_path / "later").refuse["k"] = dict(ERROR)
    answer = run("flush", HERDBOOK_URL=url)
    assert 1 == answer.returncode
    assert "1" in answer.stderr
    assert ".refused" in answer.stderr


def test_a_home_that_cannot_be_written_does_not_stop_it(run: Commands, tmp_path: Path) -> None:
    """In a box without a home every command would fail."""
    answer = run("brief", "a", HERDBOOK_URL=f"unix:{tmp_path / 'none'}", HOME="/nonexistent")
    assert (3, True) == (answer.returncode, sentence(answer.stderr))
    answer = run("write", "a", "k", "1", HERDBOOK_URL=f"unix:{tmp_path / 'none'}", HERDBOOK_SPOOL="/nonexistent/spool")
    assert (3, True) == (answer.returncode, sentence(answer.stderr))


def test_a_closed_pipe_is_quiet(peer: Peer, tmp_path: Path) -> None:
    """`client.py brief | head` would end in a traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    env = settings(peer, tmp_path, {"HERDBOOK_SESSION": "s_1"})
    answer = subprocess.run(
        [sys.executable, FILE, "brief", "a"], env=env, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writer)
    assert (141, b"") == (answer.returncode, answer.stderr)


def default_interrupt() -> None:
    """What is started in the background of a shell ignores interrupts, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_is_quiet(peer: Peer, tmp_path: Path) -> None:
    """Ctrl-C would end in a traceback."""
    peer.plan = ["hang"]
    env = settings(peer, tmp_path, {})
    process = subprocess.Popen(
        [sys.executable, FILE, "read", "a", "k"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=default_interrupt,  # noqa: PLW1509 - it sets one signal and starts no thread
    )
    while not peer.calls:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    assert (b"", b"") == process.communicate(timeout=20)
    assert 130 == process.returncode


def test_help_names_every_command(run: Commands) -> None:
    """An agent in a box has nothing else to learn it from."""
    answer = run("--help")
    assert 0 == answer.returncode
    assert [] == [name for name in herdbook.client.COMMANDS if name not in answer.stdout]


def test_help_says_where_the_record_is_and_who_asks(run: Commands) -> None:
    """Whoever has only this file could not find out how to reach a record with it."""
    told = run("--help").stdout
    names = {*re.findall(r"HERDBOOK_[A-Z]+", Path(FILE).read_text())}
    assert [] == [name for name in sorted(names) if not re.search(rf"^  {name} ", told, re.MULTILINE)]
    assert [] == [
        word for word in (herdbook.client.URL_DEFAULT, "--session NAME", "example: python3 client.py ") if word not in told
    ]


@pytest.mark.parametrize("name", herdbook.client.COMMANDS)
def test_every_argument_is_explained(run: Commands, name: str) -> None:
    """An option would be a word without a meaning."""
    told = run(name, "--help", COLUMNS="200").stdout.partition("environment:")[0]
    arguments = re.findall(r"^  (\S.*(?:\n {8,}.*)*)", told, re.MULTILINE)
    assert 2 <= len(arguments)
    assert [] == [each for each in arguments if not re.search(r"\s{2,}\S", each)]


def test_it_is_python_3_8() -> None:
    """A box with an older Python could not use it."""
    tree = ast.parse(Path(FILE).read_text(), feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert set() == imported - {"json", "os", "sys", "time", "socket", "re", "ssl", "fcntl", "argparse", "fnmatch"}


def test_importing_it_loads_nothing_heavy() -> None:
    """Its start would become slow one import at a time."""
    code = f"import sys; sys.path.insert(0, {str(Path(FILE).parent)!r}); import client; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()
    assert set() == {
        "typing",
        "socket",
        "ssl",
        "argparse",
        "http.client",
        "urllib.request",
        "email",
        "random",
        "threading",
    } & set(loaded)
