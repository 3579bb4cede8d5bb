"""Which variable made the difference: only what a pair of attempts shows, and never two at once."""

from __future__ import annotations

import json

import pytest

from herdbook.surfaces.cli.learning import Attempt, Attempts, lessons, normal, symptoms


def attempt(env: dict[str, str], *complaints: str) -> Attempt:
    return Attempt(env, complaints, 1 if complaints else 0)


@pytest.mark.parametrize(
    "passing, before, expected",
    [
        ({"TZ": "u"}, [({}, ["a"])], {"TZ": "a"}),
        ({"TZ": "u"}, [({"TZ": "v"}, ["a"])], {"TZ": "a"}),
        ({"TZ": "u", "S": "1"}, [({}, ["a", "b"])], {}),  # two at once
        ({"TZ": "u", "S": "1"}, [({}, ["a", "b"]), ({"TZ": "u"}, ["b"])], {"TZ": "a", "S": "b"}),
        ({"TZ": "u", "S": "1"}, [({}, ["a", "b"]), ({"TZ": "u"}, ["a", "b"])], {"S": "a"}),  # TZ alone put nothing right
        ({"TZ": "u"}, [({"TZ": "u", "X": "1"}, ["a"])], {}),  # a variable that was taken away is not one to set
        ({"TZ": "u"}, [({"TZ": "u"}, ["a"])], {}),  # a flaky test
        ({"TZ": "u"}, [({}, ["a"]), ({"TZ": "w"}, ["c"])], {"TZ": "a"}),
        ({}, [({}, ["a"])], {}),
        ({"TZ": "u"}, [], {}),
    ],
)
def test_only_what_a_pair_shows_is_learned(passing, before, expected) -> None:
    """A variable that did nothing would be set in every later build, with somebody's word for it."""
    found = lessons(attempt(passing), [attempt(env, *complaints) for env, complaints in before])
    assert expected == {lesson.name: lesson.put_right for lesson in found}


def test_complaints_read_the_same_in_the_next_run() -> None:
    """The same failure would never be recognised again."""
    first = "collected 3 items\nFAILED t.py::test_a - 3 != 4 at 0x7f01\nE   ValueError: took 1.25s in /tmp/x-81/y\n"
    second = "collected 9 items\nFAILED t.py::test_a - 7 != 8 at 0x9a\nE   ValueError: took 3.5s in /tmp/x-99/y\n"
    assert ("FAILED t.py::test_a", "E   ValueError: took # in #") == symptoms(first)
    assert symptoms(first) == symptoms(second)


def test_a_run_without_known_words_is_known_by_its_last_line() -> None:
    """A tool with words of its own would have no complaints."""
    assert ("it did not go well",) == symptoms("one\n\nit did not go well\n\n")
    assert () == symptoms("")
    assert 160 >= len(normal("error " + "x" * 500))


def test_attempts_are_kept_privately_and_without_values(tmp_path) -> None:
    """Whoever reads the file would have every credential of the person's environment."""
    path = tmp_path / "home" / "attempts.json"
    attempts = Attempts(path)
    digests = attempts.digests({"TOKEN": "hush-hush", "TZ": "UTC", "PWD": "/x"})
    attempts.failed("a", ["make"], Attempt(digests, ("FAILED",), 2))
    text = path.read_text()
    assert (0o600, False, False) == (path.stat().st_mode & 0o777, "hush-hush" in text, "UTC" in text)
    again = Attempts(path)
    assert {"TOKEN", "TZ"} == set(digests)
    assert digests == again.digests({"TOKEN": "hush-hush", "TZ": "UTC"})
    assert [Attempt(digests, ("FAILED",), 2)] == again.before("a", ["make"])
    assert [] == again.before("a", ["make", "x"]) + again.before("b", ["make"])
    again.passed("a", ["make"])
    assert [] == Attempts(path).before("a", ["make"])


def test_the_file_stays_small(tmp_path) -> None:
    """A suite that never passes would fill somebody's home."""
    attempts = Attempts(tmp_path / "attempts.json")
    for number in range(60):
        attempts.failed("a", ["make"], Attempt({}, (str(number),), 1))
        attempts.failed("a", [str(number)], Attempt({}, (), 1))
    kept = json.loads((tmp_path / "attempts.json").read_text())["commands"]
    assert 50 >= len(kept)
    assert ("59",) == attempts.before("a", ["make"])[-1].symptoms


def test_a_file_that_cannot_be_read_is_begun_again(tmp_path) -> None:
    """A torn file would stop every later run."""
    path = tmp_path / "attempts.json"
    path.write_text("{")
    assert [] == Attempts(path).before("a", ["make"])
