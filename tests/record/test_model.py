"""The record against a model of dicts: any sequence of what people and boxes do, in two processes at once."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest

from herdbook.testing.record_model import run_model
from tests.record.files import sqlite_book

FULL = 2_000


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_record_does_what_the_model_does(path: Path) -> None:
    """Some order of writes, outcomes, revisions and attestations would leave other numbers than a replay gives."""
    full = hypothesis.settings().max_examples >= 1_000
    settings = hypothesis.settings(
        max_examples=FULL if full else 200,
        stateful_step_count=40 if full else 30,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    book = sqlite_book(path, synchronous="NORMAL")
    try:
        run_model(book, settings)
    finally:
        book.close()
