"""The actor: brief, compare, watch, classify, write, say what was found. It holds no credential and decides nothing that hurts.

Its order is the point: what is known is read before a log is opened. What it prints is for its host, one JSON object a line; the
host asks the gates, tells people and drafts, each from outside this box.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from herdbook.client import Client, HerdbookError
from herdbook.watch.actor import changes as change
from herdbook.watch.actor import entries, hand
from herdbook.watch.actor.observing import Watched, observe
from herdbook.watch.findings import Classification, Signals
from herdbook.watch.rules import NOISE, UNEXPLAINED
from herdbook.watch.sources.choose import in_box
from herdbook.watch.sources.web import Web

if TYPE_CHECKING:
    from collections.abc import Sequence

BRIEFING_TOKENS = 64_000  # code reads it, not a model: a class that is left out would be a first sighting
FAILED = 4
LOG_CHARS_FOR_AGENT = 40_000
FINDING_BYTES_MAX = 400_000


class Actor:
    """One run over one task."""

    def __init__(self, task: dict[str, Any], book: Client) -> None:
        self.task, self.book, self.entity = task, book, task["entity"]
        self.gateway = f"{os.environ['HERDBOOK_URL']}:/v1/gateway/"
        self.began = time.time()

    def run(self) -> dict[str, Any]:
        briefing = self.book.brief(self.entity, task=self.task["task_input"], tokens=BRIEFING_TOKENS)
        known = entries.classes_of(briefing)
        tell("briefed", session=self.book.session, known=briefing["known"], classes=[each.key for each in known])
        compared = self.compare()
        watched = self.watch(known)
        noisy = [each for each in watched if each.found.label != NOISE]
        return self.leave(compared, watched, noisy)

    def compare(self) -> dict[str, Any]:
        web = Web(self.gateway + self.task["github"]) if self.task["github"] else None
        found = {
            name: change.compared(web, name, shas, self.task["promotion"]) for name, shas in self.task["repositories"].items()
        }
        for name, each in found.items():
            told = {"compare": each["compare"], "commits": len(each.get("commits", ())), "files": each.get("files", [])}
            self.book.action(
                "compare",
                {"repository": name, "before": each["before"], "after": each["after"]},
                told,
                ok=each["compare"] != "unavailable",
            )
        tell("compared", changelog=change.changelog(found))
        return found

    def watch(self, known: Sequence[Any]) -> list[Watched]:
        task = self.task
        sources = {
            name: in_box(each["source"], each["options"], self.gateway, f"logs/{name}") for name, each in task["services"].items()
        }
        since = self.began - task["lookback_seconds"]
        watched = observe(
            sources, known, since=since, seconds=task["watch_seconds"] if sources else 0, poll_seconds=task["poll_seconds"]
        )
        watched += [Watched(name, "0", unreadable="no source is set up for it in watch.toml") for name in task["unknown"]]
        if task["kind"] == "alert":
            watched = [self.alerted(watched)]
        for each in watched:
            result = {
                "label": each.found.label,
                "pages": each.pages,
                "lines": len(each.lines),
                "dropped": each.dropped,
                "rules": list(each.found.signals.rules),
                **({"unreadable": each.unreadable} if each.unreadable else {}),
            }
            self.book.action(
                "watch", {"service": each.name, "seconds": round(time.time() - self.began, 3)}, result, ok=not each.unreadable
            )
        return watched

    def alerted(self, watched: Sequence[Watched]) -> Watched:
        """An alert is not argued with: whatever its logs say, there is something to diagnose."""
        seen = watched[0]
        if seen.found.label == NOISE:
            states = (
                f"alerted by {self.task['alert']['source']}: {self.task['alert']['title']}",
                seen.unreadable or "nothing in its logs",
            )
            seen.found = Classification(UNEXPLAINED, Signals(states=states, seen=(UNEXPLAINED,)))
        return seen

    def leave(self, compared: dict[str, Any], watched: list[Watched], noisy: list[Watched]) -> dict[str, Any]:
        """The entries, the outcome of a quiet watch, and the finding for the host."""
        quiet = bool(watched) and not noisy and not any(each.unreadable for each in watched)  # not read is not quiet
        written, links = [], []
        if self.task["kind"] == "deploy":
            deploy = entries.write_deploy(
                self.book, self.entity, self.task["key"], compared, watched, change.changelog(compared), quiet=quiet
            )
            written.append(deploy)
            links = [{"rel": "see_also", "entity": self.entity, "key": self.task["key"]}]
        found = [self.diagnose(each, compared, links, written) for each in noisy]
        finding = {
            "session": self.book.session,
            "quiet": quiet,
            "unreadable": {each.name: each.unreadable for each in watched if each.unreadable},
            "findings": found,
            "written": [f"{each['entity']} {each['key']} {each['version']}" for each in written],
            "changed": {name: each.get("files", []) for name, each in compared.items()},
            "reverts": [sha for each in compared.values() for sha in each.get("reverts", [])],
            "commits": [commit["sha"] for each in compared.values() for commit in each.get("commits", [])],
            "pages": sum(each.pages for each in watched),
            "seconds": round(time.time() - self.began, 3),
        }
        if quiet:
            self.commit(finding)
        return bounded(finding)

    def diagnose(
        self, seen: Watched, compared: dict[str, Any], links: list[dict[str, Any]], written: list[Any]
    ) -> dict[str, Any]:
        found = seen.found
        given = {
            "finding.json": {"label": found.label, "signals": asdict(found.signals)},
            "changes.json": compared,
            "logs.txt": "\n".join(line.text for line in seen.lines)[-LOG_CHARS_FOR_AGENT:],
        }
        model = {"ANTHROPIC_BASE_URL": self.gateway + self.task["model"]} if self.task["model"] else {}
        worked = hand.asked(self.task["agent"], f"agent-{seen.name}", given, env=model)
        about = {
            "deploy": self.task["key"] if links else None,
            "alert": self.task["alert"] or None,
            "diagnosis": worked["diagnosis"],
            "agent": worked["agent"],
            "proposed": sorted(worked["files"]),
        }
        written.append(entries.write_diagnosis(self.book, self.entity, seen.name, seen, about, links))
        incident = entries.write_incident(self.book, self.entity, seen.name, seen, links, at=self.began)
        written.append(incident)
        match = found.matched
        return {
            "service": seen.name,
            "label": found.label,
            "signals": asdict(found.signals),
            "class": None if match is None else {"entity": match.entity, "key": match.key, "version": match.version},
            "incident": incident["key"],
            "diagnosis": worked["diagnosis"],
            "agent": worked["agent"],
            "files": worked["files"],
        }

    def commit(self, finding: dict[str, Any]) -> None:
        """A quiet watch is a success of everything it was briefed with, at once."""
        artifacts = {name: finding[name] for name in ("written", "pages", "seconds", "quiet", "reverts", "commits")}
        self.book.commit_outcome(self.task["ref"], "success", task_input=self.task["task_input"], artifacts=artifacts)


def bounded(finding: dict[str, Any]) -> dict[str, Any]:
    """What its host can keep with the job: proposed files are left out before anything is shortened, and that is said."""
    if len(json.dumps(finding)) > FINDING_BYTES_MAX:
        for each in finding["findings"]:
            if each["files"]:
                each.update(files={}, agent=f"{each['agent']}; its files are left out, there is too much to tell")
    shortened: dict[str, Any] = entries.fitting(finding, FINDING_BYTES_MAX)
    return shortened


def tell(event: str, **more: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()


def main() -> int:
    with open("task.json", encoding="utf-8") as file:
        task = json.load(file)
    try:
        with Client(
            agent="watch-actor", session=task["session"], entity=task["entity"], task=task["task_input"], timeout_seconds=30.0
        ) as book:
            finding = Actor(task, book).run()
        tell("finding", **finding)
    except HerdbookError as problem:
        tell("stopped", message=f"the record refused, or cannot be reached: {problem.message}")
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
