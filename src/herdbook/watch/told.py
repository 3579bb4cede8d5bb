"""What a box says it found, held to its shape before anything follows from it: a box that was taken over may say anything.

It speaks of its own run only. What does not fit is refused as a watch that failed; it ends no worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from herdbook.base.errors import Broken


class Entry(msgspec.Struct):
    """The class that a box says it matched; the record is asked what it is."""

    entity: str
    key: str
    version: int


class Found(msgspec.Struct):
    """One service that was not quiet."""

    service: str
    label: str
    signals: dict[str, list[str]]
    incident: str
    diagnosis: str
    agent: str
    files: dict[str, str]
    match: Entry | None = msgspec.field(name="class")


class Finding(msgspec.Struct):
    """A whole watch."""

    session: str
    quiet: bool
    unreadable: dict[str, str]
    findings: list[Found]
    written: list[str]
    pages: int
    seconds: float
    reverts: list[str]
    commits: list[str]
    changed: dict[str, list[str]] = {}


def finding(event: Mapping[str, Any], *, session: str) -> dict[str, Any]:
    """The finding as plain tables, of this session and no other. Raises Broken."""
    try:
        told = msgspec.convert(event, Finding)
    except msgspec.ValidationError as problem:
        raise Broken(f"the box's finding is none: {problem}") from problem
    if told.session != session:
        raise Broken("the box's finding is of another session than its own")
    if told.quiet and told.findings:
        raise Broken("the box's finding is quiet and is not")
    plain: dict[str, Any] = msgspec.to_builtins(told)
    return plain
