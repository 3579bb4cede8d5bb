"""Arguments that are more than a word: JSON values, texts from a file or the standard input, links, what was used.

Nothing is guessed: what is not JSON is refused unless the person says `--text`, and every limit is the record's own.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Final

from herdbook.base import limits, strict_json
from herdbook.base.errors import HerdbookError, InvalidRequest, InvalidText, InvalidValue, TooLarge
from herdbook.surfaces.cli.problems import Usage

RELATIONS: Final = ("derived_from", "supports", "contradicts", "see_also")


def value_of(argument: str, *, as_text: bool = False) -> Any:
    """The VALUE argument: JSON, or with `as_text` the text itself; `-` is the standard input."""
    given = standard_input(what="value") if argument == "-" else argument
    if as_text:
        return given.removesuffix("\n") if argument == "-" else given
    return parsed_json(given, what="VALUE", hint="quote it as JSON, or pass --text to keep it as text")


def parsed_json(text: str, *, what: str, hint: str = "send JSON") -> Any:
    try:
        return strict_json.loads(text)
    except HerdbookError as problem:
        # Only "this is not JSON" gets the hint: a duplicate key or a huge number is no text somebody forgot to quote.
        if type(problem) is InvalidRequest:
            reason = problem.message.removeprefix("this is not JSON: ")
            raise InvalidRequest(f"{what} is not JSON ({reason}): {hint}") from problem
        raise


def optional_json(argument: str | None, *, what: str) -> Any:
    """The JSON of an option, which may stand in a file or the standard input."""
    return None if argument is None else parsed_json(text_of(argument, what=what), what=f"--{what}")


def text_of(argument: str, *, what: str) -> str:
    """A text argument: itself, `-` for the standard input, `@file` for a file."""
    if argument == "-":
        return standard_input(what=what)
    if not argument.startswith("@"):
        return argument
    try:
        with open(argument[1:], "rb") as file:
            data = file.read(limits.REQUEST_BYTES_MAX + 1)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "no such name"
        raise Usage(f"the file {argument[1:]!r} for the {what} cannot be read: {reason}") from problem
    return decoded(data, what=what)


def standard_input(*, what: str, bytes_max: int = limits.REQUEST_BYTES_MAX) -> str:
    """All of the standard input, bounded."""
    if sys.stdin is None or sys.stdin.closed:
        raise Usage(f"there is no standard input to read the {what} from")
    data = sys.stdin.buffer.read(bytes_max + 1)
    if len(data) > bytes_max < limits.REQUEST_BYTES_MAX:
        raise TooLarge(f"the {what} is over {bytes_max} bytes: check what was sent")
    return decoded(data, what=what)


def decoded(data: bytes, *, what: str) -> str:
    if len(data) > limits.REQUEST_BYTES_MAX:
        raise TooLarge(f"the {what} is over {limits.REQUEST_BYTES_MAX} bytes, the limit of a request: store a pointer instead")
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        raise InvalidText(f"the {what} is not UTF-8: {problem.reason} at byte {problem.start}") from problem


def link(argument: str) -> dict[str, Any]:
    """`rel:entity#key` as the record takes it."""
    relation, colon, target = argument.partition(":")
    entity, hash_mark, key = target.partition("#")
    if not (colon and hash_mark and relation in RELATIONS):
        raise Usage(f"the link {argument[:80]!r} is not REL:ENTITY#KEY with REL one of {', '.join(RELATIONS)}")
    return {"rel": relation, "entity": entity, "key": key}


def used(arguments: list[str] | None) -> list[dict[str, Any] | str] | None:
    """`KEY` this session was served, `ENTITY#KEY`, or a JSON object with a version; `#KEY` is a key that itself holds a `#`."""
    return None if arguments is None else [used_one(argument) for argument in arguments]


def used_one(argument: str) -> dict[str, Any] | str:
    if argument.startswith("{"):
        found: dict[str, Any] = parsed_json(argument, what="--used", hint='send {"entity": …, "key": …, "version": …}')
        return found
    entity, hash_mark, key = argument.partition("#")
    if not hash_mark:
        return argument
    return {"entity": entity, "key": key} if entity else key


def finite(value: float | None, *, what: str) -> float | None:
    """Refused here too, because JSON could not even carry the question to a server."""
    if value is not None and not math.isfinite(value):
        raise InvalidValue(f"{what} must be a number within [0, 1], got {value}")
    return value
