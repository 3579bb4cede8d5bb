"""What stands at the door costs no more than what it looks at is long: nobody freezes a server with one request."""

from __future__ import annotations

import json

import pytest

from herdbook.base import strict_json, text
from herdbook.base.errors import InvalidValue, TooLarge
from herdbook.fastloop.text import folded, tokenize

MANY = 200_000  # the square of it would outlast the time any test has


def test_a_twin_among_many_keys_is_found_in_one_pass() -> None:
    """A body of many keys and one twin would hold the event loop for minutes."""
    members = [f'"k{number}":1' for number in range(MANY)]
    with pytest.raises(InvalidValue, match="'k7' appears twice"):
        strict_json.loads("{" + ",".join([*members, '"k7":2']) + "}")


def test_a_name_of_marks_is_refused_before_it_is_normalised() -> None:
    """Putting a long run of combining marks in order takes the square of its length."""
    with pytest.raises(TooLarge):
        text.key("a" + "\u0301\u0316" * MANY)


def test_a_value_of_marks_is_searched_in_pieces() -> None:
    """One stored value would make every later search of its path slow."""
    marks = json.dumps("a" + "\u0301\u0316" * MANY, ensure_ascii=False)
    assert "\u0316" in folded(marks)
    assert len(tokenize(marks)) >= 1
