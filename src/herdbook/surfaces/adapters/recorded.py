"""A model client that writes down what it is asked and what it answers, so that the run can be learned from.

    with recorded(OpenAI(), run) as client:
        client.chat.completions.create(...)       # as before

It wraps a client of the `openai` or `anthropic` libraries, synchronous or not: chat completions and messages, whether they are
created, parsed, streamed or read as raw responses. Each message, the tools and each tool call with its result are told to the run
once, in order, without what looks like a secret; the client that was handed in stays as it was. Answers pass untouched, and a
record that is away fails no call: what could not be told is counted in `untold`. Other resources of a client are not recorded.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from herdbook.base.redaction import redacted
from herdbook.client import HerdbookError
from herdbook.surfaces.adapters import wire_anthropic, wire_openai
from herdbook.surfaces.adapters.wire import Answer, Call, Turn, parsed

if TYPE_CHECKING:
    from herdbook.client import Client

TOOLS: Final = "tools"  # the context that holds the tools' schemas


class Recorder:
    """What of a conversation was told already, and the calls whose results have not come yet."""

    def __init__(self, run: Client) -> None:
        self.run = run
        self.told: list[Turn] = []
        self.open: dict[str, Call] = {}
        self.tools: str | None = None
        self.untold = 0

    def asked(self, turns: Sequence[Turn], tools: Sequence[Mapping[str, Any]]) -> None:
        """A request is about to be sent. Only what is new since the last one is told: clients send the whole conversation."""
        schemas = json.dumps(list(tools), sort_keys=True) if tools else None
        if schemas is not None and schemas != self.tools:
            self.tools = schemas
            self.tell(self.run.context, TOOLS, schemas)
        grown = list(turns[: len(self.told)]) == self.told
        before = set(self.told)  # a conversation that was shortened is not told again
        for turn in turns[len(self.told) :] if grown else [turn for turn in turns if turn not in before]:
            self.turn(turn)
        self.told = list(turns)

    def turn(self, turn: Turn) -> None:
        if turn.answers is not None and turn.answers in self.open:
            self.finish(self.open.pop(turn.answers), turn.text)
        elif turn.text and turn.role != "assistant":  # what the model said was told when it said it
            self.tell(self.run.context, turn.role if turn.answers is None else "tool", redacted(turn.text).text)

    def answered(self, answer: Answer) -> None:
        """The model's answer: what it said is told at once, what it called with the tool's result."""
        if answer.text:
            self.tell(self.run.context, "assistant", redacted(answer.text).text)
        self.open |= {call.ident: call for call in answer.calls}

    def finish(self, call: Call, result: str | None) -> None:
        """A call with what it gave back. Arguments are looked through as one text: a name beside a value makes it a secret."""
        args = call.args if isinstance(call.args, dict) else {"value": call.args}
        said = parsed(redacted(json.dumps(args, ensure_ascii=False)).text)
        self.tell(self.run.action, call.name, said, None if result is None else redacted(result).text)

    def close(self) -> None:
        """Calls whose results never came are told without."""
        while self.open:
            self.finish(self.open.pop(next(iter(self.open))), None)

    def tell(self, verb: Callable[..., Any], *args: Any) -> None:
        try:
            verb(*args)
        except HerdbookError:
            self.untold += 1


@contextmanager
def recorded(client: Any, run: Client) -> Iterator[Any]:
    """The same client, told to `run` as it is used. Raises TypeError for a client of another library."""
    wire = next((each for each in (wire_openai, wire_anthropic) if each.fits(client)), None)
    if wire is None:
        raise TypeError(f"{type(client).__name__} is not a client of openai or anthropic: record its calls with run.action()")
    recorder = Recorder(run)
    try:
        yield listening(client.copy(), recorder, wire)
    finally:
        recorder.close()


def listening(client: Any, recorder: Recorder, wire: Any) -> Any:
    """The client, and whatever is copied of it with other options, with every request told."""
    resource = wire.resource(client)
    for way in wire.WAYS:
        setattr(resource, way, recording(getattr(resource, way), recorder, wire))
    copied = client.copy

    def copy(**options: Any) -> Any:
        return listening(copied(**options), recorder, wire)

    client.copy = client.with_options = copy
    client.herdbook = recorder
    return client


def recording(ask: Callable[..., Any], recorder: Recorder, wire: Any) -> Callable[..., Any]:
    """`ask`, with each request and answer told."""

    def told(*args: Any, **request: Any) -> Any:
        recorder.asked(*wire.request(request))
        return settled(ask(*args, **request))

    def settled(answer: Any) -> Any:
        return later(answer) if inspect.isawaitable(answer) else kept(answer)

    async def later(waiting: Any) -> Any:
        return kept(await waiting)

    def kept(answer: Any) -> Any:
        if hasattr(answer, "model_dump"):
            recorder.answered(wire.answer(answer))
            return answer
        if hasattr(answer, "parse"):
            return unread(answer)
        if hasattr(answer, "__iter__") or hasattr(answer, "__aiter__"):
            return Streamed(answer, recorder, wire.Collector())
        return Managed(answer, recorder, wire)

    def unread(response: Any) -> Any:
        """A response whose reader wants its headers first: it is told when it is read, once."""
        parse = response.parse

        def read(*args: Any, **options: Any) -> Any:
            response.parse = parse
            return settled(parse(*args, **options))

        response.parse = read
        return response

    return told


class Streamed:
    """A stream that passes every chunk on as it comes, and tells the answer when the last one has, or when it is left."""

    def __init__(self, stream: Any, recorder: Recorder, collector: Any) -> None:
        self.stream = stream
        self.recorder = recorder
        self.collector = collector
        self.told = False

    def __iter__(self) -> Streamed:
        return self

    def __next__(self) -> Any:
        for chunk in self.stream:
            self.collector.add(chunk)
            return chunk
        self.finish()
        raise StopIteration

    def __aiter__(self) -> Streamed:
        return self

    async def __anext__(self) -> Any:
        async for chunk in self.stream:
            self.collector.add(chunk)
            return chunk
        self.finish()
        raise StopAsyncIteration

    def finish(self) -> None:
        if not self.told:
            self.told = True
            self.recorder.answered(self.collector.answer())

    def __enter__(self) -> Streamed:
        return self

    def __exit__(self, *problem: object) -> None:
        self.finish()
        self.stream.close()

    async def __aenter__(self) -> Streamed:
        return self

    async def __aexit__(self, *problem: object) -> None:
        self.finish()
        await self.stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Managed:
    """A context that gives a stream with a library's own helpers, and tells what came of it when it is left."""

    def __init__(self, manager: Any, recorder: Recorder, wire: Any) -> None:
        self.manager = manager
        self.recorder = recorder
        self.wire = wire
        self.stream: Any = None

    def finish(self) -> None:
        answer = self.wire.so_far(self.stream)
        if answer is not None:
            self.recorder.answered(answer)

    def __enter__(self) -> Any:
        self.stream = self.manager.__enter__()
        return self.stream

    def __exit__(self, *problem: object) -> Any:
        self.finish()
        return self.manager.__exit__(*problem)

    async def __aenter__(self) -> Any:
        self.stream = await self.manager.__aenter__()
        return self.stream

    async def __aexit__(self, *problem: object) -> Any:
        self.finish()
        return await self.manager.__aexit__(*problem)
