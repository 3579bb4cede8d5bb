"""Keeps the audit: rows of what changes something in the transaction that changes it; rows of what only asks a moment later.

What comes by a credential or a listener is kept, and every change of keys and tenants wherever it comes from. A question never
waits for a disk: its row goes with this process's next commit, or within a second. A process that is killed loses the questions
of that second, never a change. Nothing is dropped silently: what is not kept for want of room is counted in a row of its own.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from herdbook.base import limits
from herdbook.base.clock import Clock
from herdbook.base.errors import Broken, HerdbookError, Unavailable
from herdbook.record import audit
from herdbook.record.audit import Act, Chains, End
from herdbook.record.record import Record
from herdbook.record.store.protocol import Planned, Together, Transaction, Work, together_of
from herdbook.service.callers import Caller

LOG = logging.getLogger("herdbook.audit")
LOCAL: Final = frozenset({"python", "cli"})
ALWAYS: Final = frozenset({"admin", "operator"})
MINTING: Final = frozenset({"box_pass"})  # a credential that did not exist before
NAMES: Final = ("key", "session", "ref", "box")  # of a request, beside its entity; never a text or a value
NAMES_OF_ADMINS: Final = ("name", "tenant", "role")
SECONDS: Final = 1.0
ENCODER: Final = json.JSONEncoder(ensure_ascii=False)  # made once: making one costs as much as such a row
WAITING_MAX: Final = 50_000
FLUSHED_MAX: Final = 5_000


class Audited:
    """Work of which a row is kept, with what came of it."""

    def __init__(self, work: Work, act: Act) -> None:
        self.work = work
        self.act = act

    def __call__(self, tx: Transaction) -> Any:
        try:
            answer = self.work(tx)
        except HerdbookError as refusal:
            self.act = self.act._replace(code=refusal.code)
            raise
        self.act = self.act._replace(code="ok")  # a retry of the batch may have refused it before
        return answer

    @property
    def together(self) -> Together | None:
        return None if together_of(self.work) is None else audited_together


def audited_together(tx: Transaction, works: Sequence[Audited]) -> list[Any]:
    """Work of one kind, done at once."""
    done: list[Any] = []
    for at_once, alike in groupby(works, key=lambda each: together_of(each.work)):
        assert at_once is not None
        done += at_once(tx, [each.work for each in alike])
    for each, result in zip(works, done, strict=True):
        each.act = each.act._replace(code=result.code if isinstance(result, HerdbookError) else "ok")
    return done


class AuditFailed(Exception):
    """The rows could not be kept, so nothing of their batch is."""


class Auditor:
    """One for a service. Safe to use from many threads."""

    def __init__(self, record: Record, clock: Clock) -> None:
        self.record = record
        self.clock = clock
        self.chains = Chains()
        self.turn = threading.Lock()
        self.waiting: deque[Act] = deque()
        self.lost = 0
        self.timer: threading.Timer | None = None
        self.closed = False

    def wants(self, caller: Caller, verb: str, scope: str | None) -> bool:
        return caller.channel not in LOCAL or scope in ALWAYS or verb in MINTING

    def act(self, caller: Caller, verb: str, scope: str | None, fields: Mapping[str, Any], *, request: str, code: str) -> Act:
        names = (*NAMES, *NAMES_OF_ADMINS) if scope in ALWAYS else NAMES
        said = {name: fields[name] for name in names if name in fields and is_name(fields[name])}
        entity = fields.get("entity")
        what = ENCODER.encode(said) if said else "{}"
        who = (caller.identity, caller.key, caller.box, caller.channel)
        return Act(caller.tenant, self.clock.now(), request, *who, verb, entity if is_name(entity) else None, what, code)

    def note(self, act: Act) -> None:
        """A question, or a refusal at the door: kept with the next commit, or in a moment."""
        if len(self.waiting) >= WAITING_MAX:
            self.lost += 1
            return
        self.waiting.append(act)
        self.soon()

    def write(self, plan: Planned) -> Any:
        """Do one piece of work. Raises what it raises."""
        if not isinstance(plan.work, Audited) and not self.waiting:
            return self.record.store.write(plan.work, tenant=plan.tenant)
        done = self.commit([plan])[0]
        if isinstance(done, HerdbookError):
            raise done
        return done

    def commit(self, plans: Sequence[Planned]) -> list[Any]:
        """Do this work durably, that of a tenant together with its rows and those of its questions that wait."""
        told = [(plan.tenant, plan.work) for plan in plans if isinstance(plan.work, Audited)]
        if not told and not self.waiting:
            return self.record.store.write_batch(plans)
        with self.turn:
            noted = self.taken()
            keepers = {
                tenant: Keeper(self, tenant) for tenant in [*(tenant for tenant, _ in told), *(act.tenant for act in noted)]
            }
            for act in noted:
                keepers[act.tenant].noted.append(act)
            for tenant, work in told:
                keepers[tenant].told.append(work)
            kept: list[Any] = [Unavailable()] * len(keepers)
            try:
                done = self.record.store.write_batch([*plans, *(Planned(tenant, keep) for tenant, keep in keepers.items())])
                kept = done[len(plans) :]
            finally:
                for keeper, result in zip(keepers.values(), kept, strict=True):
                    if isinstance(result, HerdbookError):
                        self.waiting.extendleft(reversed(keeper.noted))
                        LOG.warning("%d rows of the audit wait for the record: %s", len(self.waiting), result.code)
                    else:
                        self.chains.ends[keeper.tenant] = keeper.end
                if any(
                    isinstance(result, Unavailable) for result in kept
                ):  # it may have been stored: where chains end is unknown
                    self.chains = Chains()
            return done[: len(plans)]

    def taken(self) -> list[Act]:
        noted = [self.waiting.popleft() for _ in range(min(len(self.waiting), FLUSHED_MAX))]
        if self.lost and noted:
            lost, self.lost = self.lost, 0
            noted.append(noted[-1]._replace(verb="audit", entity=None, what=json.dumps({"lost": lost}), code="lost"))
        return noted

    def flush(self) -> None:
        """Keep what waits, now; what cannot be kept now is tried again in a moment."""
        self.timer = None
        for _ in range(len(self.waiting) // FLUSHED_MAX + 1):
            if self.waiting:
                self.commit([])
        if self.waiting:
            self.soon()

    def soon(self) -> None:
        if self.timer is None and not self.closed:
            self.timer = threading.Timer(SECONDS, self.flush)
            self.timer.daemon = True
            self.timer.start()

    def close(self) -> None:
        self.closed = True
        if self.timer is not None:
            self.timer.cancel()
        if self.waiting:
            self.flush()


class Keeper:
    """Writes one tenant's rows at the end of its share of a batch."""

    def __init__(self, auditor: Auditor, tenant: int) -> None:
        self.auditor, self.tenant = auditor, tenant
        self.noted: list[Act] = []
        self.told: list[Audited] = []
        self.end: End = (0, None)
        self.tried = False

    def __call__(self, tx: Transaction) -> None:
        again, self.tried = self.tried, True
        acts = [*self.noted, *(each.act for each in self.told)]  # by now what was told knows what came of it
        rows, self.end = self.auditor.chains.linked(self.auditor.record, self.tenant, acts)
        if again and (end := audit.stored(tx, rows[-1])):  # the batch was committed, and its answer lost
            self.end = end
            return
        try:
            audit.insert(tx, rows)
            if again and not audit.stored(tx, rows[-1]):  # asked, since what is told may be refused later
                raise Broken("rows of the audit were told, and are not there")
        except HerdbookError as problem:
            if problem.retry or not again:  # a full disk, or another writer: of the whole batch, as such; else it is done again
                raise
            raise AuditFailed(problem.message) from problem  # no refusal of one member: nothing may be kept without it


def is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= limits.ENTITY_PATH_CHARS_MAX and value.isprintable()
