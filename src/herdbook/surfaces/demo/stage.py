"""The boxes of the demo, what is pushed into them, and one agent's turn in one of them.

What comes out of a box is a claim: lines that are no event are set aside, and an outcome is attested only if the record says that
it was committed from that very box, with the exit code this process saw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from herdbook import client
from herdbook.base.errors import Conflict, InvalidRequest, NotFound, Unavailable
from herdbook.boxes.host import Host
from herdbook.boxes.provider import Box, Chunk, Provider, Stream
from herdbook.boxes.reaper import why_reap
from herdbook.surfaces.demo.events import Committed, Entry, Event, Known, Ran, Stopped, parsed

LABEL: Final = "herdbook-demo"
TURN_SECONDS_MAX: Final = 300
SUITE_FILES_MAX: Final = 500
SUITE_BYTES_MAX: Final = 8 * 1024 * 1024
STRAY_LINES_MAX: Final = 200
OWN: Final = Path(__file__).parent

OnEvent = Callable[[Event], None]
E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class Actor:
    """An agent and the box it has for itself."""

    agent: str
    box: Box
    adopted: bool  # the box is one that an earlier demo kept


@dataclass
class Turn:
    """What one agent did in its box, as its host saw it."""

    number: int  # of the act
    actor: Actor
    load: bool
    events: list[Event] = field(default_factory=list)
    stray: list[str] = field(default_factory=list)  # the last lines of output that were no events
    exit_code: int = -1
    attested: dict[str, Any] | None = None

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def runs(self) -> list[Ran]:
        return self.all(Ran)

    @property
    def known(self) -> list[Entry]:
        return [entry for event in self.all(Known) for entry in event.entries]

    @property
    def problem(self) -> str:
        """Why the turn went wrong, from its own words."""
        said = [event.message for event in self.all(Stopped)]
        if said:
            return "; ".join(said)
        if self.runs and not self.runs[-1].passed:
            return f"the suite is still red after {len(self.runs)} runs ({', '.join(self.runs[-1].failing)})"
        return f"the agent ended with exit code {self.exit_code}: {' / '.join(self.stray[-3:]) or 'it said nothing'}"


class Stage:
    """Makes boxes, puts agents into them and lets them act."""

    def __init__(self, book: client.Client, provider: Provider, host: Host, *, suite: Mapping[str, bytes], suffix: str) -> None:
        self.book, self.provider, self.host = book, provider, host
        self.suite, self.suffix = suite, suffix

    def enter(self, letter: str, *, keep: bool = False) -> Actor:
        """An agent in a box of its own: with `keep` in one that was kept before, where there is one."""
        box = self.kept(letter) if keep else None
        adopted = box is not None
        box = box or self.host.open(f"{LABEL}-{letter}-{self.suffix}", outlives=keep)
        files = {"client.py": Path(client.__file__).read_bytes(), "agent.py": (OWN / "agent.py").read_bytes()}
        files |= {f"checkout/{name}": data for name, data in self.suite.items()}
        for name, data in files.items():  # a folder for each demo, so that a kept box holds nothing of an earlier one
            self.host.put(box, f"{self.suffix}/{name}", data)
        return Actor(f"agent-{letter}", box, adopted)

    def kept(self, letter: str) -> Box | None:
        for row in self.rows():
            if row["box"].startswith(f"{LABEL}-{letter}-") and is_kept(row):
                try:
                    return self.host.adopt(row["box"])
                except (NotFound, Conflict, Unavailable):
                    continue  # because somebody ended it between the two looks, or is in it now
        return None

    def rows(self) -> list[Mapping[str, Any]]:
        found = self.book.box_list(label=LABEL, live=True)["boxes"]
        return [row for row in found if row["provider"] == self.provider.name]

    def sweep(self) -> int:
        """End what demos that were killed left behind; how many boxes that were."""
        dead = [row["box"] for row in self.rows() if why_reap(row)]
        for box in dead:
            self.host.destroy(box, detail="left behind by a demo that was killed")
        return len(dead)

    def act(self, number: int, actor: Actor, command: str, entity: str, *, load: bool = False, on_event: OnEvent) -> Turn:
        """Run the agent in its box to its end, and attest what it committed."""
        turn = Turn(number, actor, load or command == "load")
        lines = Lines(turn, on_event)
        turn.exit_code = self.host.run(
            actor.box,
            [actor.box.python, "agent.py", command, "--entity", entity, *(["--load"] if load else [])],
            env={"HERDBOOK_AGENT": actor.agent},
            cwd=self.suffix,
            timeout_seconds=TURN_SECONDS_MAX,
            on_output=lines.take,
        )
        lines.end()
        for event in turn.all(Committed):
            self.attest(turn, event.ref)
        return turn

    def attest(self, turn: Turn, ref: str) -> None:
        if self.book.trace(ref)["box"] != turn.actor.box.id:
            turn.stray.append(f"the agent named the outcome {ref!r}, which was not committed from its box: not attested")
            return
        turn.attested = self.book.attest(
            ref, exit_code=turn.exit_code, box=turn.actor.box.id, note=f"seen by the host of {turn.actor.box.id}"
        )

    def leave(self, actors: Sequence[Actor], *, keep: bool) -> None:
        """Destroy these boxes, or keep them for the next run."""
        for actor in actors:
            if keep:
                self.host.leave(actor.box)
            else:
                self.host.destroy(actor.box, detail="the demo is over")

    def exists(self, actor: Actor) -> bool:
        """Whether the provider still has the box: asked, not remembered."""
        return actor.box.id in {box.id for box in self.provider.list(LABEL)}


class Lines:
    """Cuts an agent's output into events; standard error, and what is no event, is kept as stray lines."""

    def __init__(self, turn: Turn, on_event: OnEvent) -> None:
        self.turn, self.on_event = turn, on_event
        self.rest: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}

    def take(self, chunk: Chunk) -> None:
        stream, data = chunk
        *whole, self.rest[stream] = (self.rest[stream] + data).split(b"\n")
        for line in whole:
            self.line(stream, line)

    def end(self) -> None:
        for stream, line in self.rest.items():
            if line:
                self.line(stream, line)

    def line(self, stream: Stream, line: bytes) -> None:
        event = parsed(line) if stream == "stdout" else None
        if event is None:
            self.turn.stray = [*self.turn.stray, line.decode(errors="replace")][-STRAY_LINES_MAX:]
        else:
            self.turn.events.append(event)
            self.on_event(event)


def is_kept(row: Mapping[str, Any]) -> bool:
    """Whether the box was made to outlive its demo: one that a running demo holds is not ours to take."""
    return str(row["owner"]).endswith(":kept")


def suite_files(directory: Path) -> dict[str, bytes]:
    """The project to push, by relative name; what is hidden or generated stays outside."""
    if not any(directory.glob("test*.py")):
        raise InvalidRequest(f"{directory} is no suite: name a directory with test*.py files for `python3 -m unittest`")
    found: dict[str, bytes] = {}
    size = 0
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory)
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in name.parts):
            size += path.stat().st_size
            if len(found) == SUITE_FILES_MAX or size > SUITE_BYTES_MAX:
                raise InvalidRequest(
                    f"{directory} is over {SUITE_FILES_MAX} files or {SUITE_BYTES_MAX} bytes: name the suite alone"
                )
            found[name.as_posix()] = path.read_bytes()
    return found
