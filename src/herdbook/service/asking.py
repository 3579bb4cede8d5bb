"""Verbs that only ask. What an agent is shown is logged as read, by exact version, before the answer leaves."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from herdbook.base import strict_json, text
from herdbook.base.errors import DiskFull, HerdbookError, InvalidRequest, NotFound
from herdbook.base.ids import row_id
from herdbook.fastloop.view import entry_view
from herdbook.record import entries, jobs, leases, newest, postmortem, trust
from herdbook.record import runs as bulk
from herdbook.record.sessions import require_session
from herdbook.record.store.protocol import Reader
from herdbook.record.types import Served, Shown
from herdbook.service import requests
from herdbook.service.callers import Caller
from herdbook.service.learning.embedding import embedding

if TYPE_CHECKING:
    from herdbook.service.door import Service

ABSENT: dict[str, Any] = {"value": None, "why": None}
COMPARED = ("value", "why", "kind", "worked", "applies_when", "expires_at", "links", "author")


def brief(service: Service, caller: Caller, request: requests.Brief) -> dict[str, Any]:
    """What is known about this entity path, for this task, best first, within a token budget."""
    session = tracked_session(service, caller, request.session)
    briefed = service.briefer.brief(caller.tenant, request, now=service.clock.now())
    # What stands is logged after the newer version it is served beside: a plain key in `used` means the one logged last.
    beside = {entry["rank"] for entry in briefed.answer["entries"] if entry.get("instead_of") is not None}
    exposures = sorted(briefed.exposures, key=lambda exposure: exposure.rank in beside)
    note(service, caller, session, exposures, briefed.serving)
    return briefed.answer | {"tracked": session is not None}


def contradictions(service: Service, caller: Caller, request: requests.Contradictions) -> dict[str, Any]:
    """Entries at a path and above it that set one thing differently, as pairs."""
    found = service.briefer.contradictions(caller.tenant, request.entity, now=service.clock.now())
    return {"entity": text.entity_path(request.entity), "contradictions": found}


def search(service: Service, caller: Caller, request: requests.Search) -> dict[str, Any]:
    """Entries whose text matches, best first."""
    session = tracked_session(service, caller, request.session)
    searched = service.searcher.search(caller.tenant, request, now=service.clock.now())
    note(service, caller, session, searched.exposures, searched.serving)
    return searched.answer | {"tracked": session is not None}


def read(service: Service, caller: Caller, request: requests.Read) -> dict[str, Any]:
    """One entry, at its current version or at a given one; an unproven one comes with the last that stands beside it."""
    tenant, record = caller.tenant, service.record
    session = tracked_session(service, caller, request.session)
    path, key = text.entity_path(request.entity), text.key(request.key)
    head, base = record.entry(tenant, path, key)
    current = record.version(tenant, head.version_id)
    asked, asked_head = current, head
    if request.version is not None and request.version != current.number:
        asked = record.version(tenant, numbered(service, tenant, path, key, request.version))
        asked_head = record.trust_of(tenant, [asked.id])[asked.id]
    now = service.clock.now()
    answer = entry_view(asked, asked_head, now=now, base=base)
    answer["current"] = current.number
    answer["tracked"] = session is not None
    answer["beside"] = None
    shown = [Shown(asked.id, 1, "read")]
    if head.standing_id not in (None, head.version_id) and request.version is None and not answer["acting"]:
        beside = standing_beside(service, tenant, head.standing_id, now=now, base=base)
        if beside is not None:
            answer["beside"], number = beside
            shown.append(Shown(number, 2, "read"))
    if session is not None:
        record.note_reads(tenant, session, shown, at=now)
    return answer


def standing_beside(service: Service, tenant: int, pointer: int, *, now: int, base: float) -> tuple[dict[str, Any], int] | None:
    """The last version that stands, or where it has failed or expired since, the one before it that still does."""
    record = service.record
    for number in (pointer, *record.stood_before(tenant, [pointer]).values()):
        view = entry_view(record.version(tenant, number), record.trust_of(tenant, [number])[number], now=now, base=base)
        if view["acting"]:
            return view, number
    return None


def history(service: Service, caller: Caller, request: requests.History) -> dict[str, Any]:
    """Every version of an entry, oldest first, each with its claim's trust. Looking back is not a read."""
    path, key = text.entity_path(request.entity), text.key(request.key)
    service.record.entry(caller.tenant, path, key)
    ids = [number for number, _ in service.record.version_ids(caller.tenant, path, key)]
    return {"entity": path, "key": key, "versions": views(service, caller.tenant, path, ids)}


def diff(service: Service, caller: Caller, request: requests.Diff) -> dict[str, Any]:
    """What changed between two versions: by default the last two."""
    path, key = text.entity_path(request.entity), text.key(request.key)
    service.record.entry(caller.tenant, path, key)
    count = len(service.record.version_ids(caller.tenant, path, key))
    new = max(count, 1) if request.new is None else request.new
    old = max(new - 1, 0) if request.old is None else request.old
    ids = [numbered(service, caller.tenant, path, key, number) for number in (old, new) if number]
    for number in ids:
        service.record.version(caller.tenant, number)  # what is not as it was written cannot be compared
    found = views(service, caller.tenant, path, ids)
    after, before = found[-1], found[0] if old else ABSENT
    changed = [
        {"field": name, "old": before.get(name), "new": after.get(name)}
        for name in COMPARED
        if before.get(name) != after.get(name)
    ]
    lines = difflib.unified_diff(readable(before), readable(after), f"version {old}", f"version {new}", lineterm="")
    return {"entity": path, "key": key, "old": old, "new": new, "changed": changed, "text": "\n".join(lines)}


def list_entries(service: Service, caller: Caller, request: requests.List) -> dict[str, Any]:
    """Entity paths under a prefix with their entries, in order, a page at a time."""
    under = "" if request.entity is None else text.entity_path(request.entity)
    after = page_start(request.after) if request.after else [under, ""]
    heads = service.record.page(caller.tenant, under, after[0], after[1], limit=request.limit)
    versions = service.record.versions(caller.tenant, [head.version_id for head in heads])
    paths: dict[str, list[dict[str, Any]]] = {}
    for head in heads:
        version = versions[head.version_id]
        said: dict[str, Any] = {"version": None, "kind": None, "refused": None}
        if isinstance(version, HerdbookError):
            said["refused"] = version.message
        else:
            said |= {"version": version.number, "kind": version.kind}
        told = {
            "key": head.key,
            **said,
            "standing": trust.earned(trust.standing(head), head.version_id, head.standing_id),
            "confidence": head.confidence,
        }
        paths.setdefault(head.path, []).append(told)
    last = heads[-1] if len(heads) == request.limit else None
    return {
        "entity": under or None,
        "paths": [{"entity": path, "entries": entries} for path, entries in paths.items()],
        "next": json.dumps([last.path, last.key], ensure_ascii=False) if last else None,
    }


def page_start(cursor: str) -> list[str]:
    """The path and key a page begins after, out of the `next` of the page before."""
    try:
        after = strict_json.loads(cursor)
    except HerdbookError:
        after = None
    if not (isinstance(after, list) and len(after) == 2 and all(isinstance(part, str) for part in after)):
        raise InvalidRequest("`after` is not the `next` of a page: ask for the first page again")
    return [text.whole_characters(part, what="cursor") for part in after]


def trace(service: Service, caller: Caller, request: requests.Trace) -> dict[str, Any]:
    """The sealed record of a run, the reads that were still in the journal included."""
    ref = text.identifier(request.ref, what="ref")
    return settled(service, caller, lambda reader: postmortem.trace(service.record, reader, caller.stamp, ref))


def outcomes(service: Service, caller: Caller, request: requests.Outcomes) -> dict[str, Any]:
    """How runs ended, the newest first."""
    under = None if request.entity is None else text.entity_path(request.entity)
    before = newest.place(request.after)
    return newest.outcomes(service.record, caller.stamp, before=before, under=under, kind=request.type, limit=request.limit)


def runs(service: Service, caller: Caller, request: requests.Runs) -> dict[str, Any]:
    """A page of runs, whoever's they are; the first page says which snapshot the others are of."""
    fields = {
        "under": "" if request.entity is None else text.entity_path(request.entity),
        "after": "" if request.after is None else text.identifier(request.after, what="session id"),
        "limit": request.limit,
        "snapshot": snapshot(service, request.snapshot),
        "until": service.clock.now() if request.until is None else entries.moment(request.until),
    }
    return settled(service, caller, lambda reader: bulk.page(service.record, reader, caller.tenant, fields))


def snapshot(service: Service, told: str | None) -> int:
    """Which rows are of the runs that are asked for: those before this one."""
    if told is None:
        return service.record.store.next_id()
    return row_id(told, otherwise="`snapshot` is not that of a first page: ask for the first page again")


def why(service: Service, caller: Caller, request: requests.Why) -> dict[str, Any]:
    """Every move of trust of an entry, with its outcome and who read it."""
    path, key = text.entity_path(request.entity), text.key(request.key)
    return settled(service, caller, lambda reader: postmortem.why(service.record, reader, caller.tenant, path, key))


def settled(service: Service, caller: Caller, work: Callable[[Reader], dict[str, Any]]) -> dict[str, Any]:
    """Ask once the journal is folded in; on a full disk without that, since a postmortem is what people want then."""
    with suppress(DiskFull):
        service.record.store.write(lambda tx: None, tenant=caller.tenant)
    return service.record.store.look(work, tenant=caller.tenant)


def box_list(service: Service, caller: Caller, request: requests.BoxList) -> dict[str, Any]:
    """Boxes by label, newest first."""
    label = None if request.label is None else text.name(request.label, what="label")
    box = None if request.box is None else text.identifier(request.box, what="box id")
    if request.claim is not None and box is None:
        raise InvalidRequest("a claim is one box's: name the box")
    fields = {"box": box, "claim": request.claim, "label": label, "live": request.live, "limit": request.limit}
    return leases.listed(service.record.store, caller.tenant, fields, at=service.clock.now())


def box_runs(service: Service, caller: Caller, request: requests.BoxRuns) -> dict[str, Any]:
    """The runs that were begun in a box."""
    return leases.runs(service.record.store, caller.tenant, text.identifier(request.box, what="box id"))


def job_list(service: Service, caller: Caller, request: requests.JobList) -> dict[str, Any]:
    """Jobs of a queue, newest first."""
    fields = {"queue": request.queue, "key": request.key, "open": request.open, "limit": request.limit}
    return jobs.listed(service.record.store, caller.tenant, fields)


def status(service: Service, caller: Caller, request: requests.Status) -> dict[str, Any]:
    """How the record is."""
    return service.record.status(caller.tenant) | {"embedding": embedding(service, caller.tenant)}


def tracked_session(service: Service, caller: Caller, name: str | None) -> str | None:
    """The caller's session to log reads under; without one nothing is tracked, and the answer says so."""
    if name is None:
        return None
    return require_session(service.record, None, caller.stamp, name).id


def note(service: Service, caller: Caller, session: str | None, shown: list[Shown], serving: Served) -> None:
    if session is not None and shown:
        service.record.note_reads(caller.tenant, session, shown, at=service.clock.now(), serving=serving)


def numbered(service: Service, tenant: int, path: str, key: str, wanted: int) -> int:
    """The id of one version of an entry, or NotFound."""
    for number, nth in service.record.version_ids(tenant, path, key):
        if nth == wanted:
            return number
    raise NotFound(f"{key!r} at {path!r} has no version {wanted}: look with `herdbook history`")


def views(service: Service, tenant: int, path: str, ids: list[int]) -> list[dict[str, Any]]:
    """These versions of one entry with their claims' trust; one with a broken seal says only that."""
    texts, heads = service.record.versions(tenant, ids), service.record.trust_of(tenant, ids)
    now, base = service.clock.now(), service.base_rate(tenant, path)
    found = []
    for number in ids:
        version = texts[number]
        if isinstance(version, HerdbookError):
            found.append({**version.as_dict(), **ABSENT})
        else:
            found.append(entry_view(version, heads[number], now=now, base=base))
    return found


def readable(view: dict[str, Any]) -> list[str]:
    """A version as lines that a diff can compare."""
    lines = json.dumps(view["value"], indent=2, sort_keys=True, ensure_ascii=False).splitlines()
    return [*lines, *(f"why: {line}" for line in (view["why"] or "").splitlines())]
