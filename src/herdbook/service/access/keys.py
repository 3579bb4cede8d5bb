"""The verbs about keys and tenants, and who is let in by one.

Roles are named sets of scopes. Nobody hands on more than they have: neither reach, nor connections, nor the right to attest. A
key is told once, in the answer that makes it, so that answer is not kept: a retry is refused by the name, and the key is rotated.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from herdbook.base import access_key, box_token, clock, limits, text
from herdbook.base.errors import Conflict, Forbidden, InvalidRequest
from herdbook.base.reach import ANY, Reach
from herdbook.record import access
from herdbook.record.access import Granted
from herdbook.record.store.protocol import SERVER, Transaction, Work
from herdbook.service.access import passes, requests
from herdbook.service.callers import DEFAULT_TENANT, UNLIMITED, Caller

if TYPE_CHECKING:
    from herdbook.service.door import Service

ROLES: Final = {
    "reader": frozenset({"read"}),
    "writer": frozenset({"read", "write"}),
    "box": frozenset({"read", "write"}),  # as a writer, but it ends within a day and never attests
    "host": frozenset({"read", "write", "host"}),
    "watcher": frozenset({"read", "write", "host", "dispatch"}),
    "admin": frozenset({"read", "write", "host", "dispatch", "admin"}),
    "operator": frozenset({"read", "write", "host", "dispatch", "admin", "operator"}),
}
BOX_SCOPES: Final = ROLES["box"]


def admitted(service: Service, shown: str, *, channel: str = "rest") -> Caller:
    """Whoever shows this key, or this pass of a box. Raises Unauthorized."""
    if shown.startswith(box_token.PREFIX):
        said, giver = passes.honoured(service, shown)
        by = None if giver is None else caller_of(said.tenant, giver[0], channel, *giver[1][16:18])
        return Caller(
            said.tenant,
            said.identity,
            BOX_SCOPES,
            channel,
            said.box,
            "agent",
            said.reach,
            said.connections,
            key=f"pass {said.box}",
            verbs=None if by is None else by.verbs,
            allowance=UNLIMITED if by is None else by.allowance,
            payer=None if by is None else by.key,
        )
    tenant, granted, row = access.opened(service.record, shown, now=service.clock.now())
    return caller_of(tenant, granted, channel, *row[16:18])


@lru_cache(maxsize=4_096)
def caller_of(tenant: int, granted: Granted, channel: str, rate_minute: int | None, quota_day: int | None) -> Caller:
    """The same row gives the same caller: what its texts say is worked out once."""
    scopes = ROLES[granted.role] | ({"attest"} if granted.attest else frozenset())
    return Caller(
        tenant,
        granted.identity,
        scopes,
        channel,
        origin="agent",
        reach=granted.patterns,
        connections=tuple(json.loads(granted.connections)),
        key=granted.id,
        verbs=None if granted.verbs is None else frozenset(json.loads(granted.verbs)),
        allowance=((granted.rate_minute, granted.quota_day), (rate_minute, quota_day)),
    )


def keys_exist(service: Service) -> bool:
    """Whether anybody was given a key: from then on a server that listens on an address asks for one."""
    return bool(service.record.store.lent_rows("any_access_key", {"tenant": SERVER})[0][0])


def key_create(service: Service, caller: Caller, request: requests.CreateKey) -> Work:
    """Check what is asked for, then write it and tell the key."""
    name = text.name(request.name, what="key's name")
    reach = caller.reach if request.reach is None else Reach.of(request.reach)
    verbs = caller.verbs if request.verbs is None else known_verbs(request.verbs)
    asked = Granted(
        id="",
        name=name,
        digest=b"",
        identity=name if request.identity is None else text.name(request.identity, what="identity"),
        role=request.role,
        attest=int(request.attest),
        verbs=None if verbs is None else json.dumps(sorted(verbs)),
        reach=reach.written,
        connections=json.dumps(passes.checked(request.connections or [])),
        rate_minute=request.rate_minute or caller.allowance[0][0],
        quota_day=request.quota_day or caller.allowance[0][1],
        created_at=0,
        created_by=caller.identity,
    )
    refuse_more(caller, asked)
    refuse_unfit(request, reach)

    def work(tx: Transaction) -> dict[str, Any]:
        now = service.clock.now()
        access.refuse_taken(service.record, tx, caller.tenant, name, now=now)
        access.refuse_many(tx, caller.tenant, now=now)
        ends_at = None if request.seconds is None else now + request.seconds * 1_000_000
        return made(service, tx, caller.tenant, asked, now=now, ends_at=ends_at)

    return work


def refuse_more(caller: Caller, asked: Granted) -> None:
    """What a key may not hand on, neither in a new key nor in one that takes another's place."""
    if not caller.reach.includes(asked.patterns):
        raise Forbidden("a key hands on no more than it reaches itself: name patterns within its own")
    if asked.attest and ("attest" not in caller.scopes or asked.role == "box"):
        raise Forbidden("only a key that may attest hands that on, and never to a box")
    if ROLES[asked.role] - caller.scopes or (asked.role == "operator" and caller.tenant != DEFAULT_TENANT):
        raise Forbidden(f"a key makes no {asked.role} that may do more than it may itself")
    verbs = None if asked.verbs is None else frozenset(json.loads(asked.verbs))
    if caller.verbs is not None and (verbs is None or not verbs <= caller.verbs):
        raise Forbidden("a key of some verbs hands on those and no more: name verbs of its own")
    passes.handed_on(caller.connections, json.loads(asked.connections))
    for held, wanted, option in zip(caller.allowance[0], (asked.rate_minute, asked.quota_day), ("rate", "quota"), strict=True):
        if held is not None and (wanted is None or wanted > held):
            raise Forbidden(f"a key with a {option} of its own makes keys of that or less: give it a {option} of at most {held}")


def refuse_unfit(request: requests.CreateKey, reach: Reach) -> None:
    """What no key of this role is."""
    if request.role in ("admin", "operator") and not reach.everything:
        raise InvalidRequest(f"an {request.role} key reaches every path of its tenant: leave the reach out")
    most = limits.BOX_KEY_SECONDS_MAX
    if request.role == "box" and (request.seconds is None or request.seconds > most):
        raise InvalidRequest(
            f"a box's key ends within {most} seconds: give its seconds (--expires 12h), or let a host make a pass"
        )


def known_verbs(names: list[str]) -> list[str]:
    from herdbook.service.verbs import VERBS  # here, since that table names these functions

    unknown = sorted(set(names) - set(VERBS))
    if unknown:
        raise InvalidRequest(f"there is no verb {unknown[0][:40]!r}: the verbs are {', '.join(sorted(VERBS))}")
    return sorted(set(names))


def made(
    service: Service, tx: Transaction, tenant: int, asked: Granted, *, now: int, ends_at: int | None = None
) -> dict[str, Any]:
    """Write a key that was never there and tell it, this once. It is younger than any of its name, whatever the clock says."""
    key, kept = access_key.new(tenant)
    before = [granted.created_at for granted, _ in access.named(service.record, tx, tenant, asked.name)]
    created_at = max([now, *(at + 1 for at in before)])
    values = {name: getattr(asked, name) for name in Granted.__slots__}
    granted = Granted(**values | {"id": kept.id, "digest": kept.digest, "created_at": created_at})
    access.insert(service.record, tx, tenant, granted, ends_at=ends_at)
    return access.view(granted, ends_at, now=now) | {"key": key}


def key_list(service: Service, caller: Caller, request: requests.ListKeys) -> dict[str, Any]:
    now = service.clock.now()
    found = access.named(service.record, service.record.store, caller.tenant, None)
    return {"keys": [access.view(granted, ends_at, now=now) for granted, ends_at in found]}


def key_revoke(service: Service, caller: Caller, request: requests.RevokeKey) -> Work:
    name = text.name(request.name, what="key's name")

    def work(tx: Transaction) -> dict[str, Any]:
        now = service.clock.now()
        found = access.living(service.record, tx, caller.tenant, name, now=now)
        for granted in found:
            access.end(service.record, tx, caller.tenant, granted.id, at=now)
        return {"revoked": [granted.id for granted in found], "at": clock.iso(now)}

    return work


def key_rotate(service: Service, caller: Caller, request: requests.RotateKey) -> Work:
    name = text.name(request.name, what="key's name")

    def work(tx: Transaction) -> dict[str, Any]:
        now = service.clock.now()
        keys = access.named(service.record, tx, caller.tenant, name)
        access.living(service.record, tx, caller.tenant, name, now=now)
        newest, ends_at = keys[-1]
        refuse_more(caller, newest)  # whoever rotates a key is told the new one
        until = now + request.grace_seconds * 1_000_000
        for granted, end in keys:
            if end is None or end > until:
                access.end(service.record, tx, caller.tenant, granted.id, at=until)
        access.refuse_many(tx, caller.tenant, now=now)
        return made(service, tx, caller.tenant, newest, now=now, ends_at=ends_at)

    return work


def tenant_create(service: Service, caller: Caller, request: requests.CreateTenant) -> Work:
    name = text.name(request.tenant, what="tenant")

    def work(tx: Transaction) -> dict[str, Any]:
        with tx.acting_for(SERVER):
            if tx.rows("tenants", {"name": name}):
                raise Conflict(f"there is a tenant {name!r} already: give the new one another name")
            row = tx.row("next_tenant", {})
            assert row is not None
            amounts = {"rate_minute": request.rate_minute, "quota_day": request.quota_day}
            tx.run("insert_tenant", {"tenant": row[0], "name": name, **amounts})
            view = access.tenant_view(access.tenant_named(tx, name))
        return view | {"key": admin_key(service, tx, caller, row[0])}

    return work


def admin_key(service: Service, tx: Transaction, caller: Caller, tenant: int) -> str:
    """A key for whoever runs a tenant. It may attest, and hand that on: who vouches for runs is the tenant's to say."""
    now = service.clock.now()
    name = f"admin-{clock.iso(now)}"
    asked = Granted("", name, b"", "admin", "admin", 1, None, None, json.dumps([ANY]), None, None, 0, caller.identity)
    with tx.acting_for(tenant):
        key: str = made(service, tx, tenant, asked, now=now)["key"]
    return key


def tenant_list(service: Service, caller: Caller, request: requests.ListTenants) -> dict[str, Any]:
    return {
        "tenants": [access.tenant_view(row) for row in service.record.store.rows("tenants", {"tenant": SERVER, "name": None})]
    }


def tenant_limit(service: Service, caller: Caller, request: requests.LimitTenant) -> Work:
    def work(tx: Transaction) -> dict[str, Any]:
        with tx.acting_for(SERVER):
            number = access.tenant_named(tx, request.tenant)[0]
            tx.run("limit_tenant", {"tenant": number, "rate_minute": request.rate_minute, "quota_day": request.quota_day})
            return access.tenant_view(access.tenant_named(tx, request.tenant))

    return work


def tenant_admit(service: Service, caller: Caller, request: requests.AdmitTenant) -> Work:
    def work(tx: Transaction) -> dict[str, Any]:
        with tx.acting_for(SERVER):
            row = access.tenant_named(tx, request.tenant)
        return access.tenant_view(row) | {"key": admin_key(service, tx, caller, row[0])}

    return work
