"""`herdbook bench` runs the repository's benches, and says where they are when it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from herdbook.__main__ import main
from herdbook.surfaces.cli.commands import bench


def test_a_kind_of_ones_own_is_lived_through(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Kinds that nobody has tuned for could not be run."""
    root = bench.checkout()
    assert root is not None
    mine = tmp_path / "mine.toml"
    mine.write_text((root / "bench/fleet/scenarios/ci.toml").read_text(encoding="utf-8"), encoding="utf-8")
    asked = ["bench", "fleet", "--scenario", str(mine), "--seeds", "7", "--policies", "nothing,oracle", "--runs", "2"]
    assert 0 == main([*asked, "--embed", "off"])
    told = capfd.readouterr().out
    assert [True, True, False] == [policy in told for policy in ("nothing", "oracle", "herdbook-rrf")]


def test_without_a_checkout_it_says_where_they_are(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback would be all that somebody who installed the package sees."""
    monkeypatch.setattr(bench, "checkout", lambda: None)
    assert 0 != main(["bench", "fleet"])
    assert "clone it" in capsys.readouterr().err
