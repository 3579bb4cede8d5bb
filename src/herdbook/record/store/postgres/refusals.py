"""The driver's errors as ours, and which of them are worth another try.

A connection that broke says nothing about whether its commit arrived. Every work carries its own ids and finds its first answer
again, so a try after a doubt makes one version, one outcome, one move.
"""

from __future__ import annotations

import psycopg
from psycopg import errors

from herdbook.base.errors import Broken, Busy, DiskFull, HerdbookError, InvalidText, Unavailable, UnknownEntry

REFUSED = (psycopg.Error, UnicodeEncodeError)  # the second for a lone surrogate in a parameter
REFUSALS: dict[str, type[HerdbookError]] = {"unknown_version": UnknownEntry, "unknown_outcome": UnknownEntry}
# Classes and codes of errors after which the same work may simply be tried again: the connection went, the server restarts or
# recovers, or two transactions stood in each other's way.
PASSING = ("08", "57P01", "57P02", "57P03", "57P05", "25P03", "40001", "40P01")


class Passing(Unavailable):
    """The connection to PostgreSQL was lost, or it is restarting: retry with the same ids."""


def translated(problem: psycopg.Error | UnicodeEncodeError) -> HerdbookError:
    """The driver's error as ours; what a trigger refused carries its own name. Never a parameter: it may be anybody's text."""
    if isinstance(problem, UnicodeEncodeError):
        return InvalidText("a text holds a lone surrogate: send well-formed Unicode")
    code, said = problem.sqlstate or "", (problem.diag.message_primary or str(problem)).strip()
    if code == "HB001":
        name = said.removeprefix("herdbook:")
        return REFUSALS.get(name, Broken)(f"the record refused this: {name}")
    if code.startswith(PASSING) or (not code and isinstance(problem, psycopg.OperationalError)):
        return Passing(f"the connection to PostgreSQL was lost ({said.splitlines()[0]}): retry with the same ids")
    if isinstance(problem, errors.LockNotAvailable | errors.QueryCanceled):
        return Busy(f"PostgreSQL did not get to it in time ({said}): retry with the same ids")
    if code in ("53100", "58030"):
        return DiskFull(f"the disk under PostgreSQL failed ({said}): nothing was stored; free space and retry with the same ids")
    if code.startswith("53") or code == "25006":
        return Unavailable(f"PostgreSQL takes no writes now ({said}): retry with the same ids")
    if isinstance(problem, psycopg.DataError) and "NUL" in said:
        return InvalidText("a text holds the character U+0000: remove it")
    return Broken(f"the record refused this: {said}")


def not_let_in(problem: psycopg.OperationalError) -> Unavailable:
    """Why no connection came about, for whoever gave the address; whoever was connected before is told by `translated`."""
    said = str(problem).strip().splitlines()[0]
    return Unavailable(
        f"PostgreSQL does not let us in ({said}): check that it runs, and host, port, database, login and password of the address"
    )
