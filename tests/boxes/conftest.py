"""A bubblewrap provider that works here, or a failure that says how to get one. On Linux nothing is skipped for want of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from herdbook.boxes.bubblewrap import Bubblewrap


@pytest.fixture(scope="session")
def bubblewrap_works(tmp_path_factory: pytest.TempPathFactory) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("cannot run here: bubblewrap boxes need Linux")
    finding = Bubblewrap(tmp_path_factory.mktemp("probe")).probe()
    if not finding.ok:
        pytest.fail(f"{finding.what}. Fix: {finding.fix}", pytrace=False)


@pytest.fixture
def bubblewrap(bubblewrap_works: None, tmp_path: Path) -> Bubblewrap:
    return Bubblewrap(tmp_path / "boxes")
