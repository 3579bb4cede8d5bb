"""Which run a call belongs to: the one it names, else the one of its connection, which begins with the first call that needs it.

A connection's run is known by the connection's own id, so nothing is kept here that a restart would lose. A call that comes
without a connection (each request of the newest protocol stands alone) is told the name of the run it began.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, Final, NamedTuple

from herdbook.base.errors import HerdbookError, InvalidRequest
from herdbook.base.ids import new_name
from herdbook.client import HerdbookError as ClientError
from herdbook.service.verbs import VERBS

Call = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
KEPT_MAX: Final = 10_000
# They say how a run went, so it must have begun: a fresh one would have nothing to do with it.
OF_A_RUN: Final = frozenset({"attempt", "commit_outcome"})
BEGUN_BY: Final = ("entity", "task")


class Asker(NamedTuple):
    """Whoever sent a request."""

    call: Call
    may: frozenset[str] | None  # the verbs it may use, where that is known
    whose: Hashable  # a run of one is none of another's, whatever they call it


class Runs:
    """The runs begun through this server, with the task of each, by whose they are."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[tuple[Hashable, str], str | None] = OrderedDict()

    async def joined(
        self, asker: Asker, verb: str, fields: Mapping[str, Any], *, connection: str | None, agent: str
    ) -> dict[str, Any]:
        """The fields with their run, which is begun if need be."""
        given = fields.get("session")
        if given is None and connection is None and verb in OF_A_RUN:
            raise InvalidRequest(f"say which run this is about: {verb} with the `session` that `brief` answered")
        session = str(given) if given is not None else connection or new_name("s")
        run = (asker.whose, session)
        if run not in self._tasks:
            await self._begin(asker.call, run, fields, agent=agent)
        task = fields.get("task")
        if isinstance(task, str):
            self._tasks[run] = task
        joined = {**fields, "session": session}
        if verb == "commit_outcome" and self._tasks.get(run) is not None:
            joined.setdefault("task_input", self._tasks[run])
        return joined

    async def _begin(self, call: Call, run: tuple[Hashable, str], fields: Mapping[str, Any], *, agent: str) -> None:
        about = {name: fields[name] for name in BEGUN_BY if isinstance(fields.get(name), str)}
        try:
            await call("start_session", {"session": run[1], "agent": agent, **about})
        except (HerdbookError, ClientError) as problem:
            if problem.code != "request_conflict":  # a run that a hook or a wrapper has begun, under its own name: joined
                raise
        self._tasks[run] = about.get("task")
        while len(self._tasks) > KEPT_MAX:
            self._tasks.popitem(last=False)

    @property
    def begun(self) -> list[str]:
        return [session for _, session in self._tasks]


assert all(verb in VERBS for verb in OF_A_RUN)
