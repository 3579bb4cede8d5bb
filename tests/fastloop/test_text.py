"""One tokenizer for every search: names by their parts, scripts without spaces by any part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.fastloop.text import named, query_tokens, tokenize, words_of
from tests.fastloop.fake_record import FakeRecord


def asked(text: str) -> set[str]:
    return set(query_tokens(text, tokens_max=256))


@pytest.mark.parametrize(
    "query, text",
    [
        ("前两次扣款", "支付沙箱会拒绝前两次扣款请求"),
        ("扣", "支付沙箱会拒绝前两次扣款请求"),
        ("テスト", "ユニットテストケース"),
        ("ﾃｽﾄ", "ユニットテストケース"),
        ("샌드박스", "결제샌드박스는 거부한다"),
        ("端口", "ssh端口49222"),
        ("การชำระเงิน", "ระบบทดสอบการชำระเงินจะปฏิเสธ"),
        ("भुगतान", "भुगतान सैंडबॉक्स अनुरोध"),
        ("retry budget", "retry_budget_max"),
        ("retryBudget", "RETRY_BUDGET"),
        ("refused", "ConnectionRefusedError: [Errno 111]"),
        ("foo_bar", "/usr/lib/python3/foo_bar.py:123"),
        ("python", "python3.11"),
        ("retries", "it retried, then retry"),
        ("GRÖSSE überschritten", "größe: Überschritten"),
        ("café", "cafe\u0301"),
        ("done 🎉", "🎉"),
    ],
)
def test_what_is_there_is_found(query: str, text: str) -> None:
    """A note would be in the record and no question would reach it."""
    assert asked(query) & set(tokenize(text))


@pytest.mark.parametrize(
    "text, names",
    [
        ("RETRY_BUDGET", {"retry", "budget", "retrybudget"}),
        ("why is it 900 seconds", {"900"}),
        ("migration 0042, on-prem", {"0042", "on", "prem", "onprem"}),
        ("OOM in sshPort", {"oom", "ssh", "port", "sshport"}),
        ("The suite fails at midnight.", set()),
        ("a - b . c", set()),
        ("x" * 200 + "_y", set()),
        ("支付沙箱 ３", {"3"}),
    ],
)
def test_a_name_is_told_from_a_word(text: str, names: set[str]) -> None:
    """An error code would be weighed like a word, by how often it is said."""
    assert names == named(text)
    assert names <= set(tokenize(text))


def test_a_question_does_not_match_by_its_function_words() -> None:
    """Every note with a "the" in it would answer every question."""
    assert not asked("which port does the sandbox use") & set(tokenize("this is the one that was with the others"))


def test_a_question_of_function_words_alone_is_still_asked() -> None:
    """Searching for "who" would find nothing, whatever is in the record."""
    assert asked("who") & set(tokenize("the who"))


@given(st.text())
def test_tokens_are_whole_words_to_any_engine(text: str) -> None:
    """Joined by spaces, they would come back from an engine's index as others."""
    for token in tokenize(text):
        assert token
        assert not any(character.isspace() or (character.isascii() and not character.isalnum()) for character in token)


@given(st.text())
def test_a_text_is_found_by_itself(text: str) -> None:
    """A question that quotes a note word by word would miss it."""
    assert asked(text) <= set(tokenize(text))


def test_json_escapes_do_not_stick_to_words() -> None:
    """The word after a line end would be stored as `nrefused`."""
    version = FakeRecord().write("acme/ci", "log", {"text": 'first\nrefused "twice"'}, why="seen")
    assert {"first", "refus", "twic", "log", "seen", "ci"} <= set(words_of(version))
