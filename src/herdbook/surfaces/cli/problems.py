"""What a person or a script sees when something is refused: one sentence or one JSON object, and an exit code.

The exit code says whose turn it is: the caller's, to ask differently; nobody's, to wait; or somebody's, to look after the record.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, Final

from herdbook.base.errors import HerdbookError, InvalidRequest
from herdbook.surfaces.cli.terminal import Terminal
from herdbook.surfaces.cli.wording import for_people

OK: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3
NOT_FOUND: Final = 4
BROKEN: Final = 5
UNFORESEEN: Final = 70
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

EXIT_CODES: Final = {
    OK: "done",
    REFUSED: "refused: the request, or a check such as doctor's, did not pass",
    USAGE: "not understood: wrong arguments or settings",
    UNAVAILABLE: "not available now: unreachable, busy or disk full; the same command can be tried again",
    NOT_FOUND: "there is nothing by that name",
    BROKEN: "the record or its seal key is not as it should be: run herdbook doctor",
    UNFORESEEN: "a failure nobody foresaw: HERDBOOK_DEBUG=1 shows where",
    INTERRUPTED: "stopped by ctrl-C",
    PIPE_CLOSED: "whoever read the output had left",
}


# Of a path that somebody named: not there, not theirs, or of the wrong kind. Nothing is wrong with the program.
UNFIT: Final = frozenset(
    {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.ENAMETOOLONG}
    | {errno.ELOOP, errno.EROFS, errno.ENXIO, errno.EINVAL}
)


class Usage(InvalidRequest):
    """The command was not understood: see its --help."""

    code = "usage"


def refusal(problem: BaseException) -> HerdbookError | None:
    """The problem as one of ours and in words for people, whichever transport raised it; None if nobody foresaw it."""
    if isinstance(problem, HerdbookError):
        return problem if for_people(problem.message) == problem.message else Told(problem)
    client = sys.modules.get("herdbook.client")  # not imported for this: an error of a module not loaded cannot have been raised
    if client is not None and isinstance(problem, client.HerdbookError):
        return Told(problem)
    if isinstance(problem, OSError) and isinstance(problem.filename, str | bytes) and problem.errno in UNFIT:
        return Usage(f"{os.fsdecode(problem.filename)!r} cannot be used ({problem.strerror}): name a file or folder that can")
    return None


class Told(HerdbookError):
    """Somebody else refused this: the record or its server, which name what travels and not what is typed."""

    def __init__(self, problem: Any) -> None:
        super().__init__(for_people(str(problem.message)), **dict(problem.details or {}))
        self.told_code = str(problem.code)
        self.told_status = int(problem.status or 500)
        self.told_retry = bool(self.details.pop("retry", getattr(problem, "retry", False)))

    def as_dict(self) -> dict[str, Any]:
        return {"error": {"code": self.told_code, "message": self.message, "retry": self.told_retry, **self.details}}


def code_of(problem: HerdbookError) -> str:
    return problem.told_code if isinstance(problem, Told) else problem.code


def exit_code(problem: HerdbookError) -> int:
    """0 is done; the rest says who has to act: see EXIT_CODES."""
    code = code_of(problem)
    status = problem.told_status if isinstance(problem, Told) else problem.status
    if code in ("usage", "invalid_setting"):
        return USAGE
    # By code first: an address that answers 404 as something else than herdbook is unreachable, not a missing entry.
    if code in ("unavailable", "busy", "disk_full", "unreachable") or status in (429, 502, 503, 504, 507):
        return UNAVAILABLE
    if status == 404:
        return NOT_FOUND
    return BROKEN if status == 500 else REFUSED


def tell(problem: HerdbookError, terminal: Terminal) -> int:
    """Say it, and give the exit code: a sentence beside the output, or the error object as the output."""
    if terminal.as_json:
        terminal.show(problem.as_dict(), ())
    else:
        terminal.remark(problem.message)
    return exit_code(problem)


def tell_unforeseen(problem: Exception, terminal: Terminal) -> int:
    """A failure that is no refusal: the kind and the first line of it, and how to see more."""
    about = " ".join(filter(None, [type(problem).__name__, str(problem).split("\n")[0][:200]]))
    message = f"this should not have happened ({about}): HERDBOOK_DEBUG=1 shows where; please report it"
    if terminal.as_json:
        terminal.show({"error": {"code": "unforeseen", "message": message, "retry": False}}, ())
    else:
        terminal.remark(message)
    return UNFORESEEN
