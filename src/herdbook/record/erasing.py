"""Erasing: whose runs and entries are told to nobody any more, in the record, in new training sets, and in old backups restored.

Rows stay as they were sealed, since a record that can be rewritten proves nothing; a tombstone for each makes every reader pass
it by. An erasure is of what is there when it is asked. What it cannot reach is named: the datasets and models that learned of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from herdbook.base import clock, limits, text
from herdbook.base.errors import InvalidRequest, NotFound
from herdbook.record import answers, artefacts, erasures_file, precedents
from herdbook.record.record import Record
from herdbook.record.store.protocol import Reader, Transaction
from herdbook.record.types import Stamp

FOUND_BY: Final = {  # kinds of subjects: the queries that find their runs, and their versions beyond those the runs wrote
    "session": ("sessions_by_session",),
    "author": ("sessions_by_author", "versions_by_author"),
    "identity": ("sessions_by_identity", "versions_by_identity"),
    "entity": ("sessions_by_entity", "versions_by_entity"),
    "text": ("sessions_by_text", "versions_by_text"),
}
WITH_WHAT_THEY_WROTE: Final = ("session", "author", "identity")
TEXT_CHARS_MIN: Final = 4  # a shorter text stands everywhere


@dataclass(frozen=True, slots=True)
class Targets:
    """What an erasure comes to."""

    sessions: list[str]
    versions: list[int]
    readers: list[str]  # other runs that were served these versions: they stay, what they were served does not

    def told(self, reader: Reader, tenant: int) -> dict[str, Any]:
        learned = artefacts.containing(reader, tenant, [*self.sessions, *self.readers])
        counts = {"sessions": len(self.sessions), "versions": len(self.versions), "readers": len(self.readers)}
        return {**counts, "artefacts": learned}


def preview(reader: Reader, tenant: int, kind: str, subject: str) -> dict[str, Any]:
    """What an erasure would come to; nothing is done."""
    wanted = canonical(kind, subject)
    return {"kind": kind} | targets(reader, tenant, kind, wanted).told(reader, tenant)


def erase(record: Record, tx: Transaction, stamp: Stamp, asked: dict[str, Any], *, at: int) -> dict[str, Any]:
    """Erase a subject, once per request id. The answer says what it came to, and which datasets and models learned from it."""
    kind, subject = asked["kind"], canonical(asked["kind"], asked["subject"])
    why = None if asked["why"] is None else text.prose(asked["why"], what="why", chars_max=limits.WHY_CHARS_MAX)
    name = text.identifier(asked["request_id"], what="request id")
    digest = record.seal("erase", kind, subject, why)
    before: dict[str, Any] | None = answers.first(tx, stamp.tenant, "erase", name, digest)
    if before is not None:
        return before
    found = targets(tx, stamp.tenant, kind, subject)
    if not found.sessions and not found.versions:
        raise NotFound(f"there is nothing of this {kind} that is not erased already: nothing was done")
    told = found.told(tx, stamp.tenant)
    row = {
        "erasure": name,
        "kind": kind,
        "subject": named(record, stamp.tenant, kind, subject),
        "why": why,
        "identity": stamp.identity,
        "at": at,
        "sessions": len(found.sessions),
        "versions": len(found.versions),
    }
    row |= {"tenant": stamp.tenant, "seal": record.seal("erasure", stamp.tenant, *row.values())}
    bury(record, tx, row, found.sessions, found.versions)
    listed = erasures_file.add(record, row, found.sessions, found.versions)
    answer = {"erasure": name, "kind": kind, **told, "at": clock.iso(at), "backups": listed}
    answers.keep(tx, stamp.tenant, "erase", name, digest, answer)
    return answer


def bury(record: Record, tx: Transaction, row: dict[str, Any], sessions: list[str], versions: list[int]) -> None:
    """Set the tombstones, and take out of the indexes what would still find the text."""
    tenant, asked = row["tenant"], {"tenant": row["tenant"], "versions": json.dumps(versions)}
    tx.run("insert_erasure", row)
    tx.many("insert_erased_session", [(tenant, session, row["erasure"]) for session in sessions])
    tx.many("insert_erased_version", [(tenant, version, row["erasure"]) for version in versions])
    for (entry,) in tx.rows("text_entries_of", asked):
        tx.run("delete_text", {"tenant": tenant, "id": entry})
        tx.run("insert_text", {"tenant": tenant, "id": entry, "tokens": ""})
    tx.run("drop_vectors", asked)
    forget_what_was_asked(tx, tenant, sessions)
    record.look_again(tenant)


def forget_what_was_asked(tx: Transaction, tenant: int, sessions: list[str]) -> None:
    """Take out the words of these runs' tasks, with the precedents under them; not those of tasks that other runs have too."""
    tasks = {row[0] for row in tx.rows("tasks_of_sessions", {"tenant": tenant, "sessions": json.dumps(sessions)})}
    others = (
        {row[0] for row in tx.rows("tasks_of_others", {"tenant": tenant, "tasks": json.dumps(sorted(tasks))})} if tasks else ()
    )
    said = {words for task in tasks.difference(others) for words in precedents.names_of(task).values()}
    said -= {words for task in others for words in precedents.names_of(task).values()} | {""}
    if said:
        parts = {"tenant": tenant, "said": json.dumps(sorted(said))}
        tx.run("forget_precedents_said", parts)
        tx.run("forget_said", parts)


def targets(reader: Reader, tenant: int, kind: str, subject: str) -> Targets:
    """The runs and versions of a subject that are not erased yet."""
    plain = "".join(letter.lower() if letter.isascii() else letter for letter in subject)
    quoted = json.dumps(plain, ensure_ascii=False)[1:-1]
    asked = {"tenant": tenant, "subject": subject, "plain": plain, "quoted": quoted}
    of_runs, *of_versions = FOUND_BY[kind]
    sessions = {row[0] for row in reader.rows(of_runs, asked)}
    versions = {row[0] for query in of_versions for row in reader.rows(query, asked)}
    if kind in WITH_WHAT_THEY_WROTE:
        wrote = {"tenant": tenant, "sessions": json.dumps(sorted(sessions))}
        versions |= {row[0] for row in reader.rows("versions_of_sessions", wrote)}
    sessions -= set(erased_sessions(reader, tenant, sorted(sessions)))
    versions -= {row[0] for row in reader.rows("erased_versions", {"tenant": tenant, "versions": json.dumps(sorted(versions))})}
    served = {"tenant": tenant, "versions": json.dumps(sorted(versions))}
    readers = {row[0] for row in reader.rows("readers_of", served)} - sessions if versions else set()
    return Targets(sorted(sessions), sorted(versions), sorted(readers))


def canonical(kind: str, subject: str) -> str:
    """A subject as the record writes it."""
    if kind == "entity":
        return text.entity_path(subject)
    if kind == "text" and len(subject.strip()) < TEXT_CHARS_MIN:
        raise InvalidRequest(f"a text to be erased has at least {TEXT_CHARS_MIN} characters: a shorter one stands everywhere")
    return text.name(subject, what=kind, chars_max=limits.KEY_CHARS_MAX)


def named(record: Record, tenant: int, kind: str, subject: str) -> bytes:
    """A subject's keyed digest: the list of who was erased must not be a list of who they were."""
    return record.seal("erasure subject", tenant, kind, subject)


def listed(record: Record, reader: Reader, tenant: int, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Every erasure, or those of one subject."""
    kind, subject = asked["kind"], asked["subject"]
    if (kind is None) != (subject is None):
        raise InvalidRequest("a subject has a kind and a name: give both, or neither")
    which = None if kind is None else named(record, tenant, kind, canonical(kind, subject))
    found = []
    for *said, seal in reader.rows("erasures", {"tenant": tenant, "subject": which, "limit": asked["limit"]}):
        record.verify(seal, "erasure", tenant, *said)
        erasure, what, _, why, identity, at, sessions, versions = said
        told = {"erasure": erasure, "kind": what, "why": why, "by": identity, "at": clock.iso(at)}
        found.append(told | {"sessions": sessions, "versions": versions})
    return found


def erased_sessions(reader: Reader, tenant: int, sessions: list[str]) -> set[str]:
    """Those of these runs that are erased."""
    return {row[0] for row in reader.rows("erased_sessions", {"tenant": tenant, "sessions": json.dumps(sessions)})}


def is_erased(record: Record, reader: Reader, tenant: int, session: str) -> bool:
    """Whether a run is erased; nothing is asked where nothing ever was."""
    return record.erasures_seen(tenant) > 0 and bool(erased_sessions(reader, tenant, [session]))


def again(record: Record) -> int | None:
    """Erase in a restored record what was erased after it was copied. None where there is no list to tell."""
    known = erasures_file.read(record)
    if known is None:
        return None
    done = 0
    for row, sessions, versions in known:

        def work(tx: Transaction, row: dict[str, Any] = row, runs: list[str] = sessions, ids: list[int] = versions) -> int:
            if tx.row("erasure", {"tenant": row["tenant"], "erasure": row["erasure"]}) is not None:
                return 0
            bury(record, tx, row, runs, ids)
            return 1

        done += record.store.write(work, tenant=row["tenant"])
    return done
