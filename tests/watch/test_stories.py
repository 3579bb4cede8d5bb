"""The demo's two stories, from webhook to record: what a known class saves, and what an honest history refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.watch_demo.play import AUGUST, JULY, Play, Played
from examples.watch_demo.stage import ENTITY, Stage, open_stage
from herdbook.watch.boxes import ACTOR

pytestmark = [pytest.mark.isolation, pytest.mark.slow]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    found = open_stage(tmp_path_factory.mktemp("watch"), watch_seconds=1.0)
    yield found
    found.close()


@pytest.fixture(scope="module")
def played(stage: Stage) -> Played:
    return Play(stage, lambda line: None).perform()


def confidences(played: Played, key: str) -> list[float]:
    return [confidence for name, _, confidence, _ in played.confidence if name == key]


def test_a_known_cold_start_is_settled_in_one_pass(stage: Stage, played: Played) -> None:
    """A fresh box would find out again what was known, or open a pull request over a slow image."""
    first, second = played.watches["first cold start"], played.watches["second cold start"]
    assert ("cold_image", AUGUST) == (second["verdicts"][0]["label"], second["verdicts"][0]["class"])
    assert second["pages"] < first["pages"]
    incident = stage.book().read(ENTITY, second["verdicts"][0]["incident"])
    assert AUGUST in {link["key"] for link in incident["links"]}
    assert second["told"]["ok"]
    assert [] == second["drafts"]
    assert AUGUST in {entry["key"] for entry in stage.book().brief(ENTITY, tokens=8000)["entries"]}


def test_health_is_green_throughout_and_no_box_asks_it(stage: Stage, played: Played) -> None:
    """What lies to people during a cold start would be believed by the actor."""
    assert {200} == set(stage.platform.health)
    assert len(played.watches) == len(stage.platform.health)  # the play itself asks once a release


def test_the_draft_is_earned_and_lost_by_what_happened(stage: Stage, played: Played) -> None:
    """The same broken fix would be drafted a third time, as a lookup by class would do."""
    verdicts = {name: played.watches[name]["verdicts"][0] for name in ("first sighting", "second time", "third time")}
    assert [False, True, False] == [each["allowed"] for each in verdicts.values()]
    assert "first sighting" in verdicts["first sighting"]["reason"]
    assert ["fix-of-july"] == verdicts["second time"]["outcomes"]
    assert JULY == verdicts["third time"]["class"]
    assert "drafted this before, the fix didn't hold" in verdicts["third time"]["reason"]
    assert {"second time": True, "third time": True} == played.lookup
    assert 1 == len(stage.github.pulls)
    assert "the fix didn't hold" in stage.chat.texts[-1]


def test_the_draft_is_a_draft_and_says_what_it_rests_on(stage: Stage, played: Played) -> None:
    """A reviewer would have to trust it."""
    [pull] = stage.github.pulls
    body = str(pull["body"])
    assert f"{ENTITY} {JULY} 1" in body
    assert "fix-of-july" in body
    assert "least trusted entry first" in body
    assert f"{ENTITY} {JULY} version 1 (briefing)" in body


def test_quiet_watches_raise_and_a_dispute_lowers(played: Played) -> None:
    """Confidence would not follow what happened."""
    named, first, second, disputed = confidences(played, AUGUST)
    assert named < first < second > disputed
    after_fix, before_load, after_load, now = confidences(played, JULY)
    assert after_fix < before_load > after_load == now


def test_a_comparison_is_in_the_deploys_entry_or_says_why_not(stage: Stage, played: Played) -> None:
    """Somebody would debug the wrong tree."""
    entry = stage.book().read(ENTITY, played.watches["the fix"]["key"])["value"]
    told = entry["repositories"]
    assert ("ahead", ["toy/search.py"], "Sort by confidence again") == (
        told["acme/app"]["compare"],
        told["acme/app"]["files"],
        told["acme/app"]["commits"][0]["message"],
    )
    assert ("unavailable", True) == (told["acme/library"]["compare"], "404" in told["acme/library"]["why"])


def test_what_is_over_leaves_no_box_and_what_a_box_reads_cannot_write(stage: Stage, played: Played) -> None:
    """A box would outlive its watch, or an actor could have opened the pull request by itself."""
    assert [] == stage.boxes_left()
    from herdbook.gateway.keeping import Gatekeeper

    keeper = Gatekeeper.of(stage.wiring.settings, by="a test")
    granted = {each["connection"]: each for each in keeper.all()}
    rules = " ".join(str(each) for name, each in granted.items() if ACTOR in str(each.get("grants")) for each in [each["rules"]])
    assert "POST" not in rules
    assert "PUT" not in rules
    assert "GET" in rules
