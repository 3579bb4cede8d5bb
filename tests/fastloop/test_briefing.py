"""Briefings: what is shown, in which order, and what is said about the rest."""

from __future__ import annotations

from typing import Any

import pytest

from herdbook.base.errors import InvalidRequest
from herdbook.base.reach import Reach
from herdbook.fastloop.briefing import Briefed, Briefer
from herdbook.fastloop.tokens import estimate_tokens
from tests.fastloop.fake_record import NOW, TENANT, Asked, FakeRecord


def brief(record: FakeRecord, **asked: Any) -> Briefed:
    return Briefer(record).brief(TENANT, Asked(**asked), now=NOW)


def keys(briefed: Briefed, block: str = "entries") -> list[str]:
    return [view["key"] for view in briefed.answer[block]]


def test_the_order_is_standing_then_confidence_then_recency() -> None:
    """An agent short of room would read the weakest notes first."""
    record = FakeRecord()
    record.write("acme/ci", "unproven", 1, confidence=1.0)
    record.write("acme/ci", "observed", 1, observed=1, confidence=0.2)
    record.write("acme/ci", "corroborated-weak", 1, corroborated=1, confidence=0.3)
    record.write("acme/ci", "corroborated-strong", 1, corroborated=1, confidence=0.9)
    record.write("acme/ci", "older", 1, confidence=0.0, observed=1, age_days=2)
    record.write("acme/ci", "newer", 1, confidence=0.0, observed=1, age_days=1)
    expected = ["corroborated-strong", "corroborated-weak", "observed", "newer", "older", "unproven"]
    assert expected == keys(brief(record))


def test_dead_ends_and_contested_entries_come_first_in_blocks_of_their_own() -> None:
    """A box would walk into the wall that another one already found."""
    record = FakeRecord()
    record.write("acme/ci", "works", 1, corroborated=1)
    record.write("acme/ci", "tried", "half up", kind="experience", worked=False)
    record.write("acme/ci", "shaky", 3, corroborated=2, held=14.0, failed=2.0, failed_since=2.0)
    briefed = brief(record)
    assert (["tried"], ["shaky"], ["works"]) == (keys(briefed, "dead_ends"), keys(briefed, "contested"), keys(briefed))
    assert "held 14 times, failed the last 2" == briefed.answer["contested"][0]["note"]
    assert [1, 2, 3] == [briefed.answer[block][0]["rank"] for block in ("dead_ends", "contested", "entries")]
    assert "held 14 times, failed the last 2" in briefed.answer["markdown"]


def test_each_line_says_who_wrote_it_when_and_how_it_went() -> None:
    """A reader could not tell a stranger's guess from what held."""
    record = FakeRecord()
    record.write(
        "acme/ci",
        "retry_budget",
        3,
        why="two calls fail",
        author="ada",
        box="box-7",
        age_days=4,
        number=2,
        corroborated=1,
        moves=1,
        confidence=0.93,
        last_type="success",
        last_ref="r",
        last_at=NOW - 7_200_000_000,
    )
    lines = brief(record).answer["markdown"].splitlines()
    assert ["## Stands: corroborated", "- `retry_budget = 3 (two calls fail)` ada 4d v2, success 2h"] == lines[1:]
    assert "author, age, version, last outcome" in lines[0]


def test_who_and_when_costs_a_dozen_tokens() -> None:
    """A file of bare notes would hold three times as many for the same price."""
    record = FakeRecord()
    record.write("acme/ci", "port", 22, why="it listens there", corroborated=1, last_type="success", last_at=NOW - 7_200_000_000)
    line = brief(record).answer["markdown"].splitlines()[-1]
    assert estimate_tokens(line) - estimate_tokens("- port = 22 (it listens there)") <= 12


def test_a_small_budget_holds_several_short_notes_whole() -> None:
    """An agent with little room would be given one note and a pointer to it."""
    record = FakeRecord()
    for at in range(20):
        record.write("acme/ci", f"note-{at}", f"set worker pool {at}", why=f"the box has {at} cores, so more would queue")
    briefed = brief(record, tokens=300)
    assert len(keys(briefed)) >= 5
    assert not any(view["clipped"] for view in briefed.answer["entries"])
    assert "herdbook read" not in briefed.answer["markdown"]


@pytest.mark.parametrize("words", [40, 55, 70, 200])
def test_a_pointer_costs_less_than_what_it_stands_for(words: int) -> None:
    """A note would be cut short by less than the words that say so."""
    record = FakeRecord()
    record.write("acme/ci", "long", "word " * words)
    for at in range(40):
        record.write("acme/ci", f"note-{at}", at, why="because", age_days=1)
    briefed = brief(record, tokens=600)
    view = next(view for view in briefed.answer["entries"] if view["key"] == "long")
    line = next(line for line in briefed.answer["markdown"].splitlines() if "`long" in line)
    whole = estimate_tokens(f'> - `long = "{"word " * words}"` ada new v1')
    assert view["clipped"] == ("herdbook read" in line)
    assert estimate_tokens(line) < whole if view["clipped"] else estimate_tokens(line) == whole


def test_the_same_words_are_said_once() -> None:
    """Ten boxes that found out the same thing would fill a briefing with it."""
    record = FakeRecord()
    for at in range(12):
        record.write("acme/ci", f"tz-{at}", "UTC", why="the suite compares dates", confidence=0.4)
    record.write("acme/ci", "log-zone", "UTC", why="another reason")
    record.write("acme/ci", "tz-stands", "UTC", why="the suite compares dates", observed=1, confidence=0.1)
    briefed = brief(record, names=True)
    assert {"log-zone", "tz-0", "tz-stands"} == set(keys(briefed))  # nothing unproven stands in for what stands
    left_out = briefed.answer["left_out"]
    assert (11, {"said by another entry"}) == (left_out["filtered"], {name["reason"] for name in left_out["names"]})


@pytest.mark.parametrize("tokens", range(64, 300, 7))
def test_what_is_said_once_is_counted_within_the_budget(tokens: int) -> None:
    """A footer with one more reason in it than was planned for would overflow the space."""
    record = FakeRecord()
    for at in range(120):
        record.write("acme/ci", f"tz-{at}", "UTC" if at % 2 else at, why="the suite compares dates")
    answer = brief(record, tokens=tokens).answer
    assert answer["tokens"] == estimate_tokens(answer["markdown"]) <= tokens
    assert 120 == len(answer["entries"]) + answer["left_out"]["filtered"] + answer["left_out"]["budget"]


def test_what_is_expired_or_faded_is_left_out_and_counted() -> None:
    """What is over would be followed, and what nobody ever confirmed would be served for ever."""
    record = FakeRecord()
    record.write("acme/ci", "over", 1, corroborated=1, expires_at=NOW)
    record.write("acme/ci", "faded", 1, age_days=400)
    record.write("acme/ci", "old-but-proven", 1, age_days=400, observed=1)
    briefed = brief(record, names=True)
    assert ["old-but-proven"] == keys(briefed)
    left_out = briefed.answer["left_out"]
    assert (1, 1, 3) == (left_out["faded"], left_out["expired"], briefed.answer["known"])
    assert {("faded", "faded"), ("over", "expired")} == {(name["key"], name["reason"]) for name in left_out["names"]}
    assert "1 faded, 1 expired" in briefed.answer["markdown"]
    assert "`faded`" in briefed.answer["markdown"]


def test_names_are_given_on_request_only() -> None:
    """A large entity would bury its briefing under what is not in it."""
    record = FakeRecord()
    record.write("acme/ci", "faded", 1, age_days=400)
    assert [] == brief(record).answer["left_out"]["names"]


def test_ancestors_are_inherited_and_the_deeper_path_wins() -> None:
    """A setting of one service would be overruled by the company's default."""
    record = FakeRecord()
    record.write("acme", "port", 22)
    record.write("acme/ci", "port", 49222)
    record.write("acme", "owner", "platform")
    briefed = brief(record)
    assert {"port": 49222, "owner": "platform"} == {view["key"]: view["value"] for view in briefed.answer["entries"]}
    assert {"port": None, "owner": "acme"} == {view["key"]: view["inherited_from"] for view in briefed.answer["entries"]}
    assert (1, 1) == (briefed.answer["left_out"]["filtered"], record.calls["heads"])


def test_an_unproven_note_does_not_hide_what_stands_above_it() -> None:
    """Any box could silence what the whole company relies on by writing the same key one path deeper."""
    record = FakeRecord()
    record.write("acme", "port", 49222, corroborated=1)
    record.write("acme/ci", "port", 1)
    assert [49222, 1] == [view["value"] for view in brief(record).answer["entries"]]


def test_nothing_is_inherited_from_out_of_reach() -> None:
    """A key for one team would be briefed with what it may not read."""
    record = FakeRecord(reach=Reach.of(["acme/ci"]))
    record.write("acme", "secret", 1)
    record.write("acme/ci", "mine", 1)
    assert ["mine"] == keys(brief(record))
    outside = brief(record, entity="acme").answer
    assert (0, [], ["acme/ci"]) == (outside["known"], outside["entries"], outside["similar"])


def test_the_standing_version_is_served_beside_a_newer_one_that_does_not_stand() -> None:
    """One unproven write would empty what is known."""
    record = FakeRecord()
    old = record.write("acme/ci", "retry_budget", 3, corroborated=1)
    record.supersede(old, 5)
    views = brief(record).answer["entries"]
    assert [(3, 2), (5, None)] == [(view["value"], view["instead_of"]) for view in views]
    assert "v2 is newer but does not stand" in brief(record).answer["markdown"]


def test_an_older_version_that_stands_no_more_is_not_served() -> None:
    """What failed lately would come back because its successor is young."""
    record = FakeRecord()
    old = record.write("acme/ci", "retry_budget", 3, corroborated=1, failed_since=9.0)
    record.supersede(old, 5)
    assert [5] == [view["value"] for view in brief(record).answer["entries"]]


def test_a_broken_seal_is_refused_and_said() -> None:
    """What was tampered with would be served, or would look as if nothing were known."""
    record = FakeRecord()
    record.corrupt(record.write("acme/ci", "port", 22))
    answer = brief(record).answer
    assert [] == answer["entries"] == answer["similar"]
    assert [("port", 1, "seal_broken")] == [(bad["key"], bad["version"], bad["code"]) for bad in answer["refused"]]
    assert "Refused: 1" in answer["markdown"]
    assert "Nothing is known" not in answer["markdown"]


def test_nothing_known_is_said_with_the_nearest_paths() -> None:
    """A typing mistake in the path would look like an empty record."""
    record = FakeRecord()
    record.write("acme/checkout", "port", 1)
    answer = brief(record, entity="acme/chekout").answer
    assert (0, [], ["acme/checkout"]) == (answer["known"], answer["entries"], answer["similar"])
    assert "Nothing is known about `acme/chekout` yet.\nNearest known: `acme/checkout`" == answer["markdown"]


def test_a_task_narrows_by_its_words() -> None:
    """An agent that fixes rounding would be told about everything else first."""
    record = FakeRecord()
    record.write("acme/ci", "rounding", "half even")
    record.write("acme/ci", "deploy", "on the tuesday", why="the team is there")
    briefed = brief(record, task="fix the rounding of the totals")
    assert (["rounding"], 1) == (keys(briefed), briefed.answer["left_out"]["filtered"])


def test_what_stands_is_not_taken_away_by_a_task() -> None:
    """An agent that gives its task would be briefed without the settings every run needs, and fail."""
    record = FakeRecord()
    record.write("acme/ci", "clock", {"env": {"TZ": "UTC"}}, observed=1)
    record.write("acme/ci", "guess", "on the tuesday")
    record.write("acme/ci", "rounding", "half even")
    briefed = brief(record, task="fix the rounding of the totals")
    assert (["rounding", "clock"], 1) == (keys(briefed), briefed.answer["left_out"]["filtered"])


def test_relevance_decides_within_a_standing_and_not_across() -> None:
    """A planted note that repeats the task would come before what holds."""
    record = FakeRecord()
    record.write("acme/ci", "planted", "rounding totals rounding totals", confidence=1.0)
    record.write("acme/ci", "proven-aside", "totals", corroborated=1, confidence=1.0)
    record.write("acme/ci", "proven", "rounding totals", corroborated=1, confidence=0.3)
    assert ["proven", "proven-aside", "planted"] == keys(brief(record, task="rounding totals"))


def test_a_task_that_names_nothing_keeps_everything() -> None:
    """A tokenizer's blind spot would make a full record look empty."""
    record = FakeRecord()
    record.write("acme/ci", "port", 49222)
    briefed = brief(record, task="zzz qqq")
    assert ["port"] == keys(briefed)
    assert "nothing names it" in briefed.answer["markdown"]


def test_one_large_log_does_not_crowd_out_the_short_notes() -> None:
    """Twenty useful lines would be lost behind one log, or the log behind them."""
    for first in (True, False):
        record = FakeRecord()
        if first:
            record.write("acme/ci", "build-log", "INFO the payment sandbox refused a call\n" * 2_000, age_days=3)
        for at in range(20):
            record.write("acme/ci", f"note-{at:02}", at, age_days=2)
        if not first:
            record.write("acme/ci", "build-log", "INFO the payment sandbox refused a call\n" * 2_000)
        answer = brief(record, tokens=400).answer
        found = [view["key"] for view in answer["entries"]]
        assert "build-log" in found
        assert len(found) >= 5
        assert "(clipped: herdbook read acme/ci build-log)" in answer["markdown"]
        assert estimate_tokens(answer["markdown"]) == answer["tokens"] <= 400


def test_what_was_tried_comes_before_anything_else_where_the_task_is_about_it() -> None:
    """The next run would try once more what is known not to work; or read of it first whatever it was asked to do."""
    record = FakeRecord()
    record.write("acme/ci", "pool", "the pool needs a size", corroborated=2, observed=1)
    record.write("acme/ci", "dead-end-1", {"approach": "raise the pool to 200"}, kind="experience", worked=False)
    about = brief(record, task="the pool is exhausted").answer["markdown"].splitlines()
    assert "## Already tried: did not work" == next(line for line in about if line.startswith("## "))
    record.write("acme/ci", "certificate", "rotate certificates monthly")
    assert [] == brief(record, task="certificate").answer["dead_ends"]


def test_dead_ends_do_not_silence_what_works() -> None:
    """An entity with a long list of failures would never tell anybody the solution."""
    record = FakeRecord()
    for at in range(200):
        record.write("acme/ci", f"tried-{at}", "no", kind="experience", worked=False)
    record.write("acme/ci", "works", 1, corroborated=1)
    briefed = brief(record, tokens=600)
    assert ["works"] == keys(briefed)
    assert 200 == len(keys(briefed, "dead_ends")) + briefed.answer["left_out"]["budget"]


def test_exposures_are_exactly_what_stands_in_the_text() -> None:
    """An outcome would move notes that nobody could have read."""
    record = FakeRecord()
    for at in range(300):
        record.write("acme/ci", f"note-{at}", f"value {at}")
    briefed = brief(record, tokens=500)
    ranks = {exposure.rank: exposure.version_id for exposure in briefed.exposures}
    assert list(ranks) == list(range(1, len(briefed.answer["entries"]) + 1))
    keys_by_id = {version_id: record.trust[version_id].key for version_id in ranks.values()}
    assert [keys_by_id[ranks[view["rank"]]] for view in briefed.answer["entries"]] == keys(briefed)
    assert all(f"`{key} = " in briefed.answer["markdown"] for key in keys_by_id.values())
    assert 300 == len(ranks) + briefed.answer["left_out"]["budget"]
    assert {("briefing", True, 1.0)} == {(exposure.how, exposure.served, exposure.probability) for exposure in briefed.exposures}


@pytest.mark.parametrize("tokens", [0, 63, 64_001])
def test_a_budget_out_of_bounds_is_refused(tokens: int) -> None:
    """A budget of nothing would be answered with nothing, as if nothing were known."""
    with pytest.raises(InvalidRequest, match="tokens must be between"):
        brief(FakeRecord(), tokens=tokens)
