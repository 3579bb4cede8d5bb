"""Verbs that change the record: each checks its request outside, then hands back the work for one durable transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from herdbook.base import text
from herdbook.base.ids import new_name
from herdbook.record import entries, jobs, leases, outcomes, sessions
from herdbook.record.store.protocol import Transaction, Work
from herdbook.service import dead_ends, drafting, requests
from herdbook.service.callers import Caller

if TYPE_CHECKING:
    from herdbook.service.door import Service

Tell = Callable[..., dict[str, Any]]


def start_session(service: Service, caller: Caller, request: requests.StartSession) -> Work:
    """Begin one run of one agent. Starting a session that exists already answers with it."""
    fields = plain(request) | {"session": named(request.session, "s")}
    return stamped(service, caller, sessions.start, fields)


def end_session(service: Service, caller: Caller, request: requests.EndSession) -> Work:
    """The run is over; outcomes may still come later."""
    return stamped(service, caller, sessions.end, request.session)


def write(service: Service, caller: Caller, request: requests.Write) -> Work:
    """The next version of an entry: supersedes, never overwrites. Of a box that competes, a draft."""
    request = dead_ends.keyed(request)
    return drafting.unless_competing(service, caller, request, written(service, caller, request))


def written(service: Service, caller: Caller, request: requests.Write) -> Work:
    fields = with_request_id(request)
    del fields["approach"]
    fields["links"] = [msgspec.to_builtins(link) for link in request.links]
    draft = entries.draft(service.record, caller.stamp, fields)
    if draft.session is not None:
        service.record.session(caller.tenant, draft.session)  # what is known before the transaction need not be asked inside it
    return entries.Writing(service.record, service.clock.now, caller.stamp, draft)


def record_action(service: Service, caller: Caller, request: requests.RecordAction) -> Work:
    """One tool call of the run, as it happened."""
    drafting.refuse_forged(request.tool)
    return stamped(service, caller, sessions.record_action, with_request_id(request))


def record_context(service: Service, caller: Caller, request: requests.RecordContext) -> Work:
    """Something the agent was given."""
    return stamped(service, caller, sessions.record_context, with_request_id(request))


def attempt(service: Service, caller: Caller, request: requests.Attempt) -> Work:
    """One try within the run."""
    return stamped(service, caller, sessions.attempt, with_request_id(request) | {"used": plain_used(request.used)})


def commit_outcome(service: Service, caller: Caller, request: requests.CommitOutcome) -> Work:
    """What happened; moves the trust of what the run rests on."""
    fields = plain(request) | {"ref": named(request.ref, "o"), "used": plain_used(request.used)}
    outcomes.checked_type(request.type)
    service.record.session(caller.tenant, request.session)  # what is known before the transaction need not be asked inside it
    return stamped(service, caller, outcomes.commit, fields)


def attest(service: Service, caller: Caller, request: requests.Attest) -> Work:
    """Vouch for an outcome from outside the box."""
    outcomes.attested_result(request.exit_code, request.result)
    return stamped(service, caller, outcomes.attest, plain(request))


def revise_outcome(service: Service, caller: Caller, request: requests.ReviseOutcome) -> Work:
    """Say that an outcome was something else after all."""
    outcomes.checked_type(request.type)
    return stamped(service, caller, outcomes.revise, with_request_id(request))


def box_open(service: Service, caller: Caller, request: requests.BoxOpen) -> Work:
    """Write the row of a box before it is created."""
    return boxed(service, caller, leases.open_box, request)


def box_beat(service: Service, caller: Caller, request: requests.BoxBeat) -> Work:
    """Keep a box's lease alive."""
    return boxed(service, caller, leases.beat, request)


def box_close(service: Service, caller: Caller, request: requests.BoxClose) -> Work:
    """The box is gone."""
    return boxed(service, caller, leases.close_box, request)


def box_promote(service: Service, caller: Caller, request: requests.BoxPromote) -> Work:
    """A competing box has won."""
    return drafting.promotion(service, caller, text.identifier(request.box, what="box id"), written)


def job_put(service: Service, caller: Caller, request: requests.JobPut) -> Work:
    """Put a job under a key."""
    return boxed(service, caller, jobs.put, request)


def job_take(service: Service, caller: Caller, request: requests.JobTake) -> Work:
    """Take the oldest job that nobody holds."""
    return boxed(service, caller, jobs.take, request)


def job_beat(service: Service, caller: Caller, request: requests.JobBeat) -> Work:
    """Keep a job's lease alive."""
    return boxed(service, caller, jobs.beat, request)


def job_done(service: Service, caller: Caller, request: requests.JobDone) -> Work:
    """End a job."""
    return boxed(service, caller, jobs.done, request)


def job_reap(service: Service, caller: Caller, request: requests.JobReap) -> Work:
    """Give up jobs that every worker has died over."""
    return boxed(service, caller, jobs.reap, request)


def stamped(service: Service, caller: Caller, tell: Tell, what: Any) -> Work:
    """Work that runs with the record, the caller's stamp and the time at which its turn comes."""
    stamp = caller.stamp

    def work(tx: Transaction) -> dict[str, Any]:
        return tell(service.record, tx, stamp, what, at=service.clock.now())

    return work


def boxed(service: Service, caller: Caller, tell: Tell, request: requests.Request) -> Work:
    """The same for rows of boxes and jobs, which need no record beside the transaction."""
    fields, stamp = plain(request), caller.stamp
    return lambda tx: tell(tx, stamp, fields, at=service.clock.now())


def named(given: str | None, prefix: str) -> str:
    """An id as it was given, to be checked like any text, or a fresh one."""
    return new_name(prefix) if given is None else given


def plain(request: requests.Request) -> dict[str, Any]:
    """A request as a dict of plain values, one level deep."""
    return msgspec.structs.asdict(request)


def with_request_id(request: Any) -> dict[str, Any]:
    fields = plain(request)
    fields["request_id"] = named(request.request_id, "r")
    return fields


def plain_used(used: list[requests.Used | str] | None) -> list[dict[str, Any] | str] | None:
    return None if used is None else [item if isinstance(item, str) else msgspec.to_builtins(item) for item in used]
