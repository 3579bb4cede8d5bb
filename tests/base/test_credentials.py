"""Access keys and box passes: what is accepted must be what was given out, and nothing near it."""

from __future__ import annotations

import hmac
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.base import access_key, box_token
from herdbook.base.box_token import BoxPass
from herdbook.base.errors import InvalidRequest, Unauthorized

KEY = box_token.signing_key(b"k" * 32)
MINUTE = 60_000_000
SAID = BoxPass(7, "box-1", "fleet", ("acme/checkout",), ("github",), 1_000 * MINUTE, 1_015 * MINUTE)
NOW = 1_001 * MINUTE


def test_a_key_says_whose_it_is_and_its_digest_is_kept() -> None:
    """The record would look for the key under another tenant, or keep the key itself."""
    key, kept = access_key.new(42)
    assert kept == access_key.read(key)
    assert 42 == kept.tenant
    assert kept.id.startswith("42k")
    assert key.startswith(f"hb_{kept.id}_")
    assert key.encode() not in kept.digest


@given(st.integers(0, 200), st.sampled_from(access_key.LETTERS))
def test_a_typo_is_no_key(at: int, letter: str) -> None:
    """Every typo would cost a look into the record."""
    key, _ = access_key.new(1)
    at %= len(key)
    changed = key[:at] + letter + key[at + 1 :]
    assert changed == key or access_key.read(changed) is None


@pytest.mark.parametrize("text", ["", "hb_", "hb_1k_x", "ghp_abc", "hb_0k" + "a" * 12 + "_" + "A" * 38])
def test_what_is_no_key_is_told_apart(text: str) -> None:
    """Another product's key would be looked up."""
    assert access_key.read(text) is None


def test_a_pass_says_what_was_signed() -> None:
    """A box would be taken for another one."""
    assert SAID == box_token.opened(KEY, box_token.sign(KEY, SAID), now=NOW)


def test_a_pass_with_any_letter_changed_is_refused() -> None:
    """A box could write itself another tenant."""
    token = box_token.sign(KEY, SAID)
    for at, letter in enumerate(token):
        with pytest.raises(Unauthorized):
            box_token.opened(KEY, token[:at] + ("A" if letter != "A" else "B") + token[at + 1 :], now=NOW)


def test_a_pass_signed_with_another_key_is_refused() -> None:
    """Anybody could sign passes."""
    with pytest.raises(Unauthorized):
        box_token.opened(KEY, box_token.sign(box_token.signing_key(b"x" * 32), SAID), now=NOW)


@pytest.mark.parametrize("now", [SAID.expires_at, SAID.expires_at + 1, SAID.issued_at - 2 * MINUTE])
def test_a_pass_is_good_for_its_time_only(now: int) -> None:
    """A pass taken from a dead box would open the record for ever."""
    with pytest.raises(Unauthorized):
        box_token.opened(KEY, box_token.sign(KEY, SAID), now=now)


def test_no_pass_lives_longer_than_the_limit() -> None:
    """A host could give out what never ends; nor is one taken that somebody else signed so."""
    long = replace(SAID, expires_at=SAID.issued_at + 16 * MINUTE)
    with pytest.raises(InvalidRequest):
        box_token.sign(KEY, long)
    body = json.dumps({**{name: getattr(long, name) for name in BoxPass.__slots__}}).encode()
    forged = f"hbx_{box_token.encoded(body)}.{box_token.encoded(hmac.digest(KEY, body, 'sha256'))}"
    with pytest.raises(Unauthorized):
        box_token.opened(KEY, forged, now=NOW)
