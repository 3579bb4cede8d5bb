"""An entry as every answer shows it: the immutable version with the trust of its claim as it is now.

Every point read passes here, so nothing is worked out that the answer does not hold.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from herdbook.base.clock import MICROSECONDS_PER_DAY, iso
from herdbook.fastloop.decay import BASE_DAYS, effective_now
from herdbook.record.trust import acts, earned, evidence, standing
from herdbook.record.types import Head, Version

EntryView = dict[str, Any]

iso_cached = lru_cache(maxsize=16_384)(iso)  # times of versions never change; formatting one costs more than all else here
parse = json.JSONDecoder().raw_decode  # canonical JSON has nothing around it to skip


def entry_view(version: Version, head: Head, *, now: int, base: float, base_days: float = BASE_DAYS) -> EntryView:
    """The one shape of an entry in answers. `base` is the success rate of its path, which evidence is measured against."""
    expires_at, affirmed_at = version.expires_at, head.affirmed_at
    stands = earned(standing(head, expired=expires_at is not None and expires_at <= now), version.id, head.standing_id)
    at = version.at
    effective_age = now - (at if affirmed_at is None or affirmed_at < at else affirmed_at)  # a re-affirmed claim is young again
    effective = effective_now(head.confidence, effective_age, version.kind, head.recalls, head.moves, base_days=base_days)
    return {
        "entity": version.path,
        "key": version.key,
        "version": version.number,
        "value": parse(version.value_text)[0],
        "why": version.why,
        "kind": version.kind,
        "worked": version.worked,
        "confidence": head.confidence,
        "effective_confidence": effective,
        "evidence": round(evidence(head.held, head.failed, base), 6),
        "standing": stands,
        "acting": acts(stands),
        "author": version.author,
        "identity": version.identity,
        "session": version.session,
        "box": version.box,
        "origin": version.origin,
        "at": iso_cached(version.at),
        "age_days": round(max(0, now - version.at) / MICROSECONDS_PER_DAY, 3),
        "applies_when": version.applies_when,
        "expires_at": None if expires_at is None else iso_cached(expires_at),
        "links": [] if version.links_text is None else parse(version.links_text)[0],
        "moves": head.moves,
        "recalls": head.recalls,
        "affirmed": head.affirmed,
        "affirmed_at": None if affirmed_at is None else iso_cached(affirmed_at),
        "last_outcome": None if head.last_at is None else last_outcome(head),
        "seal": "verified" if version.sealed else "unverified",
    }


def last_outcome(head: Head) -> dict[str, str | None]:
    assert head.last_at is not None
    return {"type": head.last_type, "ref": head.last_ref, "at": iso_cached(head.last_at)}
