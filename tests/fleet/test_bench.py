"""The fleet bench: its worlds are the same for every policy, its agents act on what they are shown, and it says what came out."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from bench.fleet import report, scenario
from bench.fleet.command import main, seeds_of
from bench.fleet.fleet import Fleet, lived_through
from bench.fleet.policies.record import Herdbook
from bench.fleet.scenario import Scenario
from bench.fleet.world import World

SEED = 4
SMALL = ("nothing", "rrf", "herdbook", "oracle")


def small(kind: str, runs: int = 8) -> Scenario:
    return msgspec.structs.replace(scenario.load(scenario.shipped()[kind]), runs=runs, entities=2)


@pytest.fixture(scope="module")
def fleets() -> list[Fleet]:
    return [lived_through(small("ci", runs=16), SEED, policy) for policy in SMALL]


@pytest.mark.parametrize("kind", sorted(scenario.shipped()))
def test_a_seed_is_one_world(kind: str) -> None:
    """Policies compared in different worlds would be told apart by luck."""
    loaded = scenario.load(scenario.shipped()[kind])
    assert loaded.name == kind
    one, other = World(loaded, SEED), World(loaded, SEED)
    runs = list(one.runs())
    assert runs == list(other.runs())
    assert loaded.runs * loaded.entities == len(runs)
    assert [list(one.arriving(run)) for run in runs[:20]] == [list(other.arriving(run)) for run in runs[:20]]


def test_nobody_beats_the_perfect_order(fleets: list[Fleet]) -> None:
    """An oracle that another policy beats would make every regret a wrong number."""
    costs = {fleet.policy: sum(fleet.costs) for fleet in fleets}
    assert costs["oracle"] <= 1.05 * min(costs.values()), (
        costs
    )  # what is shown decides what will be found out, so not to the last try
    assert "nothing" == max(costs, key=lambda policy: costs[policy]), costs


def test_a_fleet_lives_again_as_it_lived(fleets: list[Fleet]) -> None:
    """A figure that another run of the same seed contradicts would prove nothing."""
    again = lived_through(small("ci", runs=16), SEED, "herdbook")
    first = next(fleet for fleet in fleets if fleet.policy == "herdbook")
    assert first.lived == again.lived, f"seed {SEED}"


def test_the_record_is_told_what_a_real_one_would_be() -> None:
    """A shortcut into the store would measure something nobody can use."""
    kind = small("planted", runs=9)
    world = World(kind, SEED)
    policy = Herdbook(kind, "off")
    from bench.fleet.agent import live

    for run in world.runs():
        for note in world.arriving(run):
            policy.plant(run, note)
        live(world, run, policy)
    trace = policy.host.trace("run-1")
    assert world.entities[0].path.rpartition("/")[0] == "fleet"
    assert ["host"] == [each["by"] for each in trace["outcomes"][0]["attestations"]] or trace["outcomes"][0]["attested"]
    counts = policy.host.status()["counts"]
    policy.close()
    assert kind.runs * kind.entities <= counts["outcomes"]  # those of the intruder come on top


def test_the_report_says_who_is_better_and_draws_it(fleets: list[Fleet]) -> None:
    """A table without the perfect order, or a picture no browser opens, would convince nobody."""
    text = report.table(fleets, {"ci": "quirks"})
    assert all(policy in text for policy in SMALL)
    assert "herdbook is" in text
    ElementTree.fromstring(report.svg(fleets, "ci"))
    rows = report.as_object(fleets, {})["kinds"]["ci"]
    assert 0.0 == rows["oracle"]["regret"]["mean"]
    assert json.dumps(rows)


@pytest.mark.parametrize("kind", ["ci", "planted", "reworded"])
def test_ours_is_near_the_perfect_order_and_before_a_file(kind: str) -> None:
    """What runs with such a task came to use would no longer come first, and nobody would see it but in a bench of minutes."""
    lives = {policy: lived_through(small(kind, runs=24), SEED, policy) for policy in ("newest-first", "herdbook", "oracle")}
    costs = {policy: sum(fleet.costs) for policy, fleet in lives.items()}
    assert costs["herdbook"] < costs["newest-first"], (SEED, costs)
    assert costs["herdbook"] <= 1.25 * costs["oracle"], (SEED, costs)
    assert sum(run.harmful for run in lives["herdbook"].lived) <= 1, SEED


def test_what_is_asked_of_ours_is_said_to_be_met_or_missed(fleets: list[Fleet]) -> None:
    """A number that was promised would have to be looked up by whoever reads the table."""
    rows = report.figures(fleets)["ci"]
    rows["herdbook"]["x25"] = report.Figure(1.7, 0.1, 3)
    assert "  herdbook x25 1.70±0.10, asked at most 1.60: MISSED" in report.targets(rows)
    assert "  herdbook harmful 0.00, asked at most 0.01: met" in report.targets(rows)


def test_a_reworded_task_is_not_the_same_twice_and_still_says_something() -> None:
    """A bench whose tasks repeat to the letter would praise whoever learns them by heart."""
    kind = small("reworded", runs=40)
    parts = [part.split() for run in World(kind, SEED).runs() for part in run.task.removeprefix("fix this: ").split("; ")]
    assert 3 <= min(map(len, parts))
    assert len(set(map(tuple, parts))) > len(parts) / 2


def test_unseen_kinds_and_seeds_can_be_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Figures on the kinds that ship alone could have been tuned to them."""
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\nsays = "one of my own"\nentities = 1\nruns = 4\n[quirks]\ncount = 2\nneeded = 1\n'
    )
    assert 0 == main(
        ["--kinds", str(tmp_path / "mine.toml"), "--seeds", "77:78", "--policies", "nothing,oracle", "--embed", "off", "--json"]
    )
    assert 2 == json.loads(capsys.readouterr().out)["kinds"]["mine"]["nothing"]["attempts"]["seeds"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--kinds", "nowhere"], "no scenario 'nowhere'"),
        (["--policies", "magic"], "no policy 'magic'"),
        (["--seeds", "one"], "names no seeds"),
    ],
)
def test_what_is_not_understood_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt kind that ran nothing would look like a bench that passed."""
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err


def test_a_scenario_with_a_misspelt_field_is_refused(tmp_path: Path) -> None:
    """A field that nobody reads would leave the world another than its author meant."""
    (tmp_path / "odd.toml").write_text('name = "odd"\nsays = "x"\nruns = 4\n[quirks]\ncuont = 2\n')
    with pytest.raises(ValueError, match="cuont"):
        scenario.load(tmp_path / "odd.toml")


def test_seeds_that_name_none_are_refused() -> None:
    """A bench that lived through nothing would end as if all had been well."""
    assert [3, 4] == seeds_of("3:4")
    for text in ("4:3", "x", "3:x", "-1"):
        with pytest.raises(ValueError, match="names no seeds"):
            seeds_of(text)


def test_intervals_widen_with_fewer_seeds() -> None:
    """An interval from two seeds that looks like one from twenty would claim what it does not know."""
    few, many = report.figure([1.0, 2.0]), report.figure([1.0, 2.0] * 10)
    assert few is not None
    assert many is not None
    assert few.half is not None
    assert many.half is not None
    assert few.half > 10 * many.half
    assert report.figure([1.0]) == report.Figure(1.0, None, 1)
