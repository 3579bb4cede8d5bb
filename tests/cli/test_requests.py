"""What a command line asks of the record: every option arrives, and nothing arrives that nobody gave."""

from __future__ import annotations

import pytest

from herdbook import __main__ as command
from herdbook import client
from herdbook.base import errors, settings
from herdbook.client import ID_FIELD


@pytest.mark.parametrize(
    "line, verb, fields",
    [
        ("brief a --task t --tokens 99 --names", "brief", {"entity": "a", "task": "t", "tokens": 99, "names": True}),
        ("search two words --entity a --limit 3", "search", {"query": "two words", "entity": "a", "limit": 3}),
        ("read a k --version 2", "read", {"entity": "a", "key": "k", "version": 2}),
        ("history a k", "history", {"entity": "a", "key": "k"}),
        ("diff a k", "diff", {"entity": "a", "key": "k"}),
        ("diff a k 1 3", "diff", {"entity": "a", "key": "k", "old": 1, "new": 3}),
        ("ls", "list", {}),
        ("ls a --after b --limit 5", "list", {"entity": "a", "after": "b", "limit": 5}),
        ("runs", "outcomes", {}),
        ("runs a --type failure --after 9 --limit 5", "outcomes", {"entity": "a", "type": "failure", "after": "9", "limit": 5}),
        ("trace r", "trace", {"ref": "r"}),
        ("why a k", "why", {"entity": "a", "key": "k"}),
        ("attest r --exit-code 1 --note n", "attest", {"ref": "r", "exit_code": 1, "note": "n"}),
        ("attest r --result success", "attest", {"ref": "r", "result": "success"}),
        ("revise r failure --why w", "revise_outcome", {"ref": "r", "type": "failure", "why": "w"}),
        ("box ls --live --label l --limit 2", "box_list", {"label": "l", "live": True, "limit": 2}),
        ("action t --session s --args [1] --result null --failed", "record_action", {"tool": "t", "args": [1], "ok": False}),
        (
            "attempt success --session s --used k a#b --note n",
            "attempt",
            {"used": ["k", {"entity": "a", "key": "b"}], "note": "n"},
        ),
        (
            "outcome success --session s --ref r --task-input t --used k --observed x y --artifacts {} --verified-by ci",
            "commit_outcome",
            {"type": "success", "ref": "r", "task_input": "t", "used": ["k"], "observed": ["x", "y"], "verified_by": "ci"},
        ),
        (
            "write a k 5 --why w --kind belief --worked --confidence 0.7 --applies-when x --expires-at 2030-01-01 --if-version 0",
            "write",
            {"value": 5, "kind": "belief", "worked": True, "confidence": 0.7, "applies_when": "x", "expires_at": "2030-01-01"},
        ),
        ("write a k null", "write", {"entity": "a", "key": "k", "value": None}),
        ("write a k -5", "write", {"value": -5}),
        ("dead-end a k 1", "write", {"kind": "experience", "worked": False, "confidence": 0.8}),
        ("dead-end a k 1 --confidence 0.9", "write", {"confidence": 0.9}),
    ],
)
def test_every_option_arrives(line, verb, fields, door, said) -> None:
    """An option would be read and forgotten, or sent under another name."""
    told = said(*line.split(" "))
    assert 0 == told.code, told.err
    sent = door.fields(verb)
    assert fields == {name: sent.get(name, "not sent") for name in fields}
    optional = {name for name, value in sent.items() if value is None}
    assert set() == optional - {"value"}


@pytest.mark.parametrize("verb", ID_FIELD)
def test_what_is_told_has_its_id_before_it_is_sent(verb, door, said) -> None:
    """A lost answer could not be asked for again without doing the thing twice."""
    lines = {
        "write": "write a k 1",
        "record_action": "action t --session s",
        "attempt": "attempt success --session s",
        "revise_outcome": "revise r failure --why w",
        "commit_outcome": "outcome success --session s",
    }
    if verb in command.WITHOUT_COMMAND:
        return
    for _ in range(2):
        assert 0 == said(*lines[verb].split()).code
    ids = [fields[ID_FIELD[verb]] for name, fields in door.asked if name == verb]
    assert 2 == len(set(ids))


def test_a_chosen_id_is_kept(door, said) -> None:
    """A retry by hand would make a second version."""
    said("write", "a", "k", "1", "--request-id", "mine")
    assert "mine" == door.fields("write")["request_id"]


def test_a_fresh_run_is_begun_and_named(door, said) -> None:
    """The run would be lost, and its outcome could never be told."""
    told = said("read", "a", "k", "--agent", "scout")
    assert {"agent": "scout", "entity": "a"} == door.fields("start_session")
    assert "s_fresh" == door.fields("read")["session"]
    assert "herdbook outcome success --session s_fresh --task-input" in told.err


def test_a_run_of_another_agent_is_joined_unless_somebody_said_who_asks(door, said) -> None:
    """Whoever names a run but not the agent would be refused their own run; whoever claims to be another would not."""
    door.answers["start_session"] = errors.RequestConflict("it belongs to another run")
    assert 0 == said("read", "a", "k", "--session", "s").code
    assert "s" == door.fields("read")["session"]
    assert 1 == said("read", "a", "k", "--session", "s", "--agent", "other").code
    door.answers["start_session"] = client.HerdbookError("request_conflict", "it belongs to another run", 409)
    assert 0 == said("read", "a", "k", "--session", "s").code
    door.answers["start_session"] = errors.Busy()
    assert 3 == said("read", "a", "k", "--session", "s").code


def test_an_outcome_may_end_its_run(door, said) -> None:
    """A run would stay open for ever."""
    said("outcome", "success", "--session", "s")
    assert "end_session" not in [verb for verb, _ in door.asked]
    said("outcome", "success", "--session", "s", "--end")
    assert {"session": "s"} == door.fields("end_session")


@pytest.mark.parametrize(
    "environment, argv, expected",
    [
        ({"HERDBOOK_URL": "http://a"}, [], "http://a"),
        ({"HERDBOOK_URL": "http://a"}, ["--url", "http://b"], "http://b"),
        ({"HERDBOOK_URL": "http://a"}, ["--record", "/r"], "/r"),
        ({"HERDBOOK_RECORD": "/r"}, ["--url", "http://b"], "http://b"),
        ({"HERDBOOK_RECORD": "/r"}, [], "/r"),
        ({"HERDBOOK_RECORD": "/r"}, ["--record", "/s"], "/s"),
    ],
)
def test_the_nearest_word_says_which_record(environment, argv, expected, door, said, monkeypatch) -> None:
    """A command would work on another record than its own flag names."""
    seen = []

    def open_door(chosen):
        seen.append(chosen)
        return door

    monkeypatch.setattr(command, "open_door", open_door)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert 0 == said("write", "a", "k", "1", *argv).code
    assert expected == (seen[0].url or str(seen[0].record))


@pytest.mark.parametrize(
    "file, environment, argv, sent",
    [
        ('url = "http://a"\nkey = "k"', {}, [], "k"),
        ('url = "http://a"\nkey = "k"', {"HERDBOOK_URL": "http://b"}, [], None),
        ('url = "http://a"\nkey = "k"', {}, ["--url", "http://b"], None),
        ("", {"HERDBOOK_KEY": "k", "HERDBOOK_URL": "http://a"}, [], "k"),
        ("", {"HERDBOOK_KEY": "k"}, ["--url", "http://b"], "k"),
    ],
)
def test_a_kept_key_goes_to_its_own_server_only(file, environment, argv, sent, door, said, monkeypatch, tmp_path) -> None:
    """A credential would be sent to whatever address somebody was talked into."""
    (tmp_path / settings.FILE_NAME).write_text(file)
    seen = []

    def open_door(chosen):
        seen.append(command.key_for(chosen))
        return door

    monkeypatch.setattr(command, "open_door", open_door)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert 0 == said("history", "a", "k", *argv).code
    assert [sent] == seen
