"""What is left to chance: at most one swap, never of a warning, with probabilities that are what happens."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from herdbook.fastloop.briefing import Briefed, Briefer
from herdbook.record.tunables import DEFAULT, Tuning
from herdbook.record.types import Shown
from tests.fastloop.fake_record import NOW, TENANT, Asked, FakeRecord

ROUNDS = 1_500


class Drawing(FakeRecord):
    """Draws by the words, as the record does, from a seed of its own for each run."""

    def draw(self, tenant: int, *parts: str) -> float:
        return random.Random("/".join(parts)).random()


def holding(tuned: Tuning, *, entries: int) -> Drawing:
    record = Drawing(tuned=tuned)
    for number in range(entries):
        record.write("acme/ci", f"k{number:02}", f"setting number {number} of the suite", confidence=0.9 - number / 100)
    record.write("acme/ci", "dead", "a pool of 5", kind="experience", worked=False)
    record.write("acme/ci", "shaky", "retries", failed_since=2.0, failed=2.0)
    record.write("acme/ci", "human", "said by a person", origin="principal")
    return record


def brief(record: FakeRecord, session: str | None, tokens: int = 2_000) -> Briefed:
    return Briefer(record).brief(TENANT, Asked(session=session, tokens=tokens), now=NOW)


def named(record: FakeRecord, exposures: list[Shown], *, served: bool) -> set[str]:
    return {record.trust[each.version_id].key for each in exposures if each.served is served}


@pytest.mark.parametrize("tokens", [2_000, 240])
def test_what_happens_is_as_likely_as_it_is_said(tokens: int) -> None:
    """Every effect would be estimated from odds that were never those."""
    record = holding(replace(DEFAULT, holdback=0.4), entries=12)
    served, said, seen = Counter[str](), dict[str, float](), Counter[str]()
    for number in range(ROUNDS):
        for each in brief(record, f"run-{number}", tokens).exposures:
            key = record.trust[each.version_id].key
            served[key] += each.served
            seen[key] += 1
            assert said.setdefault(key, each.probability) == pytest.approx(each.probability)
    assert {ROUNDS} == set(seen.values()), "what might have been served is logged every time"
    for key, probability in said.items():
        error = 4 * (probability * (1 - probability) / ROUNDS) ** 0.5
        assert probability == pytest.approx(served[key] / ROUNDS, abs=max(error, 1e-9)), key
    assert any(probability < 0.5 for probability in said.values()) == (tokens < 2_000)


def test_at_most_one_is_swapped_and_never_a_warning() -> None:
    """A run would be sent into what is known to fail."""
    record = holding(replace(DEFAULT, holdback=0.5), entries=12)
    whole = named(record, brief(record, None).exposures, served=True)
    arms = Counter[str]()
    for number in range(200):
        briefed = brief(record, f"run-{number}")
        found = named(record, briefed.exposures, served=True)
        assert {"dead", "shaky", "human"} <= found
        assert len(whole - found) == (briefed.answer["arm"] == "holdback") == briefed.answer["left_out"]["withheld"]
        assert found == {entry["key"] for block in ("entries", "dead_ends", "contested") for entry in briefed.answer[block]}
        arms[briefed.answer["arm"]] += 1
    assert {"on", "holdback"} == set(arms)


def test_a_run_is_told_the_same_again() -> None:
    """What was held back at first would be told a minute later, and nobody could say which it was."""
    record = holding(replace(DEFAULT, holdback=0.5), entries=12)
    for number in range(50):
        first, again = (brief(record, f"run-{number}").answer["markdown"] for _ in range(2))
        assert first == again


def test_a_control_is_told_nothing_and_that_is_said() -> None:
    """What the record is worth could not be seen, or an empty record would seem to be one."""
    record = holding(replace(DEFAULT, control=0.3, holdback=0.2), entries=3)
    arms = Counter[str]()
    for number in range(400):
        briefed = brief(record, f"run-{number}")
        arms[briefed.serving.arm] += 1
        if briefed.serving.arm == "control":
            assert [] == briefed.answer["entries"] == briefed.answer["dead_ends"] == briefed.answer["contested"]
            assert not any(each.served for each in briefed.exposures)
            assert "control" in briefed.answer["markdown"]
            assert briefed.answer["left_out"]["withheld"]
            assert 6 == briefed.answer["known"]
        dead = next(each for each in briefed.exposures if record.trust[each.version_id].key == "dead")
        assert 0.7 == pytest.approx(dead.probability)
    assert 0.3 == pytest.approx(arms["control"] / 400, abs=0.07)


def test_who_is_not_tracked_is_in_no_experiment() -> None:
    """A person who looks would be shown less than there is."""
    record = holding(replace(DEFAULT, control=0.9, holdback=0.5), entries=3)
    briefed = brief(record, None)
    assert ("on", 6) == (briefed.answer["arm"], len(briefed.exposures))
    assert {1.0} == {each.probability for each in briefed.exposures}
