"""What a tool says when it refuses: the sentence, and which tool to call next. Never a traceback, whatever happened."""

from __future__ import annotations

import logging
from typing import Any, Final

from herdbook.base.errors import HerdbookError
from herdbook.client import HerdbookError as ClientError

LOG: Final = logging.getLogger("herdbook.mcp")
NEXT: Final = {
    "not_found": "call `list` or `search` to see what there is",
    "unknown_entry": "call `brief` or `read` first, and name in `used` what you were given",
    "unknown_outcome_type": "call `commit_outcome` again with one of the four types",
    "version_conflict": "call `read`, then `write` again with its version as `if_version`",
    "request_conflict": "call it again with another `request_id`, `ref` or `session`, or leave that out",
    "too_large": "call it again with less: keep large things elsewhere, and a pointer to them here",
    "invalid_text": "call it again with that text corrected",
    "invalid_value": "call it again with a value that is plain JSON",
    "invalid_request": "call it again with the fields its form lists",
    "forbidden": "ask the person you work for: this credential may not do it",
    "unauthorized": "ask the person you work for: the key is missing or wrong",
    "unavailable": "call it again in a moment, with the same ids",
    "busy": "call it again in a moment, with the same ids",
    "unreachable": "go on without the record, say so, and call it again later: this does not mean that nothing is known",
    "disk_full": "reads still work; call it again later, with the same ids",
    "seal_broken": "do not rely on that entry: call `history` for what it was before",
}


def refused(problem: BaseException, *, tool: str) -> dict[str, Any]:
    """The one error shape, with the call that helps. A failure that nobody foresaw is logged, and told without its insides."""
    if isinstance(problem, HerdbookError | ClientError):
        details = dict(problem.details or {})
        retry = bool(details.pop("retry", problem.retry if isinstance(problem, HerdbookError) else problem.away))
        error = {"code": problem.code, "message": safe(problem.message), "retry": retry, **details}
    else:
        LOG.error("%s failed", tool, exc_info=problem)
        error = {
            "code": "internal",
            "message": f"{tool} failed in a way nobody foresaw; the server's log says how",
            "retry": False,
        }
    return {"error": error, "next": NEXT.get(str(error["code"]), "read the message, and call it again with what it asks for")}


def safe(text: str) -> str:
    """A message may quote what no JSON can carry."""
    return text.encode("utf-8", "backslashreplace").decode()
