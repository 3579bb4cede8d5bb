"""What a watch makes of a log that is not there, is no file, or says nothing: it is said, and it is never quiet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from herdbook.watch.actor.observing import Watched, observe
from herdbook.watch.feeding import Feeder
from herdbook.watch.findings import Line, RevisionState
from herdbook.watch.sources.choose import in_box
from herdbook.watch.sources.file import FileSource
from herdbook.watch.sources.protocol import Page, Unreadable

T0 = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def test_a_pipe_or_a_device_in_place_of_a_log_is_said_and_hangs_nothing(tmp_path: Path) -> None:
    """The worker would wait for ever for somebody to write into it, or read zeros for as long."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (str(pipe), "/dev/zero", str(tmp_path)):
        with pytest.raises(Unreadable, match=r"no plain file|directory"):
            FileSource({"path": path}).tail("api", repr(T0))
        assert RevisionState(detail="the file with the state of the revisions cannot be read") == FileSource(
            {"path": path, "state": path}
        ).revision_state("api")


def test_a_line_of_json_without_end_is_text(tmp_path: Path) -> None:
    """Whoever can write a log line could end the watch."""
    log = tmp_path / "app.log"
    log.write_text('{"a":' * 50_000 + "\n")
    [line] = FileSource({"path": str(log), "begins": "first line"}).tail("api", repr(T0)).lines
    assert line.text.startswith('{"a":')


def test_what_the_host_cannot_read_is_said_in_the_box_until_it_can(tmp_path: Path) -> None:
    """A log that nobody could read would be one without a line in it: a quiet release."""
    log, box = tmp_path / "app.log", tmp_path / "box"

    def put(path: str, data: bytes) -> None:
        (box / path).parent.mkdir(parents=True, exist_ok=True)
        (box / path).write_bytes(data)

    feeder = Feeder("api", FileSource({"path": str(log)}), since=T0)
    fed = in_box("file", {}, "unix:/x:/", str(box / "logs" / "api"))
    feeder.feed(put)
    seen = Watched("api", repr(T0))
    seen.read(fed)
    assert "there is no log of api" in seen.unreadable
    log.write_text("")
    feeder.feed(put)
    log.write_text("served\n")
    feeder.feed(put)
    seen.read(fed)
    assert ("", ["served"]) == (seen.unreadable, [line.text for line in seen.lines])


@pytest.mark.parametrize("lines, state, quiet", [([], {}, False), (["served"], {}, True), ([], {"newest": "r2"}, True)])
def test_who_saw_nothing_at_all_does_not_call_it_quiet(lines: list[str], state: dict[str, Any], quiet: bool) -> None:
    """A wrong unit or selector would make every release a success of all that is known."""

    class Told:
        def tail(self, service: str, since: str) -> Page:
            return Page(tuple(Line(each) for each in lines), since)

        def revision_state(self, service: str) -> RevisionState:
            return RevisionState(**state)

    [seen] = observe({"api": Told()}, [], since=T0, seconds=0, poll_seconds=1)
    assert quiet == (not seen.unreadable), seen.unreadable
