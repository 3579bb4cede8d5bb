"""Search: what is current and on the topic, whoever vouches for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from herdbook.base.errors import DiskFull, InvalidRequest
from herdbook.base.reach import Reach
from herdbook.fastloop.search import Searched, Searcher
from tests.fastloop.fake_record import NOW, TENANT, Asked, FakeRecord


def search(record: FakeRecord, query: str, **asked: Any) -> Searched:
    return Searcher(record).search(TENANT, Asked(query=query, **asked), now=NOW)


def keys(found: Searched) -> list[str]:
    return [result["key"] for result in found.answer["results"]]


@pytest.mark.parametrize("entity", ["acme/ci", None])
def test_superseded_versions_never_compete(entity: str | None) -> None:
    """The old port would be found by the words of the question and used."""
    record = FakeRecord()
    old = record.write("acme/ci", "ssh-port", 22, why="sshd listens on 22")
    record.supersede(old, 49222, why="moved off the default")
    for at in range(10):
        record.write("acme/ci", f"other-{at}", "http", why="uses the default")
    found = search(record, "which port does ssh use", entity=entity)
    values = [result["value"] for result in found.answer["results"]]
    assert values[0] == 49222
    assert 22 not in values


@pytest.mark.parametrize("entity", ["acme/ci", None])
@pytest.mark.parametrize(
    "query, value",
    [("前两次扣款", "支付沙箱会拒绝前两次扣款请求"), ("テスト", "ユニットテストケース"), ("박스", "결제샌드박스는")],
)
def test_scripts_without_spaces_are_found(entity: str | None, query: str, value: str) -> None:
    """Notes in Chinese, Japanese and Korean would be written and never found."""
    record = FakeRecord()
    record.write("acme/ci", "noise", "payment")
    record.write("acme/ci", "note", value)
    assert ["note"] == keys(search(record, query, entity=entity))


def test_relevance_comes_before_standing() -> None:
    """A trusted note about something else would outrank the answer."""
    record = FakeRecord()
    record.write("acme/ci", "on-topic", "rounding is half even, rounding mode", confidence=0.1)
    record.write("acme/ci", "aside", "mode of transport and many other things that matter little", corroborated=9, confidence=1.0)
    assert ["on-topic", "aside"] == keys(search(record, "rounding mode"))


def test_standing_decides_between_equals() -> None:
    """Of two equally relevant notes the unproven one would come first."""
    record = FakeRecord()
    for path, corroborated in (("acme/ci/a", 0), ("acme/ci/a/a", 1)):
        record.write(path, "mode", "rounding", corroborated=corroborated)
    assert ["acme/ci/a/a", "acme/ci/a"] == [result["entity"] for result in search(record, "rounding").answer["results"]]


def test_a_scope_is_what_is_below_and_what_is_inherited() -> None:
    """A search under a path would miss its parts, or leak its neighbours."""
    record = FakeRecord()
    for path in ("acme", "acme/ci", "acme/ci/tests", "acme/cid", "other"):
        record.write(path, "mode", "rounding")
    assert {"acme", "acme/ci", "acme/ci/tests"} == {result["entity"] for result in search(record, "rounding").answer["results"]}


def test_a_search_of_everything_is_one_of_what_the_key_reaches() -> None:
    """A key for one team would search the whole company."""
    record = FakeRecord(reach=Reach.of(["acme/ci"]))
    for path in ("acme", "acme/ci", "acme/ci/tests", "other"):
        record.write(path, "mode", "rounding")
    everywhere = search(record, "rounding", entity=None)
    assert {"acme/ci", "acme/ci/tests"} == {result["entity"] for result in everywhere.answer["results"]}
    assert [] == keys(search(record, "rounding", entity="other"))
    assert [] == keys(search(record, "rounding", entity="acme/docs"))


def test_expired_entries_are_counted_and_broken_ones_refused() -> None:
    """What is over would be served, or what was tampered with would vanish without a word."""
    record = FakeRecord()
    record.write("acme/ci", "over", "rounding", expires_at=NOW - 1)
    record.corrupt(record.write("acme/ci", "broken", "rounding"))
    found = search(record, "rounding")
    assert not found.exposures
    assert [] == keys(found)
    assert 1 == found.answer["left_out"]["expired"]
    assert [("broken", "seal_broken")] == [(refused["key"], refused["code"]) for refused in found.answer["refused"]]


def test_the_index_is_caught_up_once() -> None:
    """Every search would index the whole record again."""
    record = FakeRecord()
    searcher = Searcher(record)
    for at in range(3):
        record.write("acme/ci", f"k{at}", "rounding")
        searcher.search(TENANT, Asked(entity=None, query="rounding"), now=NOW)
    searcher.search(TENANT, Asked(entity=None, query="rounding"), now=NOW)
    assert 3 == record.calls["text_add"] == len(record.indexed)


def test_what_is_shown_is_exposed_with_its_rank() -> None:
    """An outcome would move entries that nobody read."""
    record = FakeRecord()
    for at in range(5):
        record.write("acme/ci", f"k{at}", "rounding")
    found = search(record, "rounding", limit=2)
    assert [(1, "search"), (2, "search")] == [(exposure.rank, exposure.how) for exposure in found.exposures]
    assert (2, 3) == (len(found.answer["results"]), found.answer["left_out"]["limit"])


@pytest.mark.parametrize("asked", [Asked(query="  "), Asked(query="x", limit=0), Asked(query="x", limit=10**6)])
def test_a_question_that_is_none_is_refused(asked: Asked) -> None:
    """An empty query would answer with nothing, as if nothing were known."""
    with pytest.raises(InvalidRequest):
        Searcher(FakeRecord()).search(TENANT, asked, now=NOW)


class FullDisk(FakeRecord):
    """A record that can be read but not written."""

    def text_add(self, tenant: int, rows: Sequence[tuple[int, str]]) -> None:
        raise DiskFull


def test_a_full_disk_does_not_stop_a_search() -> None:
    """Reading would fail because an index could not be written."""
    record = FullDisk()
    old = record.write("acme/ci", "mode", "rounding up")
    record.indexed[old.id] = "round up"
    record.write("acme/ci", "other", "rounding", why="not indexed yet")
    found = search(record, "rounding", entity=None)
    assert (["mode"], True) == (keys(found), found.answer["left_out"]["unindexed"])


def test_a_lagging_index_does_not_bring_back_what_was_superseded() -> None:
    """Where the index cannot keep up, the old value would be served as the current one."""
    record = FullDisk()
    old = record.write("acme/ci", "mode", "rounding up")
    record.indexed[old.id] = "round up"
    record.supersede(old, "rounding down")
    assert [] == keys(search(record, "rounding", entity=None))
