"""The demo in this process, put together as the command does it, for tests that look at it from inside."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from herdbook.base import settings
from herdbook.boxes.host import Host
from herdbook.boxes.providers import by_name
from herdbook.surfaces.demo import command
from herdbook.surfaces.demo.acts import Play
from herdbook.surfaces.demo.narration import Narration
from herdbook.surfaces.demo.stage import LABEL, OWN, Stage, suite_files
from herdbook.wiring import BoxWiring

SUITE = OWN / "suite"
UNSAFE = "unsafe-process"  # for tests of the acts: they run on every machine


@contextlib.contextmanager
def wired(home: Path) -> Iterator[BoxWiring]:
    """The record and the sockets of the command itself, under one home."""
    wiring = BoxWiring(settings.load({"HERDBOOK_HOME": str(home)}))
    try:
        yield wiring
    finally:
        wiring.close()


@dataclass(frozen=True)
class Told:
    """What one run of the demo came to."""

    code: int
    out: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def acts(self, number: int) -> list[dict[str, Any]]:
        return [act for act in self.json["acts"] if act["number"] == number]


def demo(home: Path, *argv: str) -> Told:
    """`herdbook demo ...` in this process, on a record under `home`."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    out = io.StringIO()
    with wired(home) as wiring, contextlib.redirect_stdout(out):
        code = command.run(wiring, parser.parse_args(argv))
    return Told(code, out.getvalue())


@contextlib.contextmanager
def stage(home: Path, *, provider: str = UNSAFE, suite: Path = SUITE) -> Iterator[Stage]:
    """A stage to play single turns on."""
    with wired(home) as wiring:
        book, made_by = wiring.open_record(), by_name(provider, wiring.boxes_dir)
        with Host(book, made_by, open_socket=wiring.open_socket, label=LABEL) as host:
            yield Stage(book, made_by, host, suite=suite_files(suite), suffix="test")


def play(on: Stage, entity: str = "acme/checkout") -> Play:
    return Play(on, Narration(None), entity, began=0.0)
