"""Which spans are steps of which runs, and what of them is kept: nothing is dropped without being counted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.base.errors import HerdbookError, InvalidRequest, TooLarge
from herdbook.service.spans import otlp
from tests.otel.conftest import attributes, batch, span, tool

CHAT: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "m-1", "gen_ai__provider__name": "p"}


def test_a_tool_call_is_a_step_with_its_arguments_and_result() -> None:
    """An agent that is traced already would have to be instrumented again."""
    told = tool(1, "bash", gen_ai__tool__call__arguments='{"command": "ls"}', gen_ai__tool__call__result="a b", net__peer="x")
    found = otlp.read(batch(told, service__name="fixer"))
    [step] = found.steps
    assert ("bash", {"command": "ls"}, "a b", True) == (step.tool, step.args, step.result, step.ok)
    assert ("fixer", f"otel-{'a' * 32}", f"otel-{'a' * 32}-{1:016x}") == (step.agent, step.session, step.request_id)
    assert (1, 1, {}) == (found.spans, found.attributes_left_out, dict(found.left_out))


def test_a_failed_call_says_so_also_without_a_result() -> None:
    """What did not work would be learned from as if it had."""
    [status, typed] = otlp.read(batch(tool(1, failed="no such file"), tool(2, error__type="timeout"))).steps
    assert [(False, {"error": "no such file"}), (False, {"error": "timeout"})] == [(s.ok, s.result) for s in (status, typed)]


def test_a_model_call_is_a_step_without_what_was_said() -> None:
    """Prompts of other systems would come into the record with their traces."""
    told = span(1, **CHAT, gen_ai__usage__input_tokens=12, gen_ai__input__messages="secret plans", gen_ai__response__model="m-1b")
    found = otlp.read(batch(told))
    [step] = found.steps
    assert ("chat", {"model": "m-1", "provider": "p"}, {"model": "m-1b", "input_tokens": 12}) == (
        step.tool,
        step.args,
        step.result,
    )
    assert 1 == found.attributes_left_out
    assert "secret plans" not in str(found.steps)


def test_openinference_is_read_too() -> None:
    """Half of all instrumented agents would have no steps."""
    [step] = otlp.read(batch(span(1, tool__name="search", input__value='{"q": 1}', output__value="found"))).steps
    assert ("search", {"q": 1}, "found") == (step.tool, step.args, step.result)


@pytest.mark.parametrize(
    "more, session",
    [
        ({"herdbook__session": "run-41", "gen_ai__conversation__id": "c"}, "run-41"),
        ({"gen_ai__conversation__id": "c 1"}, "otel-c 1"),
        ({}, f"otel-{'a' * 32}"),
    ],
)
def test_the_run_is_the_one_it_names_else_its_conversation_else_its_trace(more: dict[str, Any], session: str) -> None:
    """What one agent did would be charged for what another one read."""
    assert [session] == [step.session for step in otlp.read(batch(tool(1, **more))).steps]


def test_the_run_and_its_path_may_stand_on_the_resource() -> None:
    """Who sets OTEL_RESOURCE_ATTRIBUTES, and no code, could not say which run a process is."""
    about = {"herdbook__session": "run-41", "herdbook__entity": "acme/ci", "herdbook__task": "fix it"}
    [step] = otlp.read(batch(tool(1), **about)).steps
    assert ("run-41", "acme/ci", "fix it") == (step.session, step.entity, step.task)


def test_steps_come_in_the_order_they_began() -> None:
    """Exporters send spans as they end, so a run would be told backwards."""
    assert ["first", "second"] == [step.tool for step in otlp.read(batch(tool(2, "second"), tool(1, "first"))).steps]


def test_what_is_no_step_is_counted_by_its_reason() -> None:
    """Somebody would look for calls that were dropped in silence."""
    others = [
        span(1, http__route="/"),
        span(2, gen_ai__operation__name="embeddings"),
        span(3, gen_ai__operation__name="execute_tool"),
    ]
    found = otlp.read(batch(*others, tool(4, herdbook__session="a\nb"), tool(5)))
    assert (5, 1, 4) == (found.spans, len(found.steps), found.left_out.total())
    assert {
        "neither a tool nor a model was called": 1,
        "embeddings is no call of a tool or a model": 1,
        "a tool without a name": 1,
        "names that no run or tool can have": 1,
    } == dict(found.left_out)


def test_secrets_are_taken_out_and_long_texts_cut_and_both_counted() -> None:
    """A traced key would be kept for ever, or one result fill the record."""
    secret = "ghp" + "_" + "a1B2" * 9
    told = tool(1, gen_ai__tool__call__arguments=json.dumps({"key": secret}), gen_ai__tool__call__result="x" * 20_000)
    found = otlp.read(batch(told))
    assert (1, 1, False) == (found.redacted, found.shortened, secret in str(found.steps))
    assert "(12000 characters more)" in str(found.steps[0].result)


@pytest.mark.parametrize(
    "broken",
    [
        [1],
        [{"scopeSpans": {}}],
        [{"resource": []}],
        [{"scopeSpans": [{"spans": [None]}]}],
        batch({}),
        batch({"traceId": "xyz", "spanId": "1" * 16}),
        batch({**tool(1), "startTimeUnixNano": "soon"}),
        batch({**tool(1), "attributes": [{"key": 1}]}),
        batch({**tool(1), "attributes": [{"key": "k", "value": {"intValue": "many"}}]}),
        batch({**tool(1), "attributes": [{"key": "k", "value": {"intValue": "1", "boolValue": True}}]}),
        batch({**tool(1), "attributes": [{"key": "k", "value": {"arrayValue": {"values": [1]}}}]}),
        batch({**tool(1), "status": "bad"}),
    ],
)
def test_what_is_no_otlp_is_refused_with_a_sentence(broken: list[Any]) -> None:
    """A broken exporter would be told that all is well."""
    with pytest.raises(InvalidRequest, match="OTLP"):
        otlp.read(broken)


def test_too_many_and_too_deep_are_refused() -> None:
    """One request could hold up everybody's writes."""
    with pytest.raises(TooLarge, match="2000 spans"):
        otlp.read(batch(*(tool(number) for number in range(2_001))))
    deep: dict[str, Any] = {"stringValue": "x"}
    for _ in range(70):
        deep = {"arrayValue": {"values": [deep]}}
    with pytest.raises(TooLarge, match="deeper"):
        otlp.read(batch({**tool(1), "attributes": [{"key": "k", "value": deep}]}))


NAMES = [
    "resource", "scopeSpans", "spans", "attributes", "key", "value", "traceId", "spanId", "status", "code", "stringValue",
    "arrayValue", "kvlistValue", "values", "doubleValue", "intValue", "startTimeUnixNano",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(JSON, max_size=3), JSON)
def test_whatever_comes_is_read_or_refused(anything: list[Any], inner: Any) -> None:
    """One exporter's bug would be a traceback in our log for each of its requests."""
    for sent in (anything, batch(inner), batch({**tool(1), "attributes": inner}), batch({**tool(1), "status": inner})):
        try:
            found = otlp.read(sent)
        except HerdbookError:
            continue
        assert found.spans == len(found.steps) + found.left_out.total()


def test_attributes_are_read_whatever_their_type() -> None:
    """A list of finish reasons or a nested object would be lost."""
    told = {"a": [1, "x", True], "b": {"c": {"d": "e"}}, "n": 2**60}
    assert told == otlp.attributes({"attributes": attributes(told)})
