"""Writing what is known. A write to an existing key supersedes; one that says the same again re-affirms; nothing is overwritten.

Trust belongs to the claim, which is what a version asserts: its value, kind, whether it worked and when it applies. A version
that restates a claim shares its trust, a changed claim starts over, and going back to an old claim finds its trust again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from herdbook.base import clock, limits, strict_json, text
from herdbook.base.errors import Forbidden, InvalidValue, UnknownEntry, VersionConflict
from herdbook.record import answers, seals, trust
from herdbook.record.record import Record
from herdbook.record.sessions import require_session
from herdbook.record.store.protocol import Row, Transaction
from herdbook.record.types import Stamp

CLAIM_BYTES = 16  # 2**64 tries to make two claims of an entry share their trust
YEAR_10000 = 253_402_300_800_000_000  # where four digits end
TRUSTED_ORIGINS = ("principal", "operator")
ORIGINS = ("principal", "operator", "agent", "external")  # most trusted first


class Draft(NamedTuple):
    """A write whose every text is canonical and within limits, and whose digests are worked out, ready for a transaction."""

    path: str
    key: str
    value_text: str
    why: str | None
    kind: str
    worked: bool | None
    stated: float | None
    applies_when: str | None
    expires_at: int | None
    links: tuple[dict[str, Any], ...]
    links_text: str | None
    session: str | None
    request_id: str
    if_version: int | None
    claim: bytes
    body: bytes  # of whom it is, too: another's request is another request


def draft(record: Record, stamp: Stamp, fields: dict[str, Any]) -> Draft:
    """Check a write at the door: canonical texts, a finite value, a confidence within [0, 1]."""
    kind, worked, stated = fields["kind"], fields["worked"], fields["confidence"]
    if worked is not None and kind != "experience":
        raise InvalidValue(f"only an experience worked or not, and this is a {kind}: write it with kind='experience'")
    path, key = text.entity_path(fields["entity"]), text.key(fields["key"])
    value = strict_json.canonical(fields["value"], bytes_max=record.value_bytes_max)
    why, applies_when, expires_at = fields["why"], fields["applies_when"], fields["expires_at"]
    if why is not None:
        why = text.prose(why, what="why", chars_max=limits.WHY_CHARS_MAX)
    if stated is not None:
        stated = trust.confidence(stated)
    if applies_when is not None:
        applies_when = condition(applies_when)
    if expires_at is not None:
        expires_at = moment(expires_at)
    links = tuple(checked_links(fields["links"]))
    links_text = strict_json.canonical(list(links)) if links else None
    session, if_version = fields["session"], fields["if_version"]
    request_id = text.identifier(fields["request_id"], what="request id")
    claim = seals.digest("claim", value, kind, worked, applies_when)[:CLAIM_BYTES]
    said = (path, key, value, why, kind, worked, stated, applies_when, expires_at)
    body = seals.digest(seals.digest("write", *said, links_text, session, if_version), stamp.identity, stamp.box)
    return Draft(*said, links, links_text, session, request_id, if_version, claim, body)


def supersede(record: Record, tx: Transaction, stamp: Stamp, new: Draft, *, at: int) -> dict[str, Any]:
    """Write the next version of a key, once per request id. Raises VersionConflict where `if_version` is not current."""
    session = require_session(record, tx, stamp, new.session) if new.session else None
    path = record.path_id(stamp.tenant, new.path, tx)
    asked = {"tenant": stamp.tenant, "id": new.request_id, "path": path, "key": new.key, "claim": new.claim}
    found = tx.row("before_write", asked)
    assert found is not None
    if found[0] is not None:
        return written(new, Written(*answers.unless_another(found, "write", new.request_id, new.body)))
    head = None if found[2] is None else found[2:10]
    claim = None if found[10] is None else found[10:]
    current = head[1] if head else 0
    if new.if_version is not None and new.if_version != current:
        raise VersionConflict(f"{new.key!r} is at version {current}, not {new.if_version}: read it again, then decide")
    if head and claim and says_the_same(head, new):
        done = affirm(tx, stamp, head, claim, path=path, at=at)
        answers.keep(tx, stamp.tenant, "write", new.request_id, new.body, done)
    else:
        author = session.agent if session else stamp.identity
        path = add_path(record, tx, stamp.tenant, new.path) if path is None else path
        done = append(record, tx, stamp, new, head, claim, path=path, author=author, at=at)
    return written(new, done)


def says_the_same(head: Row, new: Draft) -> bool:
    """The same claim for the same reason, with the same links and expiry: nothing new to keep."""
    _, _, _, claim, _, why, links, expires_at = head
    return bool((claim, why, links, expires_at) == (new.claim, new.why, new.links_text, new.expires_at))


class Written(NamedTuple):
    """What a write came to; with its draft, the whole answer."""

    number: int
    how: str  # new, restated, returned or affirmed
    confidence: float
    standing: str
    at: int

    def as_json(self) -> str:
        """As the encoder would write it; written out, since every write pays for it."""
        return f'[{self.number},"{self.how}",{self.confidence!r},"{self.standing}",{self.at}]'


def affirm(tx: Transaction, stamp: Stamp, head: Row, claim_row: Row, *, path: int | None, at: int) -> Written:
    """Count and date a claim made again. Its confidence stays: repeating a thing does not make it truer."""
    entry, number, version, claim, standing_version, *_ = head
    tx.run("affirm_claim", {"tenant": stamp.tenant, "path": path, "entry": entry, "claim": claim, "at": at})
    return Written(number, "affirmed", claim_row[1], trust.earned(standing_of(claim_row), version, standing_version), at)


def append(
    record: Record,
    tx: Transaction,
    stamp: Stamp,
    new: Draft,
    head: Row | None,
    claim_row: Row | None,
    *,
    path: int,
    author: str,
    at: int,
) -> Written:
    """Add a version, and a claim if nobody claimed this before. The head is moved first: it is what serialises writers."""
    tenant = stamp.tenant
    number = head[1] + 1 if head else 1
    version, entry = tx.next_id(), head[0] if head else tx.next_id()
    stated = trust.FRESH_CONFIDENCE if new.stated is None else new.stated
    # An operator's own words stand with the claim at once; an agent's have to earn it, as any of its words.
    restates = claim_row is not None and claim_stands(claim_row) and stamp.origin in TRUSTED_ORIGINS
    row = {
        "tenant": tenant,
        "path": path,
        "key": new.key,
        "entry": entry,
        "number": number,
        "version": version,
        "claim": new.claim,
        "standing": version if restates else head and head[4],
        "confidence": stated,
    }
    tx.run("supersede_entry" if head else "insert_entry", row)
    if claim_row is None:
        tx.run("insert_claim", row)
        how, confidence, standing = "new", stated, "unproven"
    else:
        how, confidence = "restated" if head and new.claim == head[3] else "returned", claim_row[1]
        standing = standing_of(claim_row)
        standing = standing if restates or not trust.acts(standing) else "unproven"
    said = (
        new.value_text,
        new.why,
        new.kind,
        as_stored(worked=new.worked),
        stated,
        new.applies_when,
        new.expires_at,
        new.links_text,
        derived_origin(record, tx, stamp, new) if new.links else stamp.origin,
        author,
        stamp.identity,
        new.session,
        stamp.box,
        at,
        new.request_id,
    )
    seal = record.seal("version", tenant, version, entry, new.claim, new.path, new.key, number, *said)
    done = Written(number, how, confidence, standing, at)
    tx.run("insert_version", (tenant, version, entry, path, new.key, number, new.claim, *said, new.body, done.as_json(), seal))
    return done


def as_stored(*, worked: bool | None) -> int | None:
    """As the store gives it back: a seal tells True from 1."""
    return None if worked is None else int(worked)


def written(new: Draft, done: Written) -> dict[str, Any]:
    """The answer to a write, with what its author should know about it."""
    warnings = [] if new.why else ["no why was given: a bare value is a magic number to whoever reads it next"]
    if done.how != "new" and new.stated is not None and new.stated != done.confidence:
        warnings.append(
            f"this claim already has a record at {done.confidence:.4g}: the stated confidence {new.stated:g} was ignored"
        )
    if new.expires_at is not None and new.expires_at <= done.at:
        warnings.append("this has expired already: it is kept in the history and not served")
    created = done.how != "affirmed"
    return {
        "entity": new.path,
        "key": new.key,
        "version": done.number,
        "created": created,
        "claim": done.how,
        "confidence": done.confidence,
        "standing": done.standing,
        "supersedes": done.number - 1 or None if created else None,
        "at": clock.iso(done.at),
        "request_id": new.request_id,
        "warnings": warnings,
    }


@dataclass(frozen=True, slots=True)
class Counters:
    """What standing is read from, for one claim."""

    observed: int
    corroborated: int
    held: float
    failed: float
    failed_since: float


def standing_of(claim_row: Row) -> str:
    return trust.standing(Counters(*claim_row[2:]))


def claim_stands(claim_row: Row) -> bool:
    return trust.acts(standing_of(claim_row))


def add_path(record: Record, tx: Transaction, tenant: int, path: str) -> int:
    """The number of a path, which is made on first use."""
    if not record.reach.covers(path):
        raise Forbidden(f"this key does not reach {path!r}: use one whose patterns cover it")
    number = tx.next_id()
    tx.run("insert_path", {"tenant": tenant, "id": number, "path": path})
    return number


def derived_origin(record: Record, tx: Transaction, stamp: Stamp, new: Draft) -> str:
    """The least trusted origin among the writer's own and those of what this was derived from. Raises UnknownEntry."""
    origins = [stamp.origin]
    for link in new.links:
        found = linked(record, tx, stamp.tenant, link)
        if link["rel"] == "derived_from":
            origins.append(found)
    return max(origins, key=ORIGINS.index)


def linked(record: Record, tx: Transaction, tenant: int, link: dict[str, Any]) -> str:
    """The origin of the version a link points to."""
    path = record.path_id(tenant, link["entity"], tx)
    rows = tx.rows("version_ids", {"tenant": tenant, "path": path, "key": link["key"]})
    wanted = [number for number, nth in rows if link["version"] in (None, nth)]
    if not wanted:
        raise UnknownEntry(f"the link points to {link['key']!r} at {link['entity']!r}, which is not in the record")
    row = tx.row("origin_of", {"tenant": tenant, "version": wanted[-1]})
    assert row is not None
    return str(row[0])


def checked_links(links: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Links with canonical names; whether they point anywhere is seen inside the transaction."""
    if len(links) > limits.LINKS_MAX:
        raise InvalidValue(f"{len(links)} links are over the limit of {limits.LINKS_MAX}")
    return [link | {"entity": text.entity_path(link["entity"]), "key": text.key(link["key"])} for link in links]


def condition(value: object) -> str:
    """An observable's name, in the form in which an outcome's `observed` has it."""
    return text.name(value, what="condition", chars_max=limits.APPLIES_WHEN_CHARS_MAX)


def moment(value: str) -> int:
    """Microseconds of an ISO time."""
    try:
        at = clock.from_iso(value)
    except (ValueError, OverflowError) as problem:
        raise InvalidValue(f"{value!r} is not an ISO 8601 time such as 2026-12-31T00:00:00Z") from problem
    if not 0 <= at < YEAR_10000:
        raise InvalidValue(f"{value!r} is not between 1970 and 9999")
    return at
