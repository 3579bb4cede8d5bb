"""Writing what is known. A write to an existing key supersedes; one that says the same again re-affirms; nothing is overwritten.

Trust belongs to the claim, which is what a version asserts: its value, kind, whether it worked and when it applies. A version
that restates a claim shares its trust, a changed claim starts over, and going back to an old claim finds its trust again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from herdbook.base import clock, limits, strict_json, text
from herdbook.base.errors import Forbidden, InvalidValue, UnknownEntry, VersionConflict
from herdbook.record import answers, seals, trust
from herdbook.record.record import Record, version_parts
from herdbook.record.sessions import require_session
from herdbook.record.store.protocol import Row, Transaction
from herdbook.record.types import Stamp

CLAIM_BYTES = 16  # 2**64 tries to make two claims of an entry share their trust
YEAR_10000 = 253_402_300_800_000_000  # where four digits end
TRUSTED_ORIGINS = ("principal", "operator")
ORIGINS = ("principal", "operator", "agent", "external")  # most trusted first


@dataclass(frozen=True)  # without slots: the digest is worked out once
class Draft:
    """A write whose every text is canonical and within limits, ready for a transaction."""

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
    session: str | None
    request_id: str
    if_version: int | None

    @cached_property
    def claim_digest(self) -> bytes:
        return seals.digest("claim", self.value_text, self.kind, self.worked, self.applies_when)[:CLAIM_BYTES]

    @cached_property
    def body_digest(self) -> bytes:
        return seals.digest(
            "write",
            self.path,
            self.key,
            self.value_text,
            self.why,
            self.kind,
            self.worked,
            self.stated,
            self.applies_when,
            self.expires_at,
            self.links_text,
            self.session,
            self.if_version,
        )

    @cached_property
    def links_text(self) -> str | None:
        return strict_json.canonical(list(self.links)) if self.links else None


def draft(record: Record, fields: dict[str, Any]) -> Draft:
    """Check a write at the door: canonical texts, a finite value, a confidence within [0, 1]."""
    kind, worked = fields["kind"], fields["worked"]
    if worked is not None and kind != "experience":
        raise InvalidValue(f"only an experience worked or not, and this is a {kind}: write it with kind='experience'")
    stated = fields["confidence"]
    return Draft(
        path=text.entity_path(fields["entity"]),
        key=text.key(fields["key"]),
        value_text=strict_json.canonical(fields["value"], bytes_max=record.value_bytes_max),
        why=optional(fields["why"], what="why", chars_max=limits.WHY_CHARS_MAX),
        kind=kind,
        worked=worked,
        stated=None if stated is None else trust.confidence(stated),
        applies_when=None if fields["applies_when"] is None else condition(fields["applies_when"]),
        expires_at=None if fields["expires_at"] is None else moment(fields["expires_at"]),
        links=tuple(checked_links(fields["links"])),
        session=fields["session"],
        request_id=text.identifier(fields["request_id"], what="request id"),
        if_version=fields["if_version"],
    )


def supersede(record: Record, tx: Transaction, stamp: Stamp, new: Draft, *, at: int) -> dict[str, Any]:
    """Write the next version of a key, once per request id. Raises VersionConflict where `if_version` is not current."""
    session = require_session(record, tx, stamp, new.session) if new.session else None
    digest = seals.digest(new.body_digest, stamp.identity, stamp.box)  # another's request is another request
    path = record.path_id(stamp.tenant, new.path, tx)
    asked = {"tenant": stamp.tenant, "id": new.request_id, "path": path, "key": new.key, "claim": new.claim_digest}
    found = tx.row("before_write", asked)
    assert found is not None
    if found[0] is not None:
        return written(new, Written(*answers.unless_another(found, "write", new.request_id, digest)))
    head, claim = (row if row[0] is not None else None for row in (found[2:10], found[10:]))
    current = head[1] if head else 0
    if new.if_version is not None and new.if_version != current:
        raise VersionConflict(f"{new.key!r} is at version {current}, not {new.if_version}: read it again, then decide")
    if head and claim and says_the_same(head, new):
        done = affirm(tx, stamp, head, claim, path=path, at=at)
        answers.keep(tx, stamp.tenant, "write", new.request_id, digest, done)
    else:
        author = session.agent if session else stamp.identity
        path = add_path(record, tx, stamp.tenant, new.path) if path is None else path
        done = append(record, tx, stamp, new, head, claim, path=path, author=author, body=digest, at=at)
    return written(new, done)


def says_the_same(head: Row, new: Draft) -> bool:
    """The same claim for the same reason, with the same links and expiry: nothing new to keep."""
    _, _, _, claim, _, why, links, expires_at = head
    return bool((claim, why, links, expires_at) == (new.claim_digest, new.why, new.links_text, new.expires_at))


class Written(NamedTuple):
    """What a write came to; with its draft, the whole answer."""

    number: int
    how: str  # new, restated, returned or affirmed
    confidence: float
    standing: str
    at: int


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
    body: bytes,
    at: int,
) -> Written:
    """Add a version, and a claim if nobody claimed this before. The head is moved first: it is what serialises writers."""
    tenant = stamp.tenant
    number = head[1] + 1 if head else 1
    version, entry = tx.next_id(), head[0] if head else tx.next_id()
    claim = new.claim_digest
    where = {"tenant": tenant, "path": path, "entry": entry, "claim": claim}
    stated = trust.FRESH_CONFIDENCE if new.stated is None else new.stated
    # An operator's own words stand with the claim at once; an agent's have to earn it, as any of its words.
    restates = claim_row is not None and claim_stands(claim_row) and stamp.origin in TRUSTED_ORIGINS
    if head is None:
        tx.run("insert_entry", where | {"key": new.key, "version": version})
    else:
        stood = version if restates else head[4]
        tx.run("supersede_entry", where | {"key": new.key, "number": number, "version": version, "standing": stood})
    if claim_row is None:
        tx.run("insert_claim", where | {"confidence": stated})
    fields = (
        version,
        entry,
        claim,
        new.path,
        new.key,
        number,
        new.value_text,
        new.why,
        new.kind,
        as_stored(worked=new.worked),
        stated,
        new.applies_when,
        new.expires_at,
        new.links_text,
        derived_origin(record, tx, stamp, new),
        author,
        stamp.identity,
        new.session,
        stamp.box,
        at,
        new.request_id,
    )
    seal = record.seal(*version_parts(tenant, fields))
    how = "new" if claim_row is None else "restated" if head and claim == head[3] else "returned"
    confidence, standing = (claim_row[1], standing_of(claim_row)) if claim_row else (stated, "unproven")
    standing = standing if restates or not trust.acts(standing) else "unproven"
    done = Written(number, how, confidence, standing, at)
    kept = (body, strict_json.ENCODER.encode(done), seal)
    tx.run("insert_version", (tenant, version, entry, path, new.key, number, claim, *fields[6:], *kept))
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


def optional(value: object, *, what: str, chars_max: int) -> str | None:
    return None if value is None else text.prose(value, what=what, chars_max=chars_max)
