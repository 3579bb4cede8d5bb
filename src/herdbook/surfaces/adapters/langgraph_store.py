"""A LangGraph store over a record: what a graph puts becomes versions with authors, and what it gets is a read of its run.

A namespace is an entity path below `root`. Nothing is ever gone: deleting supersedes with a version that says so, and putting
again brings the key back. Needs `herdbook[langgraph]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from herdbook.client import Client, HerdbookError

PAGE: Final = 1_000
WHY: Final = "put by a LangGraph store"
COMPARISONS: Final[Mapping[str, Any]] = {
    "$eq": lambda have, want: have == want,
    "$ne": lambda have, want: have != want,
    "$gt": lambda have, want: have > want,
    "$gte": lambda have, want: have >= want,
    "$lt": lambda have, want: have < want,
    "$lte": lambda have, want: have <= want,
}


class HerdbookStore(BaseStore):
    """`HerdbookStore(herdbook.open(), root="acme/assistant")`; the client's session is the run that reads belong to."""

    __slots__ = ("book", "root")

    def __init__(self, book: Client, *, root: str = "langgraph") -> None:
        self.book, self.root = book, root

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return [self.one(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        return await asyncio.to_thread(self.batch, listed)

    def one(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self.found(op.namespace, op.key)
        if isinstance(op, PutOp):
            self.keep(op)
            return None
        if isinstance(op, SearchOp):
            return self.searched(op)
        assert isinstance(op, ListNamespacesOp), "LangGraph has these four operations"
        return self.listed(op)

    def entity(self, namespace: tuple[str, ...]) -> str:
        return "/".join([self.root, *(label.replace("%", "%25").replace("/", "%2F") for label in namespace)])

    def namespace(self, entity: str) -> tuple[str, ...]:
        below = entity[len(self.root) + 1 :]
        return tuple(label.replace("%2F", "/").replace("%25", "%") for label in below.split("/")) if below else ()

    def found(self, namespace: tuple[str, ...], key: str) -> Item | None:
        try:
            entry = self.book.read(self.entity(namespace), key)
        except HerdbookError as problem:
            if problem.code != "not_found":
                raise
            return None
        if not isinstance(entry["value"], dict):
            return None  # superseded by a deletion
        return Item(
            value=entry["value"], key=key, namespace=namespace, created_at=self.created(entry), updated_at=when(entry["at"])
        )

    def created(self, entry: Mapping[str, Any]) -> datetime:
        """When the key was first put; looking back is no read."""
        if entry["current"] == 1:
            return when(entry["at"])
        return when(self.book.history(entry["entity"], entry["key"])["versions"][0]["at"])

    def keep(self, op: PutOp) -> None:
        entity = self.entity(op.namespace)
        if op.value is None and self.found(op.namespace, op.key) is None:
            return
        self.book.write(entity, op.key, op.value, why=WHY if op.value is not None else "deleted through a LangGraph store")

    def places(self, namespace: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]]]]:
        """(namespace, entries) of every path at and below this one."""
        after: str | None = None
        while True:
            page = self.book.list(self.entity(namespace), after=after, limit=PAGE)
            for path in page["paths"]:
                yield self.namespace(path["entity"]), path["entries"]
            after = page["next"]
            if after is None:
                return

    def items(self, namespace: tuple[str, ...]) -> Iterator[Item]:
        for place, entries in self.places(namespace):
            for entry in entries:
                item = self.found(place, entry["key"])
                if item is not None:
                    yield item

    def searched(self, op: SearchOp) -> list[SearchItem]:
        prefix = op.namespace_prefix
        if op.query:
            results = self.book.search(op.query, entity=self.entity(prefix), limit=min(PAGE, (op.limit + op.offset) * 4))[
                "results"
            ]
            scored = [
                (self.namespace(each["entity"]), each["key"], each["score"]) for each in results if self.below(each["entity"])
            ]
            near = [(self.found(place, key), score) for place, key, score in scored if place[: len(prefix)] == prefix]
            found = [(item, score) for item, score in near if item is not None]
        else:
            found = [(item, None) for item in self.items(prefix)]
        chosen = [each for each in found if matches(each[0].value, op.filter or {})]
        return [
            SearchItem(i.namespace, i.key, i.value, i.created_at, i.updated_at, score)
            for i, score in chosen[op.offset : op.offset + op.limit]
        ]

    def below(self, entity: str) -> bool:
        return entity == self.root or entity.startswith(f"{self.root}/")

    def listed(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        live = {item.namespace for item in self.items(())}
        chosen = {each for each in live if all(fits(each, condition) for condition in op.match_conditions or ())}
        if op.max_depth is not None:
            chosen = {each[: op.max_depth] for each in chosen}
        return sorted(chosen)[op.offset : op.offset + op.limit]


def fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Whether a namespace begins, or ends, as the pattern says; `*` is any one label."""
    pattern = condition.path
    if len(namespace) < len(pattern):
        return False
    part = namespace[: len(pattern)] if condition.match_type == "prefix" else namespace[len(namespace) - len(pattern) :]
    return all(want in ("*", have) for have, want in zip(part, pattern, strict=True))


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(compared(value.get(name), want) for name, want in wanted.items())


def compared(have: Any, want: Any) -> bool:
    if not (isinstance(want, dict) and any(str(name).startswith("$") for name in want)):
        return bool(have == want)
    unknown = [name for name in want if name not in COMPARISONS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no comparison: use one of {', '.join(COMPARISONS)}")
    try:
        return all(COMPARISONS[name](have, operand) for name, operand in want.items())
    except TypeError:  # what is missing is neither more nor less than anything
        return False


def when(at: str) -> datetime:
    return datetime.fromisoformat(at)
