"""Secrets are taken out of what is kept, and ordinary text is left alone."""

from __future__ import annotations

import base64
import json
import time

import pytest
from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import transient_settings

from herdbook.base.redaction import looks_secret, plain, redacted

SHAPES = ("AWSKeyDetector", "GitHubTokenDetector", "GitLabTokenDetector", "JwtTokenDetector", "PrivateKeyDetector",
          "SlackDetector", "StripeDetector", "NpmDetector", "OpenAIDetector", "PypiTokenDetector", "SendGridDetector",
          "BasicAuthDetector", "KeywordDetector")  # fmt: skip
JWT = ".".join(
    base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": "HS256"}, {"sub": 1})
)
PEM = "RSA " + "PRIVATE KEY"
SECRETS = [
    "AKIA" + "IOSFODNN7EXAMPLQ",
    "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0bC3dE6",
    "glpat-" + "aB3dE6gH9jK2mN5pQ8sT",
    JWT + ".c2lnbmF0dXJlLW9mLXRoaXM",
    f"-----BEGIN {PEM}-----\nMIIEow\n-----END {PEM}-----",
    "xoxb-" + "123456789012-1234567890123-aB3dE6gH9jK2mN5pQ8sT1vW4",
    "sk_live_" + "aB3dE6gH9jK2mN5pQ8sT1vW4",
    "sk-ant-api03-" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7z",
    "sk-svcacct-" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7z",
    "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "e2b_" + "0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e",
    "dapi" + "0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c",
    "dop_v1_" + "0f9e8d7c6b5a4f3e" * 4,
    "npm_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0bC3dE6",
    "SG." + "aB3dE6gH9jK2mN5pQ8sT1v." + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0bC3dE6gH9jK2m",
]
AROUND = ["{}", "using {} now", "export X={}", '{{"a": "{}"}}']


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("secret", SECRETS)
def test_what_has_the_shape_of_a_secret_is_taken_out(secret, around) -> None:
    """A credential that a build prints would be kept in the record, and shown to every agent after it."""
    assert secret.splitlines()[-1] not in redacted(around.format(secret)).text


@pytest.mark.parametrize(
    "text, secret",
    [
        ("password: hunter22", "hunter22"),
        ('db_password = "s3cr3t-value"', "s3cr3t-value"),
        ("curl -H 'Authorization: Bearer abcdefghij'", "abcdefghij"),
        ("curl -H 'Authorization: Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
        ("postgres://app:p4ssw0rd@db/x", "p4ssw0rd"),
        ("deploy --token abcd1234 now", "abcd1234"),
        ("API_KEY=abcd1234", "abcd1234"),
        (f"-----BEGIN {PEM}-----\nb3BlbnNzaC1rZXk", "b3BlbnNzaC1rZXk"),
    ],
)
def test_what_is_called_a_secret_is_taken_out(text, secret) -> None:
    """A credential with no shape of its own would be kept."""
    assert (True, False) == ("[redacted]" in redacted(text).text, secret in redacted(text).text)


@pytest.mark.parametrize(
    "text",
    [
        "FAILED tests/test_checkout.py::test_tax - AssertionError: 3591 != 3590",
        "tokens: 2000, 3 passed in 0.12s",
        "commit 0f7a2c9e4b1d8a6f3c5e7d9b0a2c4e6f8a1b3c5d",
        "https://example.com/a/b?c=d",
        "the key is the entity path, and keys are sorted",
        "Authorization failed for 3 of 4 users",
    ],
)
def test_ordinary_output_is_left_alone(text) -> None:
    """What a run printed would be of no use to whoever reads its trace."""
    assert (text, 0) == redacted(text)


def test_the_environment_is_taken_out_by_value() -> None:
    """A password that looks like a word would be kept, although its variable's name says what it is."""
    environ = {"DB_PASSWORD": "correct horse", "HOME": "/home/correct", "SSH_AUTH_SOCK": "/tmp/agent.1", "SMALL_TOKEN": "1"}
    text = "at /home/correct with correct horse through /tmp/agent.1: 1"
    assert "at /home/correct with [redacted] through /tmp/agent.1: 1" == redacted(text, environ).text


@pytest.mark.parametrize("secret", SECRETS)
def test_a_scanner_of_others_finds_nothing_left(secret, tmp_path) -> None:
    """We would overlook what a tool made for finding secrets knows."""
    file = tmp_path / "output.txt"
    plugins = {"plugins_used": [{"name": name} for name in SHAPES]}

    def found(text: str) -> int:
        file.write_text(text)
        with transient_settings(plugins):
            secrets = SecretsCollection()
            secrets.scan_file(str(file))
            return len(list(secrets))

    assert 0 == found(redacted(f"value: {secret}\n").text)


def test_names_and_values_that_must_not_be_written_down() -> None:
    """A lesson about a variable would publish a credential."""
    assert [True, True, False, False] == [
        looks_secret(*pair) for pair in (("DEPLOY_KEY", "x"), ("X", SECRETS[1]), ("TZ", "UTC"), ("KEYBOARD", "us"))
    ]


def test_output_becomes_prose() -> None:
    """The record would refuse the end of a log for its colours and its broken bytes."""
    assert "red ok\nnext\n� �" == plain(b"\x1b[31mred\x1b[0m \x1b]0;title\x07ok\r\nnext\n\xff \x00\xed\xa0\x80"[:-3] + b"\xfe")
    assert "?" == plain("\ud800")


@pytest.mark.parametrize(
    "part", ["a-", "a.", "--", "tokena", "token-", "--token ", "--token", "eyJ-", "-----BEGIN ", "://", "a:b@", "\x1b[", "a="]
)
def test_output_made_to_cost_is_read_like_any(part: str) -> None:
    """A program that prints 100 kB of dashes would keep `herdbook run` and every hook busy for hours after it has ended."""
    started = time.perf_counter()
    redacted(plain(part * (100_000 // len(part))))
    assert time.perf_counter() - started < 5, "the square of the text's length"


def test_a_secret_is_found_wherever_its_name_stands() -> None:
    """What is looked at only where a name begins would be missed behind another name."""
    for text in ("a=token=abcdef", "a,token=abcdef", "http://x?token=abcdef", '{"db.password":"abcdef"}', "x --no-token abcdef"):
        assert "abcdef" not in redacted(text).text
    for text in ("max_tokens: 4096", "--tokens 5000"):
        assert text == redacted(text).text
