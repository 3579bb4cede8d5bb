"""The capacity model's simulation: it carries what docs/scale.md says it carries, and says so where it would not."""

from __future__ import annotations

import pytest

from bench.capacity import Cost, expected, judged, simulate

# docs/scale.md's own figures: seconds of processor on a server and in PostgreSQL.
COSTS = {
    "start_session": Cost(0.0010, 0.0014), "brief": Cost(0.016, 0.0053), "read": Cost(0.0011, 0.0008),
    "record_action": Cost(0.0010, 0.0014), "commit_outcome": Cost(0.0040, 0.0040),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.timeout(600)
def test_ten_thousand_boxes_are_carried() -> None:
    """Whoever plans a fleet by the page would find it too small."""
    claims = list(judged(COSTS, boxes=10_000))
    assert [True] * 4 == [claim.holds for claim in claims], claims
    asked = 900 * 10_000 / 600 * 11  # seconds, times runs a second, times what a run asks
    assert asked == pytest.approx(simulate(COSTS, boxes=10_000, seed=1).requests, rel=0.03)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_too_many_are_not() -> None:
    """A simulation that carries everything says nothing."""
    claims = {claim.name: claim.holds for claim in judged(COSTS, boxes=60_000)}
    assert not claims["capacity.busy"]
    assert not claims["capacity.brief"]
    assert 1 < max(expected(COSTS, boxes=60_000).values())
