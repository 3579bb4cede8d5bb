"""Erasing by the command line: it says first what it would come to, and does nothing until it is told to."""

from __future__ import annotations


def told(herdbook) -> None:
    herdbook("write", "acme/ci", "tz", '"UTC"', "--why", "robin knows", "--session", "run")


def test_nothing_is_erased_before_it_is_said_what(herdbook) -> None:
    """A slip of a name would be final."""
    told(herdbook)
    shown = herdbook("erase", "session:run")
    assert (0, True, True) == (shown.code, "would erase 1 runs and 1 versions" in shown.out, "add --yes" in shown.out)
    assert 0 == herdbook("read", "acme/ci", "tz").code
    done = herdbook("erase", "session:run", "--yes", "--why", "request 17")
    assert (0, True) == (done.code, "1 runs and 1 versions" in done.out)
    assert "was erased" in herdbook("read", "acme/ci", "tz").err
    assert "request 17" in herdbook("erase", "--ls").out


def test_a_subject_without_a_kind_is_refused(herdbook) -> None:
    """A name could be anybody's."""
    told(herdbook)
    for words in (("robin",), ("robin:x",), ("author:",), ()):
        assert 2 == herdbook("erase", *words).code
