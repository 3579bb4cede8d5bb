"""What a pattern is said to need is in every text it matches: else a scanner would not be asked where it would find something."""

from __future__ import annotations

import re
from typing import Any

import pytest
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins import keyword
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdbook.slowloop.export import anchors, scrub
from herdbook.slowloop.export.anchors import Needs, Screen, needs

FEW = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
KINDS: Any = get_mapping_from_secret_type_to_class().values()
PLUGINS = [kind() for kind in KINDS]
SCANNED = [(type(each).__name__, pattern) for each in PLUGINS for pattern in getattr(each, "denylist", None) or ()]
SCANNED += [("keyword", pattern) for pattern in keyword.QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP]
SCANNED += [(name, getattr(scrub, name)) for name in ("EMAIL", "CARD", "IBAN", "SSN")]
ODD = [
    *("a|", "(?:ab|c)+d?", "x{3}y{0,2}", "(?i:kIs)s", "[^a]b", "(a)(?:b\\1|c)", "(?=ab)a.", "(?<!a)b{2,}", "a*", "(?:a|b|){2}c"),
    *(
        "[0-9]{3}-[a-f]{2}",
        "\\d\\d|seven",
        "(?:key|pass)(?:_|-|)word",
        "[a-z]{12}",
        "[\\w-]{9,}=",
        "(?:ab?){2}",
        "q(?:w{4}|[e-t]{5})",
    ),
]


@pytest.mark.parametrize("name, pattern", SCANNED, ids=[f"{name}-{number}" for number, (name, _) in enumerate(SCANNED)])
def test_what_a_scanner_matches_has_what_its_pattern_needs(name: str, pattern: re.Pattern[str]) -> None:
    """A secret would be taught because a cheap question was asked first."""
    screen = Screen([[needs(pattern)]])

    @FEW
    @given(st.from_regex(pattern))
    def check(text: str) -> None:
        assert {0} == screen.suspects(text).numbers, (needs(pattern), text)

    check()


@pytest.mark.parametrize("flags", [re.NOFLAG, re.IGNORECASE], ids=["as it is", "any case"])
@pytest.mark.parametrize("odd", ODD)
def test_whatever_a_pattern_is_made_of(odd: str, flags: re.RegexFlag) -> None:
    """A form of pattern that scanners do not use yet would be read wrongly when they do."""
    pattern = re.compile(odd, flags)
    screen = Screen([[needs(pattern)]])

    @FEW
    @given(st.from_regex(pattern))
    def check(text: str) -> None:
        assert {0} == screen.suspects(text).numbers, (needs(pattern), text)

    check()


@pytest.mark.parametrize(
    "pattern, needed",
    [
        ("(ghp|gho)_[A-Za-z0-9_]{36}", Needs(frozenset({"ghp_", "gho_"}), 36)),
        ("(?i)db_?pass", Needs(frozenset({"dbpass", "db_pass"}), 0)),
        (r"\d{3}-\d{2}-\d{4}", Needs(frozenset({"000-00-0000"}), 1)),
        ("a?", Needs(frozenset(), 0)),
    ],
)
def test_what_is_needed_is_as_much_as_can_be_known(pattern: str, needed: Needs) -> None:
    """Nothing would be screened, and an export take three times as long."""
    assert needed.any_of == needs(re.compile(pattern)).any_of
    assert needed.run <= needs(re.compile(pattern)).run


@pytest.mark.parametrize("text", ["PASſWORD", "prıvate_\u212aey", "PRİVATE_KEY", "٣٤٥-٦٧-٨٩٠١"])
def test_letters_that_are_held_to_be_the_same_are(text: str) -> None:
    """A name in another alphabet's look-alikes would hide what stands beside it."""
    patterns = [re.compile("password|private_key", re.IGNORECASE), scrub.SSN]
    assert any(pattern.search(text) for pattern in patterns)
    assert Screen([[needs(pattern)] for pattern in patterns]).suspects(text).numbers


def test_without_a_reader_of_patterns_each_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python without that private part would export nothing, or secrets."""
    monkeypatch.setattr(anchors, "PARSER", None)
    assert {0} == Screen([[needs(re.compile("AKIA[0-9]{9}"))]]).suspects("").numbers
