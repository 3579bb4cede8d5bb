"""The OpenAPI 3.1 description, made from the verbs themselves, so that it cannot say what the service does not do.

Requests and answers are the types that the service validates with and returns; error codes and their sentences are the error
tree's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from herdbook.base import errors, http_edge, limits
from herdbook.base.errors import HerdbookError
from herdbook.base.version import VERSION
from herdbook.service.verbs import VERBS, Verb
from herdbook.surfaces.rest import examples

Json = dict[str, Any]

SCHEMA: Final = "#/components/schemas/{name}"
DESCRIPTION: Final = """\
One record of what is known, what was read, what was done and what came of it. Every verb is `POST /v1/{verb}` with a JSON
object; the asking ones are also `GET` with query parameters. A telling verb takes an id of the caller's choosing (`request_id`,
or `ref` for an outcome): sent again with the same id it gets the first answer, so a retry is always safe."""

# What the record checks beyond the type of a field. Text is printable Unicode, canonical NFC, without lone surrogates.
RULES: Final[dict[str, Json]] = {
    "entity": {"minLength": 1, "maxLength": limits.ENTITY_PATH_CHARS_MAX},
    "key": {"minLength": 1, "maxLength": limits.KEY_CHARS_MAX},
    "agent": {"minLength": 1, "maxLength": limits.NAME_CHARS_MAX},
    "tool": {"minLength": 1, "maxLength": limits.NAME_CHARS_MAX},
    "session": {"minLength": 1, "maxLength": limits.ID_CHARS_MAX},
    "request_id": {"minLength": 1, "maxLength": limits.ID_CHARS_MAX},
    "ref": {"minLength": 1, "maxLength": limits.ID_CHARS_MAX},
    "box": {"minLength": 1, "maxLength": limits.ID_CHARS_MAX},
    "why": {"maxLength": limits.WHY_CHARS_MAX},
    "task": {"maxLength": limits.TASK_CHARS_MAX},
    "task_input": {"maxLength": limits.TASK_CHARS_MAX},
    "query": {"minLength": 1, "maxLength": limits.QUERY_CHARS_MAX},
    "applies_when": {"maxLength": limits.APPLIES_WHEN_CHARS_MAX},
    "confidence": {"minimum": 0, "maximum": 1},
    "tokens": {"minimum": limits.BRIEFING_TOKENS_MIN, "maximum": limits.BRIEFING_TOKENS_MAX},
    "limit": {"minimum": 1, "maximum": limits.PAGE_MAX},
    "version": {"minimum": 1},
    "old": {"minimum": 1},
    "new": {"minimum": 1},
    "if_version": {"minimum": 0},
    "lease_seconds": {"minimum": 1, "maximum": limits.BOX_LEASE_SECONDS_MAX},
    "links": {"maxItems": limits.LINKS_MAX},
    "used": {"maxItems": limits.USED_MAX},
    "observed": {"maxItems": limits.OBSERVED_MAX},
}

PAGES: Final[dict[str, tuple[str, str]]] = {
    "/v1/stream": (
        "What `changes` answers, as server-sent events as soon as there are any; resumed by `Last-Event-ID`.",
        "text/event-stream",
    ),
    "/v1/models": ("The names that models answer under here, as the OpenAI protocol lists them.", "application/json"),
    "/healthz": ("The process is alive.", "application/json"),
    "/readyz": ("The record answers, and writes are being taken; 503 otherwise.", "application/json"),
    "/metrics": ("What the server counts about itself, for Prometheus.", "text/plain"),
    "/openapi.json": ("This description.", "application/json"),
    "/client.py": ("The client, one file of the standard library; its digest is in X-Checksum-SHA256.", "text/x-python"),
}


def document() -> bytes:
    """The whole description as JSON."""
    by_status = codes_by_status()
    verbs = list(VERBS.values())
    requests, asked = msgspec.json.schema_components([verb.request for verb in verbs], ref_template=SCHEMA)
    answers, answered = msgspec.json.schema_components([verb.answer for verb in verbs], ref_template=SCHEMA)
    assert not set(asked) & set(answered), "a request and an answer share a name"
    for schema in asked.values():
        add_rules(schema)
    schemas = {**asked, **answered}
    paths = {
        f"/v1/{verb.name}": path_item(verb, schemas, request=request, answer=answer, statuses=list(by_status))
        for verb, request, answer in zip(verbs, requests, answers, strict=True)
    }
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "herdbook",
                "version": VERSION,
                "description": DESCRIPTION,
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "security": [{"key": []}, {}],
            "paths": {**paths, **{path: page_item(*page) for path, page in PAGES.items()}},
            "components": {
                "schemas": {**schemas, "Error": error_schema(by_status)},
                "responses": {str(status): error_response(kinds) for status, kinds in by_status.items()},
                "headers": {
                    "RequestId": {"description": "Names this request in the server's log.", "schema": {"type": "string"}}
                },
                "securitySchemes": {
                    "key": {"type": "http", "scheme": "bearer", "description": "Not needed on a server without a key."}
                },
            },
        }
    )


def path_item(verb: Verb, schemas: Mapping[str, Json], *, request: Json, answer: Json, statuses: list[int]) -> Json:
    example = examples.REQUESTS[verb.name]
    shared: Json = {
        "summary": summary(verb),
        "description": f"{verb.doc}\n\nNeeds the scope `{verb.scope}`.",
        "tags": ["tell" if verb.tells else "ask"],
        "x-scope": verb.scope,
        "responses": {
            "200": {
                "description": "Committed." if verb.tells else "The answer.",
                "headers": {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}},
                "content": {"application/json": {"schema": answer}},
            },
            **{str(status): {"$ref": f"#/components/responses/{status}"} for status in statuses},
        },
    }
    body = {"required": True, "content": {"application/json": {"schema": request, "example": example}}}
    item: Json = {"post": {"operationId": verb.name, **shared, "requestBody": body}}
    if not verb.tells:
        item["get"] = {"operationId": f"get_{verb.name}", **shared, "parameters": list(parameters(schemas, request, example))}
    return item


def summary(verb: Verb) -> str:
    return verb.doc.strip().partition("\n")[0]


def parameters(schemas: Mapping[str, Json], request: Json, example: Json) -> Iterator[Json]:
    """The fields of an asking verb as query parameters: one cannot send null there, one leaves the parameter out."""
    schema = schemas[request["$ref"].rpartition("/")[2]]
    for name, field in schema["properties"].items():
        kinds = [kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
        kind = {word: value for word, value in kinds[0].items() if word != "default" or value is not None}
        shown = {"example": example[name]} if name in example else {}
        yield {"name": name, "in": "query", "required": name in schema["required"], "schema": kind, **shown}


def add_rules(schema: Json) -> None:
    """Say what the record will check; the type of a nullable field is one of its alternatives."""
    for name, field in schema["properties"].items():
        for kind in field.get("anyOf", [field]):
            if kind.get("type") not in ("null", None):
                kind.update(RULES.get(name, {}))


def codes_by_status() -> dict[int, list[type[HerdbookError]]]:
    """Every error a server can answer with, by HTTP status."""
    found: defaultdict[int, list[type[HerdbookError]]] = defaultdict(list)
    for kind in error_tree(HerdbookError):
        if kind.__module__ in (errors.__name__, http_edge.__name__) and kind not in (
            HerdbookError,
            errors.CannotIsolate,
            errors.Unreachable,
        ):
            found[kind.status].append(kind)
    return dict(sorted(found.items()))


def error_tree(kind: type[HerdbookError]) -> Iterator[type[HerdbookError]]:
    """The kinds that have a code of their own; others are made while a process runs, and only wrap one of these."""
    yield kind
    for child in sorted(kind.__subclasses__(), key=lambda child: child.code):
        if "code" in vars(child):
            yield from error_tree(child)


def error_schema(by_status: Mapping[int, list[type[HerdbookError]]]) -> Json:
    codes = sorted({kind.code for kinds in by_status.values() for kind in kinds})
    return {
        "title": "Error",
        "description": "Every refusal and failure has this form; some codes add details beside these.",
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message", "retry"],
                "properties": {
                    "code": {"type": "string", "enum": codes, "description": "Stable: programs may depend on it."},
                    "message": {"type": "string", "description": "What is wrong and what to do."},
                    "retry": {
                        "type": "boolean",
                        "description": "Whether the same request, with the same ids, can succeed later.",
                    },
                },
            }
        },
    }


def error_response(kinds: list[type[HerdbookError]]) -> Json:
    return {
        "description": "\n".join(f"- `{kind.code}`: {(kind.__doc__ or '').strip()}" for kind in kinds),
        "headers": {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}},
        "content": {"application/json": {"schema": {"$ref": SCHEMA.format(name="Error")}}},
    }


def page_item(meaning: str, content_type: str) -> Json:
    schema = {"type": "object"} if content_type == "application/json" else {"type": "string"}
    answer = {"description": meaning, "content": {content_type: {"schema": schema}}}
    return {"get": {"summary": meaning, "responses": {"200": answer, "default": {"$ref": "#/components/responses/503"}}}}
