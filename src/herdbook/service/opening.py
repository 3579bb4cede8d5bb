"""Opening a record in this process: settings in, service or transport out."""

from __future__ import annotations

import getpass
import os
from os import PathLike
from pathlib import Path

from herdbook.base.clock import Clock, SystemClock
from herdbook.base.errors import HerdbookError
from herdbook.base.settings import DATABASE_SCHEMES, Database, Place, Settings
from herdbook.fastloop.ordering import OFF
from herdbook.fastloop.sources import Semantics
from herdbook.record.record import Record
from herdbook.service.callers import local_caller
from herdbook.service.door import TEXTS_PART, Service
from herdbook.service.local import LocalTransport, for_clients

INLINE_EMBEDDED_MAX = 16  # before the answer of a command, whose process is gone before anything behind the scenes is done


def open_service(
    settings: Settings,
    *,
    record: str | PathLike[str] | Database | None = None,
    clock: Clock | None = None,
    inline_max: int = 0,
) -> Service:
    """The service over the record of these settings, or over another file or database. A file is made on first use."""
    opened = Record.open(
        settings.record if record is None else located(record),
        key_file=settings.seal_key_file,
        synchronous=settings.synchronous,
        value_bytes_max=settings.value_bytes_max,
        cached_bytes_max=settings.cache_bytes_max // TEXTS_PART,
    )
    semantics = semantics_of(settings, opened, inline_max=inline_max)
    return Service(opened, clock or SystemClock(), semantics=semantics, cache_bytes_max=settings.cache_bytes_max)


def semantics_of(settings: Settings, record: Record, *, inline_max: int) -> Semantics | str:
    """What finds by meaning, as these settings say; nothing is loaded before it is asked."""
    if settings.embed == "off":
        return OFF
    from herdbook.fastloop.embedding.models import chosen  # here, since most commands never ask

    embedder = chosen(settings.embed, key=settings.embed_key)
    if isinstance(embedder, str):
        return embedder
    from herdbook.fastloop.embedding.meanings import Meanings

    return Meanings(record, embedder, inline_max=inline_max, bytes_max=settings.cache_bytes_max // TEXTS_PART)


def located(record: str | PathLike[str] | Database) -> Place:
    """A file, unless it is the address of a database."""
    if isinstance(record, Database):
        return record
    where = os.fspath(record)
    return Database(where) if where.startswith(DATABASE_SCHEMES) else Path(where)


def open_local(
    record: str | PathLike[str] | Database, settings: Settings, *, channel: str = "python", clock: Clock | None = None
) -> LocalTransport:
    """A transport for a client in this process: whoever can open the file is its operator."""
    try:
        service = open_service(settings, record=record, clock=clock, inline_max=INLINE_EMBEDDED_MAX)
    except HerdbookError as problem:
        raise for_clients(problem) from problem
    return LocalTransport(service, local_caller(local_identity(), channel=channel))


def local_identity() -> str:
    """Who this process runs as, by name where the system has one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"
