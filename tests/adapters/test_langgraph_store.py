"""The LangGraph store answers as LangGraph's own in-memory store does, and keeps what that one forgets."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import InvalidNamespaceError
from langgraph.store.memory import InMemoryStore

import herdbook
from herdbook.surfaces.adapters.langgraph_store import HerdbookStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[HerdbookStore]:
    with herdbook.open(tmp_path / "record.db", agent="graph") as book:
        yield HerdbookStore(book, root="acme/graph")


LABELS = st.sampled_from(["users", "ann", "a/b", "50%"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "l/m", "ü"])
VALUES = st.none() | st.fixed_dictionaries({"n": st.integers(0, 3), "t": st.sampled_from(["x", "y"])})
FILTERS = st.sampled_from([None, {"n": 1}, {"n": {"$gte": 1, "$lt": 3}}, {"t": {"$ne": "x"}}])


@settings(max_examples=25)
@given(puts=st.lists(st.tuples(NAMESPACES, KEYS, VALUES), max_size=8), prefix=NAMESPACES, chosen=FILTERS)
def test_it_answers_as_the_store_in_memory(puts, prefix, chosen) -> None:
    """A graph that moves to the record would behave otherwise than it was tested with."""
    theirs = InMemoryStore()
    with tempfile.TemporaryDirectory() as folder, herdbook.open(f"{folder}/record.db") as book:
        ours = HerdbookStore(book, root="acme/graph")
        for namespace, key, value in puts:
            for store in (ours, theirs):
                store.put(namespace, key, value) if value is not None else store.delete(namespace, key)
        for namespace, key, _ in puts:
            assert seen(theirs.get(namespace, key)) == seen(ours.get(namespace, key))
        for where in ((), prefix, prefix[:1]):
            assert found(theirs, where, chosen) == found(ours, where, chosen)
        for options in (
            {},
            {"prefix": ("*",)},
            {"suffix": prefix[-1:]},
            {"max_depth": 1},
            {"prefix": prefix[:1], "max_depth": 2},
        ):
            live = {tuple(item.namespace) for item in theirs.search((), limit=1000)}
            depth: Any = options.get("max_depth", 9)
            expected = [n for n in theirs.list_namespaces(**options) if any(each[:depth] == n for each in live)]
            assert expected == ours.list_namespaces(**options)


def seen(item):
    return None if item is None else (item.namespace, item.key, item.value)


def found(store, where, chosen):
    items = store.search(where, filter=chosen, limit=1000)
    return sorted((item.namespace, item.key, sorted(item.value.items())) for item in items)


def test_nothing_is_lost_and_times_are_kept(store) -> None:
    """What a graph overwrites or deletes could not be looked up after it went wrong."""
    store.put(("users", "ann"), "likes", {"drink": "tea"})
    first = store.get(("users", "ann"), "likes")
    store.put(("users", "ann"), "likes", {"drink": "mate"})
    second = store.get(("users", "ann"), "likes")
    assert (first.created_at, True) == (second.created_at, second.updated_at > first.updated_at)
    store.delete(("users", "ann"), "likes")
    assert store.get(("users", "ann"), "likes") is None
    versions = store.book.history("acme/graph/users/ann", "likes")["versions"]
    assert [{"drink": "tea"}, {"drink": "mate"}, None] == [version["value"] for version in versions]
    assert {"graph"} == {version["author"] for version in versions}


def test_a_search_finds_by_words_and_what_is_read_is_a_read(store) -> None:
    """The run's outcome could not move the trust of what the graph was given."""
    store.put(("users",), "a", {"note": "the sandbox rejects two calls"})
    store.put(("users",), "b", {"note": "tea"})
    store.put(("other",), "c", {"note": "the sandbox again"})
    [item] = store.search(("users",), query="sandbox")
    assert ("a", True) == (item.key, item.score is not None)
    moved = store.book.commit_outcome("success", task_input="t")["moved"]
    assert "a" in {move["key"] for move in moved}


def test_it_works_from_asynchronous_graphs(store) -> None:
    """A graph that runs on an event loop would wait for the record, all of it."""

    async def work() -> Any:
        await store.aput(("users",), "k", {"n": 1})
        return await store.aget(("users",), "k")

    item = asyncio.run(work())
    assert {"n": 1} == item.value


def test_what_the_base_class_refuses_stays_refused(store) -> None:
    """A namespace LangGraph would not take would end up in the record."""
    with pytest.raises(InvalidNamespaceError):
        store.put(("a.b",), "k", {})
    store.put(("a",), "k", {"n": 1})
    with pytest.raises(ValueError, match="is no comparison"):
        store.search(("a",), filter={"n": {"$near": 1}})
