"""One fleet: a scenario, a seed and a policy, lived from the first run to the last, and what came out of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import fmean

from bench.fleet.agent import Lived, live
from bench.fleet.likeness import Likeness
from bench.fleet.policies.foreign import Amfs, Mem0
from bench.fleet.policies.oracle import Oracle
from bench.fleet.policies.policy import NearestFirst, NewestFirst, Nothing, Policy
from bench.fleet.policies.record import Herdbook
from bench.fleet.policies.seeds_rule import FusedRanks
from bench.fleet.scenario import Scenario
from bench.fleet.world import Note, World

Maker = Callable[[World, str], Policy]
POLICIES: dict[str, Maker] = {
    "nothing": lambda world, embed: Nothing(world.scenario.tokens),
    "newest-first": lambda world, embed: NewestFirst(world.scenario.tokens),
    "vector": lambda world, embed: NearestFirst(world.scenario.tokens, Likeness(embed)),
    "rrf": lambda world, embed: FusedRanks(world.scenario.tokens, Likeness(embed)),
    "amfs": lambda world, embed: Amfs(world.scenario.tokens, Likeness(embed)),
    "mem0": lambda world, embed: Mem0(world.scenario.tokens, Likeness(embed)),
    "herdbook-rrf": lambda world, embed: Herdbook(world.scenario, embed, tuned={"fusion": "rrf"}),
    "herdbook": lambda world, embed: Herdbook(world.scenario, embed),
    "herdbook-holdback": lambda world, embed: Herdbook(world.scenario, embed, tuned={"holdback": HOLDBACK}),
    "oracle": lambda world, embed: Oracle(world.scenario.tokens, world),
}
HOLDBACK = 0.15
LOOKS = (25, 60, 100, 200)  # runs of an entity after which opinions are asked for
SETTLED = 3  # right first tries in a row after which an entity has recovered from a change
HELPFUL = ("right", "helpful")
NEUTRAL = "neutral"


@dataclass(slots=True)
class Fleet:
    """What came out of one fleet."""

    kind: str
    policy: str
    seed: int
    lived: list[Lived]
    attempts_max: int
    worth: dict[int, list[tuple[str, str, float]]] = field(default_factory=dict)  # by runs of an entity: (entity, role, opinion)
    changed: set[str] = field(default_factory=set)
    change_at: int = 0

    @property
    def costs(self) -> list[int]:
        return [each.cost(self.attempts_max) for each in self.lived]


def lived_through(scenario: Scenario, seed: int, policy_name: str, embed: str = "off") -> Fleet:
    """The whole life of one fleet."""
    world = World(scenario, seed)
    policy = POLICIES[policy_name](world, embed)
    changed = {f"{path}/{topic}" for path, topic in world.changed}
    fleet = Fleet(scenario.name, policy_name, seed, [], scenario.attempts_max, changed=changed, change_at=scenario.change.at)
    known: dict[tuple[str, str], Note] = {}
    try:
        for run in world.runs():
            for note in world.arriving(run):
                policy.plant(run, note)
                known[note.entity, note.key] = note
            fleet.lived.append(live(world, run, policy))
            if run.nth in LOOKS and run.number % len(world.entities) == 0:
                fleet.worth[run.nth] = list(opinions(world, policy, known, after=run.after))
    finally:
        policy.close()
    return fleet


def opinions(
    world: World, policy: Policy, known: dict[tuple[str, str], Note], *, after: bool
) -> Iterator[tuple[str, str, float]]:
    """What the policy thinks of the notes that came from outside, with what they are worth in truth."""
    entities = {entity.path: entity for entity in world.entities}
    for note in known.values():
        thought = policy.worth(note)
        if thought is not None and note.entity in entities:
            yield note.entity, world.role(entities[note.entity], note.value, after=after), thought


def attempts_per_run(fleet: Fleet) -> float:
    return fmean(each.attempts for each in fleet.lived)


def failed_runs(fleet: Fleet) -> float:
    return fmean(each.result != "success" for each in fleet.lived)


def harmful_rate(fleet: Fleet) -> float:
    """Of the runs: the agent acted on a note that does harm."""
    return fmean(each.harmful for each in fleet.lived)


def tokens_per_briefing(fleet: Fleet) -> float:
    return fmean(each.tokens for each in fleet.lived)


def runs_to_recover(fleet: Fleet) -> float | None:
    """After a change: runs that needed what had changed before its first try was right three times in a row, on average."""
    tries: dict[str, list[bool]] = defaultdict(list)
    for each in fleet.lived:
        if fleet.change_at and each.nth >= fleet.change_at:
            for name, right in each.first_right.items():
                if name in fleet.changed:
                    tries[f"{each.entity}|{name}"].append(right)
    waits = [until_settled(rights) for rights in tries.values()]
    return fmean(waits) if waits else None


def until_settled(rights: list[bool]) -> int:
    for at in range(len(rights) - SETTLED + 1):
        if all(rights[at : at + SETTLED]):
            return at
    return len(rights)


def auc(fleet: Fleet, at: int) -> float | None:
    """How often a note that helps is thought more of than a neutral one of the same entity; a tie is half."""
    by_entity: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for entity, role, thought in fleet.worth.get(at, []):
        if role in HELPFUL or role == NEUTRAL:
            by_entity[entity][role == NEUTRAL].append(thought)
    pairs = [(one > other) + (one == other) / 2 for good, none in by_entity.values() for one in good for other in none]
    return fmean(pairs) if pairs else None


def neutral_drift(fleet: Fleet, at: int) -> float | None:
    """How far the opinion of neutral notes has moved from nothing, on average over notes."""
    found = [abs(thought) for _, role, thought in fleet.worth.get(at, []) if role == NEUTRAL]
    return fmean(found) if found else None


def curve(fleet: Fleet, points: int) -> list[float]:
    """Attempts a run as an entity's runs go by, in so many steps."""
    last = max(each.nth for each in fleet.lived)
    points = min(points, last)
    bins: list[list[int]] = [[] for _ in range(points)]
    for each in fleet.lived:
        bins[(each.nth - 1) * points // last].append(each.cost(fleet.attempts_max))
    return [fmean(each) for each in bins]
