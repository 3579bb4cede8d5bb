"""Many boxes at one task: a variant each, dead ends shared while they run, and only the winner's entries told."""

from __future__ import annotations

import argparse
import itertools
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from herdbook import client
from herdbook.base import files
from herdbook.base.errors import InvalidRequest, Unavailable
from herdbook.boxes.fanout import Attempt, Board, Budget, FanOut, Tell, Variant, fan_out, last_line
from herdbook.boxes.host import Host
from herdbook.boxes.provider import WEAKEST_FIRST, Box, Isolation, Provider
from herdbook.boxes.providers import AUTO, PROVIDERS, choose
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import whole_number
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import clipped, line

LABEL: Final = "herdbook-fanout"
TAIL_BYTES: Final = 8_000
FILES_BYTES_MAX: Final = 8 * 1024 * 1024
VARIANTS_MAX: Final = 10_000
REACH_SECONDS: Final = 60.0
REACHES_RECORD: Final = "from client import Client; Client(session='').call('list', {'limit': 1})"
EXAMPLES: Final = """\
example:
  $ herdbook fanout acme/checkout --task "make the suite green" --files checkout \\
      --vary ROUNDING_MODE=half_up,half_even --vary RETRY_BUDGET=1,3,5 -- python3 -m unittest
  $ herdbook fanout acme/checkout --variants space.jsonl --boxes 8 --at-once 4 -- sh try.sh '{RETRY_BUDGET}'

Each line of the file is a JSON object of variables. A variant reaches the command as its environment, and as {NAME} in its words.
Exit code: 0 if an attempt passed, 1 if none did."""


class Wiring(Protocol):
    """What the composition root hands in."""

    @property
    def boxes_dir(self) -> Path: ...

    def open_record(self) -> client.Client: ...

    def open_socket(self, box: str) -> tuple[str, Callable[[], None]]: ...

    def as_box(self, box: str, session: str | None = None) -> Tell:
        """What tells the record something in the name of this box, as whoever began that session there."""
        ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Try variants of one task in boxes of their own, some at once, until one passes. What fails is written as a dead end at "
        "once, and no attempt starts that a dead end rules out: not in this fan-out, not in the next one. It needs the record "
        "itself, a file or a PostgreSQL database, not a server that has it."
    )
    parser.add_argument("entity", metavar="PATH", help="the path of the task, such as acme/checkout")
    parser.add_argument("--task", metavar="TEXT", help="what it is about (the command itself)")
    parser.add_argument("--variants", metavar="FILE", type=Path, help="a JSON object of variables a line")
    parser.add_argument("--vary", metavar="NAME=A,B", action="append", default=[], help="every combination of these values")
    parser.add_argument("--files", metavar="DIR", type=Path, help="a directory; every box gets what is in it, in its home")
    parser.add_argument("--boxes", metavar="N", type=whole_number, default=8, help="at most this many attempts (8)")
    parser.add_argument("--at-once", metavar="N", type=whole_number, default=2, help="so many boxes at a time (2)")
    parser.add_argument("--wall-seconds", metavar="N", type=whole_number, default=600, help="end after this long (600)")
    parser.add_argument("--box-seconds", metavar="N", type=whole_number, default=3600, help="start nothing past this sum (3600)")
    parser.add_argument(
        "--provider", choices=(AUTO, *PROVIDERS), default=AUTO, help="what makes the boxes (the strongest that works here)"
    )
    parser.add_argument("--isolation-min", choices=WEAKEST_FIRST[1:], help="refuse to run in less")
    parser.add_argument("command", metavar="-- COMMAND", nargs="+", help="what to run in each box, with its arguments")


def run(invocation: Invocation, wiring: Wiring) -> int:
    args = invocation.args
    variants, pushed = variants_of(args), files_of(args.files)
    minimum: Isolation | None = args.isolation_min
    provider = choose(args.provider, minimum=minimum, state_dir=wiring.boxes_dir)
    book = wiring.open_record()
    task = args.task or " ".join(args.command)
    budget = Budget(attempts=args.boxes, at_once=args.at_once, wall_seconds=args.wall_seconds, box_seconds=args.box_seconds)
    with Host(book, provider, open_socket=wiring.open_socket, label=LABEL) as host:
        crew = Crew(book, host, wiring, pushed, args.command, args.entity, task)

        def changed(attempt: Attempt) -> None:
            crew.tell(attempt)
            if not invocation.terminal.as_json:
                invocation.terminal.remark(progress(attempt))

        found = fan_out(variants, Board(book.call, args.entity), crew.run, budget, on_change=changed)
    invocation.show(as_json(found, provider), summary(found, args.entity))
    return 0 if found.winner else 1


@dataclass(frozen=True)
class Crew:
    """Runs attempts in boxes, and tells the record of them."""

    book: client.Client
    host: Host
    wiring: Wiring
    files: Mapping[str, bytes]
    command: Sequence[str]
    entity: str
    task: str
    reached: threading.Event = field(default_factory=threading.Event)  # a box elsewhere was seen to reach the record

    def run(self, attempt: Attempt, *, timeout_seconds: float, stop: threading.Event) -> str:
        """One attempt in a box of its own; ended when somebody else has won."""
        box = self.host.open(competes=True)
        attempt.box = box.id
        try:
            for name, data in self.files.items():
                self.host.put(box, name, data)
            if box.record_url and not self.reached.is_set():
                self.see_that_it_reaches_the_record(box)
            env = {**attempt.variant.env, "HERDBOOK_AGENT": "fanout"}
            words = [filled(word, attempt.variant.env) for word in self.command]
            execution = self.host.start(box, words, env=env, timeout_seconds=timeout_seconds)
            done = threading.Event()
            watch = threading.Thread(target=end_when_over, args=(stop, done, execution.kill), daemon=True)
            watch.start()
            tail = b""
            for _, data in execution:
                tail = (tail + data)[-TAIL_BYTES:]
            done.set()
            attempt.exit_code = execution.exit.code
            if execution.exit.reason not in ("exited", "killed"):
                attempt.why = f"{attempt.variant.approach}: ended for its {execution.exit.reason}"
            return tail.decode(errors="replace")
        finally:  # what a killed fan-out leaves, the reaper ends
            self.host.destroy(box, detail="the attempt is over")

    def see_that_it_reaches_the_record(self, box: Box) -> None:
        """Before the first attempt elsewhere: what fails because the way is shut would be kept as a dead end."""
        said = bytearray()
        look = [box.python, "-c", REACHES_RECORD]
        code = self.host.run(box, look, timeout_seconds=REACH_SECONDS, on_output=lambda chunk: said.extend(chunk[1]))
        if code != 0:
            why = last_line(said.decode(errors="replace"))
            raise Unavailable(
                f"a box at {box.provider} does not reach the record by its connector ({why}): "
                "serve this record where the connector leads, with the key that it shows"
            )
        self.reached.set()

    def tell(self, attempt: Attempt) -> None:
        """The outcome of an attempt that came to an end, attested; and the winner's entries before that, so that they stand."""
        if attempt.state not in ("won", "failed"):
            return
        box = attempt.box
        runs = self.book.call("box_runs", {"box": box})["sessions"] or [self.begun(box)]
        attempt.sessions = runs
        if attempt.state == "won" and not self.book.call("box_promote", {"box": box})["told"]:
            why = f"the command passes with {attempt.variant.approach}, found by trying"
            entry = {"entity": self.entity, "key": "fanout-winner", "value": {"env": dict(attempt.variant.env)}, "why": why}
            self.wiring.as_box(box, runs[-1])("write", {**entry, "session": runs[-1]})
        for session in runs:
            ref = self.outcome_of(session) or self.concluded(session, attempt)
            said = {"ref": ref, "exit_code": attempt.exit_code, "box": box, "note": f"seen by the host of {box}"}
            self.book.call("attest", said)

    def begun(self, box: str) -> str:
        """The run is the box's, also where its command knows nothing of the record."""
        said = {"session": box, "agent": "fanout", "entity": self.entity, "task": self.task}
        self.wiring.as_box(box)("start_session", said)
        return box

    def outcome_of(self, session: str) -> str:
        """What the box has told itself, by its ref."""
        outcomes = self.book.call("trace", {"ref": session})["outcomes"]
        return str(outcomes[-1]["ref"]) if outcomes else ""

    def concluded(self, session: str, attempt: Attempt) -> str:
        kind, ref = "success" if attempt.exit_code == 0 else "failure", f"fanout:{session}"
        self.wiring.as_box(attempt.box, session)(
            "commit_outcome", {"session": session, "ref": ref, "type": kind, "task_input": self.task}
        )
        return ref


def end_when_over(stop: threading.Event, done: threading.Event, kill: Callable[[], None]) -> None:
    while not done.wait(0.05):
        if stop.is_set():
            kill()
            return


def filled(word: str, env: Mapping[str, str]) -> str:
    for name, text in env.items():
        word = word.replace("{" + name + "}", text)
    return word


def variants_of(args: argparse.Namespace) -> list[Variant]:
    """From the file, else every combination, in the order of the command line."""
    if (args.variants is None) == (not args.vary):
        raise Usage("say what to try: --variants FILE, or --vary NAME=A,B once or more")
    if args.variants is None:
        choices = choices_of(args.vary)
        found = [Variant(dict(combination)) for combination in itertools.islice(itertools.product(*choices), VARIANTS_MAX + 1)]
    else:
        given = files.read_text(args.variants, what="the variants", bytes_max=FILES_BYTES_MAX)
        try:
            found = [Variant(json.loads(text)) for text in given.splitlines() if text.strip()]
        except (ValueError, RecursionError) as problem:
            raise Usage(f"{args.variants} holds no JSON object a line: {problem}") from problem
    if not 0 < len(found) <= VARIANTS_MAX:
        raise Usage(f"a fan-out has 1 to {VARIANTS_MAX} variants")
    for variant in found:
        if not isinstance(variant.env, dict) or not all(
            isinstance(text, str) and name and "=" not in name and is_plain(name + text) for name, text in variant.env.items()
        ):
            raise Usage("a variant is a JSON object of variables with texts as values")
    return found


def choices_of(vary: Sequence[str]) -> list[list[tuple[str, str]]]:
    """The values of each variable. An empty one is a value, and has to be written as NAME=."""
    values: dict[str, str] = {}
    for each in vary:
        name, equals, texts = each.partition("=")
        if not equals:
            raise Usage(f"--vary {name} names no values: write {name}=A,B")
        if name in values:
            raise Usage(f"--vary names {name} twice: write {name}={values[name]},{texts}")
        values[name] = texts
    return [[(name, text) for text in texts.split(",")] for name, texts in values.items()]


def is_plain(text: str) -> bool:
    """Whether a program can be given this: no NUL, and nothing that is no character."""
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text


def files_of(directory: Path | None) -> dict[str, bytes]:
    """What goes into every box: the client, and a directory without what is hidden or generated."""
    if directory and not directory.is_dir():
        raise Usage(f"{directory} is no directory: --files takes one, and puts what is in it into every box")
    found = {"client.py": Path(client.__file__).read_bytes()}
    left = FILES_BYTES_MAX
    for path in sorted(directory.rglob("*")) if directory else []:
        name = path.relative_to(directory or path)
        if not path.is_file() or any(part.startswith((".", "__pycache__")) for part in name.parts):
            continue
        if not path.resolve().is_relative_to(Path(directory or path).resolve()):
            raise InvalidRequest(
                f"{path} leads out of {directory}, and every box would get what is there: put a copy in its place"
            )
        left -= path.stat().st_size
        if left < 0:
            raise InvalidRequest(f"{directory} is over {FILES_BYTES_MAX} bytes: name what the boxes need alone")
        found[name.as_posix()] = files.read(path, what="a file for the boxes", bytes_max=FILES_BYTES_MAX)
    return found


def progress(attempt: Attempt) -> str:
    why = attempt.why.removeprefix(f"{attempt.variant.approach}: ")  # which the line begins with
    told = {
        "won": f"passed in {attempt.seconds:.1f} s",
        "failed": f"failed in {attempt.seconds:.1f} s, now a dead end: {why}",
        "skipped": f"skipped, a dead end: {why}",
        "ended": "ended, since it is over",
        "not started": "",
    }
    return clipped(f"{line(attempt.variant.approach)}: {line(told[attempt.state])}", 200)


def summary(found: FanOut, entity: str) -> list[str]:
    counts = {state: found.count(state) for state in ("failed", "skipped", "ended")}
    tried = found.count("won") + counts["failed"] + counts["ended"]
    won = f"{found.winner.variant.approach} passes" if found.winner else "nothing passed"
    lines = [f"{line(won)}: {tried} tried, {counts['failed']} failed, {counts['skipped']} skipped as dead ends"]
    if found.winner is None and (left := found.count("not started")):
        lines.append(f"{left} variants were not reached: raise --boxes, --wall-seconds or --box-seconds, or run it again")
    if counts["skipped"] == len(found.attempts):
        lines.append(f"Every variant is ruled out. If one should not be: herdbook brief {line(entity)}, and write its key again")
    return [*lines, f"{found.seconds:.1f} s, {found.box_seconds:.1f} box-seconds"]


def as_json(found: FanOut, provider: Provider) -> dict[str, Any]:
    told = [{**asdict(each), "variant": dict(each.variant.env), "approach": each.variant.approach} for each in found.attempts]
    winner = found.winner
    return {
        "provider": provider.name,
        "isolation": provider.isolation,
        "winner": winner.variant.approach if winner else None,
        "attempts": told,
        "seconds": round(found.seconds, 3),
        "box_seconds": round(found.box_seconds, 3),
    }
