"""The five acts and what comes after them. Nothing in here knows a setting's right value, or how many runs finding it takes.

Act by act: both agents ask; A searches and writes; B starts from that and runs once; B supersedes what fails under load; A asks
again. Then both boxes are destroyed, and a third one has only the record.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final

from herdbook.surfaces.demo.events import Wrote
from herdbook.surfaces.demo.narration import Narration
from herdbook.surfaces.demo.stage import Actor, Stage, Turn

TITLES: Final = {
    1: "Cold: both agents ask what is known",
    2: "agent-a searches, and writes down what it found",
    3: "agent-b starts from that",
    4: "agent-b runs what agent-a never did: the suite under load",
    5: "agent-a asks again: nothing was restarted, no message passed between the boxes",
    6: "a third box, which has only the record",
}
KEYS: Final = ("rounding-mode", "retry-budget")


class Failed(Exception):
    """An act did not end as it has to; what was measured so far is kept."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number, self.message = number, message


@dataclass
class Played:
    """Everything that happened."""

    entity: str
    turns: list[Turn] = field(default_factory=list)
    boxes: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    confidence: list[dict[str, Any]] = field(default_factory=list)
    failed: Failed | None = None
    seconds: float = 0.0

    def runs(self, number: int) -> int:
        """How often the suite ran in an act."""
        return sum(len(turn.runs) for turn in self.turns if turn.number == number)


class Play:
    """One performance on one entity path."""

    def __init__(self, stage: Stage, narration: Narration, entity: str, *, began: float, keep: bool = False) -> None:
        self.stage, self.say, self.began, self.keep = stage, narration, began, keep
        self.played = Played(entity)

    def perform(self) -> Played:
        try:
            self.five_acts()
            self.third_box()
        except Failed as failed:
            self.played.failed = failed
        finally:
            self.look_back()
        self.played.seconds = round(time.monotonic() - self.began, 3)
        self.say.curtain(self.played)
        return self.played

    def five_acts(self) -> None:
        pair = [self.enter(letter) for letter in "ab"]
        a, b = pair
        try:
            self.title(1)
            self.turn(1, a, "ask")
            self.turn(1, b, "ask")
            self.title(2)
            self.turn(2, a, "search")
            self.title(3, aside="" if b.adopted else ", in a box that never ran the suite")
            self.once(3, b)
            self.title(4)
            self.turn(4, b, "load")
            self.title(5)
            self.turn(5, a, "reread")
        finally:
            self.leave(pair, keep=self.keep)

    def third_box(self) -> None:
        self.title(6)
        actor = self.enter("c", fresh=True)
        try:
            self.once(6, actor)
            self.once(6, actor, load=True)
        finally:
            self.leave([actor], keep=False)

    def enter(self, letter: str, *, fresh: bool = False) -> Actor:
        actor = self.stage.enter(letter, keep=self.keep and not fresh)
        self.say.entered(actor)
        return actor

    def title(self, number: int, *, aside: str = "") -> None:
        self.say.title(number, TITLES[number] + aside)

    def turn(self, number: int, actor: Actor, command: str, *, load: bool = False) -> Turn:
        """One agent's turn; anything but a clean end stops the play."""
        self.say.enters(actor, load=load or command == "load")
        turn = self.stage.act(number, actor, command, self.played.entity, load=load, on_event=self.say.event)
        self.played.turns.append(turn)
        self.say.ended(turn)
        if turn.exit_code != 0:
            raise Failed(number, turn.problem)
        return turn

    def once(self, number: int, actor: Actor, *, load: bool = False) -> None:
        """A turn that starts from the record: more than one run of the suite would be searching again."""
        turn = self.turn(number, actor, "inherit", load=load)
        if len(turn.runs) != 1:
            raise Failed(number, f"{actor.agent} ran the suite {len(turn.runs)} times; what is inherited has to do in one run")

    def leave(self, actors: list[Actor], *, keep: bool) -> None:
        self.stage.leave(actors, keep=keep)
        for actor in actors:
            box = {"id": actor.box.id, "provider": actor.box.provider, "isolation": actor.box.isolation}
            self.played.boxes.append({**box, "adopted": actor.adopted, "destroyed": not self.stage.exists(actor)})
        self.say.left(actors, self.played.boxes[-len(actors) :])

    def look_back(self) -> None:
        """Ask the record, from outside any box, what is left."""
        entity, written = self.played.entity, {event.key for turn in self.played.turns for event in turn.all(Wrote)}
        for key in KEYS:
            if key in written:
                claims = sorted(self.stage.book.why(entity, key)["claims"], key=lambda claim: min(claim["versions"]))
                self.played.confidence += [moved_claim(key, claim) for claim in claims]
        if "retry-budget" in written:
            self.played.history = [told(version) for version in self.stage.book.history(entity, "retry-budget")["versions"]]


def told(version: dict[str, Any]) -> dict[str, Any]:
    rest = {name: version[name] for name in ("box", "value", "why", "at", "standing")}
    return {"version": version["version"], "agent": version["author"], **rest}


def moved_claim(key: str, claim: dict[str, Any]) -> dict[str, Any]:
    """A claim's confidence when it was written and now, with what moved it."""
    moves = [{name: move.get(name) for name in ("agent", "how", "type", "before", "after")} for move in claim["moves"]]
    shared = {"entry": key, "versions": claim["versions"], "before": claim["initial"], "after": claim["confidence"]}
    return {**shared, **{name: claim[name] for name in ("standing", "held", "failed", "evidence")}, "moves": moves}
