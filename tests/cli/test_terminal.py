"""What others wrote reaches a screen without acting on it."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.surfaces.cli import terminal
from herdbook.surfaces.cli.terminal import Terminal

ATTACKS = {
    "title": "\x1b]0;owned\x07",
    "clear": "\x1b[2J\x1b[H",
    "one byte": "\x9b31m",
    "backspace": "safe\b\b\b\bevil",
    "carriage return": "evil\rsafe",
    "override": "abc\u202ecba",
    "isolate": "\u2066x\u2069",
    "surrogate": "\ud800",
    "line separator": "a\u2028b",
    "delete": "\x7f",
}


def acts(text: str, allowed: str = "\n") -> list[str]:
    """Characters of a text that would do something other than appear."""
    return [each for each in text if each not in allowed and unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp", "Cf")]


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("show", [terminal.line, terminal.prose, terminal.clipped, terminal.compact])
def test_escapes_are_made_visible(attack, show) -> None:
    """A note could move the cursor, retitle the window, or reorder the line it stands in."""
    assert [] == acts(show(attack))


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_json_is_harmless_and_exact(attack) -> None:
    """JSON on a terminal could act like any other text; escaping it must not change what a program reads."""
    shown = terminal.json_text({"value": attack, attack: 1})
    assert [] == acts(shown)
    assert {"value": attack, attack: 1} == json.loads(shown)


@given(st.text(st.characters(exclude_categories=[])))
def test_no_text_gets_through(text: str) -> None:
    """Some character that nobody thought of could act."""
    joiners = "\u200c\u200d"
    assert [] == acts(terminal.line(text), allowed=joiners)
    assert [] == acts(terminal.prose(text), allowed="\n\t" + joiners)
    assert "\n" not in terminal.line(text)
    assert text == json.loads(terminal.json_text(text))


@pytest.mark.parametrize("text", ["支付沙箱会拒绝前两次扣款请求", "テスト", "naïve café", "👩\u200d💻", "می\u200cخواهم"])
def test_every_script_is_shown_as_it_is(text) -> None:
    """People who don't write in ASCII would read escapes instead of their words."""
    assert text == terminal.line(text) == terminal.prose(text)


def test_columns_line_up_for_wide_scripts() -> None:
    """Tables would be crooked for everybody whose characters take two columns."""
    assert ["  试a  1", "  bcd  2"] == terminal.table([["试a", "1"], ["bcd", "2"]])


def test_empty_columns_take_no_room() -> None:
    """A table would have holes where nothing is ever said."""
    assert ["  a  1", "  b"] == terminal.table([["", "a", "", "1"], ["", "b", "", ""]])
    assert [] == terminal.table([])


def test_colour_is_for_terminals(monkeypatch) -> None:
    """A file or a pipe would be littered with escape sequences; a person who asked for none would get them."""

    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[32mx\x1b[0m" == Terminal(out=Screen()).paint("x", "green")
    assert "x" == Terminal(out=io.StringIO()).paint("x", "green")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "x" == Terminal(out=Screen()).paint("x", "green")


HOSTILE = "\x1b[2J\u202eevil\x9b1m"


@pytest.mark.parametrize(
    "argv, verb, answer",
    [
        (["brief", "a"], "brief", {"known": 1, "markdown": f"# {HOSTILE}\n- {HOSTILE}"}),
        (["brief", "a"], "brief", {"known": 0, "entity": HOSTILE, "similar": [HOSTILE]}),
        (
            ["read", "a", "k"],
            "read",
            {"entity": HOSTILE, "key": HOSTILE, "version": 1, "value": HOSTILE, "why": HOSTILE, "box": HOSTILE},
        ),
        (["search", "x"], "search", {"results": [{"entity": HOSTILE, "key": HOSTILE, "value": {HOSTILE: 1}, "why": HOSTILE}]}),
        (["history", "a", "k"], "history", {"versions": [{"version": 1, "author": HOSTILE, "value": HOSTILE, "why": HOSTILE}]}),
        (["diff", "a", "k"], "diff", {"changed": [{"field": HOSTILE, "old": HOSTILE, "new": 1}], "text": f"+{HOSTILE}"}),
        (
            ["why", "a", "k"],
            "why",
            {"claims": [{"versions": [1], "moves": [{"ref": HOSTILE, "agent": HOSTILE, "box": HOSTILE}]}]},
        ),
        (
            ["trace", "r"],
            "trace",
            {
                "task": HOSTILE,
                "agent": HOSTILE,
                "seal": HOSTILE,
                "reads": [{"entity": HOSTILE, "key": HOSTILE, "how": HOSTILE}],
                "actions": [{"tool": HOSTILE, "args": HOSTILE}],
                "writes": [{"key": HOSTILE, "why": HOSTILE}],
                "contexts": [{"name": HOSTILE, "text": HOSTILE}],
                "attempts": [{"result": HOSTILE, "note": HOSTILE, "used": [HOSTILE]}],
                "outcomes": [{"ref": HOSTILE, "type": HOSTILE, "attestations": [{"by": HOSTILE, "note": HOSTILE}]}],
            },
        ),
        (["ls"], "list", {"paths": [{"entity": HOSTILE, "entries": [{"key": HOSTILE, "version": 1}]}], "next": HOSTILE}),
        (
            ["runs"],
            "outcomes",
            {
                "outcomes": [
                    {"ref": HOSTILE, "type": HOSTILE, "entity": HOSTILE, "agent": HOSTILE, "box": HOSTILE, "task": HOSTILE}
                ]
            },
        ),
        (["status"], "status", {HOSTILE: {HOSTILE: HOSTILE}}),
        (["box", "ls"], "box_list", {"boxes": [{"box": HOSTILE, "label": HOSTILE, "detail": HOSTILE, "provider": HOSTILE}]}),
        (
            ["outcome", "success", "--session", "s"],
            "commit_outcome",
            {"ref": HOSTILE, "moved": [{"key": HOSTILE}], "warnings": [HOSTILE]},
        ),
        (["attest", "r", "--exit-code", "0"], "attest", {"by": HOSTILE, "standing": [{"entity": HOSTILE, "before": HOSTILE}]}),
        (["revise", "r", "failure", "--why", "w"], "revise_outcome", {"was": HOSTILE, "moved": [{"entity": HOSTILE}]}),
        (["write", "a", "k", "1"], "write", {"entity": HOSTILE, "key": HOSTILE, "claim": HOSTILE, "warnings": [HOSTILE]}),
    ],
)
def test_no_command_lets_a_stored_text_act(argv, verb, answer, door, said) -> None:
    """One command that prints what is stored as it is would hand the terminal to whoever wrote it."""
    door.answers[verb] = answer
    told = said(*argv)
    assert 0 == told.code, told.err
    assert [] == acts(told.out + told.err)
    assert "\\x1b[2J" in told.out + told.err
