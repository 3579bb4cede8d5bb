"""One spelling for each path, so that what a rule is matched against is what goes upstream."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.base.errors import InvalidRequest
from herdbook.gateway.paths import AmbiguousPath, canonical
from herdbook.gateway.policy import NotAllowed, decide, rule

AMBIGUOUS = """\
/a/../b
/..
/.
/a/.
/a/./b
/a/..
//a
/a//b
/a/%2e%2e/b
/a/%2E%2e/b
/a/.%2e/b
/a/%2e/b
/a/%252e%252e/b
/a/%25252e/b
/a%2fb
/a%2Fb
/a%252fb
/a\\b
/a/..\\b
/a%5cb
/a%5Cb
/a%00b
/a%0ab
/a%0d%0aHost:%20x
/a%7fb
/a/..;/b
/a/..;x=1/b
/a/.;/b
/a/%2e%2e;/b
/a/;/b
/a/...
/a/ .. /b
/a%20/..%20/b
/a/%20./b
/a%c0%ae%c0%ae/b
/a%e0%80%ae/b
/a%c0%afb
/a%ff
/a%ef%bc%8fb
/a%ef%bc%8e%ef%bc%8e/b
/a%e2%80%a5/b
/a%ef%bc%9b
/a%u002e/b
/a%
/a%2
/a%zz
/a%3fb=c
/a%23b
/a#b
/a b
/a\tb
/aéb
/a"b
/a<b>
/a`b
/a^b
/a{b}
/a|b
/a[b]
a/b
""".rstrip("\n").split("\n")


@pytest.mark.parametrize("path", [*AMBIGUOUS, "", "*", "http://127.0.0.1/", "/a\0b", "/a\r\nX: y", "/a%e2%80%8eb"])
def test_a_path_that_can_be_read_in_two_ways_is_refused(path: str) -> None:
    """A service could read another path than the one that a rule allowed."""
    with pytest.raises(AmbiguousPath, match=r"[:(]"):
        canonical(path.encode())


@pytest.mark.parametrize(
    "path, sent, text",
    [
        ("/", "/", "/"),
        ("/repos/acme/web", "/repos/acme/web", "/repos/acme/web"),
        ("/a/", "/a/", "/a/"),
        ("/%41%7e%2d", "/A~-", "/A~-"),
        ("/a%20b%2b", "/a%20b%2B", "/a b+"),
        ("/caf%c3%a9", "/caf%C3%A9", "/café"),
        ("/v1/models/a:predict", "/v1/models/a:predict", "/v1/models/a:predict"),
        ("/.well-known/x.y/...z", "/.well-known/x.y/...z", "/.well-known/x.y/...z"),
        ("/a;v=1/b", "/a;v=1/b", "/a;v=1/b"),
    ],
)
def test_a_plain_path_has_one_spelling(path: str, sent: str, text: str) -> None:
    """Ordinary addresses would be refused, or reach the service changed."""
    found = canonical(path.encode())
    assert (sent, text) == (found.sent.decode(), found.text)
    assert found == canonical(found.sent)


@given(st.text(st.sampled_from("/.%25eEfFcC\\;ab0 é"), max_size=12).map(lambda text: "/" + text))
def test_no_decoding_makes_another_path(text: str) -> None:
    """There would be a spelling that nobody thought of."""
    try:
        found = canonical(text.encode())
    except AmbiguousPath:
        return
    assert found.sent == canonical(found.sent).sent
    assert found.text == unquote(found.sent.decode(), errors="strict") == unquote(found.text)
    parts = found.text.split("/")
    assert not {".", ".."} & {part.partition(";")[0].strip() for part in parts}
    assert "" not in parts[1:-1]
    assert "\\" not in found.text


def may(method: str, path: str, *rules: str) -> bool:
    found = [rule(text.removeprefix("block "), blocks=text.startswith("block ")) for text in rules]
    try:
        decide(found, method, canonical(path.encode()))
    except NotAllowed:
        return False
    return True


def test_nothing_is_allowed_unless_a_rule_says_so() -> None:
    """A connection without rules would be open to everything its key can do."""
    assert not may("GET", "/repos/acme")
    assert may("GET", "/repos/acme", "GET /repos/*")
    assert not may("POST", "/repos/acme", "GET /repos/*")
    assert not may("GET", "/repos/acme/web", "GET /repos/*")
    assert may("GET", "/repos/acme/web", "GET /repos/**")
    assert not may("GET", "/repositories", "GET /repos")
    assert not may("GET", "/REPOS/acme", "GET /repos/*")
    assert may("HEAD", "/repos/acme", "GET /repos/*")
    assert not may("GET", "/x/repos/acme", "GET /repos/*")
    assert may("DELETE", "/a", "* /a")
    assert may("PUT", "/a/b.c", "GET,PUT /a/*.c")
    assert not may("PUT", "/a/bxc", "GET,PUT /a/*.c")


@pytest.mark.parametrize(
    "path", ["/pulls/1/merge", "/pulls/1/MERGE", "/pulls/1/merge/", "/pulls/1/merge;x=1", "/pulls/1;a/%6derge", "/Pulls/1/merge"]
)
def test_a_block_holds_in_every_spelling(path: str) -> None:
    """A box could do what is blocked by writing it in another case, with a slash at the end or with parameters."""
    assert not may("PUT", path, "* /**", "block PUT /pulls/*/merge")
    assert not may("PUT", path, "block PUT /pulls/*/merge", "* /**")
    assert not may("PUT", path, "* /**", "block PUT /Pulls/*/Merge")
    assert may("GET", path, "* /**", "block PUT /pulls/*/merge")


@pytest.mark.parametrize(
    "text", ["", "GET", "/a", "GET a", "get /a", "TRACE /a", "CONNECT /a", "GET /a/../b", "GET /a b", "GET,, /a", "GET /a**"]
)
def test_a_rule_that_could_not_hold_is_refused(text: str) -> None:
    """A mistyped rule would allow nothing, or something else, without a word."""
    with pytest.raises(InvalidRequest):
        rule(text)


@given(
    st.lists(st.sampled_from(["a", "b", "*", "**", "a*", "*a", "a*b*", "*ab*a"]), max_size=5),
    st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=6),
)
def test_a_pattern_matches_what_its_stars_say(pattern: list[str], parts: list[str]) -> None:
    """A rule would allow more, or block less, than it says."""
    text, path = "/" + "/".join(pattern), "/" + "/".join(parts)
    expression = "".join("(?:/[^/]*)*" if part == "**" else "/" + part.replace("*", "[^/]*") for part in pattern or [""])
    assert bool(re.fullmatch(expression, path)) == may("GET", path, f"GET {text}")


@pytest.mark.timeout(5)
def test_a_pattern_costs_no_more_than_its_path() -> None:
    """One call could keep the gateway busy for minutes."""
    assert not may("GET", "/" + "a" * 8_000, "GET /" + "*a" * 2_000 + "*b")
    assert not may("GET", "/a" * 128, "GET " + "/**/a" * 60 + "/b")
    with pytest.raises(AmbiguousPath):
        canonical(b"/a" * 129)
