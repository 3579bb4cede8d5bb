"""Secrets at rest: sealed, bound to where they may go, replaced as a whole, gone when revoked."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from herdbook.base import settings
from herdbook.base.clock import TickClock
from herdbook.base.errors import Conflict, HerdbookError, InvalidRequest, NotFound
from herdbook.gateway.catalogue import Catalogue
from herdbook.gateway.credentials.minting import Tools
from herdbook.gateway.keeper import FileKeeper, VaultBroken, VaultKeyMissing, seal, unseal
from herdbook.gateway.keeping import Gatekeeper
from herdbook.gateway.vault import Vault, write_whole

SECRET = "canary-0123456789"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def keeper(home: Path) -> Gatekeeper:
    made = Gatekeeper.of(settings.load({"HERDBOOK_HOME": str(home)}), by="ann")
    made.add("github", base="https://api.github.com", credential={"type": "bearer"}, secret=SECRET, allow=["GET /a"])
    return made


def served(keeper: Gatekeeper) -> Catalogue:
    """As a server has it. Nothing is minted here."""

    async def nobody(*args: Any, **fields: Any) -> Any:
        raise AssertionError("nothing is to be asked")

    return Catalogue(keeper.vault, lambda name: Tools(nobody, nobody, TickClock(), lambda box, at: None))


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def file_of(home: Path) -> Path:
    return home / "gateway" / "connections" / "github.json"


def test_a_secret_is_written_nowhere_in_the_open(home: Path, keeper: Gatekeeper) -> None:
    """A copy of the folder, a backup, or a listing would hold the key."""
    assert SECRET == keeper.vault.get("github").secret
    assert SECRET.encode() not in everything(home)
    assert SECRET not in str(keeper.all())
    assert SECRET not in repr(keeper.vault.get("github"))
    assert SECRET not in repr(served(keeper).get("github"))


def test_only_its_owner_may_read(home: Path, keeper: Gatekeeper) -> None:
    """Everybody on the machine could read keys or rules."""
    files = [path for path in home.rglob("*") if path.is_file()]
    assert 3 == len(files)
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in files}
    assert 0o700 == stat.S_IMODE((home / "gateway" / "connections").stat().st_mode)
    os.chmod(home / "gateway.key", 0o640)
    with pytest.raises(VaultKeyMissing, match="chmod 600"):
        Gatekeeper.of(settings.load({"HERDBOOK_HOME": str(home)}), by="ann").vault.get("github")


@pytest.mark.parametrize(
    "path, value",
    [
        (("open", "base"), "https://evil.example"),
        (("open", "grants"), [{"box": None, "label": "all"}]),
        (("open", "rules"), []),
        (("open", "reach"), "private"),
        (("open", "revoked"), True),
        (("open", "name"), "gitlab"),
        (("format",), 2),
        (("sealed",), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        (("data_key",), ""),
        (("open",), 7),
    ],
)
def test_a_file_changed_by_hand_is_refused(home: Path, keeper: Gatekeeper, path: tuple[str, ...], value: object) -> None:
    """Whoever may write the folder could send the key to a host of theirs, or grant it to their box."""
    said = json.loads(file_of(home).read_bytes())
    place = said
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    file_of(home).write_text(json.dumps(said, separators=(",", ":")))
    with pytest.raises(VaultBroken):
        keeper.vault.get("github")
    [shown] = keeper.all()
    assert "add it anew" in shown["problem"]


def test_a_file_under_another_name_is_refused(home: Path, keeper: Gatekeeper) -> None:
    """A granted name could be made to lead to another service's key."""
    file_of(home).rename(file_of(home).with_name("other.json"))
    with pytest.raises(VaultBroken):
        keeper.vault.get("other")


def test_another_key_opens_nothing(home: Path, keeper: Gatekeeper) -> None:
    """A key file of somebody else would do."""
    (home / "gateway.key").write_text("00" * 32)
    with pytest.raises(VaultBroken):
        Gatekeeper.of(settings.load({"HERDBOOK_HOME": str(home)}), by="ann").vault.get("github")


@pytest.mark.parametrize("text", ["", "zz", "00" * 31])
def test_a_missing_or_bad_key_file_is_said_and_not_replaced(home: Path, keeper: Gatekeeper, text: str) -> None:
    """A key that is made anew without a word would leave every secret lost behind it."""
    (home / "gateway.key").write_text(text)
    again = Gatekeeper.of(settings.load({"HERDBOOK_HOME": str(home)}), by="ann")
    for attempt in (lambda: again.vault.get("github"), lambda: again.rotate("github", SECRET)):
        with pytest.raises(VaultKeyMissing, match="put the"):
            attempt()
    (home / "gateway.key").unlink()
    with pytest.raises(VaultKeyMissing):
        again.add("gitlab", base="https://gitlab.com", credential={"type": "bearer"}, secret=SECRET)
    assert not (home / "gateway.key").exists()


def test_a_rotation_leaves_nothing_of_the_old_secret(home: Path, keeper: Gatekeeper) -> None:
    """Rotating after a leak would keep the leaked key in use, or at rest."""
    before = file_of(home).read_bytes()
    assert 2 == keeper.rotate("github", "fresh-0123456789")["secret_version"]
    assert "fresh-0123456789" == keeper.vault.get("github").secret
    now = json.loads(file_of(home).read_bytes())
    assert not any(value in before.decode() for value in (now["sealed"], now["data_key"]))
    assert ["added", "secret 2"] == [each["what"] for each in keeper.shown("github")["history"]]
    assert {"ann"} == {each["by"] for each in keeper.shown("github")["history"]}


def test_a_revocation_removes_the_secret(keeper: Gatekeeper) -> None:
    """A revoked key would still be there for whoever finds the key file."""
    assert keeper.revoke("github")["revoked"]
    assert "" == keeper.vault.get("github").secret
    assert not keeper.vault.get("github").connection.granted(box="one", label="ci")
    assert not keeper.rotate("github", "fresh-0123456789")["revoked"]


def test_a_change_holds_at_once_in_every_process(keeper: Gatekeeper) -> None:
    """A server that runs would go on with the old secret, rules or grants."""
    running = served(keeper)
    assert 1 == running.get("github").connection.secret_version
    keeper.rotate("github", "fresh-0123456789")
    assert 2 == running.get("github").connection.secret_version
    keeper.remove("github")
    with pytest.raises(NotFound):
        running.get("github")


def test_a_write_that_fails_leaves_the_old_file(keeper: Gatekeeper, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut or a full disk would lose the connection, or leave half of it."""
    before = file_of(home).read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HerdbookError, match="nothing was changed") as caught:
        keeper.rotate("github", "fresh-0123456789")
    assert "disk_full" == caught.value.code
    assert before == file_of(home).read_bytes()
    assert [] == list(file_of(home).parent.glob(".github*"))


def test_two_changes_at_once_are_both_kept(home: Path, keeper: Gatekeeper) -> None:
    """Of two operators' grants one would be lost."""
    from concurrent.futures import ThreadPoolExecutor

    def grant(number: int) -> None:
        Gatekeeper.of(settings.load({"HERDBOOK_HOME": str(home)}), by="ann").grant("github", box=f"box-{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(grant, range(24)))
    assert {f"box box-{number}" for number in range(24)} == set(keeper.shown("github")["grants"])


def test_a_key_service_may_keep_the_key(home: Path) -> None:
    """Secrets could only be kept under a file of this machine."""

    class Service:
        """As a key service: it sees data keys and what they are for, never a secret."""

        key, seen = b"k" * 32, []

        def wrap(self, data_key: bytes, *, about: bytes) -> bytes:
            self.seen.append(data_key)
            return seal(self.key, data_key, about=about)

        def unwrap(self, wrapped: bytes, *, about: bytes) -> bytes:
            return unseal(self.key, wrapped, about=about)

    keeper = Gatekeeper(Vault(home, Service()), home, by="ann")
    keeper.add("github", base="https://api.github.com", credential={"type": "bearer"}, secret=SECRET)
    assert SECRET == keeper.vault.get("github").secret
    assert all(SECRET.encode() not in seen for seen in Service.seen)
    assert [] == list(home.rglob("*.key"))


def test_a_name_is_never_a_path(keeper: Gatekeeper) -> None:
    """A connection's name could read or write a file elsewhere."""
    for name in ("../x", "a/b", "..", "", "A", "a.json", "-a", "a" * 65, "a\0b", ".lock"):
        with pytest.raises(NotFound):
            keeper.vault.stamp(name)
        with pytest.raises(InvalidRequest):
            keeper.add(name, base="https://a.example", credential={"type": "bearer"}, secret=SECRET)


@pytest.mark.parametrize(
    "credential, secret",
    [
        ({"type": "bearer"}, "short"),
        ({"type": "bearer"}, "two\nlines-of-secret"),
        ({"type": "bearer"}, " spaces-around "),
        ({"type": "bearer"}, "ünïcödé-secret"),
        ({"type": "bearer"}, "x" * 20_000),
        ({"type": "header", "name": "host"}, SECRET),
        ({"type": "header", "name": "a b"}, SECRET),
        ({"type": "header", "name": "x-key", "before": "a\r\nb: "}, SECRET),
        ({"type": "basic", "user": "a:b"}, SECRET),
        ({"type": "query", "name": "a&b"}, SECRET),
        ({"type": "path"}, "services/T0/B0"),
        ({"type": "path"}, "/services/../../x"),
        ({"type": "magic"}, SECRET),
        ({}, SECRET),
    ],
)
def test_a_secret_that_cannot_be_sent_is_refused_unseen(keeper: Gatekeeper, credential: dict[str, str], secret: str) -> None:
    """A bad paste would split a header, or show up in the error about it."""
    with pytest.raises(InvalidRequest) as caught:
        keeper.add("bad", base="https://a.example", credential=credential, secret=secret)
    assert secret not in str(caught.value.message)
    assert ["github"] == keeper.vault.names()


def test_a_name_is_taken_once(keeper: Gatekeeper) -> None:
    """A second add would replace a connection that boxes use."""
    with pytest.raises(Conflict):
        keeper.add("github", base="https://evil.example", credential={"type": "bearer"}, secret=SECRET)


def test_a_draft_is_never_readable_by_others(tmp_path: Path) -> None:
    """There would be a moment in which others can read what is being written."""
    os.umask(old := os.umask(0))
    try:
        os.umask(0)
        write_whole(tmp_path / "x.json", b"{}")
    finally:
        os.umask(old)
    assert 0o600 == stat.S_IMODE((tmp_path / "x.json").stat().st_mode)
    FileKeeper(tmp_path / "k").create()
    assert 0o600 == stat.S_IMODE((tmp_path / "k").stat().st_mode)
