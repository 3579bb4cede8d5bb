"""What a person does to the watcher's record: name a class, disagree, say how it ended, add a note. Each is a run of its own.

A person's outcomes are attested with the person's own credential, which is what gives a class standing and a gate its history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from herdbook.base.errors import Conflict, HerdbookError, InvalidRequest, NotFound
from herdbook.base.ids import new_name
from herdbook.client import Client
from herdbook.client import HerdbookError as Refused
from herdbook.watch import evidence
from herdbook.watch.rules import LABELS

Sitting = Callable[[str], Client]  # a client in a session of its own, by the task that a person has set themselves


def name_class(
    sit: Sitting,
    entity: str,
    key: str,
    *,
    label: str,
    patterns: Sequence[str],
    why: str,
    fix: Mapping[str, str] | None,
    of: str | None,
) -> dict[str, Any]:
    """A class under a person's name: it stands at once. `of` is the entry that showed it first, and proposes none any more."""
    if label not in LABELS:
        raise InvalidRequest(f"nothing is ever labelled {label!r}: a class is of one of {', '.join(LABELS)}")
    if not all(pattern.strip() for pattern in patterns) or not patterns:
        raise InvalidRequest("a class needs a pattern: words that all occur in a line that belongs to it")
    book = sit(f"name the class {key}")
    value: dict[str, Any] = {"label": label, "patterns": list(patterns)}
    if fix:
        value["fix"] = {"files": dict(fix)}
    links = [] if of is None else [{"rel": "see_also", "entity": entity, "key": of}]
    written = book.write(entity, key, value, why=why, kind="fact", confidence=0.8, links=links)
    if of is not None:
        proposed = book.read(entity, of)["value"]
        kept = (
            {name: each for name, each in proposed.items() if name not in ("label", "patterns")}
            if isinstance(proposed, dict)
            else {}
        )
        book.write(entity, of, {**kept, "of_class": key}, why=f"a person named its class {key}", kind="experience")
    ended = ended_well(book, f"named-{key}-{written['version']}", "success")
    return {**written, "standing": standing_of(ended, key) or written["standing"]}


def dispute(sit: Sitting, found: Mapping[str, Any], *, why: str) -> dict[str, Any]:
    """A failure against everything that the watch was served, at the versions it was served."""
    reader = sit(f"dispute {found['key']}: {why}")
    trace = reader.trace(found["session"])
    ref = f"dispute-{found['ref']}"
    served = {(each["entity"], each["key"], each["version"]) for each in trace["reads"] if each["served"] and each["key"]}
    if not served:
        raise NotFound(f"{found['key']} was served nothing: there is nothing to lose confidence; add a note instead")
    for entity, key, version in sorted(served):
        reader.read(entity, key, version=version)
    reader.action("dispute", {"watch": found["key"], "session": found["session"]}, {"why": why}, ok=True)
    try:
        return ended_well(reader, ref, "failure", artifacts={"disputes": found["ref"], "why": why})
    except (HerdbookError, Refused) as problem:
        if problem.code != "request_conflict":
            raise
        reader.end_session()
        raise Conflict(f"{found['key']} was disputed already, and counts once: add to it with `herdbook note`") from problem


def resolve(sit: Sitting, entity: str, key: str, outcome: str, *, why: str, ref: str | None) -> dict[str, Any]:
    """How acting on this entry ended: the outcome of its fix, of a revert, of waiting. What gates count as an instance."""
    book = sit(f"say how {key} ended: {why}")
    read = book.read(entity, key)
    book.action("resolve", {"entity": entity, "key": key, "version": read["version"]}, {"outcome": outcome, "why": why}, ok=True)
    used = [{"entity": entity, "key": key, "version": read["version"]}]
    return ended_well(book, ref or new_name("resolved"), outcome, used=used, artifacts={"why": why})


def settle(sit: Sitting, book: Client, found: Mapping[str, Any], outcome: str, *, why: str) -> dict[str, Any]:
    """How a watch that was left open ended, as a person says: the outcome is its own run's, about what it acted on.

    The second client is in no session: what it commits belongs to the watch's.
    """
    person = sit(f"say how {found['key']} ended: {why}")
    person.action("resolve", {"watch": found["key"], "session": found["session"]}, {"outcome": outcome, "why": why}, ok=True)
    told = evidence.ending(dict(found), outcome, why=why, by="a person")
    committed: dict[str, Any] = book.call("commit_outcome", told)
    result = "success" if outcome == "success" else "failure"
    attested = book.attest(found["ref"], result=result, session=found["session"], note="said by a person")
    person.end_session()
    return {**committed, "attested": True, "standing": attested["standing"]}


def is_open(book: Client, found: Mapping[str, Any]) -> bool:
    """Whether nobody and nothing has said yet how this watch ended."""
    return all(each["ref"] != found["ref"] for each in book.trace(found["session"])["outcomes"])


def note(sit: Sitting, entity: str, key: str, text: str) -> dict[str, Any]:
    """A person's words beside an entry, at the same entity, where the next briefing finds them."""
    book = sit(f"a note on {key}")
    links, warnings = [{"rel": "see_also", "entity": entity, "key": key}], []
    try:
        book.read(entity, key)
    except (HerdbookError, Refused) as problem:
        if problem.code != "not_found":
            raise
        links, warnings = [], [f"there is no entry {key} at {entity}: the note stands by itself"]
    told = book.write(entity, f"note-{key}", {"note": text, "on": key}, why=text[:500], kind="fact", links=links)
    return {**told, "warnings": [*told["warnings"], *warnings]}


def ended_well(book: Client, ref: str, outcome: str, **more: Any) -> dict[str, Any]:
    """The outcome with the person's word for it."""
    committed = book.commit_outcome(ref, outcome, **more)
    result = "success" if outcome == "success" else "failure"
    attested = book.attest(ref, result=result, session=book.session, note="said by a person")
    book.end_session()
    return {**committed, "attested": True, "standing": attested["standing"], "moved": committed["moved"]}


def standing_of(ended: Mapping[str, Any], key: str) -> str | None:
    return next((str(each["after"]) for each in ended["standing"] if each["key"] == key), None)


def why_of(book: Client, found: Mapping[str, Any]) -> dict[str, Any]:
    """What a watch read before it did what it did, from its trace: the order of things, and the verdicts."""
    trace = book.trace(found["session"])
    reads = [
        {name: each[name] for name in ("entity", "key", "version", "rank", "how", "at")}
        for each in trace["reads"]
        if each["served"]
    ]
    actions = [{name: each[name] for name in ("tool", "args", "result", "ok", "at")} for each in trace["actions"]]
    wrote = [{name: each.get(name) for name in ("entity", "key", "version", "why")} for each in trace["writes"]]
    outcomes = [{name: each[name] for name in ("ref", "effective_type", "attested", "at")} for each in trace["outcomes"]]
    asked = {"task": trace["task"], "box": trace["box"], "isolation": trace["isolation"], "session": trace["session"]}
    return {**asked, "reads": reads, "actions": actions, "wrote": wrote, "outcomes": outcomes, "result": dict(found)}


def watch_of(jobs: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """The result of the newest watch of this key, or of a deploy by its sha, whole or its beginning."""
    for job in jobs:
        if name in names_of(job, name) and job["result"] and "session" in job["result"]:
            result: Mapping[str, Any] = job["result"]
            return result
    raise NotFound(f"there is no finished watch of {name!r}: look with `herdbook watch status`")


def names_of(job: Mapping[str, Any], beginning: str) -> set[str]:
    """What a person may call this job: its key, its number, and as much of a deploy's sha as they have said."""
    short = job["key"].removeprefix("deploy-")
    pairs = (job["body"].get("repositories") or {}).values()
    shas = [short, *(pair["after"] for pair in pairs if pair["after"].startswith(short))]
    return {job["key"], job["job"], *(sha[: len(beginning)] for sha in shas if beginning)}
