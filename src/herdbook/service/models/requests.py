"""What the verbs on served models take."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from herdbook.base import limits
from herdbook.service.requests import Number, Positive, Request

Percent = Annotated[float, Meta(ge=0, le=100)]
Paths = Annotated[list[str], Meta(max_length=limits.ROUTE_ENTITIES_MAX)]


class RouteModel(Request, frozen=True, kw_only=True):
    """Let a model of an upstream answer under an alias: one that was not trained here, such as the base model."""

    alias: str
    upstream: str  # as the server's operator has named it
    name: str  # what the upstream calls the model
    why: str | None = None
    request_id: str | None = None


class PromoteModel(Request, frozen=True, kw_only=True):
    """Let a trained model answer under an alias, if its examination allows that: all runs, a share of them, or those at paths."""

    artefact: str
    alias: str
    upstream: str
    name: str
    percent: Percent | None = None  # of the runs; by default all, or with `entities` none but those
    entities: Paths | None = None  # all runs at these paths and below them
    why: str | None = None
    request_id: str | None = None


class RollbackModel(Request, frozen=True, kw_only=True):
    """Let the model that answered before answer again, for all runs."""

    alias: str
    why: str | None = None
    request_id: str | None = None


class ModelRoutes(Request, frozen=True, kw_only=True):
    """Which model answers under each alias, and what did before."""

    alias: str | None = None
    compare: bool = False  # also how the runs of each model ended, with the difference to what it replaced


class ModelCall(Request, frozen=True, kw_only=True):
    """Keep a call that a model answered, in its run. /v1/chat/completions does it by itself; which model it was follows from the
    route and the run."""

    alias: str
    n: Positive  # the number of the route
    session: str | None = None
    unit: str | None = None  # what stays with one model; by default the run
    entity: str | None = None
    agent: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None
    answer: str | None = None  # what it said; what it called is kept with the tool's result
    prompt_tokens: Number | None = None
    answer_tokens: Number | None = None
    milliseconds: Number = 0
