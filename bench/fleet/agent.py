"""The simulated agent: it acts on what its briefing shows, in that order, and on nothing else it cannot have found out itself.

It tells what it did the way a decent agent does: attempts that failed and the note it blames, if it knows; what the outcome
rests on; and a note about what it found out. It cannot tell a lie from a truth except by trying.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.fleet.policies.policy import Briefing, Policy
from bench.fleet.world import EVIL, Note, Quirk, Run, World


@dataclass(slots=True)
class Lived:
    """How a run went."""

    number: int
    nth: int
    entity: str
    attempts: int = 0
    result: str = "failure"
    harmful: bool = False  # it acted on a note that does harm
    tokens: int = 0
    first_right: dict[str, bool] = field(default_factory=dict)  # by quirk path and topic: whether the first try was right

    def cost(self, attempts_max: int) -> int:
        """In attempts; a failed run costs one more than all it was allowed."""
        return self.attempts if self.result == "success" else attempts_max + 1


@dataclass(slots=True)
class Search:
    """What the agent still has to try for one quirk."""

    quirk: Quirk
    options: list[tuple[str, Note | None]]  # what to try, and which note says so
    avoided: list[Note]
    tried: list[tuple[str, Note | None]] = field(default_factory=list)

    @property
    def now(self) -> tuple[str, Note | None]:
        return self.options[0] if self.options else self.tried[-1]

    def fail(self) -> None:
        self.tried.append(self.options.pop(0) if self.options else self.tried[-1])


def live(world: World, run: Run, policy: Policy) -> Lived:
    """One run from its briefing to its outcome."""
    briefing = policy.brief(run)
    lived = Lived(run.number, run.nth, run.entity.path, tokens=briefing.tokens)
    searches = [search_for(world, run, quirk, briefing.notes) for quirk in run.needed]
    for search in searches:
        lived.first_right[f"{search.quirk.path}/{search.quirk.topic}"] = search.now[0] == world.right(run, search.quirk)
    looked_at = advice_of(world, briefing)
    followed = [note for note in looked_at if world.draw(run.number, "follow", note.key) < world.scenario.agents.follow]
    struggle(world, run, policy, lived, searches, followed)
    if lived.result == "success" and world.draw(run.number, "noise") < world.scenario.noise:
        lived.result = "failure"
    found = lived.result != "critical_failure" and all(search.now[0] == world.right(run, search.quirk) for search in searches)
    write_down(world, run, policy, searches, found=found)
    looked_at += [note for note in briefing.notes if "saw" in note.value][: world.scenario.agents.attention]
    policy.finish(run, lived.result, used_by(world, run, lived, searches, looked_at, followed))
    return lived


def search_for(world: World, run: Run, quirk: Quirk, notes: Sequence[Note]) -> Search:
    """What the notes say in their order, the contested ones behind; then the other choices; what is said not to work, last."""
    about = sorted((note for note in notes if note.value["about"] == quirk.topic), key=lambda note: note.flag == "contested")
    said = {note.value["set"]: note for note in reversed(about) if "set" in note.value}
    order = list(dict.fromkeys(note.value["set"] for note in about if "set" in note.value))
    avoided = [note for note in about if "avoid" in note.value and note.value["avoid"] not in said]
    against = {note.value["avoid"] for note in avoided}
    rest = [choice for choice in world.ordered(quirk.choices, run.number, quirk.topic) if choice not in said]
    rest.sort(key=lambda choice: choice in against)
    return Search(quirk, [(choice, said.get(choice)) for choice in (*order, *rest)], avoided)


def advice_of(world: World, briefing: Briefing) -> list[Note]:
    """The pieces of advice an agent looks at: the first ones, and no contested one while there are others."""
    advice = sorted((note for note in briefing.notes if "do" in note.value), key=lambda note: note.flag == "contested")
    return advice[: world.scenario.agents.attention]


def struggle(world: World, run: Run, policy: Policy, lived: Lived, searches: list[Search], followed: list[Note]) -> None:
    """Try until it works, until it is enough, or until harm is done. Each try that fails says what it used, or what it blames."""
    roles = [world.role(run.entity, note.value, after=run.after) for note in followed]
    chance = min(1.0, run.entity.base + world.scenario.advice.effect * roles.count("helpful"))
    for nth in range(1, world.scenario.attempts_max + 1):
        lived.attempts = nth
        wrong = [search for search in searches if search.now[0] != world.right(run, search.quirk)]
        evil = [search.now[1] for search in wrong if search.now[0] == EVIL]
        if nth == 1:
            evil += [note for note, role in zip(followed, roles, strict=True) if role == "harmful"]
        lived.harmful |= bool(evil)
        if any(world.draw(run.number, "harm", nth, note.key) < world.scenario.advice.harm for note in evil if note):
            lived.result = "critical_failure"
            return
        if wrong:
            blamed = wrong[0].now[1]
            named = [blamed] if blamed and world.draw(run.number, "blame", nth) < world.scenario.agents.blame else []
            policy.attempt(run, named)
            wrong[0].fail()
        elif world.draw(run.number, "chance", nth) < chance:
            lived.result = "success"
            return
        else:
            policy.attempt(run, acted_on(searches, followed))


def acted_on(searches: list[Search], followed: list[Note]) -> list[Note]:
    """All that a try rested on, which is what an agent can say of one that failed for no reason it can see."""
    return [*(note for search in searches if (note := search.now[1]) is not None), *followed]


def used_by(
    world: World, run: Run, lived: Lived, searches: list[Search], looked_at: list[Note], followed: list[Note]
) -> list[Note]:
    """What the outcome rests on, as the agent would say: what it set at the end, followed, spared itself, and some more."""
    agents = world.scenario.agents
    used = [note for search in searches if (note := search.now[1]) is not None]
    used += [note for search in searches if search.now[1] is None for note in search.avoided]
    evil = [note for note in used if note.value.get("set") == EVIL]
    evil += [note for note in followed if world.role(run.entity, note.value, after=run.after) == "harmful"]
    if lived.result == "critical_failure" and evil and world.draw(run.number, "blame") < agents.blame:
        return evil
    cited = [note for note in looked_at if note not in followed and world.draw(run.number, "cite", note.key) < agents.cite]
    return list({(note.entity, note.key): note for note in (*used, *followed, *cited)}.values())


def write_down(world: World, run: Run, policy: Policy, searches: list[Search], *, found: bool) -> None:
    """What was found out that no note said, and what did not work; now and then a wrong lesson, and chatter."""
    agents = world.scenario.agents
    if world.draw(run.number, "chatter") < agents.chatter:
        policy.write(run, world.chatter(run))
    for search in searches:
        quirk = search.quirk
        why = world.topics[quirk.topic].note
        if world.draw(run.number, "writes", quirk.topic) >= agents.writes:
            continue
        if found and search.now[1] is None:
            entity, key = place_of(world, run, search)
            policy.write(run, Note(entity, key, {"about": quirk.topic, "set": search.now[0]}, why))
        if world.scenario.quirks.dead_ends:
            for choice in dict.fromkeys(choice for choice, note in search.tried if note is None):
                key = f"{quirk.topic}-not-{quirk.choices.index(choice)}"
                policy.write(run, Note(quirk.path, key, {"about": quirk.topic, "avoid": choice}, why, 0.8, flag="dead end"))
    if run.entity.quirks and world.draw(run.number, "mistake") < agents.mistakes:
        quirk = world.pick(run.entity.quirks, run.number, "mistaken")
        choice = world.pick([c for c in quirk.choices if c != world.right(run, quirk)], run.number, "mistaken for")
        key = f"{quirk.topic}-{int(world.draw(run.number, 'mistaken key') * agents.names)}"
        policy.write(run, Note(quirk.path, key, {"about": quirk.topic, "set": choice}, world.topics[quirk.topic].note))


def place_of(world: World, run: Run, search: Search) -> tuple[str, str]:
    """Where a finding is written: on top of the note that was wrong, or under a key of the agent's own."""
    misled = [note for _, note in search.tried if note is not None]
    if misled and world.draw(run.number, "supersedes", search.quirk.topic) < world.scenario.agents.supersedes:
        return misled[0].entity, misled[0].key
    nth = int(world.draw(run.number, "key", search.quirk.topic) * world.scenario.agents.names)
    return search.quirk.path, f"{search.quirk.topic}-{nth}"
