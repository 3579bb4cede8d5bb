"""What the verbs answer that look back over many runs."""

from __future__ import annotations

from typing import Any, TypedDict


class Uplift(TypedDict):
    """Told minus control, with its 95 % interval; nulls where nothing can be compared."""

    estimate: float | None
    low: float | None
    high: float | None
    width: float | None  # of the interval
    verdict: str  # helps, harms, or "not enough data"


class EntryEffect(TypedDict):
    entity: str
    key: str
    version: int
    effect: float  # on success, shrunk
    low: float
    high: float
    raw: float
    served: int
    withheld: int
    verdict: str


class Retrained(TypedDict):
    """What was tried on later runs than those it was fitted to, what was chosen, and what is uncomfortable about it."""

    ranker: str | None  # its id, for `promote`; null where the default order is as good
    entity: str | None  # whose runs it was fitted to; null: everybody's
    runs: int
    samples: int
    chosen: str
    tried: list[
        dict[str, Any]
    ]  # candidate, method, weight, value, gain over the default with its standard error, null: not known
    importances: list[dict[str, Any]]  # feature, loss when it is shuffled, spread
    says: list[str]


class RankersAnswer(TypedDict):
    rankers: list[dict[str, Any]]  # ranker, at, by, entity, method, weight, samples, judged, ranks_at, shadow, refused


class Calibrated(TypedDict):
    entity: str | None
    runs: int
    multipliers: list[dict[str, Any]]  # type, cases, again, rate, multiplier, default, acts
    half_life: dict[str, Any]  # days, low, high, events, default, acts
    read_age_days: float | None  # the median age of what was read: never acted on
    holdout: dict[str, Any]  # how far off confidence was on later runs: default, candidate, gain
    reliability: dict[str, Any]  # bins and their picture
    values: dict[str, float]  # what promoting sets
    promoted: bool
    says: list[str]


class TrainingRows(TypedDict):
    """Rows, and what is not among them."""

    kind: str
    entity: str | None
    rows: list[dict[str, Any]]
    rows_left_out: int  # that the whole set has beyond these
    more_runs_left_out: bool  # whether there were more runs than are looked at
    runs: int
    used_runs: int
    scrubbed: dict[str, int]  # secrets and personal data that were blotted out, by kind
    left_out: dict[str, dict[str, Any]]  # reason: how many runs, and the first few by name


class ArtefactView(TypedDict):
    """A dataset or a model."""

    artefact: str  # its id
    kind: str
    name: str
    hash: str
    parents: list[str]
    lineage: dict[str, Any]
    by: str
    at: str
    status: str | None
    metrics: dict[str, Any]
    card: str | None
    history: list[dict[str, Any]]  # status, why, by, at; oldest first
    refused: str | None  # why it is not shown: its seal is broken


class ArtefactRunsKept(TypedDict):
    artefact: str
    runs: int


class ArtefactList(TypedDict):
    artefacts: list[ArtefactView]


class ErasurePreview(TypedDict):
    """What would be erased."""

    kind: str
    sessions: int  # runs
    versions: int
    readers: int  # other runs that were served these versions
    artefacts: list[dict[str, Any]]  # artefact, kind, name, runs: datasets and models that learned from it


class Erased(ErasurePreview):
    erasure: str  # its id
    at: str
    backups: bool  # whether a restored backup will know of it


class ErasureList(TypedDict):
    erasures: list[dict[str, Any]]  # erasure, kind, why, by, at, sessions, versions


class Proof(TypedDict):
    entity: str | None
    runs: int
    told: int
    control: int
    uplift: dict[str, Uplift]  # success, attempts, seconds
    checks: dict[str, dict[str, Any]]  # overlap, time, placebo
    tokens: dict[str, float | None]  # what being told costs a run, about
    entries: list[EntryEffect]
    by_entity: list[dict[str, Any]]
    says: list[str]
