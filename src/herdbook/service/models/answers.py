"""What the verbs on served models answer."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class RouteView(TypedDict):
    """Which model answers under an alias."""

    alias: str
    n: int
    model: dict[str, Any]  # artefact (null where it was not trained here), upstream, name
    before: dict[str, Any] | None  # what it replaced, and what answers the other runs
    percent: float
    entities: list[str]
    why: str | None
    by: str
    at: str
    history: NotRequired[list[dict[str, Any]]]
    compared: NotRequired[dict[str, Any]]  # by model: runs, successes; and the difference with its 95 % interval


class RoutesAnswer(TypedDict):
    routes: list[RouteView]


class CallKept(TypedDict):
    session: str
    alias: str
    model: str  # its artefact, or upstream/name
