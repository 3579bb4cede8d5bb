"""herdbook: the durable record under fleets of disposable agent boxes.

`open()` gives a `Book`, a `Client` over a record in this process or behind a server; methods and answers are the same either way.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

from herdbook.base.version import VERSION
from herdbook.client import Client, HerdbookError
from herdbook.surfaces.book import Book

__all__ = ["Book", "Client", "HerdbookError", "__version__", "open"]

__version__ = VERSION
URLS = ("http://", "https://", "unix:")


def open(where: str | PathLike[str] | None = None, *, key: str | None = None, **client: Any) -> Book:
    """A book over the record at `where`: a file, a postgresql:// database, an http(s) or unix: address,
    or by default what the settings say.

    `agent`, `task`, `entity`, `session` and `timeout_seconds` go to the Client. Raises HerdbookError.
    """
    from herdbook.base import settings

    found = settings.load()
    place = where if where is not None else found.url or found.record
    if str(place).startswith(URLS):
        return Book(url=str(place), key=key or (found.key if where is None else None), **client)
    from herdbook.service.opening import open_local

    return Book(open_local(place, found), **client)
