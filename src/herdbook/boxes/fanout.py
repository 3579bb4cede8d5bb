"""Many boxes at one task, a variant each, and a board of what does not work that all of them look at before they start.

An attempt that fails becomes a dead end in the record at once: its approach, why, and the end of its output. The first that
passes wins; nothing new starts then, and what still runs is ended. A command that cannot even start says nothing about any
approach: it stops the fan-out. Budgets are kept by not starting; the wall clock ends what runs, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from herdbook.base import limits
from herdbook.base.approach import dead_end_key
from herdbook.base.errors import HerdbookError, InvalidRequest

DEAD_END_CONFIDENCE: Final = 0.8  # seed
EVIDENCE_CHARS_MAX: Final = 2_000
WHY_CHARS_MAX: Final = 200
COULD_NOT_START: Final = (126, 127)  # as shells answer
State = Literal["won", "failed", "skipped", "ended", "not started"]


@dataclass(frozen=True, slots=True)
class Variant:
    """One point of the space: what its box finds in its environment."""

    env: Mapping[str, str]

    @property
    def approach(self) -> str:
        """Its signature: equal for equal settings, whoever tries them and when."""
        return " ".join(f"{name}={text}" for name, text in sorted(self.env.items())) or "as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one fan-out may take."""

    attempts: int = 8
    at_once: int = 2
    wall_seconds: float = 600
    box_seconds: float = 3_600


@dataclass(slots=True)
class Attempt:
    """What became of a variant."""

    variant: Variant
    state: State = "not started"
    box: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    why: str = ""
    sessions: list[str] = field(default_factory=list)  # the runs in its box, for whoever looks at them afterwards


@dataclass(slots=True)
class FanOut:
    """How it went, attempt by attempt, in the order of the variants."""

    attempts: list[Attempt] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, state: State) -> int:
        return sum(each.state == state for each in self.attempts)

    @property
    def box_seconds(self) -> float:
        return sum(each.seconds for each in self.attempts)

    @property
    def winner(self) -> Attempt | None:
        return next((each for each in self.attempts if each.state == "won"), None)


class Tell(Protocol):
    """The record, by verb and fields: any client's `call`."""

    def __call__(self, verb: str, fields: dict[str, Any]) -> Mapping[str, Any]: ...


class Board:
    """The dead ends of one entity path, looked up anew each time: others may be writing there now."""

    def __init__(self, tell: Tell, entity: str) -> None:
        self._tell, self._entity = tell, entity
        self._read: dict[
            tuple[str, str, int], Mapping[str, Any]
        ] = {}  # versions that no briefing had room for; they never change

    def why_not(self, variant: Variant) -> str:
        """Why this variant need not be tried; empty if it has to be."""
        try:
            exact = self._tell("read", {"entity": self._entity, "key": dead_end_key(variant.approach)})
            if exact.get("worked") is False:
                return str(exact.get("why") or "it failed before")
        except HerdbookError as problem:
            if problem.code != "not_found":
                raise
        for one in self.dead_ends():
            ruled_out = one["value"].get("env") if isinstance(one["value"], dict) else None
            if isinstance(ruled_out, dict) and ruled_out and ruled_out.items() <= dict(variant.env).items():
                return f"{one['key']}: {one.get('why') or 'it failed before'}"
        return ""

    def dead_ends(self) -> Iterator[Mapping[str, Any]]:
        """Those a briefing shows, then those it only names: a rule among many failures is still a rule."""
        asked = {"entity": self._entity, "tokens": limits.BRIEFING_TOKENS_MAX, "names": True}
        briefing = self._tell("brief", asked)
        yield from briefing["dead_ends"]
        for name in briefing["left_out"]["names"]:
            if name["reason"] != "budget":
                continue
            version = (name["entity"], name["key"], name["version"])
            if version not in self._read:
                self._read[version] = self._tell("read", dict(zip(("entity", "key", "version"), version, strict=True)))
            if self._read[version].get("worked") is False:
                yield self._read[version]

    def add(self, attempt: Attempt, *, evidence: str) -> None:
        """Tell the others."""
        value = {"approach": attempt.variant.approach, "env": dict(attempt.variant.env), "exit_code": attempt.exit_code}
        fields = {
            "entity": self._entity,
            "key": dead_end_key(attempt.variant.approach),
            "value": {**value, "evidence": evidence[-EVIDENCE_CHARS_MAX:], "box": attempt.box},
            "why": attempt.why,
            "kind": "experience",
            "worked": False,
            "confidence": DEAD_END_CONFIDENCE,
        }
        self._tell("write", fields)


class Run(Protocol):
    """Makes a box for one attempt, runs it to its end or until `stop`, and fills in what became of it; the end of its output."""

    def __call__(self, attempt: Attempt, *, timeout_seconds: float, stop: threading.Event) -> str: ...


class Blackboard(Protocol):
    """A board, or something that forgets: a bench compares them."""

    def why_not(self, variant: Variant) -> str: ...

    def add(self, attempt: Attempt, *, evidence: str) -> None: ...


Watcher = Callable[[Attempt], None]


def fan_out(
    variants: Sequence[Variant], board: Blackboard, run: Run, budget: Budget, *, on_change: Watcher = lambda attempt: None
) -> FanOut:
    """Try variants in their order until one passes, or a budget is spent. A variant on the board costs no attempt."""
    return Search(variants, board, run, budget, on_change).to_its_end()


class Search:
    """One fan-out while it runs: workers take variants from one list."""

    def __init__(self, variants: Sequence[Variant], board: Blackboard, run: Run, budget: Budget, on_change: Watcher) -> None:
        self.board, self.run, self.budget, self.on_change = board, run, budget, on_change
        self.found = FanOut([Attempt(variant) for variant in variants])
        self.waiting = iter(self.found.attempts)
        self.began = time.monotonic()
        self.over = threading.Event()  # somebody won
        self.lock = threading.Lock()
        self.started = 0

    def to_its_end(self) -> FanOut:
        with ThreadPoolExecutor(self.budget.at_once, thread_name_prefix="fanout") as pool:
            for worker in [pool.submit(self.work) for _ in range(self.budget.at_once)]:
                worker.result()
        self.found.seconds = time.monotonic() - self.began
        return self.found

    def work(self) -> None:
        while (attempt := self.take()) is not None:
            began = time.monotonic()
            try:
                evidence = self.run(attempt, timeout_seconds=max(0.1, self.left()), stop=self.over)
                attempt.seconds = time.monotonic() - began
                self.judge(attempt, evidence)
                self.on_change(attempt)
            except BaseException:  # because the others must not go on spending once this one cannot
                self.over.set()
                raise

    def take(self) -> Attempt | None:
        """The next variant that nobody has ruled out, while there is something left to spend."""
        while True:
            with self.lock:
                attempt = None if self.spent() else next(self.waiting, None)
                if attempt is None:
                    return None
                # Under the lock: two variants are never looked up and started past each other's failure by this process.
                attempt.why = self.board.why_not(attempt.variant)
                if not attempt.why:
                    self.started += 1
                    return attempt
                attempt.state = "skipped"
            self.on_change(attempt)

    def spent(self) -> bool:
        over_budget = self.started >= self.budget.attempts or self.found.box_seconds >= self.budget.box_seconds
        return self.over.is_set() or over_budget or self.left() <= 0

    def left(self) -> float:
        return self.budget.wall_seconds - (time.monotonic() - self.began)

    def judge(self, attempt: Attempt, evidence: str) -> None:
        if attempt.exit_code in COULD_NOT_START:
            raise InvalidRequest(f"the command cannot be run in a box (exit code {attempt.exit_code}): {last_line(evidence)}")
        if attempt.exit_code == 0:
            with self.lock:
                attempt.state = "ended" if self.over.is_set() else "won"
                self.over.set()
        elif self.over.is_set() or self.left() <= 0:
            attempt.state = "ended"  # by us: that says nothing about the approach
        else:
            attempt.state = "failed"
            attempt.why = attempt.why or f"{attempt.variant.approach}: exit code {attempt.exit_code}: {last_line(evidence)}"
            self.board.add(attempt, evidence=evidence)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:WHY_CHARS_MAX] if lines else "it said nothing"
