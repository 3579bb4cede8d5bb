"""No secret and no personal data of a kind we look for reaches a row; what is none stays as it is."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.slowloop.export.drafts import Draft, called, said
from herdbook.slowloop.export.scrub import Detector, Scrubber

# Written in pieces, so that nobody's scanner takes this file for a leak.
FOUND = {
    "email": "write to jane.doe+ci@example.co.uk today",
    "phone": "call +1 415-555-2671 now",
    "payment_card": "card 4111 1111 1111 1111 declined",
    "bank_account": "iban DE89 3704 0044 0532 0130 00 charged",
    "social_security": "ssn 536-90-4399 given",
    "aws_access_key": "key AKIA" + "IOSFODNN7EXAMPLQ set",
    "github_token": "token " + "ghp" + "_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx set",
    "json_web_token": "jwt eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
    ".eyJzdWIiOiIxMjM0NTY3ODkwIn0"
    ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "private_key": "-----BEGIN RSA " + "PRIVATE KEY-----",
}
PLAIN = (
    "expected 10.05, got 10.04 at line 44 of tests/test_tax.py in 0.21 s",
    "run 4711 at 2026-11-30T10:11:12Z exited 1 with digest 9f86d081884c7d65",
    '{"env": {"TZ": "UTC", "RETRIES": "5"}, "path": "acme/checkout"}',
    "user@host is no address, 1234567890123 no card, 000-12-3456 no number",
)


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return Scrubber()


@pytest.mark.parametrize("kind", FOUND)
def test_each_kind_is_blotted_out(scrubber: Scrubber, kind: str) -> None:
    """A dataset would carry somebody's key or address to whoever trains on it."""
    cleaned, kinds = scrubber.clean(FOUND[kind])
    assert kind in kinds
    assert f"[REDACTED:{kind}]" in cleaned


BEGIN = "-----BEGIN " + "PRIVATE KEY-----"
KEYS = {
    "anthropic": "sk-" + "ant-api03-" + "Zk3J9qLx0PwN7vB2mRtYc5UdHsGf8EiA6oKyXlQbVnCpDzSeWjTgMhFrOuIa1AA",
    "openai service": "sk-" + "svcacct-" + "Zk3J9qLx0PwN7vB2mRtYc5UdHsGf8EiA6oKyXlQb",
    "openrouter": "sk-" + "or-v1-" + "0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e0d9c8b7a6f5e4d3c2b1a0f9e",
    "google": "AI" + "zaSyD3fGh1JkLmN0pQrStUvWxYz2aBcDeFgHi",
    "github fine-grained": "github_" + "pat_11ABCDEFG0aBcDeFgHiJkL_MnOpQrStUvWxYz0123456789abcdefghijklmnop",
    "npm": "npm_" + "aB3dE6gH9jK2mN5pQ8sTaB3dE6gH9jK2mN5p",
    "hugging face": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "private key": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7",
}


@pytest.mark.parametrize("whose", KEYS)
def test_keys_that_agents_hold_are_taken_out(scrubber: Scrubber, whose: str) -> None:
    """A model would be taught the key that its agent ran with, and tell it to whoever asks."""
    key = KEYS[whose]
    text = f"{BEGIN}\n{key}\n-----END PRIVATE KEY-----" if whose == "private key" else f"it said {key} then"
    assert key not in scrubber.clean(text)[0]
    for value in (text, {"a": [text, 1]}, f'say "{text}" \\'):
        draft = drafted({"cmd": value, "n": 1})
        assert key not in json.dumps(msgspec.to_builtins(scrubber.draft(draft)[0]))


@pytest.mark.parametrize("said", [f"{BEGIN}\nMIIEvQ", "Authorization: Basic x", 'authorization: "a\\"b', "://a:b\\@c"])
def test_what_ends_with_its_text_leaves_the_arguments_whole(scrubber: Scrubber, said: str) -> None:
    """One odd argument would end an export, or take the next argument with it."""
    cleaned = scrubber.draft(drafted({"a": said, "b": "kept"}))[0]
    assert "kept" in json.dumps(msgspec.to_builtins(cleaned))


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_none_stays(scrubber: Scrubber, text: str) -> None:
    """Rows would be full of holes where nothing was secret."""
    assert (text, ()) == scrubber.clean(text)


def drafted(args: Any) -> Draft:
    return Draft(
        session="s",
        ref="r",
        entity="acme",
        task="0",
        task_input="do it",
        at="2026-01-01T00:00:00Z",
        type="success",
        success=True,
        attested=False,
        prompt=[said("user", "mail me at bob@example.com")],
        steps=called({"tool": "login", "args": args, "result": "ok"}, number=0),
        tools=None,
    )


def test_a_secret_is_known_by_the_name_beside_it(scrubber: Scrubber) -> None:
    """An argument named password would be written out, since alone it looks like any word."""
    cleaned, counts = scrubber.draft(drafted({"password": "correct-horse-battery", "user": "bob"}))
    assert "correct-horse-battery" not in json.dumps([cleaned.prompt, cleaned.steps])
    assert "bob" == cleaned.calls[0]["tool_calls"][0]["function"]["arguments"]["user"]
    assert {"secret_keyword", "email"} == set(counts)


def test_the_task_and_the_tools_are_looked_at_too(scrubber: Scrubber) -> None:
    """A prompt to practise on, or a tool's description, would tell what the conversation no longer does."""
    tools = [{"type": "function", "function": {"name": "look", "description": "ask jane@example.org first"}}]
    draft = msgspec.structs.replace(drafted({}), prompt=[said("user", "go on")], task_input="mail jane@example.org", tools=tools)
    cleaned, counts = scrubber.draft(draft)
    assert "mail [REDACTED:email]" == cleaned.task_input
    assert "ask [REDACTED:email] first" == (cleaned.tools or [{}])[0]["function"]["description"]
    assert {"email"} == set(counts)


def test_what_was_found_is_counted(scrubber: Scrubber) -> None:
    """The report would say that a dataset was clean to begin with."""
    before = Counter(scrubber.found)
    scrubber.draft(drafted({}))
    assert Counter({"email": 1}) == scrubber.found - before


WORDS = st.sampled_from(
    [
        *("password", "API_KEY", "ſecret", " = ", ": ", "'", '"', "hunter22hunter22", "AKIAIOSFODNN7EXAMPLE", "\n", " ok "),
        *("jane@example.org", "+1 415-555-2671", "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00", "536-90-4399", "10.1.2.3"),
        *("ghp_" + "a1B2" * 9, "https://ann:" + "s3cret@db.example/x", "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "c2VjcmV0" * 5),
    ]
)


@given(st.lists(WORDS, max_size=9).map("".join))
def test_screening_a_text_finds_what_the_detectors_find(text: str) -> None:
    """A secret would be taught because a cheap question was asked first."""
    assert sorted(set(UNSCREENED.findings(text))) == sorted(set(SCREENED.findings(text)))


@given(st.lists(WORDS, max_size=5).map("".join), st.lists(WORDS, max_size=5).map("".join))
def test_a_run_screened_as_one_is_cleaned_as_its_texts_are(prompt: str, argument: str) -> None:
    """A run would be believed clean for the way its texts were put together."""
    draft = msgspec.structs.replace(drafted({"a": argument}), prompt=[said("user", prompt)])
    assert UNSCREENED.draft(draft) == SCREENED.draft(draft)


@pytest.mark.parametrize("kind", sorted(set(FOUND) - {"phone"}))
def test_a_long_text_is_cleaned_too(kind: str) -> None:
    """What is too long to be remembered would be passed by."""
    text = f"{'so it went on, ' * 200}{FOUND[kind]}\n" * 2
    assert FOUND[kind] in text
    assert FOUND[kind] not in SCREENED.clean(text)[0]


class Unscreened(Scrubber):
    """Every detector is tried on everything."""

    def suspects(self, text: str) -> list[Detector]:
        return self.detectors


UNSCREENED, SCREENED = Unscreened(), Scrubber()
