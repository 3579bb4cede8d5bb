"""Which variables of a briefing are set, and what is said of the others."""

from __future__ import annotations

from typing import Any

import pytest

from herdbook.client import environment


def entry(key: str, value: object, **more: Any) -> dict[str, Any]:
    return {"entity": "acme", "key": key, "value": value, "acting": True, "standing": "observed", "worked": None, **more}


def test_the_acting_set_is_merged_and_the_first_rank_wins() -> None:
    """A box would run with the settings of a worse entry, or of none."""
    first = entry("a", {"env": {"RETRY": "3", "ROUND": "bank"}})
    second = entry("b", {"env": {"RETRY": "5", "ROUND": "bank", "MORE": "1"}})
    found, left_out = environment({"entries": [first, second, entry("c", "text"), entry("d", {"n": 1}), entry("e", None)]})
    assert {"RETRY": "3", "ROUND": "bank", "MORE": "1"} == found
    assert [("b", "RETRY", "an entry ranked before it says otherwise")] == [
        (one["key"], one["name"], one["reason"]) for one in left_out
    ]


@pytest.mark.parametrize(
    "block, more, reason",
    [
        ("entries", {"acting": False, "standing": "unproven"}, "unproven"),
        ("entries", {"acting": False, "standing": "contested"}, "contested"),
        ("contested", {"acting": False, "standing": "contested"}, "contested"),
        ("contested", {}, "observed"),
        ("dead_ends", {}, "dead end"),
        ("entries", {"worked": False}, "dead end"),
        ("entries", {"acting": None, "standing": None}, "unproven"),
        ("entries", {"acting": "yes"}, "observed"),
    ],
)
def test_what_does_not_act_is_left_out_by_name(block: str, more: dict[str, Any], reason: str) -> None:
    """A note that nobody has proved, or that is known to fail, would steer a run in silence."""
    found, left_out = environment({block: [entry("k", {"env": {"RETRY": "3"}}, **more)]})
    assert {} == found
    assert [{"entity": "acme", "key": "k", "name": "RETRY", "reason": reason}] == left_out


@pytest.mark.parametrize("value", [3, None, True, 1.5, ["3"], {"a": "b"}])
def test_only_text_is_set(value: object) -> None:
    """`True` or `3` would reach a program as whatever Python prints."""
    found, left_out = environment({"entries": [entry("k", {"env": {"RETRY": value, "GOOD": "1"}})]})
    assert ({"GOOD": "1"}, ["not a string"]) == (found, [one["reason"] for one in left_out])


@pytest.mark.parametrize(
    "name, text", [("", "x"), ("A=B", "x"), ("A B", "x"), ("1A", "x"), ("A\0", "x"), ("A", "x\0y"), ("\u00c4", "x")]
)
def test_what_no_process_can_have_is_left_out(name: str, text: str) -> None:
    """Starting the process would fail, or set another variable."""
    found, left_out = environment({"entries": [entry("k", {"env": {name: text}})]})
    assert ({}, 1) == (found, len(left_out))


@pytest.mark.parametrize("env", ["A=B", ["A"], 3])
def test_an_env_that_is_no_object_is_said(env: object) -> None:
    """A mistake in an entry would be passed over in silence."""
    found, left_out = environment({"entries": [entry("k", {"env": env})]})
    assert ({}, 1) == (found, len(left_out))


@pytest.mark.parametrize(
    "name",
    ["PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME",
     "BASH_ENV", "ENV", "NODE_OPTIONS", "IFS", "BASH_FUNC_x", "PERL5OPT", "RUBYOPT", "GIT_SSH_COMMAND", "JAVA_TOOL_OPTIONS",
     "_JAVA_OPTIONS", "HTTPS_PROXY", "https_proxy", "Path", "PIP_INDEX_URL", "SSL_CERT_FILE", "HERDBOOK_URL", "PROMPT_COMMAND",
     "DOTNET_STARTUP_HOOKS", "RUSTC_WRAPPER", "GOFLAGS", "MAKEFILES", "JAVA_OPTS", "GRADLE_OPTS", "ZDOTDIR", "KUBECONFIG"],
)  # fmt: skip
def test_what_could_run_code_needs_a_name(name: str) -> None:
    """An entry could make the next command load somebody's library."""
    briefing = {"entries": [entry("k", {"env": {name: "x"}})]}
    found, left_out = environment(briefing)
    assert ({}, [name]) == (found, [one["name"] for one in left_out])
    assert "allow it by name" in left_out[0]["reason"]
    assert ({name: "x"}, []) == environment(briefing, allow=[name])


@pytest.mark.parametrize("name", ["RETRY_BUDGET", "NODE_ENV", "PYTHONHASHSEED", "PYTHONUNBUFFERED", "TZ", "lower", "PATHS", "_X"])
def test_ordinary_settings_are_set(name: str) -> None:
    """What boxes have learned would be refused for looking like something else."""
    assert ({name: "x"}, []) == environment({"entries": [entry("k", {"env": {name: "x"}})]})


def test_an_empty_briefing_sets_nothing() -> None:
    """A first run would fail before it began."""
    assert ({}, []) == environment({"entries": [], "dead_ends": [], "contested": []})
    assert ({}, []) == environment({})
