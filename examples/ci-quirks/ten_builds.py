"""Ten builds of one project in ten fresh boxes: what does each cost, with a record and without one?

A builder without a model tries the usual suspects, one variable at a time, until the suite is green; its cost is how often the
suite ran. With a record it does the same through `herdbook run --learn`, and each box begins with what earlier ones found out.
A box is a folder of its own, with an environment and a home of its own; all it shares with the others is the server's address
and key.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
BUILDS = 10
SUSPECTS = [
    ("CI", "true"),
    ("TZ", "UTC"),
    ("RETRY_BUDGET", "3"),
    ("SEED_DEMO_DATA", "1"),
    ("NODE_ENV", "test"),
    ("PYTHONINTMAXSTRDIGITS", "0"),
    ("FORCE_COLOR", "0"),
    ("PYTHONHASHSEED", "0"),
]
Try = Callable[[dict[str, str]], tuple[int, int]]  # the variables set by hand -> exit code, tests that failed


def search(run: Try) -> int:
    """Add one suspect at a time, keep what makes fewer tests fail; how often the suite ran until it was green."""
    kept: dict[str, str] = {}
    code, failing = run(kept)
    runs = 1
    for name, value in SUSPECTS:
        if code == 0:
            break
        code, now = run({**kept, name: value})
        runs += 1
        if now < failing:
            kept, failing = {**kept, name: value}, now
    if code != 0:
        raise SystemExit(f"no suspect made the suite pass: {failing} tests still fail")
    return runs


def tries(command: list[str], box: Path, more: dict[str, str]) -> Try:
    """A run of the suite in this box, whose environment is that of a machine nobody has set up."""
    base = {"PATH": os.environ["PATH"], "HOME": str(box)}
    if "PYTHONPATH" in os.environ:
        base["PYTHONPATH"] = os.path.abspath(os.environ["PYTHONPATH"])

    def run(by_hand: dict[str, str]) -> tuple[int, int]:
        answer = subprocess.run(command, cwd=box, env={**base, **more, **by_hand}, check=False, capture_output=True, text=True)
        return answer.returncode, len(re.findall(r"^FAILED ", answer.stderr, re.MULTILINE))

    return run


def main() -> int:
    scratch = Path(tempfile.mkdtemp(prefix="ci-quirks-"))
    key = scratch / "key"
    key.write_text(os.urandom(24).hex())
    key.chmod(0o600)
    server = subprocess.Popen(
        [sys.executable, "-m", "herdbook", "serve", "--port", "0", "--key-file", str(key), "--json"],
        env={**os.environ, "HERDBOOK_HOME": str(scratch / "server")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        url = json.loads(server.stdout.readline())["url"]
        record = {"HERDBOOK_URL": url, "HERDBOOK_KEY": key.read_text()}
        costs = [(cost_of(build, scratch, {}), cost_of(build, scratch, record)) for build in range(1, BUILDS + 1)]
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
        shutil.rmtree(scratch)
    draw(costs)
    return 0


def cost_of(build: int, scratch: Path, record: dict[str, str]) -> int:
    """The runs of the suite that one build took, in a box that nobody has used before."""
    box = scratch / f"box-{build}{'-with-record' if record else ''}"
    box.mkdir()
    shutil.copy(HERE / "suite.py", box)
    suite = [sys.executable, "suite.py", str(build)]
    wrapped = [
        sys.executable,
        "-m",
        "herdbook",
        "run",
        "--entity",
        "acme/shop/ci",
        "--task",
        "make the suite pass",
        "--learn",
        "--",
    ]
    home = {"HERDBOOK_HOME": str(box / "herdbook"), "HERDBOOK_AGENT": f"builder-{build}"}
    runs = search(tries([*wrapped, *suite] if record else suite, box, {**record, **home} if record else {}))
    shutil.rmtree(box)
    return runs


def draw(costs: list[tuple[int, int]]) -> None:
    print("runs of the suite until it is green, each build in a fresh box")
    print(f"{'build':>5}  {'without a record':<22}{'with one':<22}")
    for build, (without, within) in enumerate(costs, 1):
        print(f"{build:>5}  {without:>2} {'#' * without:<19}{within:>2} {'#' * within}")
    totals = [sum(column) for column in zip(*costs, strict=True)]
    print(f"{'all':>5}  {totals[0]:>2} {'':<19}{totals[1]:>2}")


if __name__ == "__main__":
    sys.exit(main())
