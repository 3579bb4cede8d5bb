"""What a bubblewrap box costs beside bare `bwrap`, and fifty of them at once."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import DEVNULL, run

from bench.timing import Claim, Result, Scale, interleave, ratios
from herdbook.boxes import recipe
from herdbook.boxes.bubblewrap import Bubblewrap
from herdbook.boxes.provider import BoxSpec

ROUNDS, AT_ONCE = 10, 50
ONE_LINER = "print(1)"


def claims(scale: Scale) -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as place:
        provider = Bubblewrap(Path(place) / "boxes")
        turns = interleave({"box": lambda: boxes(provider), "bare": lambda: bare(provider.bwrap)}, scale.passes)
        yield Claim(
            name="boxes.one",
            says="create a bubblewrap box, run a Python one-liner, destroy it, against bare bwrap python -c ''",
            samples=ratios(turns["box"], turns["bare"]),
            sense="at most",
            bound=4.0,
            detail={"box_ms": min(turns["box"]) * 1e3, "bare_ms": min(turns["bare"]) * 1e3},
        )
        began = time.perf_counter()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            ended = list(pool.map(lambda number: life(provider, f"at-once-{number}"), range(AT_ONCE)))
        yield Claim(
            name="boxes.at_once",
            says=f"of {AT_ONCE} boxes at once, those that complete",
            samples=(float(sum(code == 0 for code in ended)),),
            sense="at least",
            bound=float(AT_ONCE),
            unit="boxes",
            detail={"seconds": time.perf_counter() - began, "left": float(len(provider.list()))},
        )


def life(provider: Bubblewrap, name: str) -> int:
    """A whole one."""
    box = provider.create(BoxSpec(id=name, label="bench"))
    execution = provider.exec(box, [box.python, "-c", ONE_LINER])
    for _ in execution:
        pass
    provider.destroy(box.id)
    return execution.exit.code


def boxes(provider: Bubblewrap) -> float:
    began = time.perf_counter()
    for number in range(ROUNDS):
        assert life(provider, f"b-{number}") == 0
    return (time.perf_counter() - began) / ROUNDS


def bare(bwrap: str) -> float:
    """The smallest sandbox that runs the same interpreter."""
    python = recipe.interpreter()
    mounts = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    command = [bwrap, "--unshare-all", "--die-with-parent", *mounts, "--", python.program, "-c", ""]
    began = time.perf_counter()
    for _ in range(ROUNDS):
        run(command, check=True, stdout=DEVNULL, stderr=sys.stderr, env={})
    return (time.perf_counter() - began) / ROUNDS
