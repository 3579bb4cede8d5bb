"""A fleet fills a record: a world of the fleet bench, and agents whose every call is recorded, with how their runs ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from bench.fleet.scenario import Quirks, Scenario
from bench.fleet.world import Quirk, Run, World
from herdbook.base.clock import TickClock
from herdbook.base.settings import load
from herdbook.client import Client
from herdbook.service.callers import box_caller, local_caller
from herdbook.service.local import LocalTransport
from herdbook.service.opening import open_service

SEED: Final = 11
ATTEMPTS_MAX: Final = 3
SERVICES, RUNS_EACH = 3, 80
RUNS: Final = SERVICES * RUNS_EACH
SCENARIO: Final = Scenario(
    name="train",
    says="every run needs two of twelve options that all services share",
    entities=SERVICES,
    runs=RUNS_EACH,
    noise=0.05,
    minutes=30,
    quirks=Quirks(count=12, needed=2, shared=1.0),
)
PROPERTIES: Final = {"option": {"type": "string"}, "to": {"type": "string"}}
SET_OPTION: Final = {
    "name": "set_option",
    "description": "Set one option of a service",
    "parameters": {"type": "object", "properties": PROPERTIES, "required": ["option", "to"]},
}


def fill(home: Path) -> None:
    """Live the fleet on the record of this home."""
    world, clock = World(SCENARIO, SEED), TickClock()
    settings = load({"HERDBOOK_HOME": str(home), "HERDBOOK_SYNCHRONOUS": "NORMAL", "HERDBOOK_EMBED": "off"})
    service = open_service(settings, clock=clock, inline_max=1_000)
    host = Client(LocalTransport(service, local_caller("host")), agent="host")
    try:
        for run in world.runs():
            clock.tick(seconds=60 * SCENARIO.minutes)
            path, caller = run.entity.path, box_caller(run.name, identity="fleet")
            box = Client(LocalTransport(service, caller), agent="fixer", task=run.task, entity=path)
            known = {entry["key"]: entry["value"]["to"] for entry in host.brief(path, task=run.task)["entries"]}
            ended = live(box, world, run, known, clock)
            host.attest(run.name, exit_code=0 if ended else 1)
    finally:
        service.close()


def live(box: Client, world: World, run: Run, known: dict[str, str], clock: TickClock) -> bool:
    """One run: it starts from what is known of its service, tries, writes down what it found out, and says how it ended."""
    box.context("system", f"You look after {run.entity.path}.")
    box.context("tools", json.dumps([{"type": "function", "function": SET_OPTION}]))
    right = all(settled(box, world, run, quirk, known, clock) for quirk in run.needed)
    well = right and world.draw(run.number, "noise") >= SCENARIO.noise
    box.commit_outcome(run.name, "success" if well else "failure", task_input=run.task)
    return well


def settled(box: Client, world: World, run: Run, quirk: Quirk, known: dict[str, str], clock: TickClock) -> bool:
    """Set one option, as it is known to be right or by trying, and write down what was found out."""
    options = world.ordered(quirk.choices, run.number, quirk.topic)
    if quirk.topic in known:
        options = [known[quirk.topic], *options]
    for choice in options[:ATTEMPTS_MAX]:
        clock.tick(seconds=5)
        right = choice == world.right(run, quirk)
        box.action("set_option", {"option": quirk.topic, "to": choice}, "it holds" if right else "that is not it", ok=right)
        if right:
            if known.get(quirk.topic) != choice:
                box.write(run.entity.path, quirk.topic, {"to": choice}, why=world.topics[quirk.topic].note)
            return True
    return False
