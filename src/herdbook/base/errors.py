"""Every refusal herdbook makes, as one tree: a stable `code`, an HTTP `status`, whether a retry can help, and what to do next.

    HerdbookError
      InvalidRequest (400)   InvalidText, InvalidValue, UnknownEntry, UnknownOutcomeType
      TooLarge (413)         Unauthorized (401)   Forbidden (403)   NotFound (404)
      Conflict (409)         VersionConflict, RequestConflict, NotPromotable
      TooManyRequests (429)
      Unavailable (503)      Busy, DiskFull (507), Unreachable
      Broken (500)           SealBroken, SealKeyMissing, SealKeyWrong, SchemaNewer
      CannotIsolate (501)    ExtraMissing (501)

The docstring is the default message. Every surface renders the same object through `as_dict`.
"""

from __future__ import annotations

from typing import Any, ClassVar

MESSAGE_CHARS_MAX = 1_200


def clipped(message: str) -> str:
    """A refusal may quote what it refuses, but not a megabyte of it; what to do about it comes at the end, and stays."""
    half = MESSAGE_CHARS_MAX // 2
    return message if len(message) <= MESSAGE_CHARS_MAX else f"{message[:half]} ... {message[-half:]}"


class HerdbookError(Exception):
    """Something herdbook would not do."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    retry: ClassVar[bool] = False

    def __init__(self, message: str = "", **details: Any) -> None:
        self.message = clipped(message or (type(self).__doc__ or "").strip())
        self.details = details
        Exception.__init__(self, self.message)  # not the next class: one in process is also the client's own

    def as_dict(self) -> dict[str, Any]:
        """The one error shape: `{"error": {"code", "message", "retry", ...details}}`."""
        return {"error": {"code": self.code, "message": self.message, "retry": self.retry, **self.details}}


class InvalidRequest(HerdbookError):
    """The request does not have the documented form: compare it with /openapi.json."""

    code, status = "invalid_request", 400


class InvalidText(InvalidRequest):
    """A path, key or text holds characters the record refuses: send printable Unicode."""

    code = "invalid_text"


class InvalidValue(InvalidRequest):
    """The value is not JSON the record can keep: send finite numbers, unique object keys and moderate nesting."""

    code = "invalid_value"


class UnknownEntry(InvalidRequest):
    """The outcome names an entry or version that is not in the record: nothing was moved; name what was read."""

    code = "unknown_entry"


class UnknownOutcomeType(InvalidRequest):
    """An outcome is one of success, minor_failure, failure, critical_failure: send one of these four."""

    code = "unknown_outcome_type"


class TooLarge(HerdbookError):
    """The input is over a limit: the message names the limit; store a pointer to large things instead."""

    code, status = "too_large", 413


class Unauthorized(HerdbookError):
    """This needs a key: send `Authorization: Bearer <key>`."""

    code, status = "unauthorized", 401


class Forbidden(HerdbookError):
    """This credential does not have the scope for that verb: use one that has."""

    code, status = "forbidden", 403


class TooManyRequests(HerdbookError):
    """This key, or its tenant as a whole, has used up what it may ask for: wait as long as `retry_after` says, in seconds."""

    code, status, retry = "too_many_requests", 429, True


class NotFound(HerdbookError):
    """There is nothing by that name here: look with `herdbook ls`."""

    code, status = "not_found", 404


class Erased(HerdbookError):
    """This was erased, and is told to nobody: `herdbook erase --ls` lists the erasures."""

    code, status = "erased", 410


class Conflict(HerdbookError):
    """The record has moved on since you looked: read again, then decide."""

    code, status = "conflict", 409


class VersionConflict(Conflict):
    """Someone wrote this key since you read it: read it again, then decide."""

    code = "version_conflict"


class NotPromotable(Conflict):
    """This model may not be promoted, for the reasons that are named: train or examine it again."""

    code = "not_promotable"


class RequestConflict(Conflict):
    """This id was already used with another body: use a new id for a new request."""

    code = "request_conflict"


class Unavailable(HerdbookError):
    """The record cannot answer now: retry with the same ids."""

    code, status, retry = "unavailable", 503, True


class Busy(Unavailable):
    """The record is locked by another writer: retry with the same ids."""

    code = "busy"


class DiskFull(Unavailable):
    """The disk under the record is full: nothing was stored; free space and retry with the same ids."""

    code, status = "disk_full", 507


class Unreachable(Unavailable):
    """The server cannot be reached: start it with `herdbook serve`, or check the address."""

    code = "unreachable"


class Broken(HerdbookError):
    """The record or its key is not as it should be: run `herdbook doctor`."""

    code, status = "broken", 500


class SealBroken(Broken):
    """What is stored is not what was written: it is refused; restore the record from a backup."""

    code = "seal_broken"


class SealKeyMissing(Broken):
    """The record's seal key is missing, so nothing new can be sealed: put the key file back, then retry."""

    code = "seal_key_missing"


class SealKeyWrong(Broken):
    """The seal key is not the one this record was sealed with: put the right key file back."""

    code = "seal_key_wrong"


class SchemaNewer(Broken):
    """This record was written by a newer herdbook: upgrade herdbook; the file was left untouched."""

    code = "schema_newer"


class CannotIsolate(HerdbookError):
    """No box provider can isolate here: run `herdbook doctor` for what is missing and how to get it."""

    code, status = "cannot_isolate", 501


class ExtraMissing(HerdbookError):
    """This needs a package that is not installed: install the extra that the message names."""

    code, status = "extra_missing", 501

    @classmethod
    def of(cls, extra: str, *, what: str) -> ExtraMissing:
        """For `what`, which comes with `pip install 'herdbook[extra]'`."""
        return cls(f"{what} is not installed: pip install 'herdbook[{extra}]'", extra=extra)
