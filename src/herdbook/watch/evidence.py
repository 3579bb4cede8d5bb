"""What a later watch says about an earlier one that was left open: a revert, a quiet release, or the same thing again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from herdbook.watch.rules import REGRESSION


@dataclass(frozen=True, slots=True)
class Resolution:
    """How an open watch ended after all."""

    outcome: str
    why: str


def resolved(earlier: dict[str, Any], later: dict[str, Any]) -> Resolution | None:
    """Both are results of jobs. None while nothing is known."""
    shared = set(earlier["services"]) & set(later["services"])
    if not shared:
        return None
    name, where = later["key"], ", ".join(sorted(shared))
    if any(told.startswith(sha[:7]) or sha.startswith(told) for told in later["reverts"] for sha in earlier["commits"]):
        return Resolution("success", f"{name} reverts what it pointed at")
    if later["quiet"] and later["kind"] == "deploy":
        return Resolution("success", f"recovered: {name} is quiet on {where}")
    if acted_in_vain(earlier, later):
        return Resolution("minor_failure", f"came back in {name} on {where}")
    return None


def acted_in_vain(earlier: dict[str, Any], later: dict[str, Any]) -> bool:
    """A draft was opened for a regression, and the same class is seen again."""
    drafted = {each["class"] for each in earlier["verdicts"] if each["allowed"] and each["class"]}
    again = {each["class"] for each in later["verdicts"] if each["label"] == REGRESSION}
    return bool(drafted & again)


def ending(earlier: dict[str, Any], outcome: str, *, why: str, by: str) -> dict[str, Any]:
    """The outcome of an earlier watch, as its own run would have committed it."""
    return {
        "session": earlier["session"],
        "ref": earlier["ref"],
        "type": outcome,
        "task_input": f"watch {earlier['key']}",
        "used": acted_on(earlier),
        "artifacts": {"resolved_by": by, "why": why},
    }


def acted_on(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What an outcome of this watch is about: classes that decided its label, or that a draft was made from, not all it saw."""
    return [each["entry"] for each in result["verdicts"] if each["entry"] and (each["allowed"] or each["label"] != REGRESSION)]
