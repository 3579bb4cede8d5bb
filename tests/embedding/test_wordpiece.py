"""Our tokens are the reference's: another id is another meaning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from herdbook.fastloop.embedding.wordpiece import encode, vocabulary
from tests.tidy import tree


def reference() -> Tokenizer:
    known = vocabulary()
    made = Tokenizer(models.WordPiece(known, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = [(name, known[name]) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    return made


REFERENCE = reference()
TEXTS = [
    "",
    "The suite only passes with TZ=UTC exported; date tests assume midnight in Greenwich.",
    "支付沙箱会拒绝前两次扣款请求 テスト サーバー 한국어",
    "Zażółć gęślą jaźń ÀÉÎ ß ﬁ \u0130stanbul",
    "x" * 150 + " sha256:8199be6f699a395f https://a.b/c?d=e#f retry_budget=3",
    "a\u0301\u200bb\x00c\ufffdd\te\nf\u2028g \U0001f600 ½ ² Ⅷ",
]


@pytest.mark.parametrize(
    "text", [*TEXTS, *(source.text[:2_000] for source in tree.package()[::9])], ids=lambda text: ascii(text[:20])
)
def test_ids_are_those_of_the_reference(text: str) -> None:
    """Vectors would be those of another text."""
    assert REFERENCE.encode(text).ids == encode(text)


@given(st.text(st.characters(exclude_categories=["Cs", "Cn", "Co"]), max_size=60))
def test_any_text_gets_ids(text: str) -> None:
    """A note in some script could not be embedded."""
    found = encode(text)
    assert (101, 102) == (found[0], found[-1])
    assert all(0 <= number < len(vocabulary()) for number in found)


def test_the_vocabulary_is_the_model_s() -> None:
    """A line lost in packaging would shift every id behind it."""
    assert (30_522, 0, 103) == (len(vocabulary()), vocabulary()["[PAD]"], vocabulary()["[MASK]"])
    assert json.dumps(Path(__file__).name)
