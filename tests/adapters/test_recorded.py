"""A wrapped model client tells the run what was asked, called and answered, once and in order, and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import herdbook
from herdbook.client import Client
from herdbook.surfaces.adapters.recorded import recorded
from tests.adapters.conftest import ModelServer

pytestmark = pytest.mark.slow

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("HERDBOOK_HOME", str(tmp_path))
    with herdbook.open(tmp_path / "record.db", agent="tester", session="run", entity="acme") as found:
        found.start_session()
        yield found


def told(run: Client) -> list[tuple[str, Any]]:
    """What the run holds, in order."""
    trace = run.trace("run")
    rows = [(each["at"], each["name"], each["text"]) for each in trace["contexts"]]
    rows += [(each["at"], each["tool"], (each["args"], each["result"])) for each in trace["actions"]]
    return [row[1:] for row in sorted(rows, key=lambda row: row[0])]


def completion(content: str | None = None, *calls: tuple[str, str, str]) -> dict[str, Any]:
    wanted = [{"id": ident, "type": "function", "function": {"name": n, "arguments": a}} for ident, n, a in calls]
    message = {"role": "assistant", "content": content} | ({"tool_calls": wanted} if wanted else {})
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


def chunk(**delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}


ASKED: list[Any] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "what is wrong?"}]


def test_a_conversation_is_told_once_and_in_order(model: ModelServer, run: Client) -> None:
    """A training set would repeat each message as often as the conversation had turns."""
    model.answers = [completion("let me look", ("1", "look", '{"path": "x"}')), completion("the clock is wrong")]
    with recorded(openai.OpenAI(base_url=model.url, api_key="k"), run) as client:
        first = client.chat.completions.create(model="m", messages=ASKED, tools=[TOOL])
        again = [*ASKED, first.choices[0].message, {"role": "tool", "tool_call_id": "1", "content": "TZ=CET"}]
        client.chat.completions.create(model="m", messages=again, tools=[TOOL])
    names = [name for name, _ in told(run)]
    assert ["tools", "system", "user", "assistant", "look", "assistant"] == names
    assert ("look", ({"path": "x"}, "TZ=CET")) == told(run)[4]
    assert ("assistant", "the clock is wrong") == told(run)[5]


def test_a_call_whose_result_never_came_is_told(model: ModelServer, run: Client) -> None:
    """A run whose last act was a call would be taken for one that did nothing."""
    model.answers = [completion(None, ("1", "deploy", "not JSON"))]
    with recorded(openai.OpenAI(base_url=model.url, api_key="k"), run) as client:
        client.chat.completions.create(model="m", messages=ASKED)
    assert ("deploy", ({"value": "not JSON"}, None)) == told(run)[-1]


def test_a_stream_passes_as_it_comes_and_is_told_whole(model: ModelServer, run: Client) -> None:
    """Who streams would record nothing, or get the answer only at the end."""
    parts = [{"index": 0, "id": "1", "type": "function", "function": {"name": "look", "arguments": '{"pa'}}]
    more = [{"index": 0, "function": {"arguments": 'th": "x"}'}}]
    model.answers = [[chunk(content="let "), chunk(content="me"), chunk(tool_calls=parts), chunk(tool_calls=more), "[DONE]"]]
    with recorded(openai.OpenAI(base_url=model.url, api_key="k"), run) as client:
        stream = client.chat.completions.create(model="m", messages=ASKED, stream=True)
        assert "let me" == "".join(each.choices[0].delta.content or "" for each in stream)
    assert [("assistant", "let me"), ("look", ({"path": "x"}, None))] == told(run)[-2:]


def test_an_asynchronous_client_is_told_too(model: ModelServer, run: Client) -> None:
    """Half of all agents are asynchronous."""
    model.answers = [completion("done"), [chunk(content="done again"), "[DONE]"]]

    async def converse() -> None:
        async with openai.AsyncOpenAI(base_url=model.url, api_key="k") as plain:
            with recorded(plain, run) as client:
                await client.chat.completions.create(model="m", messages=ASKED)
                async for _ in await client.chat.completions.create(model="m", messages=ASKED, stream=True):
                    pass

    asyncio.run(converse())
    assert ["done", "done again"] == [text for name, text in told(run) if name == "assistant"]


def test_messages_of_anthropic_are_told_in_the_same_words(model: ModelServer, run: Client) -> None:
    """A training set would hold two dialects."""
    use = {"type": "tool_use", "id": "1", "name": "look", "input": {"path": "x"}}
    base = {"id": "m", "type": "message", "role": "assistant", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}
    model.answers = [
        base | {"content": [{"type": "text", "text": "let me look"}, use], "stop_reason": "tool_use", "stop_sequence": None},
        base | {"content": [{"type": "text", "text": "found"}], "stop_reason": "end_turn", "stop_sequence": None},
    ]
    tool = {"name": "look", "description": "reads", "input_schema": {"type": "object", "properties": {}}}
    with recorded(anthropic.Anthropic(base_url=model.url, api_key="k"), run) as client:
        given: dict[str, Any] = {"model": "m", "max_tokens": 9, "system": "be brief", "tools": [tool]}
        asked: list[Any] = [{"role": "user", "content": "what is wrong?"}]
        first = client.messages.create(messages=asked, **given)
        result = [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "TZ=CET"}]}]
        asked += [{"role": "assistant", "content": first.content}, {"role": "user", "content": result}]
        client.messages.create(messages=asked, **given)
    assert ["tools", "system", "user", "assistant", "look", "assistant"] == [name for name, _ in told(run)]
    assert ("look", ({"path": "x"}, "TZ=CET")) == told(run)[4]
    assert '"function": {"description": "reads", "name": "look"' in told(run)[0][1]


def test_a_stream_of_anthropic_is_told_whole(model: ModelServer, run: Client) -> None:
    """Who streams would record nothing."""
    start: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    start |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    block = {"type": "tool_use", "id": "1", "name": "look", "input": {}}
    model.answers = [
        [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "let me"}},
            {"type": "content_block_start", "index": 1, "content_block": block},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"path": "x"}'}},
            {"type": "message_stop"},
        ]
    ]
    with recorded(anthropic.Anthropic(base_url=model.url, api_key="k"), run) as client:
        asked: list[Any] = [{"role": "user", "content": "go"}]
        for _ in client.messages.create(model="m", max_tokens=9, messages=asked, stream=True):
            pass
    assert [("assistant", "let me"), ("look", ({"path": "x"}, None))] == told(run)[-2:]


def test_a_conversation_that_was_cut_is_not_told_again(model: ModelServer, run: Client) -> None:
    """A client that drops its oldest messages would tell the rest at every turn."""
    model.answers = [completion("a"), completion("b")]
    with recorded(openai.OpenAI(base_url=model.url, api_key="k"), run) as client:
        client.chat.completions.create(model="m", messages=ASKED)
        client.chat.completions.create(model="m", messages=[ASKED[1], {"role": "user", "content": "and now?"}])
    assert ["what is wrong?", "and now?"] == [text for name, text in told(run) if name == "user"]


def test_a_record_that_is_away_fails_no_call(model: ModelServer) -> None:
    """An outage of the record would be an outage of every agent."""
    away = Client(url="http://127.0.0.1:9", agent="tester", session="run", timeout_seconds=0.2, spool="")
    model.answers = [completion("done")]
    with recorded(openai.OpenAI(base_url=model.url, api_key="k"), away) as client:
        assert "done" == client.chat.completions.create(model="m", messages=ASKED).choices[0].message.content
        assert 3 == client.herdbook.untold


def test_a_secret_in_a_prompt_does_not_reach_the_record(model: ModelServer, run: Client) -> None:
    """A key that somebody pasted would be kept for ever."""
    secret = "ghp" + "_" + "a1B2" * 9
    model.answers = [completion(None, ("1", "login", f'{{"key": "{secret}"}}'))]
    with recorded(openai.OpenAI(base_url=model.url, api_key="k"), run) as client:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"use {secret}"}])
    assert secret not in str(told(run))


def test_the_client_that_was_handed_in_stays_as_it_was(model: ModelServer, run: Client) -> None:
    """Other parts of the program would be recorded without having asked for it."""
    plain = openai.OpenAI(base_url=model.url, api_key="k")
    with recorded(plain, run):
        pass
    model.answers = [completion("done")]
    plain.chat.completions.create(model="m", messages=ASKED)
    assert [] == told(run)


def test_another_library_is_refused_by_name(run: Client) -> None:
    """Somebody would believe that their calls are recorded."""
    with pytest.raises(TypeError, match=r"run\.action"), recorded(object(), run):
        pass


MESSAGE: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "m"}
MESSAGE |= {"usage": {"input_tokens": 1, "output_tokens": 1}, "stop_reason": "end_turn", "stop_sequence": None}
SAID: list[Any] = [
    {"type": "message_start", "message": MESSAGE | {"content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "done"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_stop"},
]
WROTE: list[Any] = [chunk(content="done"), "[DONE]"]


def openai_ways(client: Any) -> list[tuple[Any, Callable[[], Any]]]:
    """Every way of this library to ask for an answer, and what the server would say."""
    chat, asked = client.chat.completions, {"model": "m", "messages": ASKED}

    def streamed() -> Any:
        with chat.stream(**asked) as stream:
            return stream.get_final_completion()

    def unread() -> Any:
        with chat.with_streaming_response.create(**asked) as response:
            return response.parse()

    return [
        (completion("done"), lambda: chat.parse(**asked)),
        (WROTE, streamed),
        (completion("done"), lambda: chat.with_raw_response.create(**asked).parse()),
        (WROTE, lambda: list(chat.with_raw_response.create(stream=True, **asked).parse())),
        (completion("done"), unread),
        (completion("done"), lambda: client.with_options(timeout=9).chat.completions.create(**asked)),
        (completion("done"), lambda: client.with_raw_response.chat.completions.create(**asked).parse()),
    ]


def anthropic_ways(client: Any) -> list[tuple[Any, Callable[[], Any]]]:
    """As for the other."""
    asked = {"model": "m", "max_tokens": 9, "system": ASKED[0]["content"], "messages": ASKED[1:]}
    whole = MESSAGE | {"content": [{"type": "text", "text": "done"}]}

    def streamed() -> Any:
        with client.messages.stream(**asked) as stream:
            return "".join(stream.text_stream)

    return [
        (whole, lambda: client.messages.parse(**asked)),
        (SAID, streamed),
        (whole, lambda: client.messages.with_raw_response.create(**asked).parse()),
        (whole, lambda: client.with_options(timeout=9).copy().messages.create(**asked)),
    ]


@pytest.mark.parametrize("library", ["openai", "anthropic"])
def test_every_way_of_asking_is_told(model: ModelServer, run: Client, library: str) -> None:
    """Who takes a library's other way to the same answer would record nothing and not know it, or get an error from us."""
    plain: Any = {"openai": openai.OpenAI, "anthropic": anthropic.Anthropic}[library](base_url=model.url, api_key="k")
    ways = {"openai": openai_ways, "anthropic": anthropic_ways}[library]
    for number in range(len(ways(plain))):
        before = len(told(run))
        with recorded(plain, run) as client:
            answer, ask = ways(client)[number]
            model.answers = [answer]
            ask()
        assert [("system", "be brief"), ("user", "what is wrong?"), ("assistant", "done")] == told(run)[before:], number


def test_an_asynchronous_client_is_told_every_way(model: ModelServer, run: Client) -> None:
    """The other half would miss what this one tells."""
    model.answers = [WROTE, completion("done"), SAID]

    async def converse() -> None:
        async with openai.AsyncOpenAI(base_url=model.url, api_key="k") as plain:
            with recorded(plain, run) as client:
                async with client.chat.completions.stream(model="m", messages=ASKED) as stream:
                    await stream.get_final_completion()
                async with client.chat.completions.with_streaming_response.create(model="m", messages=ASKED) as response:
                    await response.parse()
        async with anthropic.AsyncAnthropic(base_url=model.url, api_key="k") as other:
            with recorded(other, run) as client:
                async with client.messages.stream(model="m", max_tokens=9, messages=ASKED[1:]) as messages:
                    await messages.get_final_message()

    asyncio.run(converse())
    assert ["done"] * 3 == [text for name, text in told(run) if name == "assistant"]
