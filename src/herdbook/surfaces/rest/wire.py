"""Between HTTP and fields: bodies and query strings in, one answer out.

Nothing is guessed: a body is a JSON object that says so in its Content-Type, which a browser's form cannot, and a query
parameter appears once. What an error says is always encodable, whatever characters the caller sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope, Send

from herdbook.base import limits, strict_json
from herdbook.base.errors import HerdbookError, InvalidRequest, InvalidText, InvalidValue, TooLarge
from herdbook.base.http_edge import MethodNotAllowed, UnsupportedMediaType

JSON: Final = b"application/json"
QUERY_PARAMETERS_MAX: Final = 50
# Answers are about a moment, and hold text that others wrote: neither kept by a cache nor guessed to be a page.
ALWAYS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class ClientGone(Exception):
    """The client hung up before its request was whole: nobody is left to answer."""


@dataclass(slots=True)
class Call:
    """One request, as a handler sees it."""

    scope: Scope
    receive: Receive
    headers: Mapping[bytes, bytes]
    request_id: str

    async def body(self) -> bytes:
        """The whole body; the edge has bounded it in size and in time."""
        message = await self.receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            return bytes(message["body"])
        pieces = []
        while message["type"] == "http.request":
            pieces.append(message["body"])
            if not message.get("more_body"):
                return b"".join(pieces)
            message = await self.receive()
        raise ClientGone


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back."""

    status: int
    body: bytes
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())
    code: str | None = None  # of the error, where it is one


async def send_answer(send: Send, answer: Answer, *, request_id: str) -> None:
    headers = [
        (b"content-type", answer.content_type),
        (b"content-length", str(len(answer.body)).encode()),
        (b"x-request-id", request_id.encode()),
        *ALWAYS,
        *answer.headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def json_answer(value: Any) -> Answer:
    return Answer(200, msgspec.json.encode(value))


def error_answer(error: HerdbookError, *, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Answer:
    """The one error shape; when a retry can help, also when."""
    if error.retry:
        headers = (*headers, (b"retry-after", str(error.details.get("retry_after", 1)).encode()))
    return Answer(error.status, encode_error(error), headers=headers, code=error.code)


def method_not_allowed(allowed: str) -> Answer:
    error = MethodNotAllowed(f"this address takes {allowed}: /openapi.json lists what each one takes")
    return error_answer(error, headers=((b"allow", allowed.encode()),))


def encode_error(error: HerdbookError) -> bytes:
    try:
        return msgspec.json.encode(error.as_dict())
    except (UnicodeEncodeError, TypeError):  # the message or a detail quotes what no JSON can hold
        message = error.message.encode("utf-8", "backslashreplace").decode()
        return msgspec.json.encode({"error": {"code": error.code, "message": message, "retry": error.retry}})


def json_fields(headers: Mapping[bytes, bytes], body: bytes) -> dict[str, Any]:
    """The fields of a verb from a JSON body."""
    check_content_type(headers.get(b"content-type", b""))
    fields = strict_json.loads(body)
    if not isinstance(fields, dict):
        raise InvalidRequest(f"the body is {json_kind(fields)}, not an object: send the verb's fields as {{...}}")
    if b"\\ud" in body or b"\\uD" in body:
        refuse_lone_surrogates(fields)
    return fields


def refuse_lone_surrogates(fields: dict[str, Any]) -> None:
    """JSON can spell half a character, which nothing further in can store, compare or send."""
    try:
        msgspec.json.encode(fields)
    except UnicodeEncodeError as problem:
        raise InvalidText("the body holds a lone surrogate, half of a character: send well-formed Unicode") from problem
    except RecursionError as problem:
        raise TooLarge(f"the JSON is nested deeper than {limits.VALUE_DEPTH_MAX} levels") from problem


def check_content_type(value: bytes) -> None:
    if value == JSON:
        return
    kind, _, parameters = value.lower().partition(b";")
    charset = parameters.strip().removeprefix(b"charset=").strip(b'"')
    if kind.strip() != JSON:
        raise UnsupportedMediaType
    if charset not in (b"", b"utf-8", b"utf8"):
        raise UnsupportedMediaType("JSON is UTF-8: send `Content-Type: application/json`, without another charset")


def json_kind(value: object) -> str:
    kinds = {list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number", type(None): "null"}
    return kinds[type(value)]


def query_fields(query: bytes) -> dict[str, Any]:
    """The fields of an asking verb from a query string, all as text: the service converts numbers and booleans."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=QUERY_PARAMETERS_MAX,
        )
    except UnicodeDecodeError as problem:
        raise InvalidText("the query string is not UTF-8: percent-encode it as UTF-8") from problem
    except ValueError as problem:
        raise InvalidRequest(f"the query string cannot be read ({problem}): send name=value&name=value") from problem
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidValue(f"the parameter {twice!r} appears twice: send it once")
    return fields
