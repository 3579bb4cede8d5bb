"""Numbers of an entity's own: drawn towards the others', acted on late, tried on later runs, and said when there are too few."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import fmean
from xml.etree import ElementTree

import pytest

from herdbook.fastloop.features import FORM, NAMES
from herdbook.slowloop.calibrate import half_life, multipliers, reliability
from herdbook.slowloop.calibrate.calibrating import calibrate
from herdbook.slowloop.calibrate.half_life import Life, estimate, life_of, lives
from herdbook.slowloop.calibrate.multipliers import Count, multiplier, rates, shrunk_rate
from herdbook.slowloop.runs import Run
from tests.slowloop import fleets, shown

COLUMNS = {name: {FORM: NAMES.index(name)} for name in ("age_days", "confidence")}


def using(
    number: int, path: str, kind: str, claim: str = "1:a", *, age: float = 1.0, confidence: float = 0.5, version: int = 1
) -> Run:
    numbers = tuple({"age_days": age, "confidence": confidence}.get(name, 0.0) for name in NAMES)
    read = replace(shown.exposure(claim, rank=1, numbers=numbers, used="declared"), place=("e/0", claim[0], version))
    return fleets.run(number, path, told=True, success=kind == "success", kind=kind, exposures=(read,))


def test_few_cases_are_drawn_towards_the_others() -> None:
    """Two failures at one entity would make its every failure a catastrophe."""
    luck = random.Random(5)
    ours, raw = [], []
    for _ in range(100):
        true = [luck.betavariate(6, 14) for _ in range(20)]
        counts = [Count(5, sum(luck.random() < rate for _ in range(5))) for rate in true]
        ours.append(fmean(abs(shrunk_rate(counts, count) - rate) for count, rate in zip(counts, true, strict=True)))
        raw.append(fmean(abs(count.again / count.cases - rate) for count, rate in zip(counts, true, strict=True)))
    assert fmean(ours) < 0.65 * fmean(raw), "seed 5"


def test_a_type_acts_only_from_ten_cases() -> None:
    """A handful of bad days would change what every outcome does."""
    told = {count: rates({"e/0": {"failure": Count(count, count)}}, "e/0")[1] for count in (4, 5, 9, 10)}
    assert {4: False, 5: False, 9: False, 10: True} == {count: rate.acts for count, rate in told.items()}
    assert told[4].as_dict()["multiplier"] is None
    assert told[5].as_dict()["multiplier"] is not None


def test_what_trouble_follows_weighs_more() -> None:
    """A failure after which all is well would cost as much trust as one that comes again and again."""
    heavy, light = (multiplier("failure", rate, fine=0.1, worst=0.6) for rate in (0.5, 0.15))
    assert 0.8 < heavy < light <= 1.0
    assert 1.0 == multiplier("failure", 0.05, fine=0.1, worst=0.6), "never more trust for a failure"
    assert 0.85**1.5 == pytest.approx(multiplier("critical_failure", 0.98, fine=0.1, worst=0.3)), "bounded"


def test_a_repeat_is_the_next_run_with_the_same_claim() -> None:
    """Trouble somewhere else would be counted against what had nothing to do with it."""
    kinds = ["failure", "failure", "success", "critical_failure", "success"]
    runs = [using(number, "e/0", kind) for number, kind in enumerate(kinds)] + [using(9, "e/0", "failure", "2:b")]
    found = multipliers.repeats(runs)["e/0"]
    assert {"failure": Count(2, 1), "success": Count(1, 1), "critical_failure": Count(1, 0)} == found


def simulated(luck: random.Random, true: float, count: int, days: float) -> list[Life]:
    """Notes that go stale after a while, used now and then; a stale one is noticed at every second use."""
    found = []
    for _ in range(count):
        written, lasts, at = luck.uniform(0, days), luck.expovariate(0.693 / true), 0.0
        ages: list[float] = []
        stale = False
        while not stale:
            at += luck.expovariate(0.2)
            if at > written:
                break
            ages.append(at)
            stale = at > lasts and luck.random() < 0.5
        found.append(Life(tuple(ages), stale))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("true", [10, 30, 120])
def test_the_half_life_is_found_from_staleness(true: int) -> None:
    """What is true for a season would fade in a month, or last week's for a year."""
    luck, held, found = random.Random(true), 0, []
    for _ in range(12):
        told = estimate(simulated(luck, true, 60, 90), base=30.0)
        held += told.low <= true <= told.high
        found.append(told.days)
    assert 0.5 * true < sorted(found)[6] < 2 * true, f"seed {true}"
    assert held >= 8, "the 90 % interval"


def test_without_staleness_the_default_stays() -> None:
    """A fleet that was never wrong would be given a number made of nothing."""
    told = estimate([Life((1.0, 2.0), False)] * 3, base=30.0)
    assert not told.acts
    assert told.as_dict()["days"] is None


def test_one_failure_is_not_staleness() -> None:
    """A run that failed for its own reasons would age everything it used."""
    assert Life((1.0, 3.0), False) == life_of([(1.0, False), (2.0, True), (3.0, False)][::2])
    assert Life((1.0,), False) == life_of([(1.0, False), (2.0, True)])
    assert Life((1.0, 2.0), True) == life_of([(1.0, False), (2.0, True), (3.0, True)])


def test_another_claim_in_its_place_is_staleness() -> None:
    """An entry that was set right at once would look as if it were still true."""
    runs = [
        using(0, "e/0", "success", "1:a", age=1.0),
        using(24, "e/0", "success", "1:b", age=0.1, version=2),
    ]
    assert [Life((1.0, 2.0), True), Life((0.1,), False)] == lives(runs, COLUMNS["age_days"])


def test_confidence_is_held_against_what_came() -> None:
    """A picture of confidence against success would show what nobody measured."""
    pairs = [(0.85, 1.0)] * 8 + [(0.85, 0.0)] * 2 + [(0.2, 0.0)] * 5 + [(1.0, 1.0)]
    told = {each.low: each for each in reliability.bins(pairs)}
    assert {0.2: 5, 0.8: 10, 0.9: 1} == {low: each.count for low, each in told.items()}
    assert pytest.approx(0.8) == told[0.8].came
    assert told[0.9].half > 0.2, "one use is not certainty"
    ElementTree.fromstring(reliability.svg(list(told.values())))
    assert "NaN" not in reliability.svg([])


def test_the_report_says_what_it_would_set_and_sets_nothing_on_little() -> None:
    """Somebody would promote numbers that came from five runs."""
    told = calibrate([using(n, "e/0", "failure") for n in range(3)], "e/0", columns=COLUMNS, base_days=30.0)
    assert {} == told["values"]
    assert "Promotion sets nothing." == told["says"][-1]
    assert any("half-life" in said for said in told["says"])


def test_learnt_factors_act_only_if_they_foretell_better() -> None:
    """Numbers that are worse on later runs would replace the defaults because they are newer."""
    luck = random.Random(3)
    runs, number = [], 0
    for at in range(40):  # claims that fail once fail for good, and the others hold: one failure says nearly all
        good = at % 2 == 0
        for _ in range(8):
            kind = "success" if luck.random() < (0.97 if good else 0.05) else luck.choice(["failure", "critical_failure"])
            runs.append(using(number, "e/0", kind, f"{at}:a"))
            number += 1
    luck.shuffle(runs)
    told = calibrate(runs, "e/0", columns=COLUMNS, base_days=30.0)
    factors = {name: value for name, value in told["values"].items() if name.startswith("multiplier_")}
    assert bool(factors) == (told["holdout"]["gain"] > 0)
    assert all(0.78 < value <= 1.0 for value in factors.values())
    assert half_life.ACT_MIN <= told["half_life"]["events"]
