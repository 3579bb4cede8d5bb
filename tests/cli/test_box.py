"""Boxes at the command line: listed, reaped when nobody keeps them, removed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import herdbook as library
from herdbook.boxes.provider import BoxSpec
from herdbook.boxes.providers import by_name

DEAD = "nowhere.invalid:1:1"


@pytest.fixture
def left(herdbook, tmp_path):
    """Leave a box and its row behind, as a host that was killed would."""
    home = tmp_path / ".local" / "share" / "herdbook"

    def leave(box: str, *, lease_seconds: int = 120) -> Path:
        provider = by_name("unsafe-process", home / "boxes")
        with library.open(agent="host") as client:
            client.box_open(
                box=box, provider=provider.name, isolation="process", label="left", owner=DEAD, lease_seconds=lease_seconds
            )
        provider.create(BoxSpec(id=box, label="left"))
        return home / "boxes" / "unsafe-process" / "boxes" / f"left@{box}"

    return leave


def test_no_boxes_to_reap_are_no_kept_ones(herdbook) -> None:
    """Whoever has no box would be told that somebody keeps them."""
    herdbook("init")
    assert (0, "Nothing to reap: no box is live.\n") == (herdbook("box", "reap").code, herdbook("box", "reap").out)


def test_boxes_are_listed(herdbook, left) -> None:
    """Nobody could see what is running, or what a crash left behind."""
    left("box-1")
    told = herdbook("box", "ls", "--live")
    assert (0, "") == (told.code, told.err)
    assert "box-1  left  unsafe-process (process)  open" in told.out
    assert ["box-1"] == [each["box"] for each in herdbook("box", "ls", "--label", "left", "--json").json["boxes"]]
    assert "There are no boxes.\n" == herdbook("box", "ls", "--label", "other").out


def test_a_box_is_removed_once(herdbook, left) -> None:
    """A box that a person wants gone would stay, or its row would stay open."""
    place = left("box-1")
    assert place.is_dir()
    for _ in range(2):
        told = herdbook("box", "rm", "box-1")
        assert (0, "box-1 is gone\n") == (told.code, told.out)
    assert not place.exists()
    assert [("closed", "removed by hand")] == [
        (each["state"], each["detail"]) for each in herdbook("box", "ls", "--json").json["boxes"]
    ]


def test_a_box_nobody_knows_is_not_found(herdbook, left) -> None:
    """A mistyped name would look like a box that is gone now."""
    left("box-1")
    assert 4 == herdbook("box", "rm", "box-2").code


@pytest.mark.slow
def test_what_nobody_keeps_is_reaped(herdbook, left) -> None:
    """Boxes of a killed host would pile up for ever, and boxes that are kept would be taken from their hosts."""
    kept, dead = left("box-1"), left("box-2", lease_seconds=1)
    orphan = kept.with_name("left@box-3")
    by_name("unsafe-process", kept.parents[2]).create(BoxSpec(id="box-3", label="left"))
    told = wait_and_reap(herdbook)
    assert {("box-2", "its lease ran out"), ("box-3", "no open row knows it")} == {(each["box"], each["why"]) for each in told}
    assert (True, False, False) == (kept.exists(), dead.exists(), orphan.exists())
    assert "Every box is kept by somebody.\n" == herdbook("box", "reap").out


def wait_and_reap(herdbook) -> list[dict]:
    """Reap after the short lease has run out by the record's clock."""
    while any(each["live"] for each in herdbook("box", "ls", "--json").json["boxes"] if each["box"] == "box-2"):
        pass
    return herdbook("box", "reap", "--json").json["reaped"]
