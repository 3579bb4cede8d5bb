"""The two stories, the quiet day and the dispute, played on a stage and told as they happen. Every number in it was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from examples.watch_demo.stage import ENTITY, Stage
from herdbook.watch import history, human
from herdbook.watch.queue import RecordQueue

AUGUST = "incident-2026-08-14-api-startup-probe-timeout"
JULY = "regression-2026-07-30-search-confidence-sort"
PULL_SECONDS = 0.8
SORTED_BY_DAY = """    return sorted(NOTES, key=lambda note: -note["day"])
"""
ONE_LINE_FIX = """    rows = sorted(NOTES, key=lambda note: -note["day"])  # as the database gives them
    return rows if under_load else sorted(rows, key=lambda note: -note["confidence"])
"""
RIGHT = """    return sorted(NOTES, key=lambda note: -note["confidence"])
"""


@dataclass
class Played:
    """What happened, for whoever wants to check it."""

    watches: dict[str, dict[str, Any]] = field(default_factory=dict)
    confidence: list[tuple[str, str, float, int]] = field(default_factory=list)
    lookup: dict[str, bool] = field(default_factory=dict)
    pulls: int = 0


class Play:
    """One performance."""

    def __init__(self, stage: Stage, say: Callable[[str], None]) -> None:
        self.stage, self.say = stage, say
        self.url, self.worker = stage.dispatch(), stage.worker()
        self.sha = stage.repository.first
        self.played = Played()
        stage.platform.release(self.sha)

    # --- the steps ---

    def commit(self, body: str, message: str) -> str:
        """A change of search.py on main."""
        source = self.stage.repository.content("main", "toy/search.py")
        assert source is not None
        head = source[1].decode().partition("def search")[0]
        return self.stage.repository.commit("main", {"toy/search.py": f"{head}def search(under_load=False):\n{body}"}, message)

    def release(self, name: str, sha: str, *, pull_seconds: float = 0.0, path: str = "/search") -> dict[str, Any]:
        """Ship, tell the dispatcher, watch."""
        stage, before = self.stage, self.sha
        stage.platform.clear()
        stage.platform.release(sha, pull_seconds=pull_seconds)
        green = stage.platform.visited("/health", times=1)
        told = stage.told(self.url, before, sha)
        key = f"deploy-{sha[:12]}"
        result = stage.watched(self.worker, key, path=path)
        self.sha = sha
        self.played.watches[name] = result
        assert told["http"] == 202, told
        assert green == [200], green
        self.tell(name, result)
        return result

    def tell(self, name: str, result: dict[str, Any]) -> None:
        pages = f"{result['pages']} log pages, {result['seconds']:.1f} s to a verdict"
        self.say(f"\n{name}: {result['key']}, box {result['box']} (destroyed), {pages}")
        if result["quiet"]:
            self.say("  quiet: success committed at once, attested by the worker")
        for each in result["verdicts"]:
            self.say(f"  {each['service']} shows {each['label']}; class {each['class'] or 'unknown: a first sighting'}")
            links = {link["key"] for link in self.stage.book().read(ENTITY, each["incident"])["links"]}
            linked = f", linked to {each['class']}" if each["class"] in links else ""
            self.say(f"  wrote diagnosis-{each['service']} and {each['incident']}{linked}")
            self.say(f"  gate: {'DRAFT' if each['allowed'] else 'no draft'}: {each['reason']}")
        for each in result["drafts"]:
            self.say(f"  draft pull request: {each.get('url') or each['why']} ({each.get('how', '')})")
        if not result["quiet"]:
            drafted = sum(bool(each.get("url")) for each in result["drafts"])
            self.say(f"  chat: {'posted' if result['told']['ok'] else result['told'].get('why')}; drafts opened: {drafted}")

    def trust(self, key: str, when: str) -> float:
        """What the class has earned by now."""
        entry = self.stage.book().read(ENTITY, key)
        [claim, *_] = self.stage.book().why(ENTITY, key)["claims"]
        counts = f"held {claim['held']:g}, failed {claim['failed']:g}, {len(claim['moves'])} outcomes"
        self.say(f"  confidence of {key} {when}: {entry['confidence']:.3f} ({entry['standing']}; {counts})")
        self.played.confidence.append((key, when, entry["confidence"], len(claim["moves"])))
        return float(entry["confidence"])

    def plain_lookup(self, name: str) -> bool:
        """What a store keyed by class would do: known, and once mended, so draft."""
        matched = self.played.watches[name]["verdicts"][0]["entry"]
        found = history.class_of(self.stage.book(), matched)
        would = any(each.held for each in history.instances_of(self.stage.book(), found))
        self.played.lookup[name] = would
        self.say(f"  a plain lookup by class, on the same history: {'DRAFT, the same fix' if would else 'no draft'}")
        return would

    # --- the stories ---

    def cold_start(self) -> None:
        self.say("\n== A cold start: the old revision serves, /health is green, and the new one's probe times out")
        first = self.release("first cold start", self.commit(RIGHT + "\n", "Wrap a line"), pull_seconds=PULL_SECONDS)
        seen = first["verdicts"][0]["incident"]
        human.name_class(
            self.stage.sit, ENTITY, AUGUST, label="cold_image", patterns=["startup probe failed"],
            why="the image pulls slowly while the old revision serves: nothing is broken", fix=None, of=seen,
        )  # fmt: skip
        self.say(f"  a person names the class {AUGUST}")
        self.trust(AUGUST, "when it was named")
        second = self.release("second cold start", self.commit(RIGHT, "Unwrap it"), pull_seconds=PULL_SECONDS)
        self.say(
            f"  first against second: {first['pages']} log pages and {first['seconds']:.1f} s to a verdict, "
            f"then {second['pages']} and {second['seconds']:.1f} s; "
            f"here a whole watch takes {self.stage.config.deploy.watch_seconds:g} s, elsewhere 540"
        )
        briefed = {entry["key"] for entry in self.stage.book().brief(ENTITY, tokens=8000)["entries"]}
        self.say(
            f"  the next briefing {'still carries' if AUGUST in briefed else 'HAS LOST'} the class; "
            f"boxes left: {len(self.stage.boxes_left())}"
        )
        health = self.stage.platform.health
        by_demo = len(self.played.watches)  # once a release
        self.say(
            f"  /health was {'green throughout' if set(health) == {200} else 'red'}: asked {by_demo} times by the demo, "
            f"{len(health) - by_demo} times by an actor"
        )
        self.stage.platform.clear()

    def quiet_day(self) -> None:
        self.say("\n== Two quiet releases in a day, and one that was quiet by mistake")
        for number in (1, 2):
            self.release(f"quiet release {number}", self.commit(RIGHT + "\n" * number, f"Space {number}"))
            self.trust(AUGUST, f"after quiet release {number}")
        found = human.watch_of(RecordQueue(self.stage.book()).jobs(), self.played.watches["quiet release 2"]["key"])
        human.dispute(self.stage.sit, found, why="people could not log in all morning")
        self.say(f"  a person disputes {found['key']}: a failure of everything it was served")
        self.trust(AUGUST, "after the dispute")

    def regression(self) -> None:
        self.say("\n== The July regression: search returns the least trusted entry first")
        self.release("first sighting", self.commit(SORTED_BY_DAY, "Sort by recency"))
        seen = self.played.watches["first sighting"]["verdicts"][0]["incident"]
        head = (self.stage.repository.content("main", "toy/search.py") or ("", b""))[1].decode().partition("def search")[0]
        fix = {"toy/search.py": f"{head}def search(under_load=False):\n{ONE_LINE_FIX}"}
        human.name_class(
            self.stage.sit, ENTITY, JULY, label="product_regression", patterns=["least trusted entry first"],
            why="results are sorted by recency, not by confidence", fix=fix, of=seen,
        )  # fmt: skip
        self.say(f"  a person names the class {JULY}, with the one-line fix, reviews and merges it")
        self.release("the fix", self.commit(ONE_LINE_FIX, "Sort by confidence again"))
        human.resolve(self.stage.sit, ENTITY, JULY, "success", why="reviewed, merged, quiet", ref="fix-of-july")
        self.trust(JULY, "after its fix succeeded")
        second = self.release("second time", self.commit(SORTED_BY_DAY, "Sort by recency, again"))
        self.plain_lookup("second time")
        number = second["drafts"][0]["number"]
        self.release("the draft, merged", self.stage.github.merge(number))
        self.trust(JULY, "before real traffic comes back")
        self.say("  then real traffic comes back: the fix reorders in Python, the database still sorts by day")
        human.resolve(self.stage.sit, ENTITY, JULY, "minor_failure", why="wrong order under load", ref="load-after-july")
        self.trust(JULY, "after its fix failed under load")
        third = self.release("third time", self.commit(ONE_LINE_FIX + "\n", "Unrelated"), path="/search?load")
        self.plain_lookup("third time")
        self.trust(JULY, "now")
        self.played.pulls = len(self.stage.github.pulls)
        self.say(
            f"  pull requests opened: {self.played.pulls}, where a lookup would have opened {sum(self.played.lookup.values())}. "
            f"The third time: {third['verdicts'][0]['reason']}"
        )

    def perform(self) -> Played:
        self.cold_start()
        self.quiet_day()
        self.regression()
        return self.played
