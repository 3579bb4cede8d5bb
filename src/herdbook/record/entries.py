"""Writing what is known. A write to an existing key supersedes; one that says the same again re-affirms; nothing is overwritten.

Trust belongs to the claim, which is what a version asserts: its value, kind, whether it worked and when it applies. A version
that restates a claim shares its trust, a changed claim starts over, and going back to an old claim finds its trust again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from herdbook.base import clock, limits, strict_json, text
from herdbook.base.errors import Forbidden, HerdbookError, InvalidValue, UnknownEntry, VersionConflict
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


class Writing:
    """One write on its way into a transaction."""

    __slots__ = ("new", "now", "record", "stamp")

    def __init__(self, record: Record, now: Callable[[], int], stamp: Stamp, new: Draft) -> None:
        self.record, self.stamp, self.new = record, stamp, new
        self.now = now  # asked when its turn comes

    def __call__(self, tx: Transaction) -> dict[str, Any]:
        done = supersede(tx, [self])[0]
        if isinstance(done, HerdbookError):
            raise done
        return done

    @property
    def together(self) -> Callable[[Transaction, Sequence[Writing]], list[Any]]:
        return supersede


def supersede(tx: Transaction, writes: Sequence[Writing]) -> list[dict[str, Any] | HerdbookError]:
    """Write the next versions of keys as if one after another, each once per request id; one that is refused changes nothing.

    All that they have to know is asked at once, and what they come to is told at once: that is most of what a write costs.
    """
    asked = [(each.stamp.tenant, each.new.request_id, each.new.path, each.new.key, each.new.claim) for each in writes]
    done: list[dict[str, Any] | HerdbookError] = []
    batch = Batch(tx)
    for each, found in zip(writes, tx.each("before_write", asked), strict=True):
        try:
            done.append(written(each.new, batch.written(each, found)))
        except HerdbookError as refusal:
            if refusal.retry:  # of the whole batch: the disk, or the connection
                raise
            done.append(refusal)
    batch.tell()
    return done


class Batch:
    """What writes have come to so far, for those after them; and their rows, until they are told."""

    def __init__(self, tx: Transaction) -> None:
        self.tx = tx
        self.answers: dict[tuple[int, str], tuple[bytes, str]] = {}
        self.paths: dict[tuple[int, str], int] = {}
        self.heads: dict[tuple[int, int, str], Row] = {}
        self.claims: dict[tuple[int, int, bytes], Row] = {}
        self.entries_told: list[Row] = []
        self.claims_told: list[Row] = []
        self.versions_told: list[Row] = []
        self.changes: list[tuple[str, dict[str, Any]]] = []

    def written(self, write: Writing, found: Row) -> Written:
        """Raises VersionConflict where `if_version` is not current."""
        record, stamp, new, tenant = write.record, write.stamp, write.new, write.stamp.tenant
        session = require_session(record, self.tx, stamp, new.session) if new.session else None
        answered = self.answers.get((tenant, new.request_id)) or (None if found[0] is None else found[:2])
        if answered is not None:
            return Written(*answers.unless_another(answered, "write", new.request_id, new.body))
        if not record.reach.covers(new.path):
            raise Forbidden(f"this key does not reach {new.path!r}: use one whose patterns cover it")
        path = self.paths.get((tenant, new.path), found[2])
        head = None if path is None else self.heads.get((tenant, path, new.key), None if found[3] is None else found[3:11])
        claim = None if head is None else self.claims.get((tenant, head[0], new.claim), None if found[11] is None else found[11:])
        current = head[1] if head else 0
        if new.if_version is not None and new.if_version != current:
            raise VersionConflict(f"{new.key!r} is at version {current}, not {new.if_version}: read it again, then decide")
        if head and claim and says_the_same(head, new):
            return self.affirmed(stamp, new, head, claim, path=path, at=write.now())
        origin = self.derived_origin(record, stamp, new) if new.links else stamp.origin
        path = self.add_path(tenant, new.path) if path is None else path
        return self.appended(write, head, claim, path=path, origin=origin, author=session.agent if session else stamp.identity)

    def affirmed(self, stamp: Stamp, new: Draft, head: Row, claim_row: Row, *, path: int | None, at: int) -> Written:
        """Count and date a claim made again. Its confidence stays: repeating a thing does not make it truer."""
        entry, number, version, claim, standing_version, *_ = head
        done = Written(number, "affirmed", claim_row[1], trust.earned(standing_of(claim_row), version, standing_version), at)
        self.changes.append(("affirm_claim", {"tenant": stamp.tenant, "path": path, "entry": entry, "claim": claim, "at": at}))
        answers.keep(self.tx, stamp.tenant, "write", new.request_id, new.body, done)
        self.answers[stamp.tenant, new.request_id] = new.body, done.as_json()
        return done

    def appended(
        self, write: Writing, head: Row | None, claim_row: Row | None, *, path: int, origin: str, author: str
    ) -> Written:
        """Add a version, and a claim if nobody claimed this before."""
        stamp, new, tenant, at = write.stamp, write.new, write.stamp.tenant, write.now()
        number = head[1] + 1 if head else 1
        version, entry = self.tx.next_id(), head[0] if head else self.tx.next_id()
        stated = trust.FRESH_CONFIDENCE if new.stated is None else new.stated
        # An operator's own words stand with the claim at once; an agent's have to earn it, as any of its words.
        restates = claim_row is not None and claim_stands(claim_row) and stamp.origin in TRUSTED_ORIGINS
        stands = version if restates else head and head[4]
        if claim_row is None:
            how, confidence, standing = "new", stated, "unproven"
            self.claims_told.append((tenant, path, entry, new.claim, stated, stated))
            self.claims[tenant, entry, new.claim] = (new.claim, stated, 0, 0, 0.0, 0.0, 0.0)
        else:
            how, confidence = "restated" if head and new.claim == head[3] else "returned", claim_row[1]
            standing = standing_of(claim_row)
            standing = standing if restates or not trust.acts(standing) else "unproven"
        if head:
            step = {"tenant": tenant, "path": path, "key": new.key, "number": number, "version": version, "claim": new.claim}
            self.changes.append(("supersede_entry", {**step, "standing": stands}))
        else:
            self.entries_told.append((tenant, entry, path, new.key, version, new.claim))
        said = (
            new.value_text,
            new.why,
            new.kind,
            as_stored(worked=new.worked),
            stated,
            new.applies_when,
            new.expires_at,
            new.links_text,
            origin,
            author,
            stamp.identity,
            new.session,
            stamp.box,
            at,
            new.request_id,
        )
        seal = write.record.seal("version", tenant, version, entry, new.claim, new.path, new.key, number, *said)
        done = Written(number, how, confidence, standing, at)
        answer = done.as_json()
        self.versions_told.append((tenant, version, entry, path, new.key, number, new.claim, *said, new.body, answer, seal))
        self.heads[tenant, path, new.key] = (entry, number, version, new.claim, stands, new.why, new.links_text, new.expires_at)
        self.answers[tenant, new.request_id] = new.body, answer
        return done

    def add_path(self, tenant: int, path: str) -> int:
        """The number of a path, which is made on first use."""
        number = self.paths[tenant, path] = self.tx.next_id()
        self.tx.run("insert_path", {"tenant": tenant, "id": number, "path": path})
        return number

    def tell(self) -> None:
        """Heads come first: they are what serialises writers."""
        self.tx.many("insert_entry", self.entries_told)
        self.tx.many("insert_claim", self.claims_told)
        for query, params in self.changes:
            self.tx.run(query, params)
        self.tx.many("insert_version", self.versions_told)
        for told in (self.entries_told, self.claims_told, self.changes, self.versions_told):
            told.clear()

    def derived_origin(self, record: Record, stamp: Stamp, new: Draft) -> str:
        """The least trusted origin among the writer's own and those of what this was derived from. Raises UnknownEntry."""
        self.tell()  # a link may point to what was written just before
        origins = [stamp.origin]
        for link in new.links:
            found = linked(record, self.tx, stamp.tenant, link)
            if link["rel"] == "derived_from":
                origins.append(found)
        return max(origins, key=ORIGINS.index)


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
