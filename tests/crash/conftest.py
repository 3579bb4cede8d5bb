"""A home of its own for each test of this folder: what opens a record in this process seals with the same key as its children."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERDBOOK_HOME", str(tmp_path))
    return tmp_path
