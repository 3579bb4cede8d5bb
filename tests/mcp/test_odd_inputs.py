"""Odd inputs through the tools: the right value, or a clear refusal with the next step; never a traceback, never silence."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest

from herdbook.base.errors import HerdbookError
from herdbook.fastloop.tokens import estimate_tokens
from herdbook.surfaces.mcp.forms import understood
from herdbook.surfaces.mcp.tools import Offered, offered
from tests.mcp.clients import Agent, Told, over_http, over_stdio, run
from tests.rest.serving import KEY

OFFERS: dict[str, Offered] = {each.tool.name: each for each in offered()}
ENTRY = {"entity": "acme", "key": "k", "why": "w"}
DEEP = "[" * 80 + "]" * 80
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("write", {**ENTRY, "value": 1, "confidence": 1.5}, "invalid_value"),
    ("write", {**ENTRY, "value": 1, "confidence": "much"}, "invalid_request"),
    ("write", {**ENTRY, "value": 1, "confidence": True}, "invalid_request"),
    ("write", {**ENTRY, "value": 1, "key": ""}, "invalid_text"),
    ("write", {**ENTRY, "value": 1, "key": "a\u0000b"}, "invalid_text"),
    ("write", {**ENTRY, "value": 1, "key": "a\nb"}, "invalid_text"),
    ("write", {**ENTRY, "value": 1, "key": "a\u202eb"}, "invalid_text"),
    ("write", {**ENTRY, "value": 1, "key": "k" * 2000}, "too_large"),
    ("write", {**ENTRY, "value": 1, "key": 7}, "invalid_request"),
    ("write", {**ENTRY, "value": "x" * 80_000}, "too_large"),
    ("write", {**ENTRY, "value": json.loads(DEEP)}, "too_large"),
    ("write", {**ENTRY, "value": DEEP}, "too_large"),
    ("write", {**ENTRY, "value": '{"a": 1, "a": 2}'}, "invalid_value"),
    ("write", {**ENTRY, "value": 1, "kind": "rumour"}, "invalid_request"),
    ("write", {**ENTRY, "value": 1, "colour": "red"}, "invalid_request"),
    ("write", {"entity": "acme", "key": "k"}, "invalid_request"),
    ("read", {"entity": "acme", "key": "nobody"}, "not_found"),
    ("read", {"entity": "acme", "key": "known", "version": 99}, "not_found"),
    ("commit_outcome", {"type": "p1_incident"}, "unknown_outcome_type"),
    ("commit_outcome", {"type": "success", "used": [{"entity": "acme", "key": "nobody"}]}, "unknown_entry"),
    ("search", {"query": "x", "limit": "many"}, "invalid_request"),
    ("search", {"query": "x", "limit": 10**9}, "invalid_request"),
    ("trace", {"ref": "no-such-run"}, "not_found"),
    ("serch", {"query": "x"}, "not_found"),
]
TAKEN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("write", {**ENTRY, "value": 1, "confidence": "0.8"}, {"confidence": 0.8}),
    ("write", {**ENTRY, "value": 1, "confidence": None}, {"confidence": 0.5}),
    ("write", {**ENTRY, "value": None}, {"value": None}),
    ("write", {**ENTRY, "value": '{"a": [1]}'}, {"value": {"a": [1]}}),
    ("write", {**ENTRY, "value": "plain [text"}, {"value": "plain [text"}),
    ("write", {**ENTRY, "value": "42"}, {"value": "42"}),
    ("write", {**ENTRY, "value": 1, "key": "a/b"}, {"key": "a/b"}),
    ("write", {**ENTRY, "value": 1, "key": "../../etc/passwd"}, {"key": "../../etc/passwd"}),
    ("write", {**ENTRY, "value": "支付沙箱会拒绝前两次扣款请求"}, {"value": "支付沙箱会拒绝前两次扣款请求"}),
    ("write", {**ENTRY, "value": 1, "links": '[{"rel": "see_also", "entity": "acme", "key": "known"}]'}, {}),
    ("write", {**ENTRY, "value": 1, "if_version": "0", "key": "fresh"}, {"key": "fresh"}),
    ("write", {"entity_path": "acme", "key": "alias", "value": 1, "why": "w", "memory_type": "belief"}, {"kind": "belief"}),
]


async def odd(agent: Agent) -> None:
    await agent.call("write", entity="acme", key="known", value=1, why="w")
    for tool, arguments, code in REFUSED:
        told = await agent.call(tool, **arguments)
        assert (True, code) == (told.failed, told.data.get("error", {}).get("code")), (tool, str(arguments)[:100], told)
        assert told.text.startswith(f"{code}: "), told.text
        assert "\nNext: " in told.text
        assert 4_000 > len(told.text)
    for number, (tool, sent, expected) in enumerate(TAKEN):
        arguments = {**sent, "key": f"k{number}" if sent["key"] == "k" else sent["key"]}  # a claim restated keeps what it had
        told = await agent.call(tool, **arguments)
        assert not told.failed, (arguments, told)
        found = (await agent.call("read", entity="acme", key=told.data["key"])).data
        assert expected == {name: found[name] for name in expected}
    await found_in_its_script(agent)


async def found_in_its_script(agent: Agent) -> None:
    await agent.call("write", entity="acme", key="zh", value="支付沙箱会拒绝前两次扣款请求", why="w")
    found = await agent.call("search", query="前两次扣款")
    assert "zh" in [each["key"] for each in found.data["results"]]


@pytest.mark.slow
def test_odd_inputs_over_standard_input_and_output(tmp_path) -> None:
    """An agent would be shown a traceback, or be left waiting, for something it can put right."""

    async def work() -> None:
        async with over_stdio(tmp_path) as agent:
            await odd(agent)

    run(work)


@pytest.mark.slow
def test_odd_inputs_over_http(url) -> None:
    """The same agent would be told something else by a server."""

    async def work() -> None:
        async with over_http(url, key=KEY) as agent:
            await odd(agent)

    run(work)


@pytest.mark.slow
def test_bytes_that_are_no_message_do_not_end_the_connection(tmp_path) -> None:
    """One broken line (half a character, NaN, no JSON at all) would cost the agent its tools."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"write","arguments":%s}}'
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        "this is no JSON",
        call % (2, '{"entity":"a","key":"k","value":"\\ud800"}'),
        call % (3, '{"entity":"a","key":"k","value":NaN}'),
        call % (4, '{"entity":"a","key":"k","value":1e400}'),
        call % (5, '{"entity":"a","key":"k","value":%s}' % ("9" * 5000)),
        call % (6, '{"entity":"a","key":"k","value":"\\u0000"}'),
        call % (9, '{"entity":"a","key":"k","value":1,"why":"w"}'),
    ]
    home = {"HERDBOOK_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-m", "herdbook", "mcp"]
    told: dict[int, Any] = {}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=home) as running:
        assert running.stdin
        assert running.stdout
        running.stdin.write("\n".join(lines) + "\n")
        running.stdin.flush()
        while 9 not in told:
            line = running.stdout.readline()
            assert line
            assert "Traceback" not in line
            told |= {json.loads(line).get("id"): json.loads(line)}
        running.stdin.close()
        assert 0 == running.wait(30)
    assert "Wrote" in told[9]["result"]["content"][0]["text"]
    for number in (3, 4, 5):
        assert number not in told or "error" in told[number] or told[number]["result"]["isError"]


@pytest.mark.parametrize("tool, arguments, code", REFUSED)
def test_forms_never_raise_anything_else(tool, arguments, code) -> None:
    """A form that trips over its input would show its own insides."""
    if tool in OFFERS:
        with suppress(HerdbookError):
            understood(OFFERS[tool], arguments)


@pytest.mark.parametrize(
    "tool, given, expected",
    [
        ("commit_outcome", {"used": '["a", {"entity": "e", "key": "k"}]'}, {"used": ["a", {"entity": "e", "key": "k"}]}),
        (
            "commit_outcome",
            {"used": ['{"entity": "e", "key": "k"}', "{not json"]},
            {"used": [{"entity": "e", "key": "k"}, "{not json"]},
        ),
        ("commit_outcome", {"used": "tz"}, {"used": ["tz"]}),
        ("commit_outcome", {"observed": "it rained"}, {"observed": ["it rained"]}),
        ("commit_outcome", {"artifacts": "[1]"}, {"artifacts": [1]}),
        ("record_action", {"ok": "True"}, {"ok": True}),
        ("record_action", {"ok": "yes"}, {"ok": "yes"}),
        ("search", {"limit": "5"}, {"limit": 5}),
        ("search", {"limit": 5.0}, {"limit": 5}),
        ("search", {"limit": "5.5"}, {"limit": 5.5}),
        ("write", {"why": "[not] a list"}, {"why": "[not] a list"}),
        ("write", {"why": '["a"]'}, {"why": '["a"]'}),
        ("write", {"confidence": "1"}, {"confidence": 1.0}),
        ("write", {"confidence": "1e400"}, {"confidence": float("inf")}),
        ("write", {"why": None}, {}),
    ],
)
def test_text_is_read_by_the_form(tool, given, expected) -> None:
    """What a model sends as text would be refused, or kept as text where later runs need an object."""
    fixed = {"entity": "e", "key": "k", "value": 1, "query": "q", "tool": "t", "type": "success"}
    base = {name: value for name, value in fixed.items() if name in OFFERS[tool].properties}
    fields, notes = understood(OFFERS[tool], {**base, **given})
    assert {**base, **expected} == fields
    changed = any(given[name] is not None and fields.get(name) != given[name] for name in given)
    assert changed <= bool(notes)


@pytest.mark.slow
def test_answers_keep_to_their_budget(tmp_path) -> None:
    """One call would fill an agent's window with what it did not ask for."""

    async def work() -> None:
        async with over_stdio(tmp_path, "--tokens", "400") as agent:
            for number in range(40):
                await agent.call("write", entity="acme", key=f"k{number}", value="word " * 500, why="because " * 50)
            for tool, more in (("search", {"query": "word"}), ("list", {}), ("history", {"entity": "acme", "key": "k1"})):
                told: Told = await agent.call(tool, **more)
                assert 400 >= estimate_tokens(told.text), tool
            brief = await agent.call("brief", entity="acme", tokens=500)
            assert 564 >= estimate_tokens(brief.text)
            whole = await agent.call("read", entity="acme", key="k1")
            assert ("word " * 500, True) == (whole.data["value"], "word " * 500 in whole.text)

    run(work)
