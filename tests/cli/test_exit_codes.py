"""Exit codes, and the one sentence or one object that comes with them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from herdbook import __main__ as command
from herdbook import client
from herdbook.base import errors
from herdbook.surfaces.cli import problems

BY_CODE = {
    problems.REFUSED: (errors.InvalidRequest, errors.Conflict, errors.TooLarge, errors.Forbidden, errors.CannotIsolate),
    problems.UNAVAILABLE: (errors.Unavailable, errors.Busy, errors.DiskFull, errors.Unreachable),
    problems.NOT_FOUND: (errors.NotFound,),
    problems.BROKEN: (errors.Broken, errors.SealBroken, errors.SealKeyMissing, errors.SchemaNewer),
}
CASES = [(code, kind) for code, kinds in BY_CODE.items() for kind in kinds]


@pytest.mark.parametrize("code, kind", CASES, ids=lambda each: getattr(each, "__name__", str(each)))
def test_a_refusal_is_a_sentence_and_a_code(code, kind, door, said) -> None:
    """A script could not tell a missing entry from a broken record, nor a person what to do."""
    door.answers["history"] = kind()
    told = said("history", "a", "k")
    assert (code, "", f"herdbook: {kind().message}\n") == (told.code, told.out, told.err)
    as_json = said("history", "a", "k", "--json")
    assert (code, kind().as_dict(), "") == (as_json.code, as_json.json, as_json.err)


@pytest.mark.parametrize("code, kind", CASES, ids=lambda each: getattr(each, "__name__", str(each)))
def test_a_server_refuses_like_the_record(code, kind, door, said) -> None:
    """The same refusal would have another exit code or another form through a server."""
    told = client.HerdbookError(kind.code, "It is so: do this.", kind.status, retry=kind.retry, details={"limit": 3})
    door.answers["history"] = told
    assert (code, "herdbook: It is so: do this.\n") == (said("history", "a", "k").code, said("history", "a", "k").err)
    expected = {"error": {"code": kind.code, "message": "It is so: do this.", "retry": kind.retry, "limit": 3}}
    assert expected == said("history", "a", "k", "--json").json


def test_another_program_at_the_address_is_no_missing_entry(door, said) -> None:
    """A wrong address that answers 404 would look like an entry nobody wrote."""
    door.answers["history"] = client.HerdbookError("unreachable", "It answered 404, but not as herdbook does.", 404)
    assert problems.UNAVAILABLE == said("history", "a", "k").code


@pytest.mark.parametrize(
    "argv",
    [
        ["nonsense"],
        ["--nonsense"],
        ["read", "a"],
        ["read", "a", "k", "--nonsense"],
        ["read", "a", "k", "--version", "x"],
        ["read", "a", "k", "--version", "9" * 5000],
        ["write", "a", "k", "1", "--kind", "guess"],
        ["write", "a", "k", "1", "--link", "x"],
        ["write", "a", "k", "1", "--confidence", "high"],
        ["outcome", "success"],
        ["outcome", "success", "--session", "s", "--no-session"],
        ["attest", "r"],
        ["attest", "r", "--exit-code", "zero"],
        ["revise", "r", "failure"],
        ["box", "rm"],
        ["box", "ls", "x"],
        ["read", "a", "k", "--url", "nowhere"],
        ["read", "a", "k", "--record", ""],
        ["read", "a", "k", "--url", "http://x", "--record", "y"],
    ],
)
def test_a_mistake_is_two_and_one_short_line(argv, door, said) -> None:
    """A mistyped command would look refused by the record, or fill the screen."""
    told = said(*argv)
    assert (problems.USAGE, "") == (told.code, told.out)
    assert told.err.startswith("herdbook: ")
    assert 1 == told.err.count("\n")
    assert 500 > len(told.err)
    as_json = said(*argv, "--json")
    assert (problems.USAGE, "usage", "") == (as_json.code, as_json.json["error"]["code"], as_json.err)
    assert [] == door.asked


def test_a_wrong_setting_is_a_mistake_too(said, monkeypatch) -> None:
    """A wrong setting would end in a traceback before anything was asked."""
    monkeypatch.setenv("HERDBOOK_SYNCHRONOUS", "SOMETIMES")
    told = said("ls", "--json")
    assert (problems.USAGE, "invalid_setting") == (told.code, told.json["error"]["code"])


def test_a_failure_nobody_foresaw_is_a_sentence(door, said, monkeypatch) -> None:
    """A traceback would reach somebody who can do nothing with it, or nobody who could."""
    door.answers["history"] = ZeroDivisionError("one\x1b[2J\ntwo")
    told = said("history", "a", "k")
    assert (problems.UNFORESEEN, "") == (told.code, told.out)
    assert told.err.startswith("herdbook: this should not have happened (ZeroDivisionError one\\x1b[2J): HERDBOOK_DEBUG=1")
    assert 1 == told.err.count("\n")
    assert "unforeseen" == said("history", "a", "k", "--json").json["error"]["code"]
    monkeypatch.setenv("HERDBOOK_DEBUG", "1")
    assert "Traceback" in said("history", "a", "k").err


def test_ctrl_c_is_quiet(door, said, monkeypatch) -> None:
    """Whoever stops a command would be shown its inside."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(door, "call", stop)
    told = said("history", "a", "k")
    assert (problems.INTERRUPTED, "", "") == (told.code, told.out, told.err)


def test_a_reader_that_leaves_is_no_failure() -> None:
    """`herdbook ... | head` would end in a traceback about a broken pipe."""
    program = "import sys; from herdbook.__main__ import main; sys.exit(main(['--help']))"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert (problems.PIPE_CLOSED, b"") == (process.wait(timeout=30), complaint)


def test_every_exit_code_is_explained() -> None:
    """A script would meet a number that no help explains."""
    used = {getattr(problems, name) for name in ("OK", "REFUSED", "USAGE", "UNAVAILABLE", "NOT_FOUND", "BROKEN", "UNFORESEEN")}
    assert used | {problems.INTERRUPTED, problems.PIPE_CLOSED} == set(problems.EXIT_CODES)


def test_main_takes_its_arguments_from_the_process(monkeypatch, capsys) -> None:
    """The installed command would ignore what was typed."""
    monkeypatch.setattr(sys, "argv", ["herdbook", "--version"])
    assert 0 == command.main()
    assert capsys.readouterr().out.startswith("herdbook ")
