"""Three fan-outs of eight attempts over 24 configurations of a real test suite, with the dead-end board and without it.

The space is two rounding modes by twelve retry budgets, under load; eight of them pass, and they come last, as they do where the
order says nothing. With the board each fan-out begins where the one before ended; without it each begins at the beginning.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.timing import Claim, Result, Scale
from herdbook.surfaces.demo.stage import OWN

ENTITY = "bench/checkout"
FAN_OUTS, ATTEMPTS = 3, 8
BUDGETS = ",".join(str(number) for number in range(1, 13))
SPACE = ["--vary", "LOAD=1", "--vary", "ROUNDING_MODE=half_up,half_even", "--vary", f"RETRY_BUDGET={BUDGETS}"]


def fan_out(home: Path, files: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "herdbook", "fanout", ENTITY, "--files", str(files), *SPACE]
    command += ["--boxes", str(ATTEMPTS), "--at-once", "2", "--json", "--", "python3", "-m", "unittest", "checkout.test_checkout"]
    env = {name: text for name, text in os.environ.items() if not name.startswith("HERDBOOK_")}
    done = subprocess.run(command, env={**env, "HERDBOOK_HOME": str(home)}, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measured(place: Path, *, board: bool) -> list[dict[str, Any]]:
    """What each of the three cost. Without the board, each has a record that knows nothing."""
    files = place / "files" / "checkout"
    files.mkdir(parents=True, exist_ok=True)
    for path in (OWN / "suite").glob("*.py"):
        (files / path.name).write_bytes(path.read_bytes())
    seen: set[str] = set()
    rows = []
    for number in range(FAN_OUTS):
        found = fan_out(place / ("with" if board else f"without-{number}"), files.parent)
        tried = [each["approach"] for each in found["attempts"] if each["state"] in ("won", "failed", "ended")]
        rows.append(
            {
                "board": board,
                "fan_out": number + 1,
                "attempts": len(tried),
                "repeated": len(seen & set(tried)),
                "skipped": sum(each["state"] == "skipped" for each in found["attempts"]),
                "box_seconds": found["box_seconds"],
                "winner": found["winner"],
            }
        )
        seen |= {each["approach"] for each in found["attempts"] if each["state"] == "failed"}
    return rows


def claims(scale: Scale) -> Iterator[Result]:
    """One pass: what is counted does not vary, and the seconds are a detail."""
    with tempfile.TemporaryDirectory() as place:
        with_board = measured(Path(place), board=True)
        without = measured(Path(place), board=False)
    for told in (*with_board, *without):
        scale.say(f"  {told}")
    yield Claim(
        name="fanout.repeats",
        says="attempts at a known dead end in three fan-outs that share a board",
        samples=(float(sum(row["repeated"] for row in with_board)),),
        sense="at most",
        bound=0.0,
        unit="attempts",
        detail={"without_the_board": float(sum(row["repeated"] for row in without))},
    )
    yield Claim(
        name="fanout.found",
        says="configurations of 24 looked at in three fan-outs of eight with the board, against without it",
        samples=(looked_at(with_board) / looked_at(without),),
        sense="at least",
        bound=2.0,
        detail={
            "box_seconds_with": sum(row["box_seconds"] for row in with_board),
            "box_seconds_without": sum(row["box_seconds"] for row in without),
            "won_in_fan_out": float(next((row["fan_out"] for row in with_board if row["winner"]), 0)),
        },
    )


def looked_at(rows: list[dict[str, Any]]) -> int:
    return sum(row["attempts"] - row["repeated"] for row in rows)
