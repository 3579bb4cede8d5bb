"""The demo's agent, pushed into a box beside client.py: standard library only, Python >= 3.8, no model behind it.

It learns what a person at a terminal would learn, the suite's exit code and the names of failing tests; it never opens the
project's code. What it finds goes into the record with the reason. What it inherits it runs exactly once, and where an entry is
missing it says so and fails, rather than search again. Standard output is one JSON object a line, for the host.

    python3 agent.py ask|search|inherit|load|reread --entity PATH [--load]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from herdbook import client
else:
    import client

HOME = os.path.dirname(os.path.abspath(__file__))
SUITE = os.path.join(HOME, "checkout")
SUITE_SECONDS_MAX = 120
STOPPED = 3  # the exit code for what is neither a green nor a red suite

SETTINGS = {"rounding-mode": "ROUNDING_MODE", "retry-budget": "RETRY_BUDGET"}  # the record's key -> the suite's variable
ROUNDING_MODES = ("half_up", "half_even")
RETRY_BUDGETS = ("1", "3", "5")
RETRY_BUDGET_MAX = 16
AT_REST, UNDER_LOAD = "Get the checkout suite green.", "Get the checkout suite green under load."


class Stop(Exception):
    """This run cannot go on; the message says why."""


class Run:
    """One run of the suite."""

    def __init__(self, settings: dict[str, str], *, load: bool) -> None:
        self.settings, self.load = settings, load
        began = time.monotonic()
        done = suite_process(settings, load=load)
        self.seconds = round(time.monotonic() - began, 3)
        self.failing = sorted(set(re.findall(r"^(?:FAIL|ERROR): (\w+)", done.stderr, re.MULTILINE)))
        self.tests = sum(int(count) for count in re.findall(r"^Ran (\d+) test", done.stderr, re.MULTILINE))
        self.exit_code = done.returncode
        if self.tests == 0:  # Python before 3.12 calls that a success
            raise Stop(f"the suite in {SUITE} ran no tests: {done.stderr.strip()[-500:]}")

    @property
    def passed(self) -> bool:
        return self.exit_code == 0

    def told(self) -> dict[str, Any]:
        names = ("settings", "load", "passed", "exit_code", "failing", "tests", "seconds")
        return {name: getattr(self, name) for name in names}


def suite_process(settings: dict[str, str], *, load: bool) -> subprocess.CompletedProcess[str]:
    """Run the tests with these settings and no others; the project gets nothing of the agent's own environment."""
    ours = {*SETTINGS.values(), "LOAD"}
    inherited = {name: text for name, text in os.environ.items() if name not in ours and not name.startswith("HERDBOOK_")}
    environment = {**inherited, "PYTHONDONTWRITEBYTECODE": "1", "LOAD": "1" if load else "0", **settings}
    is_package = os.path.exists(os.path.join(SUITE, "__init__.py"))
    command = [sys.executable, "-m", "unittest"]
    where = HOME if is_package else SUITE
    try:
        return subprocess.run(
            command, cwd=where, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SUITE_SECONDS_MAX, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Stop(f"the suite did not end within {SUITE_SECONDS_MAX} seconds") from None


class Work:
    """One session of this agent on one task: what it was told, what it tried, how it ended."""

    def __init__(self, book: client.Client, entity: str, *, load: bool) -> None:
        self.book, self.entity, self.load = book, entity, load
        self.runs: list[Run] = []
        self.briefing: dict[str, Any] = {}

    def brief(self) -> None:
        self.briefing = self.book.brief(self.entity, task=self.book.task, names=True)
        seen = ("key", "version", "value", "why", "author", "box", "standing", "acting", "confidence", "evidence")
        entries = [{name: entry.get(name) for name in seen} for entry in self.briefing["entries"]]
        tell("known", known=self.briefing["known"], entries=entries, session=self.book.session)

    def inherited(self) -> dict[str, str]:
        """The variables of the entries that stand; Stop names every one that is missing."""
        found, left_out = client.environment(self.briefing)
        reasons = {one["key"]: one["reason"] for one in [*self.briefing["left_out"]["names"], *left_out]}
        lost = {key: reasons.get(key, "nobody has written it") for key, name in SETTINGS.items() if name not in found}
        if lost:
            named = "; ".join(f"{key} is missing ({why})" for key, why in lost.items())
            raise Stop(f"cannot start from what is known about {self.entity}: {named}. The suite was not run.")
        return {name: found[name] for name in SETTINGS.values()}

    def stood_on(self, settings: dict[str, str]) -> list[dict[str, Any]]:
        """The acting entries that say what these settings say."""
        acting = [entry for entry in self.briefing["entries"] if entry["acting"]]
        return [entry for entry in acting if any(settings.get(name) == text for name, text in env_of(entry).items())]

    def run(self, settings: dict[str, str]) -> Run:
        """Run the suite once, and put the try and what it stood on into the record."""
        run = Run(settings, load=self.load)
        self.runs.append(run)
        tell("run", number=len(self.runs), **run.told())
        shown = " ".join(f"{name}={text}" for name, text in settings.items())
        self.book.action("suite", {"settings": settings, "load": self.load}, {"failing": run.failing}, ok=run.passed)
        used = self.stood_on(settings)
        charged = used if run.passed else blamed(self.briefing["entries"], used, run.failing)
        self.book.attempt("success" if run.passed else "failure", charged, note=shown)
        return run

    def write(self, key: str, text: str, *, why: str, settles: list[str]) -> None:
        value: dict[str, Any] = {"env": {SETTINGS[key]: text}}
        if settles:
            value["settles"] = settles
        answer = self.book.write(self.entity, key, value, why=why)
        tell("wrote", key=key, version=answer["version"], supersedes=answer["supersedes"], value=value, why=why)

    def finish(self) -> int:
        """Say how the last run ended, to the record and as this program's exit code, which is what the host attests."""
        last = self.runs[-1]
        suffix = self.entity.rpartition("/")[2]
        ref = f"{suffix}:{self.book.agent}:{'load' if self.load else 'rest'}:{self.book.session[-6:]}"
        artifacts = {"settings": last.settings, "runs": len(self.runs), "failing": last.failing}
        used = self.stood_on(last.settings) or None
        answer = self.book.commit_outcome(
            "success" if last.passed else "failure", ref=ref, task_input=self.book.task, used=used, artifacts=artifacts
        )
        told = {name: answer.get(name) for name in ("ref", "type", "moved", "trainable")}
        tell("outcome", session=self.book.session, exit_code=last.exit_code, **told)
        return last.exit_code


def ask(work: Work) -> int:
    work.brief()
    return 0


def search(work: Work) -> int:
    """Try the matrix until the suite is green, then write down what made the difference."""
    work.brief()
    for mode in ROUNDING_MODES:
        for budget in RETRY_BUDGETS:
            if work.run({"ROUNDING_MODE": mode, "RETRY_BUDGET": budget}).passed:
                for key, name in SETTINGS.items():
                    settles = settled_by(name, work.runs)
                    work.write(key, work.runs[-1].settings[name], why=reason(name, work.runs, settles), settles=settles)
                return work.finish()
    return work.finish()


def inherit(work: Work) -> int:
    """Start from what others worked out, and run the suite once: red is red."""
    work.brief()
    work.run(work.inherited())
    return work.finish()


def load(work: Work) -> int:
    """Start from what is known; where that is not enough, raise the budget one by one, and supersede the entry."""
    work.brief()
    settings = work.inherited()
    known = next(entry for entry in work.stood_on(settings) if "RETRY_BUDGET" in env_of(entry))
    first = whole_number(settings["RETRY_BUDGET"])
    for budget in range(first, RETRY_BUDGET_MAX + 1):
        if work.run({**settings, "RETRY_BUDGET": str(budget)}).passed:
            if budget > first:
                settles = settled_by("RETRY_BUDGET", work.runs)
                work.write("retry-budget", str(budget), why=superseding(known, work.runs, settles), settles=settles)
            break
    return work.finish()


def reread(work: Work) -> int:
    """What is known now, and how the retry budget came to be what it is."""
    work.brief()
    tell("history", key="retry-budget", versions=work.book.history(work.entity, "retry-budget")["versions"])
    return 0


def env_of(entry: dict[str, Any]) -> dict[str, str]:
    value = entry["value"]
    found = value.get("env") if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def blamed(known: list[dict[str, Any]], used: list[dict[str, Any]], failing: list[str]) -> list[dict[str, Any]]:
    """What a red run is charged to: the used entries that claim to settle a failing test; all of them if no entry claims it."""
    claimed = {test for entry in known for test in settles_of(entry)}
    if not set(failing) <= claimed:
        return used
    return [entry for entry in used if settles_of(entry) & set(failing)]


def settles_of(entry: dict[str, Any]) -> set[str]:
    value = entry["value"]
    found = value.get("settles") if isinstance(value, dict) else None
    return set(map(str, found)) if isinstance(found, list) else set()


def settled_by(name: str, runs: list[Run]) -> list[str]:
    """The tests that failed in runs which differ from the last, green one in this variable alone."""
    green = runs[-1]
    alike = [run for run in runs[:-1] if {**run.settings, name: green.settings[name]} == green.settings]
    return sorted({test for run in alike for test in run.failing})


def reason(name: str, runs: list[Run], settles: list[str]) -> str:
    """Why this value, from the runs alone."""
    text = runs[-1].settings[name]
    if not settles:
        return f"The suite is green with {name}={text}; nothing else was compared."
    others = listed(run.settings[name] for run in runs[:-1] if run.settings[name] != text and set(settles) & set(run.failing))
    tests = " and ".join(settles)
    return f"{tests} fails with {name}={others} and passes with {text}. Found by trying: the suite is what says so."


def superseding(known: dict[str, Any], runs: list[Run], settles: list[str]) -> str:
    tried = listed(run.settings["RETRY_BUDGET"] for run in runs[:-1])
    found = runs[-1].settings["RETRY_BUDGET"]
    tests = " and ".join(settles)
    before = f"version {known['version']}, a budget of {env_of(known)['RETRY_BUDGET']} by {known['author']}"
    return f"Supersedes {before}: under load {tests} still fails with {tried}, and {found} is the least that passes."


def listed(texts: Any) -> str:
    """`1`, `3 or 4`, `1, 2 or 3`: each once, in order of appearance."""
    *most, last = dict.fromkeys(texts)
    return f"{', '.join(most)} or {last}" if most else str(last)


def whole_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= RETRY_BUDGET_MAX):
        raise Stop(f"the known RETRY_BUDGET {text!r} is not a number from 1 to {RETRY_BUDGET_MAX}")
    return int(text)


def tell(event: str, **more: Any) -> None:
    print(json.dumps({"event": event, **more}), flush=True)


COMMANDS = {"ask": ask, "search": search, "inherit": inherit, "load": load, "reread": reread}


def main() -> int:
    parser = argparse.ArgumentParser(description="The agent of the herdbook demo.")
    parser.add_argument("command", choices=sorted(COMMANDS))
    parser.add_argument("--entity", required=True)
    parser.add_argument("--load", action="store_true", help="for inherit: the suite's load variant")
    asked = parser.parse_args()
    under_load = asked.load or asked.command == "load"
    try:
        with client.Client(entity=asked.entity, task=UNDER_LOAD if under_load else AT_REST) as book:
            return COMMANDS[asked.command](Work(book, asked.entity, load=under_load))
    except Stop as stop:
        tell("stopped", message=str(stop))
    except client.HerdbookError as error:
        tell("stopped", message=f"the record refused, or cannot be reached: {error.message}")
    return STOPPED


if __name__ == "__main__":
    sys.exit(main())
