"""Where connections are kept: one small file each, written whole or not at all, the secret sealed within it.

Each writing makes a new data key, seals the secret under it with the connection's open part as the associated data, and lets the
keeper seal the data key. So no copy of the folder opens without the keeper, and a file whose host, rule or grant somebody changed
by hand is refused like one whose secret was changed. Old secrets are not kept: a rotation replaces, a revocation removes.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from herdbook.base import key_file
from herdbook.base.errors import Conflict, DiskFull, InvalidRequest, NotFound, Unavailable
from herdbook.gateway.connections import Connection, connection_name
from herdbook.gateway.keeper import KEY_BYTES, Keeper, VaultBroken, seal, unseal

FORMAT: Final = 1
ENDING: Final = ".json"
Stamp = tuple[int, int, int]  # of a file: when, which, how long


class SealedFile(msgspec.Struct, frozen=True):
    """The file as it stands."""

    format: int
    open: msgspec.Raw
    data_key: bytes
    sealed: bytes


@dataclass(frozen=True, slots=True)
class Kept:
    """A connection and its secret, opened."""

    connection: Connection
    secret: str = field(repr=False)


class Vault:
    """The connections in one folder."""

    def __init__(self, folder: Path, keeper: Keeper) -> None:
        self.folder, self.keeper = folder, keeper

    def names(self) -> list[str]:
        return sorted(path.name.removesuffix(ENDING) for path in self.folder.glob(f"*{ENDING}"))

    def stamp(self, name: str) -> Stamp:
        """What changes whenever the connection does. Raises NotFound."""
        try:
            found = os.stat(self.path(name))
        except (FileNotFoundError, InvalidRequest):
            raise NotFound(f"there is no connection {name[:64]!r}: look with `herdbook gateway ls`") from None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def get(self, name: str) -> Kept:
        """Raises NotFound, or VaultBroken for what was not written so."""
        try:
            data = self.path(name).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"there is no connection {name!r}: look with `herdbook gateway ls`") from None
        try:
            found = msgspec.json.decode(data, type=SealedFile)
            about = associated(bytes(found.open))
            data_key = self.keeper.unwrap(found.data_key, about=b"herdbook gateway data key " + name.encode())
            secret = unseal(data_key, found.sealed, about=about).decode()
            connection = msgspec.json.decode(found.open, type=Connection)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise VaultBroken from problem
        if connection.name != name or found.format != FORMAT:
            raise VaultBroken
        return Kept(connection, secret)

    def add(self, connection: Connection, secret: str) -> None:
        with self.locked():
            if self.path(connection.name).exists():
                raise Conflict(f"there is a connection {connection.name!r} already: rotate its secret, or choose another name")
            self.write(connection, secret)

    def change(self, name: str, change: Callable[[Kept], Kept]) -> Connection:
        """Read, change and write, while nobody else does."""
        with self.locked():
            changed = change(self.get(name))
            self.write(changed.connection, changed.secret)
            return changed.connection

    def remove(self, name: str) -> None:
        with self.locked():
            self.stamp(name)
            self.path(name).unlink()
            key_file.sync_folder(self.folder)

    def write(self, connection: Connection, secret: str) -> None:
        data_key, opened = secrets.token_bytes(KEY_BYTES), msgspec.json.encode(connection)
        wrapped = self.keeper.wrap(data_key, about=b"herdbook gateway data key " + connection.name.encode())
        sealed = seal(data_key, secret.encode(), about=associated(opened))
        write_whole(self.path(connection.name), msgspec.json.encode(SealedFile(FORMAT, msgspec.Raw(opened), wrapped, sealed)))

    def path(self, name: str) -> Path:
        return self.folder / f"{connection_name(name)}{ENDING}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def associated(opened: bytes) -> bytes:
    return b"herdbook gateway connection %d " % FORMAT + opened


def write_whole(path: Path, data: bytes) -> None:
    """The new file or the old one, also after a power cut."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        key_file.sync_folder(path.parent)
    except OSError as problem:
        with suppress(FileNotFoundError):
            os.unlink(draft)
        kind = DiskFull if problem.errno == 28 else Unavailable
        raise kind(f"the connection could not be written to {path} ({problem.strerror}): nothing was changed") from problem
