"""What each verb takes, as types: the REST schema, the command line and the client are checked against these.

Unknown fields and wrong types are refused here, at the door; texts, values and ranges are checked by the record.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from herdbook.base import limits

Number = Annotated[int, Meta(ge=0, le=2**53)]  # what JavaScript, SQLite and PostgreSQL all count to
Positive = Annotated[int, Meta(ge=1, le=2**53)]
Page = Annotated[int, Meta(ge=1, le=limits.PAGE_MAX)]
Tokens = Annotated[int, Meta(ge=limits.BRIEFING_TOKENS_MIN, le=limits.BRIEFING_TOKENS_MAX)]
Lease = Annotated[int, Meta(ge=1, le=limits.BOX_LEASE_SECONDS_MAX)]
Budget = Annotated[int, Meta(ge=1, le=limits.JOB_BUDGET_SECONDS_MAX)]
Window = Annotated[int, Meta(ge=1, le=limits.JOB_WINDOW_SECONDS_MAX)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
ExitCode = Annotated[int, Meta(ge=-255, le=255)]


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verb's fields; anything else in the body is refused."""


class StartSession(Request):
    """Begin one run of one agent. Starting a session that exists already answers with it."""

    agent: str
    session: str | None = None  # a name of the caller's choosing; the server makes one otherwise
    entity: str | None = None
    task: str | None = None


class EndSession(Request):
    """The run is over; outcomes may still come later."""

    session: str


class Brief(Request):
    """What is known about this entity path, for this task, best first, within a token budget."""

    entity: str
    session: str | None = None  # without one nothing is tracked, and the answer says so
    task: str | None = None
    tokens: Tokens = limits.BRIEFING_TOKENS_DEFAULT
    names: bool = False  # also name what was left out
    explain: bool = False  # say of each entry which score and rank every leg gives it


class Contradictions(Request):
    """Entries at a path and above it that set one thing differently, as pairs."""

    entity: str


class Read(Request):
    """One entry, at its current version or at a given one."""

    entity: str
    key: str
    version: Positive | None = None
    session: str | None = None


class Search(Request):
    """Entries whose text matches, best first; under `entity` only that path, what is below it and what it inherits."""

    query: str
    entity: str | None = None
    session: str | None = None
    limit: Page = limits.SEARCH_RESULTS_DEFAULT
    explain: bool = False  # say of each entry which score and rank every leg gives it


class History(Request):
    """Every version of an entry, oldest first."""

    entity: str
    key: str


class Diff(Request):
    """What changed between two versions: by default the last two."""

    entity: str
    key: str
    old: Positive | None = None
    new: Positive | None = None


class List(Request):
    """Entity paths under a prefix with their entries, in order, a page at a time."""

    entity: str | None = None
    after: str | None = None  # the `next` of the page before
    limit: Page = limits.LIST_PAGE_DEFAULT


class Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From this version to another entry."""

    rel: Literal["derived_from", "supports", "contradicts", "see_also"]
    entity: str
    key: str
    version: Positive | None = None


class Write(Request):
    """The next version of an entry: supersedes, never overwrites. A key and its value; of a dead end, its approach will do."""

    entity: str
    key: str | None = None
    value: Any = msgspec.UNSET
    approach: str | None = None  # in place of a key: what was tried and did not work, whose signature is the key
    why: str | None = None
    kind: Literal["fact", "belief", "experience"] = "fact"
    worked: bool | None = None  # false on an experience makes it a dead end
    confidence: float | None = None  # 0.5 unless the author says otherwise
    applies_when: str | None = None  # the observable that makes it applicable
    expires_at: str | None = None  # ISO 8601
    links: list[Link] = []
    session: str | None = None
    request_id: str | None = None
    if_version: Number | None = None  # compare-and-swap; 0 means "only if there is none"


class RecordAction(Request):
    """One tool call of the run, as it happened."""

    session: str
    tool: str
    args: Any = None
    result: Any = None
    ok: bool | None = None
    request_id: str | None = None


class RecordContext(Request):
    """Something the agent was given: a system prompt, a file, a message."""

    session: str
    name: str
    text: str
    request_id: str | None = None


class Used(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry that was acted on; without a version, the one this session was served, else the current one."""

    entity: str
    key: str
    version: Positive | None = None


class Attempt(Request):
    """One try within the run: a failed one charges what it used, even when the run ends well."""

    session: str
    result: Literal["success", "failure"]
    used: list[Used | str] = []  # a plain text is a key this session was served
    note: str | None = None
    request_id: str | None = None


class CommitOutcome(Request):
    """What happened. Moves the confidence of what was used, or else of everything the session was served."""

    session: str
    type: str  # success, minor_failure, failure or critical_failure; anything else is refused by name
    ref: str | None = None  # the idempotency key; made by the server when absent
    task_input: str | None = None
    used: list[Used | str] | None = None
    observed: list[str] | None = None
    artifacts: Any = None
    verified_by: str | None = None  # a claim, kept as data: it gives no standing


class Attest(Request):
    """Vouch for an outcome from outside the box: the exit code its host saw, or a result."""

    ref: str
    session: str | None = None  # whose outcome it has to be: a ref is a name that anybody may have taken first
    box: str | None = None
    exit_code: ExitCode | None = None
    result: Literal["success", "failure"] | None = None
    note: str | None = None


class ReviseOutcome(Request):
    """Say that an outcome was something else after all: appended, and confidence becomes the refold."""

    ref: str
    type: str
    why: str | None = None
    request_id: str | None = None


class Trace(Request):
    """The sealed record of a run, by an outcome's ref or by a session id."""

    ref: str


class Outcomes(Request):
    """How runs ended, the newest first: each with its ref, which `trace` takes."""

    entity: str | None = None  # only runs about this path and what is below it
    type: Literal["success", "minor_failure", "failure", "critical_failure"] | None = None  # as they are counted now
    after: str | None = None  # the `next` of the page before
    limit: Page = limits.LIST_PAGE_DEFAULT


class Runs(Request):
    """Runs in bulk, a page at a time, for whoever learns from them: what each read, was given, did and came to."""

    entity: str | None = None  # this path and what is below it
    after: str | None = None  # the `next` of the page before
    limit: Page = limits.LIST_PAGE_DEFAULT
    snapshot: str | None = None  # of the first page: what comes to the record later is left out
    until: str | None = None  # of the first page, too


class Why(Request):
    """Every move of trust of an entry, with its outcome and who read it."""

    entity: str
    key: str


class BoxOpen(Request):
    """Write the row of a box before it is created."""

    box: str
    provider: str
    isolation: Literal["microvm", "userspace-kernel", "container", "namespace", "process"]
    label: str
    owner: str  # host name, process id and its start time: who keeps the lease
    lease_seconds: Lease = limits.BOX_LEASE_SECONDS_DEFAULT
    competes: bool = False  # what it writes is a draft, until it has won
    claim: Digest | None = None  # of what its address ends in, where a provider's connector speaks for it


class BoxBeat(Request):
    """Keep a box's lease alive."""

    box: str
    lease_seconds: Lease = limits.BOX_LEASE_SECONDS_DEFAULT
    claim: Digest | None = None  # a new one, from whoever takes the box over


class BoxPromote(Request):
    """A competing box has won: tell what it drafted, in its name. From then on what it writes counts."""

    box: str


class BoxRuns(Request):
    """The runs that were begun in a box, in order."""

    box: str


class BoxClose(Request):
    """The box is gone. Closing it twice is one closing."""

    box: str
    detail: str | None = None


class BoxList(Request):
    """Boxes by label, newest first, or the one called `box`; `live` leaves out the closed ones."""

    box: str | None = None
    claim: Digest | None = None  # only if this is the box's
    label: str | None = None
    live: bool = False
    limit: Page = limits.LIST_PAGE_DEFAULT


class JobPut(Request):
    """Put a job under a key. Within the window (without one: ever) the same key is the same job, and only counted."""

    queue: str
    key: str
    body: Any
    job: str | None = None  # a name of the caller's choosing; the server makes one otherwise
    delivery: str | None = None  # what its sender calls this delivery: replayed, it does nothing
    window_seconds: Window | None = None
    again: bool = False  # a new job, whatever the window
    budget_seconds: Budget = limits.JOB_BUDGET_SECONDS_DEFAULT


class JobTake(Request):
    """Take the oldest job that nobody holds, for as long as the lease is kept."""

    queue: str
    worker: str  # one job at a time for each name
    lease_seconds: Budget = limits.JOB_LEASE_SECONDS_DEFAULT


class JobBeat(Request):
    """Keep a job's lease alive, up to its deadline, and note how far the work has come."""

    job: str
    worker: str
    attempt: Positive
    lease_seconds: Budget = limits.JOB_LEASE_SECONDS_DEFAULT
    progress: Any = None


class JobDone(Request):
    """End a job. A worker that has lost it is refused."""

    job: str
    worker: str
    attempt: Positive
    ok: bool = True
    result: Any = None


class JobReap(Request):
    """Give up jobs that every worker has died over."""

    queue: str


class JobList(Request):
    """Jobs of a queue, newest first; `open` leaves out those that have ended."""

    queue: str
    key: str | None = None
    open: bool = False
    limit: Page = limits.LIST_PAGE_DEFAULT


class Status(Request):
    """How the record is: versions, counts, seals, settings that give something up."""
