"""An approach has one signature."""

from __future__ import annotations

from herdbook.base.approach import dead_end_key


def test_one_approach_is_one_dead_end() -> None:
    """The same thing would be tried again for a space more, or two things be taken for one."""
    assert dead_end_key("POOL=50") == dead_end_key("  POOL=50\n")
    assert dead_end_key("raise  the pool") == dead_end_key("raise the pool")
    assert 3 == len({dead_end_key("POOL=50"), dead_end_key("POOL=5 0"), dead_end_key("pool=50")})
