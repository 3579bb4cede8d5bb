"""The estimate leans upwards: known counts of real tokenizers are the lower bound, and it adds up over lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.fastloop.tokens import estimate_tokens

# The largest count among cl100k, o200k and a tokenizer of Claude's, measured once.
COUNTED = [
    ("The quick brown fox jumps over the lazy dog.", 10),
    ("getUserAccountByIdOrThrow", 7),
    ("2026-01-01T00:00:00.000000Z", 16),
    ("ConnectionRefusedError: [Errno 111]", 11),
    ("支付沙箱会拒绝前两次扣款请求", 17),
    ("テスト環境では最初の二回の決済リクエストが拒否される", 28),
    ("결제 샌드박스는 처음 두 번의 요청을 거부하므로", 31),
    ("Песочница платежей отклоняет первые два запроса", 25),
    ("Το περιβάλλον δοκιμών απορρίπτει", 34),
    ("🎉🚀🫠🧿", 12),
    ("qwrtpsdfghjk", 7),
]


@pytest.mark.parametrize("text, counted", COUNTED)
def test_it_never_counts_fewer_than_a_real_tokenizer(text: str, counted: int) -> None:
    """A briefing would overflow the space it was asked to fit into."""
    assert counted <= estimate_tokens(text) <= 4 * counted


def test_nothing_costs_nothing() -> None:
    """An empty text would take room."""
    assert estimate_tokens("") == 0


@given(st.lists(st.text(), max_size=6))
def test_joined_lines_cost_no_more_than_the_lines_and_their_ends(lines: list[str]) -> None:
    """A text packed line by line would come out larger than its budget."""
    assert estimate_tokens("\n".join(lines)) <= sum(estimate_tokens(line) + 1 for line in lines)


@given(st.text(min_size=1).filter(str.strip))
def test_every_text_costs_something(text: str) -> None:
    """Texts in some script would be free, and crowd out everything."""
    assert estimate_tokens(text) >= max(1, len(text.split()) / 2)


@given(st.text(), st.text())
def test_more_text_never_costs_less(text: str, more: str) -> None:
    """Clipping a text to fit would make it larger."""
    assert estimate_tokens(text) <= estimate_tokens(f"{text} {more}") + 1
