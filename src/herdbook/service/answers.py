"""What each verb answers, as types: plain dicts in process, the same JSON over any wire, and the schemas in the API document."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class LastOutcome(TypedDict):
    type: str
    ref: str
    at: str


class EntryView(TypedDict):
    """One version of an entry with the live trust of its claim."""

    entity: str
    key: str
    version: int
    value: Any
    why: str | None
    kind: str
    worked: bool | None
    confidence: float
    effective_confidence: float
    evidence: float
    standing: str
    acting: bool
    author: str
    identity: str
    session: str | None
    box: str | None
    origin: str
    at: str
    age_days: float
    applies_when: str | None
    expires_at: str | None
    links: list[dict[str, Any]]
    moves: int
    recalls: int
    affirmed: int
    affirmed_at: str | None
    last_outcome: LastOutcome | None
    seal: str


class Leg(TypedDict):
    score: float
    rank: int | None  # among all candidates; null where the leg did not find it


class Explanation(TypedDict):
    score: float
    legs: dict[str, Leg]


class Ranking(TypedDict):
    """By which rule, with which legs; each leg that is missing, with the reason."""

    rule: str
    legs: list[str]
    left_out: dict[str, str]


class BriefedEntry(EntryView):
    rank: int
    explain: NotRequired[Explanation]
    inherited_from: NotRequired[str | None]
    instead_of: NotRequired[int | None]
    note: NotRequired[str]


class LeftOut(TypedDict):
    faded: int
    expired: int
    filtered: int
    budget: int
    withheld: int  # by chance: see `arm`
    names: list[dict[str, Any]]


class Refused(TypedDict):
    """An entry that was not served, since it is not what was written."""

    entity: str
    key: str
    version: int
    code: str
    message: str


class ContradictionSide(TypedDict):
    entity: str
    key: str
    version: int
    standing: str
    shown: bool  # whether the entry itself is in the answer
    value: Any  # what it sets; null where the entry is not shown


class Contradiction(TypedDict):
    what: str  # `env HTTP_PROXY`, `field retry.limit`, `key port`
    sides: list[ContradictionSide]  # the best first


class ContradictionsFound(TypedDict):
    entity: str
    contradictions: list[Contradiction]


class Briefing(TypedDict):
    entity: str
    session: str | None
    tracked: bool
    task: str | None
    known: int
    entries: list[BriefedEntry]
    dead_ends: list[BriefedEntry]
    contested: list[BriefedEntry]
    contradictions: list[Contradiction]
    left_out: LeftOut
    refused: list[Refused]
    similar: list[str]
    ranking: Ranking
    arm: str  # on; holdback: one entry was swapped by chance; control: this run is told nothing
    tokens: int
    tokens_max: int
    markdown: str
    at: str


class EntryRead(EntryView):
    current: int
    tracked: bool
    beside: EntryView | None


class Found(EntryView):
    rank: int
    score: float
    explain: NotRequired[Explanation]


class SearchResults(TypedDict):
    query: str
    entity: str | None
    results: list[Found]
    tracked: bool
    searched: int
    left_out: NotRequired[Any]
    refused: NotRequired[list[Refused]]
    ranking: NotRequired[Ranking]


class EntryHistory(TypedDict):
    entity: str
    key: str
    versions: list[EntryView]


class Change(TypedDict):
    field: str
    old: Any
    new: Any


class EntryDiff(TypedDict):
    entity: str
    key: str
    old: int
    new: int
    changed: list[Change]
    text: str


class Listed(TypedDict):
    key: str
    version: int | None
    kind: str | None
    standing: str
    confidence: float
    refused: str | None


class ListedPath(TypedDict):
    entity: str
    entries: list[Listed]


class EntryList(TypedDict):
    entity: str | None
    paths: list[ListedPath]
    next: str | None


class SessionStarted(TypedDict):
    session: str
    agent: str
    box: str | None
    entity: str | None
    task: str | None
    started_at: str
    existed: bool


class SessionEnded(TypedDict):
    session: str
    ended_at: str


class Written(TypedDict):
    entity: str
    key: str
    version: int
    created: bool  # false: the claim was re-affirmed and no version was added
    claim: str  # new, restated, returned or affirmed
    confidence: float
    standing: str
    supersedes: int | None
    at: str
    request_id: str
    warnings: list[str]


class Step(TypedDict):
    session: str
    n: int
    at: str
    request_id: str


class AttemptKept(Step):
    result: str
    used: int


class Moved(TypedDict):
    entity: str
    key: str
    version: int
    before: float
    after: float
    factor: NotRequired[float]
    how: NotRequired[str]


class OutcomeCommitted(TypedDict):
    ref: str
    type: str
    session: str
    at: str
    moved: list[Moved]
    attested: bool
    trainable: bool
    missing: list[str]
    warnings: list[str]


class StandingChanged(TypedDict):
    entity: str
    key: str
    version: int
    before: str
    after: str


class Attested(TypedDict):
    ref: str
    session: str
    box: str | None
    result: str
    type: str
    exit_code: int | None
    by: str
    at: str
    moved: list[Moved]
    standing: list[StandingChanged]


class OutcomeRevised(TypedDict):
    ref: str
    type: str
    was: str
    revision: int
    at: str
    moved: list[Moved]
    request_id: str


class TraceAnswer(TypedDict):
    """A run, in the order a postmortem reads it."""

    session: str
    agent: str
    identity: str
    channel: str
    box: str | None
    provider: str | None
    isolation: str | None
    task: str | None
    entity: str | None
    started_at: str
    ended_at: str | None
    outside: int  # versions that the key does not reach
    versions: list[dict[str, Any]]  # what was read and used, in full, each once
    reads: list[dict[str, Any]]
    contexts: list[dict[str, Any]]
    actions: list[dict[str, Any]]
    attempts: list[dict[str, Any]]
    writes: list[dict[str, Any]]
    outcomes: list[dict[str, Any]]
    seal: str
    trainable: bool
    missing: list[str]


class OutcomeLine(TypedDict):
    ref: str
    session: str
    entity: str | None
    task: str | None
    type: str
    effective_type: str  # after revisions
    agent: str
    identity: str
    box: str | None
    attested: bool
    at: str


class OutcomesAnswer(TypedDict):
    outcomes: list[OutcomeLine]
    next: str | None  # a page may have less than was asked for and still be followed by others


class RunsPage(TypedDict):
    """Each run: session, erased, agent, identity, box, entity, task, started_at, reads, contexts, actions, outcomes, broken."""

    runs: list[dict[str, Any]]
    next: str | None
    snapshot: str
    until: str


class ClaimTrust(TypedDict):
    versions: list[int]
    initial: float
    confidence: float
    standing: str
    evidence: float
    held: float
    failed: float
    recalls: int
    observed: int
    corroborated: int
    moves: list[dict[str, Any]]


class WhyAnswer(TypedDict):
    entity: str
    key: str
    current: int
    base_rate: float
    claims: list[ClaimTrust]


class BoxView(TypedDict):
    box: str
    provider: str
    isolation: str
    label: str
    owner: str
    state: str
    live: bool
    opened_at: str
    lease_until: str
    closed_at: str | None
    detail: str | None
    competes: bool  # what it writes is a draft


class Boxes(TypedDict):
    boxes: list[BoxView]


class BoxPromoted(TypedDict):
    box: str
    told: list[Written]  # what had been drafted, each as it is now


class BoxRunsAnswer(TypedDict):
    sessions: list[str]


class JobWas(TypedDict):
    job: str
    key: str
    state: str  # waiting, running, done, failed or dead
    repeats: int  # how often its key was put again
    created: bool
    replayed: bool


class JobView(TypedDict):
    job: str
    queue: str
    key: str
    body: Any
    budget_seconds: int
    put_at: str
    state: str
    attempt: int
    worker: str | None
    lease_until: str | None
    deadline_at: str | None
    progress: Any
    result: Any
    ended_at: str | None
    repeats: int


class JobTaken(TypedDict):
    job: JobView | None


class JobsGivenUp(TypedDict):
    dead: list[JobView]


class Jobs(TypedDict):
    jobs: list[JobView]


class StatusAnswer(TypedDict):
    schema: int
    record: dict[str, Any]
    counts: dict[str, int]
    seals: str
    triggers_missing: list[str]
    problems: list[str]
    value_bytes_max: int
    embedding: dict[str, Any] | str  # model and how far it has come, or why there is none
