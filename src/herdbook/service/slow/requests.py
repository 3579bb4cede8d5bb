"""What the verbs take that look back over many runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from herdbook.base import limits
from herdbook.service.requests import Page, Request

Share = Annotated[float, Meta(ge=0, le=1)]


class Prove(Request, frozen=True, kw_only=True):
    """What the record is worth: runs that were told what is known against runs that by chance were not, with intervals."""

    entity: str | None = None  # only runs about this path or below it


class Retrain(Request, frozen=True, kw_only=True):
    """Fit a ranker to what was shown and what came of it. It is kept, and ranks nothing until somebody promotes it."""

    entity: str | None = None  # from runs about this path or below it, where there are enough; else from all
    method: Literal["logistic", "gbm"] | None = None  # this one, whatever is better; by default the better one, if any is
    weight: Share | None = None  # its part of the score; by default the best of a few


class Rankers(Request, frozen=True, kw_only=True):
    """The rankers that were ever fitted, newest first, where they rank, and how they would have done since they were made."""

    shadow: bool = False  # also how each would have ordered what was shown since


class Promote(Request, frozen=True, kw_only=True):
    """Let a ranker rank, at an entity path and below it; without a path, everywhere."""

    ranker: str
    entity: str | None = None
    weight: Share | None = None  # its part of the score; by default the one it was judged with
    why: str | None = None
    request_id: str | None = None


class Calibrate(Request, frozen=True, kw_only=True):
    """What outcomes should do to confidence at a path, and how fast it should fade, from its own runs."""

    entity: str | None = None
    promote: bool = False  # also set what may act
    why: str | None = None
    request_id: str | None = None


class ExportTrainingData(Request, frozen=True, kw_only=True):
    """The first rows of the training set that the runs make, in TRL's form and without secrets; what is left out is counted."""

    kind: Literal["sft", "dpo", "kto", "reward", "rl"] = "sft"
    entity: str | None = None  # only runs about this path or below it
    limit: Annotated[int, Meta(ge=1, le=limits.EXPORTED_ROWS_MAX)] = 20
    attested: bool = False  # only runs that somebody outside the box vouches for


class KeepArtefact(Request, frozen=True, kw_only=True):
    """Keep a dataset or a model of the slow loop: its hash, what it was made from and how. Its files stay where they are."""

    kind: Literal["dataset", "model"]
    name: str
    hash: str  # SHA-256 of what was made, in hexadecimal
    parents: list[str] | None = None  # ids of the artefacts it was made from
    lineage: dict[str, Any] | None = None  # how to make it again: snapshot, filters, seeds
    metrics: dict[str, Any] | None = None
    card: str | None = None
    status: str | None = None  # by default the first of its kind: made, or candidate


class ArtefactRuns(Request, frozen=True, kw_only=True):
    """Say which runs a dataset has rows from, so that whoever is to be erased is found in it. Page by page."""

    artefact: str
    runs: Annotated[list[str], Meta(max_length=limits.ARTEFACT_RUNS_MAX)]


class SetArtefact(Request, frozen=True, kw_only=True):
    """Say what became of a dataset or model; its history stays."""

    artefact: str
    status: str  # a dataset: made, withdrawn; a model: candidate, refused, retired, withdrawn
    metrics: dict[str, Any] | None = None  # by default as they were
    why: str | None = None
    request_id: str | None = None


class Artefacts(Request, frozen=True, kw_only=True):
    """The datasets and models there are, the newest first; one by its id, or those that have learned from a run."""

    artefact: str | None = None
    run: str | None = None
    kind: Literal["dataset", "model"] | None = None
    name: str | None = None
    limit: Page = 100


SubjectKind = Literal["session", "author", "identity", "entity", "text"]


class PreviewErasure(Request, frozen=True, kw_only=True):
    """What erasing a subject would come to: runs, versions of entries, and the datasets and models that learned from them."""

    kind: SubjectKind  # text: any run and version in which it stands
    subject: str


class Erase(Request, frozen=True, kw_only=True):
    """Erase a subject: nobody is told of it any more, and no new training set has it. Rows stay sealed; what learned is named."""

    kind: SubjectKind
    subject: str
    why: str | None = None
    request_id: str | None = None


class Erasures(Request, frozen=True, kw_only=True):
    """The erasures there were, the newest first; with a kind and a subject those of that one."""

    kind: SubjectKind | None = None
    subject: str | None = None
    limit: Page = 100


class Rollback(Request, frozen=True, kw_only=True):
    """Set back what was promoted last at this very path: its ranker, or its calibration."""

    what: Literal["ranker", "calibration"]
    entity: str | None = None
    why: str | None = None
    request_id: str | None = None
