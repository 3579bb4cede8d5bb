"""What a model is promoted for: agreement with held-out decisions, told apart from luck, from copying and from failing alike."""

from __future__ import annotations

import random
from typing import Any

import pytest

from herdbook.slowloop.models.acts import Act
from herdbook.slowloop.models.baselines import Majority, Replay
from herdbook.slowloop.models.judging import arguments_right, judge, refusals

pytestmark = pytest.mark.slow

TOPICS = ("zone", "rounding", "pool", "locale", "seed", "proxy")


def act(task: int, topic: str, value: str, *, good: bool = True, entity: str = "acme") -> Act:
    prompt = [{"role": "user", "content": f"task {task}: {topic} is off"}]
    return Act(entity, str(task), prompt, [], {"name": "set", "arguments": {topic: value}}, good)


def examination(tasks: int = 40, *, bad: bool = True) -> list[Act]:
    found = [act(task, TOPICS[task % 6], f"right-{task % 7}") for task in range(tasks)]
    return found + [act(task, TOPICS[task % 6], "wrong", good=False) for task in range(5) if bad]


def calls(acts: list[Act], right: float, *, seed: int = 5) -> list[Any]:
    """Somebody who is right with this chance, and never does what failed."""
    luck = random.Random(seed)
    return [each.call if each.good and luck.random() < right else {"name": "set", "arguments": {"other": "1"}} for each in acts]


def judged(acts: list[Act], model: list[Any], **others: list[Any]) -> list[str]:
    nothing: list[Any] = [None] * len(acts)
    rivals = {"base": nothing, "majority": nothing, "replay": nothing} | others
    return refusals(judge(acts, {"model": model, **rivals}, seed=7))


def test_a_model_that_is_better_at_enough_tasks_may_be_promoted() -> None:
    """Nothing that was trained here would ever be served."""
    acts = examination()
    assert [] == judged(acts, calls(acts, 0.9))


@pytest.mark.parametrize("rival", ["base", "majority", "replay"])
def test_one_that_is_as_good_as_any_of_the_three_may_not(rival: str) -> None:
    """A model that costs money would do what a look into the record does for nothing."""
    acts = examination()
    (reason,) = judged(acts, calls(acts, 0.7, seed=1), **{rival: calls(acts, 0.65, seed=2)})
    assert "not shown to be better" in reason


def test_twenty_nine_tasks_are_too_few() -> None:
    """Luck would be promoted."""
    acts = examination(29)
    assert ["it was examined on 29 held-out tasks, and it takes 30 to tell"] == judged(acts, calls(acts, 1.0))


def test_many_acts_of_few_tasks_are_few() -> None:
    """Acts of one task are alike: a hundred of them say what one says."""
    acts = examination(10, bad=False) * 20
    assert 1 == len(judged(acts, calls(acts, 1.0)))


def test_one_that_does_what_failed_may_not() -> None:
    """What is learned best may be the mistakes."""
    acts = examination()
    model = [each.call for each in acts]
    (reason,) = judged(acts, model)
    assert "calls of failed runs" in reason


def test_labels_that_were_shuffled_are_refused() -> None:
    """A gate that lets noise through is none. The right calls are dealt out at random, over twenty seeds."""
    acts = examination()
    for seed in range(20):
        shuffled = [each.call for each in acts]
        random.Random(seed).shuffle(shuffled)
        assert judged(acts, shuffled, majority=calls(acts, 0.15, seed=seed)), f"seed {seed}"


def test_a_report_without_a_comparison_is_refused() -> None:
    """Whoever left a rival out would be asked nothing."""
    assert 4 == len(refusals({}))
    nan = {"mean": 1.0, "low": float("nan"), "high": 1.0}
    broken = {"tasks": 40, "gains": dict.fromkeys(("base", "majority", "replay"), nan)}
    assert 3 == len(refusals(broken))


def test_arguments_count_one_by_one_and_superfluous_ones_too() -> None:
    """A call with every argument there is would be right in all of them."""
    right = {"name": "set", "arguments": {"a": 1, "b": 2}}
    assert 1.0 == arguments_right({"name": "set", "arguments": {"b": 2, "a": 1}}, right)
    assert 0.5 == arguments_right({"name": "set", "arguments": {"a": 1, "b": 3}}, right)
    assert 0.5 == arguments_right({"name": "set", "arguments": {"a": 1, "b": 2, "c": 3, "d": 4}}, right)
    assert 0.0 == arguments_right({"name": "get", "arguments": {"a": 1, "b": 2}}, right)
    assert 0.0 == arguments_right(None, right)


def test_the_most_common_call_of_the_place_comes_first() -> None:
    """The rival would be weaker than it is, and the gate with it."""
    taught = [act(1, "zone", "UTC"), act(2, "zone", "UTC"), act(3, "pool", "5"), act(4, "pool", "9", entity="globex")]
    assert {"zone": "UTC"} == (Majority(taught).call(act(9, "seed", "x")) or {})["arguments"]
    assert {"pool": "9"} == (Majority(taught).call(act(9, "seed", "x", entity="globex")) or {})["arguments"]
    assert {"zone": "UTC"} == (Majority(taught).call(act(9, "seed", "x", entity="new")) or {})["arguments"]


def test_replay_finds_the_nearest_decision() -> None:
    """The rival would be weaker than it is, and the gate with it."""
    taught = [act(task, topic, f"right-{topic}") for task, topic in enumerate(TOPICS)]
    for topic in TOPICS:
        assert {topic: f"right-{topic}"} == (Replay(taught).call(act(77, topic, "?")) or {})["arguments"]
    assert None is Replay([]).call(act(1, "zone", "UTC"))
