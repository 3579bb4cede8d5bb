"""Is all well, and if not, what to do: every check is a line, and every line that is not well comes with its fix."""

from __future__ import annotations

import argparse
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from herdbook.base.clock import from_iso
from herdbook.base.errors import HerdbookError
from herdbook.base.ids import new_name
from herdbook.base.settings import FILE_NAME
from herdbook.boxes.provider import Finding
from herdbook.surfaces.cli import gateway_findings
from herdbook.surfaces.cli.invocation import Invocation, place, shown_path
from herdbook.surfaces.cli.problems import refusal
from herdbook.surfaces.cli.terminal import Answer, Terminal, line

if TYPE_CHECKING:
    from herdbook.record.store.protocol import Transaction
    from herdbook.record.types import Head
    from herdbook.service.local import LocalTransport

EXAMPLES = """\
example:
  $ herdbook init
  $ herdbook doctor
  $ herdbook doctor --json | jq '.findings[] | select(.ok | not)'

It exits with 1 if anything is not well. It changes nothing, and makes no record where there is none."""

DISK_BYTES_MIN: Final = 256 * 1024 * 1024
CLOCK_SECONDS_MAX: Final = 2
YEAR_2025_SECONDS: Final = 1_735_689_600
OUTCOMES_WORTH: Final = 60  # so many tell a large effect from none
TOLERANCE: Final = 1e-9
JOURNAL_WAITING_BYTES_MAX: Final = 64 * 1024 * 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Look at everything herdbook stands on, and say what is not well and what to do about it."
    parser.add_argument("--no-box", action="store_true", help="do not try to start a box")


def run(invocation: Invocation) -> int:
    found = list(findings(invocation))
    bad = [each for each in found if not each.ok]
    invocation.show({"ok": not bad, "findings": [asdict(each) for each in found]}, lines(found, invocation.terminal))
    return 1 if bad else 0


def lines(found: list[Finding], terminal: Terminal) -> Iterator[str]:
    for each in found:
        yield f"{terminal.paint('ok', 'green') if each.ok else terminal.paint('no', 'red')}  {line(each.what)}"
        if not each.ok:
            yield f"    fix: {line(each.fix)}"
    bad = sum(not each.ok for each in found)
    yield ""
    yield "All is well." if not bad else f"{bad} of {len(found)} not well."


def findings(invocation: Invocation) -> Iterator[Finding]:
    yield python()
    yield settings_file(invocation)
    yield in_force(invocation)
    yield from record(invocation)
    yield clock()
    if not invocation.remote and invocation.settings.record_file:
        yield disk(nearest_existing(invocation.settings.record_file))
    yield from gateway_findings.findings(invocation.settings)
    if not invocation.args.no_box:
        yield from boxes(invocation)


def python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(ok=sys.version_info >= (3, 11), what=f"Python {version}", fix="use Python 3.11 or newer")


def settings_file(invocation: Invocation) -> Finding:
    """That it can be read was seen before; a credential in it is for its owner only."""
    path = invocation.settings.home / FILE_NAME
    if not path.exists():
        return Finding(ok=True, what=f"settings: no {FILE_NAME}, so defaults and environment")
    holds_key = invocation.settings.sources.get("key") == FILE_NAME
    if holds_key and open_to_others(path):
        return Finding(ok=False, what=f"settings: {shown_path(path)} holds a key that others can read", fix=f"chmod 600 {path}")
    return Finding(ok=True, what=f"settings: {shown_path(path)} is read")


def in_force(invocation: Invocation) -> Finding:
    changed = [f"{each.setting.name} ({each.source})" for each in invocation.settings if each.source != "default"]
    return Finding(ok=True, what="settings that are not the default: " + (", ".join(changed) or "none"))


def record(invocation: Invocation) -> Iterator[Finding]:
    """Whether the record answers, and what it says about itself."""
    where = place(invocation.settings)
    if invocation.record_is_missing():
        yield Finding(ok=False, what=f"record: there is none at {where}", fix="herdbook init, or name another with --record")
        return
    try:
        status = invocation.ask("status")
    except Exception as problem:  # because a record that fails in a way nobody foresaw is what doctor is for
        yield failed(problem)
        return
    facts = status.get("record") or {}
    yield Finding(ok=True, what=f"record: {where} answers, schema {status.get('schema')}")
    yield integrity(status)
    yield synchronous(facts)
    yield journal(facts)
    yield copies(facts)
    yield meaning(status)
    yield from experiments(invocation, status)
    yield triggers(status)
    yield seals(status)
    yield from trust_trigger(invocation)
    if not invocation.remote:
        yield seal_key(invocation.settings.seal_key_file)
    if status.get("at"):
        yield skew(status)


def failed(problem: Exception) -> Finding:
    told = refusal(problem)
    if told is None:
        return Finding(
            ok=False, what=f"record: {type(problem).__name__} {problem}", fix="HERDBOOK_DEBUG=1 herdbook status shows where"
        )
    what, colon, fix = told.message.partition(": ")
    return Finding(ok=False, what=f"record: {what}", fix=fix if colon else told.message)


def integrity(status: Answer) -> Finding:
    """The engine's own check of its file."""
    problems = [str(each) for each in status.get("problems") or []]
    return Finding(
        ok=not problems,
        what="integrity: " + ("; ".join(problems)[:300] if problems else "the record is whole"),
        fix="restore the record from a backup",
    )


def synchronous(facts: Answer) -> Finding:
    setting = str(facts.get("synchronous", "FULL"))
    if setting == "FULL":
        return Finding(ok=True, what="synchronous: FULL, so what was acknowledged survives a power cut")
    return Finding(ok=True, what=f"synchronous: {setting}, so a power cut may take back the last acknowledged writes")


def journal(facts: Answer) -> Finding:
    """What was read and is not yet folded into the record."""
    unreadable, waiting = int(facts.get("reads_unreadable") or 0), int(facts.get("reads_waiting_bytes") or 0)
    if unreadable:
        return Finding(
            ok=False,
            what=f"journal: {unreadable} reads in it cannot be read",
            fix="they were torn by a crash and move no trust; copy the .reads file beside the record away, then write anything",
        )
    return Finding(
        ok=waiting <= JOURNAL_WAITING_BYTES_MAX,
        what=f"journal: readable, {waiting} bytes of reads wait for the next write",
        fix="write anything: the next write folds the journal into the record",
    )


def copies(facts: Answer) -> Finding:
    """When the record was last copied, and whether it is itself a copy that was put back."""
    taken, restored = (facts.get(name) for name in ("backup_at", "restored_at"))
    said = f"the last copy was taken {ago(taken)}" if taken else "herdbook backup has taken none"
    return Finding(ok=True, what=f"backup: {said}" + (f"; this record was restored {ago(restored)}" if restored else ""))


def meaning(status: Answer) -> Finding:
    """Whether entries are found by meaning. An embedder that was set and cannot be asked is a fault; to have none is not."""
    told = status.get("embedding")
    if not isinstance(told, dict):
        return Finding(ok=True, what=f"meaning: entries are found by their words; {told}")
    if "problem" in told:
        what, _, fix = str(told["problem"]).partition(": ")
        return Finding(ok=False, what=f"meaning: {what}", fix=fix or "set embed to another, or to off")
    return Finding(ok=True, what=f"meaning: {told['embedded']} of {told['entries']} entries embedded, in {told['space']}")


def experiments(invocation: Invocation, status: Answer) -> Iterator[Finding]:
    """Once there is enough to learn from, that nothing is left to chance is worth a word; it is no fault."""
    outcomes = int((status.get("counts") or {}).get("outcomes") or 0)
    if outcomes < OUTCOMES_WORTH:
        return
    held_back = next(each["value"] for each in invocation.ask("tuning")["tuning"] if each["name"] == "holdback")
    if not held_back:
        told = "`herdbook tune ENTITY holdback=0.15` lets `herdbook prove` tell which entries help"
        yield Finding(ok=True, what=f"holdback: off where nothing else is tuned, with {outcomes} outcomes there: {told}")


def ago(at: str) -> str:
    hours = max(0.0, time.time() - from_iso(at) / 1_000_000) / 3600
    return f"{hours / 24:.0f} days ago" if hours >= 48 else f"{hours:.1f} hours ago"


def triggers(status: Answer) -> Finding:
    missing = [str(each) for each in status.get("triggers_missing") or []]
    return Finding(
        ok=not missing,
        what="triggers: " + (f"missing {', '.join(missing)}" if missing else "all there"),
        fix="somebody dropped them: restore the record from a backup",
    )


def trust_trigger(invocation: Invocation) -> Iterator[Finding]:
    """Whether an outcome moves a confidence: tried in a transaction that is taken back, where the record is in this process."""
    from herdbook.service.local import LocalTransport

    door = invocation.opened()
    if not isinstance(door, LocalTransport):
        return
    try:
        moved = rehearse(door)
    except HerdbookError as problem:
        yield Finding(ok=False, what=f"trust trigger: it could not be tried: {problem.message}", fix="mend the lines above first")
        return
    fires = len(moved) == 2 and all(map(is_moved, moved))
    yield Finding(
        ok=fires,
        what="trust trigger: " + ("fires" if fires else "did not move a confidence when it was tried"),
        fix="somebody changed it: restore the record from a backup",
    )


def is_moved(move: Answer) -> bool:
    """Whether the log of one move says that a confidence changed by its factor; a trigger that is not there logs nothing."""
    before, factor, after = move["before"], move["factor"], move["after"]
    return None not in (before, factor, after) and before != after and abs(after - before * factor) < TOLERANCE


FACTOR: Final = 0.9  # of the bare row


class TakenBack(Exception):
    """Ends a transaction without a trace, and carries what happened in it."""

    def __init__(self, moved: list[Answer]) -> None:
        super().__init__("taken back")
        self.moved = moved


def rehearse(door: LocalTransport) -> list[Answer]:
    """A whole run in one transaction that is then rolled back: what its outcome moved, and what a bare row of plain SQL moves."""
    from herdbook.record.outcomes import Outcome

    session, entity, key = new_name("s"), f"herdbook/doctor/{new_name('e')}", "rehearsal"
    run: list[tuple[str, Answer]] = [
        ("start_session", {"session": session, "agent": "doctor"}),
        ("write", {"entity": entity, "key": key, "value": True, "why": "doctor tries the trust trigger"}),
        ("commit_outcome", {"session": session, "type": "success", "used": [{"entity": entity, "key": key}]}),
    ]

    def work(tx: Transaction) -> None:
        answers = [door.service.plan(door.caller, verb, fields).work(tx) for verb, fields in run]
        tenant, outcome = door.caller.tenant, answers[-1]

        def claim() -> Head:
            return door.service.record.entry(tenant, entity, key, tx)[0]

        told = claim()
        row = tx.row("outcome", {"tenant": tenant, "ref": outcome["ref"]})
        if row is None:
            raise TakenBack([])
        tx.many("insert_cause", [(tenant, Outcome(*row).id, told.version_id, "foreign", FACTOR, 0, *[None] * 7)])
        bare = claim().confidence
        moves = [move | {"after": told.confidence} for move in outcome["moved"]]  # what the claim has then, whatever the log says
        raise TakenBack([*moves, {"before": told.confidence, "factor": FACTOR, "after": bare}])

    try:
        door.service.record.store.write(work, tenant=door.caller.tenant)
    except TakenBack as rehearsed:
        return rehearsed.moved
    return []


def seals(status: Answer) -> Finding:
    said = str(status.get("seals"))
    return Finding(
        ok=said in ("verified", "none yet"),
        what=f"seals: {said}",
        fix="put the key file back where the record expects it (HERDBOOK_SEAL_KEY_FILE)",
    )


def seal_key(path: Path) -> Finding:
    if not path.exists():
        return Finding(ok=False, what=f"seal key: {shown_path(path)} is missing", fix="put the key file back from its own backup")
    return Finding(
        ok=not open_to_others(path),
        what=f"seal key: {shown_path(path)} is " + ("for its owner only" if not open_to_others(path) else "open to others"),
        fix=f"chmod 600 {path}",
    )


def open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def skew(status: Answer) -> Finding:
    """How far this machine's time is from the record's."""
    seconds = abs(from_iso(str(status["at"])) / 1_000_000 - time.time())
    return Finding(
        ok=seconds <= CLOCK_SECONDS_MAX,
        what=f"clock: {seconds:.1f} s from the record's",
        fix="set this machine's clock, or the server's: order and decay go by the record's",
    )


def clock() -> Finding:
    now = time.time()
    return Finding(
        ok=now > YEAR_2025_SECONDS,
        what=f"clock: {time.strftime('%Y-%m-%d %H:%M:%SZ', time.gmtime(now))}",
        fix="set this machine's clock: entries fade by it",
    )


def disk(path: Path) -> Finding:
    free = shutil.disk_usage(path).free
    return Finding(
        ok=free >= DISK_BYTES_MIN,
        what=f"disk: {free // (1024 * 1024)} MiB free under {shown_path(path)}",
        fix=f"free some space: below {DISK_BYTES_MIN // (1024 * 1024)} MiB writes will soon be refused",
    )


def nearest_existing(path: Path) -> Path:
    """The path, or the closest directory above it that is there."""
    return path if path.exists() else nearest_existing(path.parent)


def boxes(invocation: Invocation) -> Iterator[Finding]:
    """Whether a box can really be isolated here: one is started and looked at."""
    from herdbook.boxes import providers

    try:
        yield from providers.findings(invocation.settings.boxes)
    except (HerdbookError, OSError) as problem:
        yield Finding(ok=False, what=f"boxes: {problem}", fix="make the directory of HERDBOOK_HOME writable")
