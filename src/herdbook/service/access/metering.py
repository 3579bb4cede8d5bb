"""Rates and quotas: buckets in the store, one for a key and one for its tenant, shared by every server, taken from in parts.

A server takes about a second's worth at a time and spends it in memory, so that most requests cost nothing, and together the
servers never spend more than there is. What a server took and did not spend within a few seconds is forfeited.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from herdbook.base.errors import TooLarge, TooManyRequests
from herdbook.record.store.protocol import Planned, Transaction
from herdbook.service.callers import UNLIMITED, Caller

if TYPE_CHECKING:
    from herdbook.service.door import Service

SECONDS: Final = {"minute": 60, "day": 86_400}
KEPT_SECONDS: Final = 5


class Bucket(NamedTuple):
    """What is counted: requests of a minute or changes of a day, of a key or of a tenant as a whole."""

    tenant: int
    subject: str  # a key's id; empty for the tenant
    per: str
    size: int

    @property
    def refill(self) -> float:
        """A second."""
        return self.size / SECONDS[self.per]


@dataclass(slots=True)
class Taken:
    """Out of a bucket, by this server, to be spent soon."""

    left: int
    until: int


class Meter:
    """What this server has taken. It belongs to one thread, that of the server's event loop; only the work runs elsewhere."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.taken: dict[Bucket, Taken] = {}

    def spend(self, caller: Caller, *, requests: int, changes: int) -> dict[Bucket, int]:
        """Spend so much of what was taken; or what has to be taken first of which bucket, and nothing is spent."""
        if caller.allowance == UNLIMITED:
            return {}
        wanted = wanted_of(caller, requests=requests, changes=changes)
        now = self.service.clock.now()
        missing = {bucket: amount - held for bucket, amount in wanted.items() if (held := self.held(bucket, now)) < amount}
        if not missing:
            for bucket, amount in wanted.items():
                self.taken[bucket].left -= amount
        return missing

    def held(self, bucket: Bucket, now: int) -> int:
        taken = self.taken.get(bucket)
        return taken.left if taken is not None and taken.until > now else 0

    def take(self, missing: dict[Bucket, int]) -> Planned:
        """Take a part of each, in one transaction; nothing of any where one has too little. Answers what was taken."""

        def work(tx: Transaction) -> dict[Bucket, int]:
            now = self.service.clock.now()
            return {bucket: part_of(tx, bucket, now, amount=amount) for bucket, amount in missing.items()}

        return Planned(next(iter(missing)).tenant, work)

    def got(self, parts: dict[Bucket, int]) -> None:
        until = self.service.clock.now() + KEPT_SECONDS * 1_000_000
        if len(self.taken) > 10_000:
            self.taken.clear()  # keys that nobody uses any more
        for bucket, part in parts.items():
            held = self.taken.get(bucket)
            left = held.left if held is not None and held.until >= self.service.clock.now() else 0
            self.taken[bucket] = Taken(left + part, until)


def wanted_of(caller: Caller, *, requests: int, changes: int) -> dict[Bucket, int]:
    """What this is of each bucket that it comes out of."""
    of_key, of_tenant = caller.allowance
    found = {}
    for subject, (rate, quota) in ((caller.payer or caller.key or "", of_key), ("", of_tenant)):
        if rate is not None and requests:
            found[Bucket(caller.tenant, subject, "minute", rate)] = requests
        if quota is not None and changes:
            found[Bucket(caller.tenant, subject, "day", quota)] = changes
    return found


def part_of(tx: Transaction, bucket: Bucket, now: int, *, amount: int) -> int:
    """Out of the bucket as it is by now, this at least. Raises TooManyRequests, which says when there will be enough in it."""
    where = {"tenant": bucket.tenant, "subject": bucket.subject, "per": bucket.per}
    row = tx.row("allowance", where)
    remaining, at = (float(bucket.size), now) if row is None else row
    remaining = min(float(bucket.size), remaining + max(0, now - at) / 1_000_000 * bucket.refill)
    whose = "this key" if bucket.subject else "this tenant"
    what = "requests a minute" if bucket.per == "minute" else "changes a day"
    if amount > bucket.size:
        raise TooLarge(f"{whose} may ask for {bucket.size} {what}, and this is more at once: send fewer at a time")
    if remaining < amount:
        wait = math.ceil((amount - remaining) / bucket.refill)
        raise TooManyRequests(f"{whose} may ask for {bucket.size} {what}: wait {wait} s, or have it raised", retry_after=wait)
    second = bucket.size // SECONDS[bucket.per]  # what is not spent is forfeited
    part = max(amount, min(int(remaining), second))
    tx.run("set_allowance", where | {"remaining": remaining - part, "at": max(now, at)})
    return part
