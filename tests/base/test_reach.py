"""What a key covers: one path too many is another customer's data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.base.errors import InvalidRequest, TooLarge
from herdbook.base.reach import EVERYTHING, Reach

PARTS = st.sampled_from(["a", "b", "c", "*"])
PATTERNS = st.lists(st.lists(PARTS, min_size=1, max_size=4).map("/".join), max_size=4)
PATHS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).map("/".join)


@pytest.mark.parametrize(
    "pattern, inside, outside",
    [
        ("acme/checkout", ["acme/checkout", "acme/checkout/tests"], ["acme", "acme/checkouts", "acme/check", "other/checkout"]),
        (
            "acme/*/public",
            ["acme/ci/public", "acme/ci/public/x"],
            ["acme/public", "acme/ci", "acme/ci/private", "acme/a/b/public"],
        ),
        ("*/public", ["acme/public", "b/public/x"], ["acme", "acme/private", "a/b/public"]),
        ("acme/*", ["acme/ci", "acme/ci/tests"], ["acme", "acmes/ci"]),
    ],
)
def test_a_pattern_covers_what_it_says(pattern: str, inside: list[str], outside: list[str]) -> None:
    """A prefix would be taken for a part, or a star for several."""
    reach = Reach.of([pattern])
    assert inside == reach.within(inside + outside)


def test_a_star_alone_is_everything_and_no_pattern_is_nothing() -> None:
    """A key without patterns would open the whole record."""
    assert EVERYTHING == Reach.of(["acme", "*"])
    assert EVERYTHING.covers("any/thing")
    assert EVERYTHING.written is None
    assert [] == Reach(()).within(["a", "a/b"])


@pytest.mark.parametrize("pattern", ["acme/che*", "**", "acme/**/x", "a//b", "", "acme/"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    """A pattern somebody believes in would silently mean something else."""
    with pytest.raises(InvalidRequest):
        Reach.of([pattern])


def test_patterns_are_bounded() -> None:
    """Every path of every answer is compared with every pattern."""
    with pytest.raises(TooLarge):
        Reach.of([f"a/{n}" for n in range(33)])


@given(PATTERNS, PATTERNS, PATHS)
def test_who_includes_another_covers_all_it_covers(mine: list[str], theirs: list[str], path: str) -> None:
    """A key could hand on more than it has."""
    wide, narrow = Reach.of(mine), Reach.of(theirs)
    if wide.includes(narrow) and narrow.covers(path):
        assert wide.covers(path)


@given(PATTERNS, PATHS)
def test_everything_covered_lies_below_a_root(patterns: list[str], path: str) -> None:
    """A search would start beside what the key may see, and miss it."""
    reach = Reach.of(patterns)
    if reach.covers(path):
        assert any(root == "" or path == root or path.startswith(root + "/") for root in reach.roots())
