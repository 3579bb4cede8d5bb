"""Ranking inside a scope, and the cache under it: it grows by what is new, and stays within its bytes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from herdbook.fastloop.scope import StatsCache
from herdbook.record.types import Version
from tests.fastloop.fake_record import TENANT, FakeRecord


def written(*values: str) -> list[Version]:
    record = FakeRecord()
    return [record.write("acme/ci", f"k{at}", value) for at, value in enumerate(values)]


def test_a_rare_word_outweighs_a_frequent_one() -> None:
    """A question would be answered by the word that everybody uses."""
    versions = written("build cache", "build log", "build rounding", "build tool")
    scores = StatsCache().rank(TENANT, "build rounding", versions)
    assert max(scores) == scores[2]
    assert min(scores) > 0.0


def test_a_long_entry_does_not_win_by_its_length() -> None:
    """One log that says everything would answer every question."""
    versions = written("rounding is half even", "noise " * 5_000 + "rounding", "other", "things")
    scores = StatsCache().rank(TENANT, "rounding", versions)
    assert scores[0] > scores[1] > 0.0


def test_a_name_is_there_or_not() -> None:
    """An error code in a long note would count less than half of what the question is about, and likeness would outvote it."""
    versions = written("E1234 and " + "many other words " * 20, "E1234", "E1234 E1234 E1234", "no such code")
    assert [1.0, 1.0, 1.0, 0.0] == StatsCache().rank(TENANT, "E1234", versions)
    words = StatsCache().rank(TENANT, "words", written("many other words " * 5, "words", "none"))
    assert 1.0 > words[1] > 0.0


def test_only_what_is_new_is_tokenised() -> None:
    """Every briefing would tokenise the whole scope again."""
    cache, versions = StatsCache(), written("a1", "b2", "c3")
    cache.rank(TENANT, "a1", versions[:2])
    cache.rank(TENANT, "a1", versions)
    assert cache.tokenized == 3


def test_tenants_do_not_share_counts() -> None:
    """A version id that two tenants have would answer one with the other's text."""
    cache = StatsCache()
    one, other = written("alpha"), written("beta")
    assert one[0].id == other[0].id
    assert cache.rank(1, "alpha", one)[0] > 0.0
    assert cache.rank(2, "alpha", other) == [0.0]


@given(st.lists(st.text(max_size=200), min_size=1, max_size=20), st.integers(0, 20_000))
def test_the_cache_stays_within_its_bytes(values: list[str], bytes_max: int) -> None:
    """A server that runs for months would grow until it is killed; and ranking would depend on what was forgotten."""
    versions = written(*values)
    small = StatsCache(bytes_max)
    assert small.rank(TENANT, values[0], versions) == StatsCache().rank(TENANT, values[0], versions)
    assert small.bytes_held <= bytes_max
    assert small.bytes_held >= 0


def test_a_part_of_a_word_is_found_when_no_token_is() -> None:
    """Half a word would find nothing although it is there to be seen."""
    versions = written("fluctuating", "steady")
    assert [True, False] == [score > 0 for score in StatsCache().rank(TENANT, "uctuat", versions)]


def test_threads_get_the_same_answer() -> None:
    """Two briefings at once would spoil each other's cache."""
    versions = written(*(f"word{n} common" for n in range(200)))
    cache = StatsCache(50_000)
    expected = StatsCache().rank(TENANT, "common word7", versions)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: cache.rank(TENANT, "common word7", versions), range(40)))
    assert all(answer == expected for answer in answers)
    assert cache.bytes_held <= 50_000
