"""Arguments that are more than a word, and what is said about those that make no sense."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from herdbook.__main__ import COMMANDS
from herdbook.base.errors import HerdbookError, InvalidRequest, InvalidValue, TooLarge
from herdbook.surfaces.cli import inputs
from herdbook.surfaces.cli.parser import SHARED, command_parser, finish, read
from herdbook.surfaces.cli.problems import Usage


@pytest.mark.parametrize(
    "text, value",
    [
        ("5", 5),
        ("-5", -5),
        ('"5"', "5"),
        ("null", None),
        ('{"env": {"TZ": "UTC"}}', {"env": {"TZ": "UTC"}}),
        ("[]", []),
        ("1e3", 1000.0),
    ],
)
def test_a_value_is_json(text, value) -> None:
    """What somebody wrote would be stored as something else."""
    assert value == inputs.value_of(text)


@pytest.mark.parametrize(
    "line, name, value",
    [
        ("gateway add --to https://api.github.com --bearer github", "connection", "github"),
        ("gateway --to https://api.github.com add github", "connection", "github"),
        ("key create --role writer mine", "name", "mine"),
        ("box rm --json box-1", "box", "box-1"),
        ("diff acme tz --json 1 2", "new", 2),
        ("hook git --entity acme 0123abcd", "event", "0123abcd"),
        ("tune acme --json fusion=rrf", "words", ["acme", "fusion=rrf"]),
        ("watch init --json dir", "directory", Path("dir")),
        ("fanout acme --vary A=1 -- sh --json", "command", ["sh", "--json"]),
    ],
)
def test_options_may_stand_anywhere(line: str, name: str, value: object) -> None:
    """A word that may be left out would be refused behind an option, as in the hook that git runs."""
    command, *words = line.split()
    reader = command_parser(command, summary="")
    importlib.import_module(COMMANDS[command].module).add_arguments(reader)
    finish(reader, shared=SHARED, examples="")
    assert value == getattr(read(reader, words), name)


@pytest.mark.parametrize("text", ["", "hello", "{'a': 1}", "01", "{", "5 6", "NULL"])
def test_what_is_not_json_is_refused_with_the_way_out(text) -> None:
    """A forgotten quote would silently turn a value into text, or leave its writer without the option's name."""
    with pytest.raises(InvalidRequest, match=r"VALUE is not JSON .*--text"):
        inputs.value_of(text)
    assert text == inputs.value_of(text, as_text=True)


@pytest.mark.parametrize("text", ["NaN", "-Infinity", '{"a": NaN}', '{"a": 1, "a": 2}'])
def test_json_that_is_no_json_is_refused_without_that_way_out(text) -> None:
    """Whoever wrote a duplicate key would be led to store the whole object as text."""
    with pytest.raises(InvalidValue) as caught:
        inputs.value_of(text)
    assert "--text" not in caught.value.message


@pytest.mark.parametrize("text", ["9" * 5000, "[" * 100_000, "[" * 100_000 + "]" * 100_000])
def test_huge_json_is_refused_by_its_limit(text) -> None:
    """Five thousand digits or a hundred thousand brackets would end in a traceback."""
    with pytest.raises(HerdbookError) as caught:
        inputs.value_of(text)
    assert isinstance(caught.value, TooLarge)


def test_links_name_their_relation() -> None:
    """A link would point somewhere else than its writer meant."""
    assert {"rel": "supports", "entity": "acme/ci", "key": "a:b#c"} == inputs.link("supports:acme/ci#a:b#c")
    for wrong in ("acme/ci#tz", "likes:acme/ci#tz", "supports:acme/ci", "", "supports"):
        with pytest.raises(Usage, match="REL:ENTITY#KEY"):
            inputs.link(wrong)


def test_what_was_used_can_be_said_in_each_form() -> None:
    """An outcome would move the trust of another entry than the one that was used."""
    forms = ["tz", "acme/ci#tz", "#issue#12", '{"entity": "acme/ci", "key": "tz", "version": 3}']
    expected = ["tz", {"entity": "acme/ci", "key": "tz"}, "issue#12", {"entity": "acme/ci", "key": "tz", "version": 3}]
    assert expected == inputs.used(forms)
    assert inputs.used(None) is None


def test_texts_come_from_files_too(tmp_path) -> None:
    """A long task could not be handed over, or an address such as @here would be lost without a word."""
    (tmp_path / "task").write_text("make it pass\n")
    assert "make it pass\n" == inputs.text_of(f"@{tmp_path}/task", what="task")
    for wrong in (f"@{tmp_path}/none", f"@{tmp_path}", "@", "@\0"):
        with pytest.raises(Usage, match="cannot be read"):
            inputs.text_of(wrong, what="task")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    with pytest.raises(HerdbookError, match="not UTF-8"):
        inputs.text_of(f"@{tmp_path}/latin", what="task")
