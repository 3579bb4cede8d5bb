"""What the record says in the words of what travels is told in the words of what was typed."""

from __future__ import annotations

import pytest

from herdbook.base import errors
from herdbook.surfaces.cli import problems, wording

WIRE = ("$.", "`int`", "start_session", "commit_outcome", "Authorization", "{entity", "codec")


@pytest.mark.parametrize(
    "argv, sentence",
    [
        (["ls", "--limit", "0"], "--limit must be 1 or more"),
        (["ls", "--limit", "1000000"], "--limit must be "),
        (["ls", "--after", "\x07"], ""),
        (["search", "x", "--limit", "0"], "--limit must be 1 or more"),
        (["brief", "a", "--tokens", "1"], "--tokens must be "),
        (["read", "a", "k", "--version", "0"], "--version must be 1 or more"),
        (["diff", "a", "k", "0", "1"], "OLD must be 1 or more"),
        (["write", "a", "l", "1", "--if-version", "-1"], "--if-version must be 0 or more"),
        (["attest", "r", "--exit-code", "999"], "--exit-code must be 255 or less"),
        (["write", "a", "l", "1", "--worked"], "--kind experience"),
        (["trace", "nobody"], "herdbook outcome prints its ref"),
        (["outcome", "success", "--session", "s", "--used", "nobody"], "name what was used as ENTITY#KEY"),
        (["outcome", "success", "--session", "s", "--used", "twice"], "name it as ENTITY#KEY"),
        (["outcome", "success", "--session", "s", "--used", '{"entity": 1}'], "--used"),
        (["attempt", "success", "--session", "s", "--used", '{"entity": "a", "key": "k", "version": 0}'], "version in --used"),
    ],
)
def test_a_refusal_names_what_was_typed(argv, sentence, herdbook) -> None:
    """Whoever typed a command would be told about fields, verbs and headers that are nowhere on the line."""
    for path in ("a/b", "a"):
        herdbook("write", path, "twice", "1", "--why", "w")
    herdbook("read", "a", "twice", "--session", "s")
    herdbook("read", "a/b", "twice", "--session", "s")
    told = herdbook(*argv)
    assert told.code in (problems.REFUSED, problems.NOT_FOUND), told.out + told.err
    last = told.err.splitlines()[-1]
    assert sentence in last
    assert [] == [word for word in WIRE if word in last]
    assert [] == [word for word in WIRE if word in herdbook(*argv, "--json").json["error"]["message"]]


def test_a_server_that_needs_a_key_says_where_to_set_it(door, said) -> None:
    """Whoever lacks a key would be told to write a header."""
    door.answers["history"] = errors.Unauthorized()
    told = said("history", "a", "k")
    assert (1, "herdbook: this server needs a key: set HERDBOOK_KEY\n") == (told.code, told.err)
    assert "unauthorized" == said("history", "a", "k", "--json").json["error"]["code"]


@pytest.mark.parametrize("message", ["", "it is so: do that", "there is no entry 'k' at 'a'", "the value is over 65536 bytes"])
def test_other_sentences_pass_as_they_are(message) -> None:
    """A sentence would be turned into another one than the record said."""
    assert message == wording.for_people(message)


def test_a_question_that_nothing_answers_does_not_say_that_there_is_nothing(herdbook) -> None:
    """Whoever looks for refusals would read that nobody ever used the server."""
    assert "Nobody did anything through a server.\n" == herdbook("audit").out
    assert "Nothing of the kind was done through a server.\n" == herdbook("audit", "--code", "forbidden").out
