"""Which claims the runs of a kind of task came to use, folded from outcomes as far as they count in evidence.

A task is taken apart into what it asks for; numbers in it do not tell two parts from one another. Only use that ended in success
counts, and of a dead end also what heeded it. What a run wrote itself is marked, and is no use of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from herdbook.record.store.protocol import Transaction

EVERY: Final = ""  # the name of the part that every run has
PARTS: Final = re.compile(r"[;\n]|[.!?]\s|: ")
PARTS_MAX: Final = 8
PART_CHARS_MIN: Final = 12  # less is seldom a thing that can be looked for
PART_CHARS_MAX: Final = 400
NUMBERS: Final = re.compile(r"\d+")
KEPT_MAX: Final = 200  # parts of one path; the longest not asked for are forgotten
USED_MAX: Final = 32  # claims of one outcome


class Use(NamedTuple):
    """A version that a run used, with the credit it has for that."""

    version: int
    credit: float


def parts_of(task: str) -> list[str]:
    """Each of the things a task asks for; the task itself where it cannot be taken apart."""
    parts = [part.strip() for part in PARTS.split(task)]
    parts = [part for part in parts if len(part) >= PART_CHARS_MIN][:PARTS_MAX]
    return parts or [task.strip()]


def name_of(part: str) -> str:
    """What a part is known by: its words, whatever their case, and numbers as one."""
    words = " ".join(NUMBERS.sub("0", part[:PART_CHARS_MAX].casefold()).split())
    return hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()[:16]


def names_of(task: str | None) -> dict[str, str]:
    """The parts of a task by name, the one that every run has among them; none without a task."""
    if not task or not task.strip():
        return {}
    return {EVERY: ""} | {name_of(part): part[:PART_CHARS_MAX] for part in parts_of(task)}


def count(tx: Transaction, tenant: int, task: str | None, paths: Iterable[int], *, at: int) -> None:
    """One more run with this task at each of these paths."""
    names = names_of(task)
    for path in dict.fromkeys(paths) if names else ():
        tx.many("count_asked", [(tenant, path, name, said, at) for name, said in names.items()])
        for (name,) in tx.rows("asked_over", {"tenant": tenant, "path": path, "kept": KEPT_MAX}):
            old = {"tenant": tenant, "path": path, "name": name}
            tx.run("forget_precedents", old)
            tx.run("forget_asked", old)


def used(tx: Transaction, tenant: int, task: str | None, uses: Sequence[Use], *, held: bool) -> None:
    """The run, which has been counted, used these."""
    parts = json.dumps(list(names_of(task)))
    for use in uses[:USED_MAX] if task else ():
        told = {"held": int(held), "used": use.credit, "before": 1, "wrote": 0}
        tx.run("add_precedent", {"tenant": tenant, "version": use.version, "parts": parts, **told})


def wrote(tx: Transaction, tenant: int, task: str | None, versions: Sequence[int]) -> None:
    """The run wrote these, and is attested to have ended well."""
    parts = json.dumps(list(names_of(task)))
    for version in versions[:USED_MAX] if task else ():
        told = {"held": 1, "used": 0.0, "before": 0, "wrote": 1}
        tx.run("add_precedent", {"tenant": tenant, "version": version, "parts": parts, **told})


def revised(tx: Transaction, tenant: int, task: str | None, uses: Sequence[Use], *, now: bool) -> None:
    """The run held after all, or did not."""
    parts = json.dumps(list(names_of(task)))
    for use in uses[:USED_MAX] if task else ():
        change = {"used": use.credit if now else -use.credit}
        tx.run("take_precedent", {"tenant": tenant, "version": use.version, "parts": parts, **change})
