"""Keys and tenants: what each opens, that it opens nothing else, and that it ends when somebody says so."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from herdbook.base import access_key, limits
from herdbook.base.errors import HerdbookError, SealBroken
from herdbook.service.access import keys
from herdbook.service.door import Service
from herdbook.service.verbs import VERBS
from herdbook.testing.record_book import Book, Desk, refused
from tests.record.files import shell

DAY = 86_400


def made(desk: Desk, name: str = "ci", **more: Any) -> str:
    key: str = desk.do("key_create", name=name, **more)["key"]
    return key


def holder(service: Service, key: str) -> Desk:
    return Desk(service, keys.admitted(service, key))


def test_a_key_does_what_its_role_may(service: Service, ann: Desk) -> None:
    """A reader would write, or a writer could not."""
    for role, scopes in keys.ROLES.items():
        desk = holder(service, made(ann, role, role=role, **({"seconds": 60} if role == "box" else {})))
        assert scopes == desk.caller.scopes
        assert (role, ("agent", 1)) == (desk.caller.identity, (desk.caller.origin, desk.caller.tenant))
        for name, verb in VERBS.items():
            if verb.scope not in scopes:
                with refused("forbidden", saying=verb.scope):
                    desk.do(name)


def test_a_key_is_shown_once_and_kept_nowhere(service: Service, ann: Desk, tmp_path: Path) -> None:
    """Whoever reads the record, a log or a listing could use every key."""
    key = made(ann)
    secret = key.rpartition("_")[2]
    assert secret not in str(ann.do("key_list"))
    assert secret not in repr(keys.admitted(service, key))
    service.record.store.write(lambda tx: None)
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes(), file
    again = ann.do("key_list")["keys"][0]
    assert "key" not in again
    assert key.startswith(f"hb_{again['id']}_")


def test_a_wrong_key_opens_nothing_and_says_nothing(service: Service, ann: Desk) -> None:
    """Which keys there are could be found out by asking."""
    key = made(ann)
    said = access_key.read(key)
    assert said is not None
    stranger, _ = access_key.new(1)
    other_tenant, _ = access_key.new(999_999)
    body = f"{said.id}_{'A' * 32}"
    guessed = f"hb_{body}{access_key.checksum(body)}"
    told = set()
    for shown in (stranger, other_tenant, guessed, key[:-1], "hb_", "hb_nonsense"):
        with refused("unauthorized"):
            try:
                keys.admitted(service, shown)
            except HerdbookError as problem:
                told.add(problem.message)
                raise
    assert 1 == len(told)


def test_a_revoked_key_opens_nothing_anywhere_at_once(book: Book, service: Service, ann: Desk) -> None:
    """A leaked key would go on for as long as some server remembers it."""
    key, other = made(ann), book.open()
    assert keys.admitted(service, key) == keys.admitted(other, key)
    assert [keys.admitted(other, key).key] == ann.do("key_revoke", name="ci")["revoked"]
    for each in (service, other):
        with refused("unauthorized", saying="ended"):
            keys.admitted(each, key)
    with refused("not_found"):
        ann.do("key_revoke", name="ci")


def test_a_key_ends_by_its_date(book: Book, service: Service, ann: Desk) -> None:
    """A key that was meant for a day would be good for ever."""
    key = made(ann, seconds=DAY)
    book.clock.tick(seconds=DAY - 1)
    keys.admitted(service, key)
    book.clock.tick(seconds=1)
    with refused("unauthorized"):
        keys.admitted(service, key)


def test_a_rotated_key_goes_on_for_its_grace(book: Book, service: Service, ann: Desk) -> None:
    """Every program that uses a key would fail in the moment it is replaced, or the old one be good for ever."""
    old = made(ann, role="reader", reach=["acme/ci"], attest=True)
    new = ann.do("key_rotate", name="ci", grace_seconds=60)["key"]
    one, two = keys.admitted(service, old), keys.admitted(service, new)
    assert (one.scopes, one.reach, one.identity) == (two.scopes, two.reach, two.identity)
    assert one.key != two.key
    book.clock.tick(seconds=60)
    keys.admitted(service, new)
    with refused("unauthorized"):
        keys.admitted(service, old)
    ann.do("key_rotate", name="ci")
    with refused("unauthorized"):
        keys.admitted(service, new)


def test_rotations_at_one_moment_leave_one_key_that_opens(service: Service, ann: Desk) -> None:
    """Of two rotations in one microsecond, the second could take its end from a key that had ended: nothing opened any more."""
    made(ann)
    for _ in range(12):  # the clock stands still; which of two ids is the greater is left to chance
        newest = ann.do("key_rotate", name="ci")["key"]
        keys.admitted(service, newest)
    ann.do("key_revoke", name="ci")
    made(ann)
    keys.admitted(service, ann.do("key_rotate", name="ci")["key"])


def test_a_name_is_one_key(ann: Desk) -> None:
    """A retry would leave a second key that nobody knows of."""
    made(ann)
    with refused("conflict"):
        made(ann)
    ann.do("key_revoke", name="ci")
    made(ann)


@pytest.mark.parametrize(
    "more, code",
    [
        ({"role": "operator"}, "forbidden"),
        ({"attest": True}, "forbidden"),
        ({"role": "admin", "reach": ["acme"]}, "invalid_request"),
        ({"role": "box"}, "invalid_request"),
        ({"role": "box", "seconds": 2 * DAY}, "invalid_request"),
        ({"role": "box", "seconds": DAY, "attest": True}, "forbidden"),
        ({"connections": ["aws"]}, "forbidden"),
        ({"verbs": ["read", "nonsense"]}, "invalid_request"),
        ({"reach": ["acme/**"]}, "invalid_request"),
    ],
)
def test_nobody_hands_on_more_than_they_have(service: Service, ann: Desk, more: dict[str, Any], code: str) -> None:
    """An admin of keys would make one that vouches for runs, or runs the server."""
    admin = holder(service, made(ann, "admin", role="admin", connections=["github"]))
    with refused(code):
        made(admin, "new", **more)
    assert "live" in admin.do("key_create", name="fine", connections=["github"], seconds=60)


def test_rotating_a_key_gives_no_more_than_making_one(service: Service, ann: Desk) -> None:
    """An admin would be told an operator's key by rotating it, and so run the server and vouch for runs."""
    admin = holder(service, made(ann, "admin", role="admin", connections=["github"]))
    stronger: dict[str, dict[str, Any]] = {
        "operator": {"role": "operator"},
        "witness": {"attest": True},
        "cloud": {"connections": ["aws"]},
    }
    for name, more in stronger.items():
        key = made(ann, name, **more)
        with refused("forbidden"):
            admin.do("key_rotate", name=name)
        keys.admitted(service, key)
    mine = made(admin, "mine", connections=["github"])
    assert "key" in admin.do("key_rotate", name="mine")
    with refused("unauthorized"):
        keys.admitted(service, mine)


def test_a_key_of_some_verbs_makes_none_of_more(service: Service, ann: Desk) -> None:
    """A key that may do little would make itself one that may do everything of its role."""
    maker = holder(service, made(ann, "maker", role="admin", verbs=["key_create", "key_rotate", "read"]))
    made(ann, "whole", role="writer")
    for more in ({"verbs": ["write"]}, {"verbs": ["read", "write"]}):
        with refused("forbidden", saying="verbs"):
            made(maker, "more", **more)
    with refused("forbidden", saying="verbs"):
        maker.do("key_rotate", name="whole")
    assert maker.caller.verbs == holder(service, made(maker, "same")).caller.verbs
    assert frozenset({"read"}) == holder(service, made(maker, "less", verbs=["read"])).caller.verbs


def test_a_key_with_a_rate_makes_none_with_more(service: Service, ann: Desk) -> None:
    """A key that may ask for little would make itself one that may ask for everything."""
    maker = holder(service, made(ann, "maker", role="admin", rate_minute=60, quota_day=1_000))
    made(ann, "whole")
    for more in ({"rate_minute": 61}, {"quota_day": 1_001}):
        with refused("forbidden", saying="at most"):
            made(maker, "more", **more)
    with refused("forbidden", saying="at most"):
        maker.do("key_rotate", name="whole")
    assert (60, 1_000) == holder(service, made(maker, "same")).caller.allowance[0]
    assert (6, 1_000) == holder(service, made(maker, "less", rate_minute=6)).caller.allowance[0]


def test_a_tenant_has_so_many_keys_and_no_more(service: Service, ann: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key has a rate of its own: whoever made keys without number could ask without number."""
    monkeypatch.setattr(limits, "KEYS_LIVE_MAX", 3)
    admin = holder(service, ann.do("tenant_create", tenant="acme")["key"])
    for name in ("a", "b"):
        made(admin, name)
    with refused("conflict", saying="revoke"):
        made(admin, "c")
    with refused("conflict", saying="revoke"):
        admin.do("key_rotate", name="a", grace_seconds=60)
    admin.do("key_rotate", name="a")
    admin.do("key_revoke", name="b")
    made(admin, "c")
    holder(service, ann.do("tenant_admit", tenant="acme")["key"]).do("key_revoke", name="c")  # nobody locks a tenant out


def test_a_key_of_some_verbs_does_those(service: Service, ann: Desk) -> None:
    """A key for a dashboard would read what it need not."""
    desk = holder(service, made(ann, verbs=["brief", "write"]))
    desk.write("a", 1)
    assert 1 == desk.brief()["known"]
    with refused("forbidden", saying="brief, write"):
        desk.read("a")


def test_tenants_are_apart(service: Service, ann: Desk) -> None:
    """One customer's key would read another's record."""
    ann.write("a", "canary")
    admins = [holder(service, ann.do("tenant_create", tenant=name)["key"]) for name in ("acme", "globex")]
    assert [2, 3] == [admin.caller.tenant for admin in admins]
    assert ["default", "acme", "globex"] == [each["tenant"] for each in ann.do("tenant_list")["tenants"]]
    one, two = (holder(service, made(admin, "ci", role="writer", attest=True)) for admin in admins)
    one.write("a", 1)
    with refused("not_found"):
        two.read("a")
    assert ["ci"] == [each["name"] for each in admins[0].do("key_list")["keys"] if each["role"] == "writer"]
    for verb in ("tenant_create", "tenant_list", "tenant_limit", "tenant_admit"):
        with refused("forbidden"):
            admins[0].do(verb, tenant="globex")
    with refused("not_found"):
        admins[0].do("key_revoke", name=str(two.caller.key))
    with refused("conflict"):
        ann.do("tenant_create", tenant="acme")
    assert 3 == holder(service, ann.do("tenant_admit", tenant="globex")["key"]).caller.tenant


@pytest.mark.parametrize(
    "change", ["role = 'operator'", "reach = NULL", "attest = 1", "ends_at = NULL", "tenant = 2", "identity = 'x'"]
)
def test_an_edited_row_opens_nothing(book: Book, service: Service, ann: Desk, tmp_path: Path, change: str) -> None:
    """Whoever can write the file would make themselves operator."""
    key = made(ann, role="reader", reach=["acme"], seconds=DAY)
    ann.do("tenant_create", tenant="two")
    with closing(shell(tmp_path / "record.db")) as raw:
        raw.execute("DROP TRIGGER access_key_only_ends_v1")
        raw.execute(f"UPDATE access_key SET {change} WHERE name = 'ci'")
        raw.commit()
    with pytest.raises(HerdbookError) as problem:
        keys.admitted(service, key)
    assert problem.value.code == ("unauthorized" if change == "tenant = 2" else SealBroken.code)


def test_a_key_row_only_ends(service: Service, ann: Desk, tmp_path: Path) -> None:
    """A key could be widened, or brought back, by whoever reaches the database without the application."""
    made(ann, seconds=DAY)
    with closing(shell(tmp_path / "record.db")) as raw:
        for change in ("role = 'admin'", "ends_at = ends_at + 1", "ends_at = NULL", "verbs = '[]'", "rate_minute = 9"):
            with pytest.raises(Exception, match="append_only"):
                raw.execute(f"UPDATE access_key SET {change}")
        with pytest.raises(Exception, match="append_only"):
            raw.execute("DELETE FROM access_key")


@pytest.mark.slow
def test_verifying_a_key_takes_no_time(service: Service, ann: Desk) -> None:
    """Every request would pay for it. The bound is for a busy machine; the figure is in the decision."""
    for number in range(200):
        made(ann, f"k{number}")
    key = made(ann)
    keys.admitted(service, key)
    best = min(timed(service, key) for _ in range(20))
    assert best < 50e-6, f"{best * 1e6:.1f} us"


def timed(service: Service, key: str) -> float:
    started = time.perf_counter()
    for _ in range(100):
        keys.admitted(service, key)
    return (time.perf_counter() - started) / 100
