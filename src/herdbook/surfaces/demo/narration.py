"""What a person watches: plain lines as things happen, colour on a terminal only.

Text from the record or from a box was written by somebody else, so whatever is not printable is shown as its escape.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

from herdbook.surfaces.demo.events import Committed, Entry, Event, Known, Looked, Ran, Stopped, Wrote

if TYPE_CHECKING:
    from herdbook.surfaces.demo.acts import Played
    from herdbook.surfaces.demo.stage import Actor, Turn

COLUMNS: Final = 108
CODES: Final = {"bold": "1", "dim": "2", "green": "32", "red": "31", "cyan": "36"}


class Narration:
    """Tells the play to `out`; without one, to nobody."""

    def __init__(self, out: TextIO | None) -> None:
        self.out = out
        plain = out is None or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb" or not out.isatty()
        self.paint: Callable[[str, str], str] = unpainted if plain else painted

    def line(self, text: str = "") -> None:
        if self.out is not None:
            self.out.write(text + "\n")
            self.out.flush()

    def wrapped(self, label: str, text: str, *, indent: int) -> None:
        """A paragraph hanging behind its label."""
        hang = " " * (indent + len(label) + 1)
        for line in textwrap.wrap(shown(text), COLUMNS, initial_indent=" " * indent + label + " ", subsequent_indent=hang):
            self.line(self.paint(line, "dim"))

    def title(self, number: int, text: str) -> None:
        named = f"Act {number}" if number <= 5 else "After"
        self.line()
        self.line(self.paint(f"{named}  {text}", "bold"))

    def entered(self, actor: Actor) -> None:
        made = "kept by an earlier run, so not made again" if actor.adopted else "made"
        place = f"{actor.box.provider}, isolation: {actor.box.isolation}"
        self.line(f"  box {actor.box.id} {made} ({place})")

    def enters(self, actor: Actor, *, load: bool) -> None:
        self.line(f"  {self.paint(actor.agent, 'cyan')} in {actor.box.id}{', under load' if load else ''}")

    def event(self, event: Event) -> None:
        match event:
            case Known():
                self.known(event)
            case Ran():
                self.run(event)
            case Wrote():
                self.line(f"    wrote: {entry(event)}{f', superseding v{event.supersedes}' if event.supersedes else ''}")
                self.wrapped("why:", event.why, indent=11)
            case Looked():
                self.looked(event)
            case Committed():
                self.committed(event)
            case Stopped():
                self.line(self.paint(f"    stopped: {shown(event.message)}", "red"))

    def known(self, event: Known) -> None:
        if not event.entries:
            self.line("    known: nothing")
        for each in event.entries:
            stands = "stands" if each.acting else "does not stand"
            self.line(f"    known: {self.paint(entry(each), 'bold')}  {shown(each.standing)}: {stands}")
            self.line(f"           by {shown(each.author)} in {shown(each.box)}, confidence {each.confidence:.3f}")

    def run(self, event: Ran) -> None:
        result = self.paint("green", "green") if event.passed else self.paint("red  ", "red")
        told = f"{event.tests} tests" if event.passed else ", ".join(map(shown, event.failing))
        settings = "  ".join(f"{name}={text:<9}" for name, text in event.settings.items())
        self.line(f"    run {event.number}  {shown(settings)}  {result}  {told}")

    def looked(self, event: Looked) -> None:
        for each in event.versions:
            self.line(f"    history: {entry(each)}  by {shown(each.author)} in {shown(each.box)}")
            self.wrapped("why:", each.why or "(no reason given)", indent=13)

    def committed(self, event: Committed) -> None:
        self.line(f"    outcome: {shown(event.type)}, committed from the box: so far a claim")
        for move in event.moved:
            named = f"{shown(move.key)} v{move.version}"
            if move.how == "attempt":
                self.line(f"      {named}: failed attempt, charged")
            elif move.before != move.after:
                self.line(f"      {named}: confidence {move.before:.3f} -> {move.after:.3f} ({shown(move.how)})")

    def ended(self, turn: Turn) -> None:
        """What the host saw, and what its word changed."""
        if turn.attested is not None:
            self.line(f"    attested by the host, which saw exit code {turn.exit_code}: {shown(turn.attested['result'])}")
            for change in turn.attested["standing"]:
                named = f"{shown(change['key'])} v{change['version']}"
                self.line(f"      {named}: {shown(change['before'])} -> {shown(change['after'])}")
        elif turn.exit_code != 0:
            self.line(self.paint(f"    the host saw exit code {turn.exit_code}", "red"))

    def left(self, actors: Sequence[Actor], boxes: Sequence[dict[str, Any]]) -> None:
        self.line()
        for actor, box in zip(actors, boxes, strict=True):
            self.line(f"  box {actor.box.id} {'destroyed' if box['destroyed'] else 'kept'}")

    def curtain(self, played: Played) -> None:
        """The record after every box is gone, and the two numbers this was about."""
        self.line()
        self.line(self.paint("What is left is the record", "bold"))
        for claim in played.confidence:
            versions = ", ".join(f"v{number}" for number in claim["versions"])
            moved = f"confidence {claim['before']:.3f} -> {claim['after']:.3f}"
            attempts = sum(move["how"] == "attempt" for move in claim["moves"])
            tried = f"held {claim['held']:g}, failed {claim['failed']:g}{charged(attempts)}"
            self.line(f"  {claim['entry']:<14} {versions:<3} {shown(claim['standing']):<13} {moved}  {tried}")
        for version in played.history:
            who = f"{shown(version['agent'])} in {shown(version['box'])}"
            self.line(f"  retry-budget   v{version['version']}  {env_text(version['value']):<15} {who}, {shown(version['at'])}")
        self.line()
        if played.failed is not None:
            self.line(self.paint(f"Act {played.failed.number} failed: {shown(played.failed.message)}", "red"))
            return
        numbers = f"{played.runs(2)} cold, {played.runs(3)} with what the first box had learned"
        self.line(f"Runs of the suite until green: {self.paint(numbers, 'bold')}. {played.seconds:.2f} seconds.")


def charged(attempts: int) -> str:
    """What of the failures is no outcome's."""
    return "" if not attempts else " (a failed attempt, charged)" if attempts == 1 else f" ({attempts} failed attempts, charged)"


def painted(text: str, colour: str) -> str:
    return f"\x1b[{CODES[colour]}m{text}\x1b[0m"


def unpainted(text: str, colour: str) -> str:
    return text


def shown(text: object) -> str:
    """One harmless line."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in str(text))


def entry(each: Entry | Wrote) -> str:
    return f"{shown(each.key)} v{each.version}  {env_text(each.value)}"


def env_text(value: Any) -> str:
    """`RETRY_BUDGET=3`: what an entry puts into the environment."""
    found = value.get("env") if isinstance(value, dict) else None
    return " ".join(f"{shown(name)}={shown(text)}" for name, text in found.items()) if isinstance(found, dict) else shown(value)
