"""The OpenAI Agents SDK with a record: a run is briefed before its first turn, and what was asked, called and answered is told.

    with hooked(run) as hooks:
        Runner.run_sync(agent, "fix the build", hooks=hooks, run_config=hooks.config())

Conversations stay in the SDK's own sessions, which keep every item as it was; here is what a run can be learned from, without
what looks like a secret. The model reads the briefing beside its instructions, or that the record is away: no call fails for it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from agents import RunConfig, RunHooks
from agents.run_config import CallModelData, ModelInputData

from herdbook.client import HerdbookError
from herdbook.surfaces.adapters.recorded import Recorder
from herdbook.surfaces.adapters.wire import Answer, Call, Turn, parsed, plain

if TYPE_CHECKING:
    from herdbook.client import Client

TOKENS: Final = 1_500  # of a briefing that every turn of the model repeats


class HerdbookHooks(RunHooks[Any]):
    """Hooks of one run, and the configuration that briefs it."""

    def __init__(self, run: Client, *, entity: str | None = None, tokens: int = TOKENS) -> None:
        self.run, self.entity, self.tokens = run, entity or run.entity, tokens
        self.recorder = Recorder(run)
        self.briefing: str | None = None
        self.turn = threading.Lock()

    @property
    def untold(self) -> int:
        """How much could not be told."""
        return self.recorder.untold

    def config(self, base: RunConfig | None = None) -> RunConfig:
        """The SDK's configuration, with the briefing put beside what the agent is instructed."""
        base = base or RunConfig()
        return replace(base, call_model_input_filter=self.filter(base.call_model_input_filter))

    def filter(self, earlier: Callable[[CallModelData[Any]], Any] | None) -> Callable[[CallModelData[Any]], Any]:
        async def briefed(data: CallModelData[Any]) -> ModelInputData:
            found = data.model_data if earlier is None else earlier(data)
            given: ModelInputData = await found if isawaitable(found) else found
            told = "\n\n".join(text for text in (given.instructions, await self.briefed()) if text)
            return ModelInputData(given.input, told or None)

        return briefed

    async def briefed(self) -> str:
        """What is known, asked for once. Without a path there is nothing to ask about."""
        if self.entity is None:
            return ""
        return await asyncio.to_thread(self.brief, self.entity)

    def brief(self, entity: str) -> str:
        with self.turn:
            if self.briefing is None:
                try:
                    self.briefing = str(self.run.brief(entity, task=self.run.task, tokens=self.tokens)["markdown"])
                except HerdbookError as problem:
                    if not problem.away:
                        raise
                    self.briefing = f"herdbook: the record is unavailable ({problem.message}). It may know much about {entity}."
            return self.briefing

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: str | None, input_items: Sequence[Any]) -> None:
        system = [Turn("system", system_prompt)] if system_prompt else []
        turns = [*system, *(turn for item in input_items for turn in turns_of(plain(item)))]
        tools = [schema(tool) for tool in agent.tools if hasattr(tool, "params_json_schema")]
        await self.told(self.recorder.asked, turns, tools)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        await self.told(self.recorder.answered, answer(response.output))

    async def told(self, tell: Callable[..., None], *what: Any) -> None:
        """In order, and beside the agent's own work: the record may be slow, or away."""

        def in_turn() -> None:
            with self.turn:
                tell(*what)

        await asyncio.to_thread(in_turn)


@contextmanager
def hooked(run: Client, *, entity: str | None = None, tokens: int = TOKENS) -> Iterator[HerdbookHooks]:
    """Hooks for `run`; at the end of the `with`, calls whose results never came are told without."""
    hooks = HerdbookHooks(run, entity=entity, tokens=tokens)
    try:
        yield hooks
    finally:
        hooks.recorder.close()


def turns_of(item: Mapping[str, Any]) -> Iterator[Turn]:
    """What an item of the model's input says, or which call it answers; what the model itself said was told when it said it."""
    if item.get("type") == "function_call_output":
        yield Turn("tool", words(item["output"]), item["call_id"])
    elif "role" in item:
        yield Turn("system" if item["role"] == "developer" else item["role"], words(item.get("content")))


def words(content: Any) -> str:
    """Texts of a content; pictures and files are named by their type only."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in map(plain, content))


def answer(output: Sequence[Any]) -> Answer:
    """What a response said, and what it calls: functions of the agent's, and tools that the provider runs by themselves."""
    items = [plain(item) for item in output]
    said = [words(item.get("content")) for item in items if item.get("type") == "message"]
    return Answer(
        "\n".join(text for text in said if text), tuple(call(item) for item in items if str(item["type"]).endswith("_call"))
    )


def call(item: Mapping[str, Any]) -> Call:
    ident = str(item.get("call_id") or item.get("id") or "")
    if item["type"] == "function_call":
        return Call(ident, str(item["name"]), parsed(item["arguments"]))
    rest = {name: value for name, value in item.items() if name not in ("type", "id", "call_id") and value is not None}
    return Call(ident, str(item["type"]).removesuffix("_call"), json.loads(json.dumps(rest, default=str)))


def schema(tool: Any) -> dict[str, Any]:
    """A tool's form, as the training sets have it."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
    return {"type": "function", "function": function}
