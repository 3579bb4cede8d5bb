"""The OpenAI Agents SDK itself, before a model server of ours: the run is briefed, and told once and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import agents
import openai
import pytest
from agents import Agent, ModelSettings, RunConfig, Runner, SQLiteSession
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from agents.run_config import CallModelData, ModelInputData

import herdbook
from herdbook.client import Client
from herdbook.surfaces.adapters.openai_agents import hooked
from tests.adapters.conftest import ModelServer

pytestmark = pytest.mark.slow

PLAIN = RunConfig(tracing_disabled=True)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("HERDBOOK_HOME", str(tmp_path))
    with herdbook.open(tmp_path / "record.db", agent="tester", session="run", entity="acme", task="fix the build") as found:
        found.write("acme", "tz", {"env": {"TZ": "UTC"}}, why="the date tests compare against UTC midnight")
        yield found


@agents.function_tool
def look(path: str) -> str:
    """Reads a file."""
    return f"{path}: TZ=CET"


def text(said: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": said, "annotations": []}]
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}


def calls(name: str, arguments: str, ident: str = "c1") -> dict[str, Any]:
    return {"type": "function_call", "id": "f", "call_id": ident, "name": name, "arguments": arguments, "status": "completed"}


def response(*output: dict[str, Any]) -> dict[str, Any]:
    return {"id": "r", "object": "response", "created_at": 0, "model": "m", "status": "completed", "output": list(output),
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}  # fmt: skip


def completion(content: str | None, *wanted: tuple[str, str, str]) -> dict[str, Any]:
    tools = [{"id": ident, "type": "function", "function": {"name": n, "arguments": a}} for ident, n, a in wanted]
    message = {"role": "assistant", "content": content} | ({"tool_calls": tools} if tools else {})
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}  # fmt: skip


def agent(model: ModelServer, *, chat: bool = False, **more: Any) -> Agent[Any]:
    client = openai.AsyncOpenAI(base_url=model.url, api_key="k", max_retries=0)
    of = OpenAIChatCompletionsModel("m", client) if chat else OpenAIResponsesModel("m", client)
    return Agent(name="fixer", instructions="be brief", model=of, tools=[look], model_settings=ModelSettings(), **more)


def ran(of: Agent[Any], asked: str, **more: Any) -> Any:
    """A whole run, on an event loop of its own."""

    async def work() -> Any:
        result = await Runner.run(of, asked, **more)
        await cast(Any, of.model)._client.close()
        return result

    return asyncio.run(work())


def told(run: Client) -> list[tuple[str, Any]]:
    """What the run holds, in order."""
    trace = run.trace("run")
    rows = [(each["at"], each["name"], each["text"]) for each in trace["contexts"]]
    rows += [(each["at"], each["tool"], (each["args"], each["result"])) for each in trace["actions"]]
    return [row[1:] for row in sorted(rows, key=lambda row: row[0])]


@pytest.mark.parametrize("chat", [False, True])
def test_a_run_is_briefed_and_told_once_and_in_order(chat: bool, model: ModelServer, run: Client) -> None:
    """The agent would start from nothing, and nobody could learn from what it did."""
    if chat:
        model.answers = [completion("let me look", ("c1", "look", '{"path": "x"}')), completion("the clock is wrong")]
    else:
        model.answers = [response(text("let me look"), calls("look", '{"path": "x"}')), response(text("the clock is wrong"))]
    with hooked(run) as hooks:
        result = ran(agent(model, chat=chat), "what is wrong?", hooks=hooks, run_config=hooks.config(PLAIN))
    assert "the clock is wrong" == result.final_output
    assert all("be brief" in str(asked) and "UTC midnight" in str(asked) for asked in model.asked)
    assert ["tools", "system", "user", "assistant", "look", "assistant"] == [name for name, _ in told(run)]
    assert ("look", ({"path": "x"}, "x: TZ=CET")) == told(run)[4]
    assert '"name": "look"' in told(run)[0][1]
    assert ["tz"] == [read["key"] for read in run.trace("run")["reads"]]
    moved = run.commit_outcome("success", used=["tz"])["moved"]
    assert [("tz", "used")] == [(each["key"], each["how"]) for each in moved]


def test_a_conversation_that_goes_on_is_not_told_again(model: ModelServer, run: Client, tmp_path: Path) -> None:
    """Each turn would tell all that came before it, since the SDK's session sends the whole conversation."""
    session = SQLiteSession("talk", tmp_path / "talk.db")
    model.answers = [response(text("a")), response(text("b"))]
    with hooked(run) as hooks:
        for asked in ("first", "second"):
            ran(agent(model), asked, session=session, hooks=hooks, run_config=hooks.config(PLAIN))
    session.close()
    assert ["first", "a", "second", "b"] == [said for name, said in told(run) if name in ("user", "assistant")]
    kept = asyncio.run(SQLiteSession("talk", tmp_path / "talk.db").get_items())
    assert "UTC midnight" not in str(kept)


def test_a_call_whose_result_never_came_is_told(model: ModelServer, run: Client) -> None:
    """A run whose last act was a call would be taken for one that did nothing."""
    model.answers = [response(calls("look", '{"path": "x"}'))]
    with pytest.raises(agents.MaxTurnsExceeded), hooked(run) as hooks:
        ran(agent(model), "go", hooks=hooks, run_config=hooks.config(PLAIN), max_turns=1)
    assert ("look", ({"path": "x"}, None)) == told(run)[-1]


def test_another_filter_of_the_model_input_still_works(model: ModelServer, run: Client) -> None:
    """Briefing a run would switch off what somebody had put there to keep things from the model."""

    async def shorter(data: CallModelData[Any]) -> ModelInputData:
        return ModelInputData(data.model_data.input[-1:], "be blunt")

    model.answers = [response(text("done"))]
    with hooked(run) as hooks:
        config = hooks.config(RunConfig(tracing_disabled=True, call_model_input_filter=shorter))
        ran(agent(model), "go", hooks=hooks, run_config=config)
    assert ["be blunt"] == [asked["instructions"].partition("\n\n")[0] for asked in model.asked]
    assert "UTC midnight" in model.asked[0]["instructions"]


def test_a_record_that_is_away_fails_no_run_and_is_said(model: ModelServer) -> None:
    """An outage of the record would be an outage of every agent, or look to it as if nothing were known."""
    away = Client(url="http://127.0.0.1:9", agent="tester", session="run", entity="acme", timeout_seconds=0.2, spool="")
    model.answers = [response(text("done"))]
    with hooked(away) as hooks:
        assert "done" == ran(agent(model), "go", hooks=hooks, run_config=hooks.config(PLAIN)).final_output
    assert "the record is unavailable" in model.asked[0]["instructions"]
    assert hooks.untold >= 3


def test_a_secret_does_not_reach_the_record(model: ModelServer, run: Client) -> None:
    """A key that a tool was called with would be kept for ever."""
    secret = "ghp" + "_" + "a1B2" * 9
    model.answers = [response(calls("look", f'{{"path": "{secret}"}}')), response(text("done"))]
    with hooked(run) as hooks:
        ran(agent(model), f"use {secret}", hooks=hooks, run_config=hooks.config(PLAIN))
    assert secret not in str(told(run))
