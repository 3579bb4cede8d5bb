"""Ten builds of one project in ten fresh boxes: what does each cost, with a record and without one?

A builder without a model tries the usual suspects, one variable at a time, until the suite is green; its cost is how often the
suite ran. With a record it does the same through `herdbook run --learn`, and each box begins with what earlier ones found out.
A box is a real one, as isolated as this machine can make it: no network, no files but the suite, destroyed after its build. The
builder's own home is new for each build, too; all that builds share is the server's address and key.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from herdbook.boxes.provider import BoxSpec, Provider
from herdbook.boxes.providers import choose

HERE = Path(__file__).resolve().parent
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


def tries(command: list[str], home: Path, more: dict[str, str]) -> Try:
    """A run of the suite, from the environment of a machine that nobody has set up."""
    base = {"PATH": os.environ["PATH"], "HOME": str(home)}
    if "PYTHONPATH" in os.environ:
        base["PYTHONPATH"] = os.path.abspath(os.environ["PYTHONPATH"])

    def run(by_hand: dict[str, str]) -> tuple[int, int]:
        answer = subprocess.run(command, cwd=home, env={**base, **more, **by_hand}, check=False, capture_output=True, text=True)
        if not re.search(r"^(?:\d+ failed|all passed)$", answer.stderr, re.MULTILINE):
            raise SystemExit(f"the suite did not run: {answer.stderr.strip()}")
        return answer.returncode, len(re.findall(r"^FAILED ", answer.stderr, re.MULTILINE))

    return run


@contextmanager
def served(scratch: Path) -> Iterator[dict[str, str]]:
    """A record of its own for these builds: how to reach it."""
    key = scratch / "key"
    key.write_text(os.urandom(24).hex())
    key.chmod(0o600)
    server = subprocess.Popen(
        [sys.executable, "-m", "herdbook", "serve", "--port", "0", "--key-file", str(key), "--json"],
        env={**os.environ, "HERDBOOK_HOME": str(scratch / "server"), "HERDBOOK_EMBED": "off"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield {"HERDBOOK_URL": json.loads(server.stdout.readline())["url"], "HERDBOOK_KEY": key.read_text()}
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def cost_of(build: int, boxes: Provider, scratch: Path, record: dict[str, str]) -> int:
    """The runs of the suite that one build took, in a box that nobody has used before."""
    name = f"build-{build}{'-with-record' if record else ''}"
    home = scratch / name
    home.mkdir()
    box = boxes.create(BoxSpec(id=name, label="ten-builds"))
    try:
        boxes.put(box, "suite.py", (HERE / "suite.py").read_bytes())
        suite = [sys.executable, str(HERE / "in_box.py"), boxes.name, str(scratch / "boxes"), name, "suite.py", str(build)]
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
        ]
        wrapped += ["--deadline", "60"]  # a machine may be busy, and it is not time that is measured here
        mine = {**record, "HERDBOOK_HOME": str(home / "herdbook"), "HERDBOOK_AGENT": f"builder-{build}"}
        return search(tries([*wrapped, "--", *suite], home, mine) if record else tries(suite, home, {}))
    finally:
        boxes.destroy(box.id)
        shutil.rmtree(home)


def draw(costs: list[tuple[int, int]], boxes: Provider) -> None:
    print(f"runs of the suite until it is green, each build in a fresh box ({boxes.name}, {boxes.isolation})")
    print(f"{'build':>5}  {'without a record':<22}{'with one':<22}")
    for build, (without, within) in enumerate(costs, 1):
        print(f"{build:>5}  {without:>2} {'#' * without:<19}{within:>2} {'#' * within}")
    totals = [sum(column) for column in zip(*costs, strict=True)]
    print(f"{'all':>5}  {totals[0]:>2} {'':<19}{totals[1]:>2}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--provider", default="auto", help="where boxes come from (the strongest that isolates here)")
    parser.add_argument("--builds", type=int, default=BUILDS, help="how many (10)")
    asked = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="ci-quirks-"))
    try:
        boxes = choose(asked.provider, state_dir=scratch / "boxes")
        with served(scratch) as record:
            numbers = range(1, asked.builds + 1)
            costs = [(cost_of(build, boxes, scratch, {}), cost_of(build, boxes, scratch, record)) for build in numbers]
        draw(costs, boxes)
    finally:
        shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
