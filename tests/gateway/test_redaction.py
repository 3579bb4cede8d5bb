"""A credential that comes back is overwritten, in whatever pieces and in whichever usual spelling it comes."""

from __future__ import annotations

import base64
import html
import itertools
import json
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from herdbook.gateway.redaction import Redactor

TRICKY = ["aaaaaaaa", "abababab", "a/b+c==d", "ghs_0123456789"]
SECRETS = st.text("ab+/=&\"'<\\ ~é", min_size=8, max_size=20) | st.sampled_from(TRICKY)


def spelled(secret: str) -> list[bytes]:
    """How echoes spell it."""
    data = secret.encode()
    found = [
        data, quote(secret, safe="").encode(), quote(secret).encode(), quote_plus(secret).encode(), data.hex().encode(),
        data.hex().upper().encode(), html.escape(secret).encode(), json.dumps(secret)[1:-1].encode(),
        json.dumps(secret, ensure_ascii=False)[1:-1].encode(), json.dumps(secret)[1:-1].replace("/", "\\/").encode(),
        urlencode({"k": secret}).partition("=")[2].encode(),
    ]  # fmt: skip
    return [form for form in found if len(form) >= 6]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(marks)]


def streamed(redactor: Redactor, pieces: list[bytes]) -> bytes:
    stream = redactor.stream()
    return b"".join([*map(stream.feed, pieces), stream.end()])


@given(st.data(), SECRETS, st.lists(st.integers(0, 400), max_size=12))
@example(None, "aaaaaaaa", [3, 5, 9])
def test_no_piece_of_any_size_lets_it_through(data: st.DataObject | None, secret: str, places: list[int]) -> None:
    """A service that sends in small pieces would give the key away at the border of two."""
    forms = spelled(secret)
    noise = st.sampled_from([secret.encode()[:size] for size in range(1, 8)] + [b"x", b"aa", b"\n"])
    parts = st.lists(noise | st.sampled_from(forms), max_size=8)
    text = b"".join(data.draw(parts)) if data else b"aaa" + secret.encode() * 2 + b"a"
    redactor = Redactor([secret])
    whole = redactor.whole(text)
    assert whole == streamed(redactor, cut(text, places))
    assert len(text) == len(whole)
    assert [] == [form for form in forms if form in whole]


@given(st.binary(max_size=40), st.binary(max_size=40), st.booleans())
def test_base64_of_more_than_the_secret_is_overwritten(before: bytes, behind: bytes, safe: bool) -> None:
    """A request echoed in base64 would hold the key, wherever in it the key stood."""
    secret = "ghs_canary0123456789/+ab"
    encode = base64.urlsafe_b64encode if safe else base64.b64encode
    text = encode(before + secret.encode() + behind)
    found = Redactor([secret]).whole(text)
    plain = secret.encode()
    for start in range(4):
        piece = found[start : start + (len(found) - start) // 4 * 4].replace(b"*", b"A").replace(b"-", b"+").replace(b"_", b"/")
        assert plain not in base64.b64decode(piece + b"=" * (-len(piece) % 4))


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_what_is_no_secret_passes_as_it_is(pieces: list[bytes]) -> None:
    """Answers would be damaged."""
    assert b"".join(pieces) == streamed(Redactor(["a-secret-that-is-not-there"]), pieces)
    assert b"".join(pieces) == streamed(Redactor([]), pieces)


def test_nothing_waits_but_what_could_be_the_beginning() -> None:
    """Events would be held back until the next one."""
    stream = Redactor(["secret-0123"]).stream()
    assert b"data: hello\n\n" == stream.feed(b"data: hello\n\n")
    assert b"data: " == stream.feed(b"data: secret-0")
    assert b"secret-0!" == stream.feed(b"!")


@pytest.mark.timeout(10)
def test_a_long_body_that_looks_like_the_secret_costs_little() -> None:
    """A service could stop the gateway by repeating the key's first letter."""
    stream = Redactor(["a" * 500 + "b"]).stream()
    total = sum(len(stream.feed(b"a" * 16_384)) for _ in range(64))
    assert 64 * 16_384 == total + len(stream.end())
