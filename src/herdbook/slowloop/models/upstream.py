"""A model at an address that speaks the OpenAI protocol, asked as an agent would ask it: what is examined is what will be served.

No model runs in this process. It raises Unreachable where nothing answers, and takes an answer without a call for what it is.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from herdbook.base.errors import InvalidRequest, Unreachable
from herdbook.slowloop.export.targets import as_text
from herdbook.slowloop.models.acts import Act, Function

CALL_SECONDS_MAX: Final = 120
TOKENS_MIN: Final = 48
TOKENS_MAX: Final = 2_048
AT_ONCE: Final = 4


class Upstream:
    """One model at one address."""

    def __init__(self, url: str, name: str, *, key: str | None = None, at_once: int = AT_ONCE) -> None:
        if not url.startswith(("http://", "https://")):
            raise InvalidRequest(f"{url!r} is no address of a model server: write it as http://127.0.0.1:8000/v1#NAME")
        self.url, self.name, self.key, self.at_once = url.rstrip("/"), name, key, at_once
        self.failures = 0  # answers that its server could not make

    def call(self, act: Act) -> Function | None:
        """The first call it answers with, or None. Raises Unreachable."""
        asked = {"model": self.name, "messages": as_text(act.prompt), "temperature": 0, "max_tokens": room(act)}
        answer = self.post("/chat/completions", asked | ({"tools": act.tools} if act.tools else {}))
        if not answer:
            self.failures += 1
            return None
        try:
            calls = answer["choices"][0]["message"].get("tool_calls") or ()
            return function_of(calls[0]) if calls else None
        except (KeyError, IndexError, TypeError, AttributeError) as problem:
            raise Unreachable(f"{self.url} did not answer as a model server does: it has no choices") from problem

    def calls(self, acts: Sequence[Act], *, progress: Callable[[int], None] = lambda done: None) -> list[Function | None]:
        """One call for each act, a few asked for at once."""
        found = []
        with ThreadPoolExecutor(self.at_once) as pool:
            for number, call in enumerate(pool.map(self.call, acts), 1):
                found.append(call)
                progress(number)
        return found

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {self.key}"} if self.key else {})
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS_MAX) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as problem:
            if problem.code < 500:
                raise Unreachable(f"{self.url} does not take what a model server takes: it answered {problem.code}") from problem
            return {}  # it is there, and could not make an answer of what its model said
        except (OSError, ValueError) as problem:
            raise Unreachable(f"{self.url} did not answer as a model server does: {problem}") from problem


def room(act: Act) -> int:
    """Tokens for the call that is right, and as much again: whoever has not called by then goes on without end."""
    return min(TOKENS_MIN + len(json.dumps(act.call)) // 2, TOKENS_MAX)


def at(address: str) -> Upstream:
    """The model that `URL#NAME` names."""
    url, _, name = address.partition("#")
    return Upstream(url, name)


def function_of(call: dict[str, Any]) -> Function | None:
    """A call's name and arguments; None where the arguments are no JSON object."""
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"] or "{}") if isinstance(function["arguments"], str) else function["arguments"]
    except ValueError:
        return None
    return {"name": function["name"], "arguments": arguments} if isinstance(arguments, dict) else None
