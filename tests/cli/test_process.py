"""The command as its users run it: a process, with a home, a standard input, signals and a locale."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def test_the_loop_in_processes(process) -> None:
    """What one process learned would not reach the next."""
    assert 0 == process("write", "acme/ci", "tz", '"UTC"', "--why", "w", "--agent", "scout").code
    session = process("brief", "acme/ci", "--json").json["session"]
    told = process("outcome", "success", "--session", session, "--used", "tz", "--task-input", "-", stdin=b"make it pass")
    assert 0 == told.code, told.err
    assert "0.500 → 0.515" in process("why", "acme/ci", "tz").out


@pytest.mark.parametrize("key", [b"caf\xe9", b"\xed\xa0\x80", b"key\n", b"", b"\x1b[2J"])
def test_bytes_that_are_no_text_are_refused(key, process) -> None:
    """What the system hands over as an argument need not be text; it would end in a traceback."""
    told = process("write", "acme/ci", key, "1", "--why", "w")
    assert (1, "", 1) == (told.code, told.out, told.err.count("\n"))
    assert told.err.startswith("herdbook: the key ")


def test_a_closed_standard_input_is_said(process, tmp_path) -> None:
    """A service without a standard input would end in a traceback."""
    command = f"{sys.executable} -m herdbook write a k - --json <&-"
    environment = {**os.environ, "HOME": str(tmp_path)}
    answer = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert 2 == answer.returncode, answer.stderr
    assert "there is no standard input" in answer.stdout


def test_a_narrow_locale_can_show_everything(process) -> None:
    """A terminal that knows only ASCII would get a traceback instead of an entry."""
    process("write", "acme/ci", "k", '"支付"', "--why", "naïve", "--no-session")
    told = process("read", "acme/ci", "k", "--no-session", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (0, "") == (told.code, told.err)
    assert "\\u652f" in told.out


def test_a_server_stops_when_told(process, tmp_path) -> None:
    """ctrl-C would leave a server, or a traceback, behind."""
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "herdbook", "serve", "--port", "0"]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline().startswith("serving on http://127.0.0.1:")
    server.send_signal(signal.SIGINT)
    _, complaint = server.communicate(timeout=30)
    assert 0 == server.returncode
    assert "Traceback" not in complaint


def test_a_server_is_not_opened_to_a_network_without_a_key(process) -> None:
    """Everybody on the network could write the record."""
    told = process("serve", "--host", "0.0.0.0", "--port", "0")
    assert 1 == told.code
    assert "there is no key" in told.err


def test_kept_boxes_find_the_record_again(process) -> None:
    """A demo that keeps its boxes would leave them without a way to the record."""
    first = process("demo", "--provider", "unsafe-process", "--json", env={"KEEP": "1"})
    assert 0 == first.code, first.err + first.out
    again = process("demo", "--provider", "unsafe-process", "--json", env={"KEEP": "1"})
    assert 0 == again.code, again.err + again.out
    kept = [{box["id"] for box in told.json["boxes"]} for told in (first, again)]
    assert 2 <= len(kept[0] & kept[1])
    for box in process("box", "ls", "--live", "--json").json["boxes"]:
        assert 0 == process("box", "rm", box["box"]).code
