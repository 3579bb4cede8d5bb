"""The description of the service: complete, consistent in itself, and true of the server that serves it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from herdbook.base import errors, http_edge
from herdbook.base.errors import HerdbookError
from herdbook.base.version import VERSION
from herdbook.service.verbs import VERBS
from herdbook.surfaces.rest import examples, openapi
from tests.rest.serving import Server

DOCUMENT = json.loads(openapi.document())
OPERATIONS = {(path, method): operation for path, item in DOCUMENT["paths"].items() for method, operation in item.items()}


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for member in node.values():
            yield from references(member)
    elif isinstance(node, list):
        for member in node:
            yield from references(member)


def resolved(reference: str) -> Any:
    node = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        node = node[part]
    return node


def schema_of(verb: str) -> dict[str, Any]:
    body = OPERATIONS[f"/v1/{verb}", "post"]["requestBody"]["content"]["application/json"]
    found = resolved(body["schema"]["$ref"])
    assert isinstance(found, dict)
    return found


def test_it_is_served(server: Server) -> None:
    """The description could be read only by those who have the code."""
    answer = server.get("/openapi.json")
    assert DOCUMENT == answer.json
    assert ("3.1.0", VERSION) == (DOCUMENT["openapi"], DOCUMENT["info"]["version"])


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_is_described(verb: str) -> None:
    """A verb could be used only by those who read the code."""
    operation = OPERATIONS[f"/v1/{verb}", "post"]
    assert (verb, VERBS[verb].scope) == (operation["operationId"], operation["x-scope"])
    assert operation["summary"]
    assert {"200", "400", "401", "403", "404", "409", "413", "415", "500", "503", "507"} <= set(operation["responses"])
    assert VERBS[verb].tells is ((f"/v1/{verb}", "get") not in OPERATIONS)
    assert set(VERBS[verb].request.__struct_fields__) == set(schema_of(verb)["properties"])
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert VERBS[verb].answer.__name__ == resolved(answer["$ref"])["title"]


@pytest.mark.parametrize("verb", sorted(name for name, verb in VERBS.items() if not verb.tells))
def test_every_field_of_a_question_is_a_parameter(verb: str) -> None:
    """A question in an address could not say what one in a body can."""
    parameters = {each["name"]: each for each in OPERATIONS[f"/v1/{verb}", "get"]["parameters"]}
    schema = schema_of(verb)
    assert set(schema["properties"]) == set(parameters)
    assert set(schema["required"]) == {name for name, each in parameters.items() if each["required"]}
    assert {"string", "integer", "boolean"} >= {each["schema"].get("type", "string") for each in parameters.values()}


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_example_is_a_request(verb: str) -> None:
    """A reader would copy an example that is refused."""
    body = OPERATIONS[f"/v1/{verb}", "post"]["requestBody"]["content"]["application/json"]
    assert examples.REQUESTS[verb] == body["example"]
    msgspec.convert(body["example"], VERBS[verb].request)
    for name, value in body["example"].items():
        check_rules(name, value, schema_of(verb)["properties"][name])


def check_rules(name: str, value: Any, schema: dict[str, Any]) -> None:
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    for kind in kinds:
        if isinstance(value, str):
            assert kind.get("minLength", 0) <= len(value) <= kind.get("maxLength", 10**6), name
        elif isinstance(value, int | float) and not isinstance(value, bool):
            assert kind.get("minimum", value) <= value <= kind.get("maximum", value), name


def test_every_reference_leads_somewhere() -> None:
    """Generated clients would fail on a name that is not there."""
    assert [] == [reference for reference in references(DOCUMENT) if not resolved(reference)]


def test_operations_have_names_of_their_own() -> None:
    """Generated clients would have two methods of one name."""
    names = [operation["operationId"] for operation in OPERATIONS.values() if "operationId" in operation]
    assert sorted(set(names)) == sorted(names)


def test_every_error_code_is_described() -> None:
    """A client could meet a code that the description does not know."""
    codes = DOCUMENT["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"]
    kinds = [kind for module in (errors, http_edge) for kind in vars(module).values() if is_error(kind)]
    assert {kind.code for kind in kinds} - {"error", "unreachable", "cannot_isolate"} == set(codes)
    described = "".join(response["description"] for response in DOCUMENT["components"]["responses"].values())
    assert [] == [code for code in codes if f"`{code}`" not in described]


def test_refusals_of_this_process_do_not_change_it() -> None:
    """The description would depend on what the process that serves it has been through."""
    type("Forbidden", (errors.Forbidden,), {"__module__": errors.__name__})
    assert DOCUMENT == json.loads(openapi.document())


def is_error(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, HerdbookError)


def test_every_rule_is_about_a_field() -> None:
    """A limit would be said of a field that no verb has any more."""
    fields = {name for verb in VERBS.values() for name in verb.request.__struct_fields__}
    assert set(openapi.RULES) <= fields


def test_the_security_scheme_is_the_one_the_server_asks_for() -> None:
    """A generated client would not know how to send the key."""
    scheme = DOCUMENT["components"]["securitySchemes"]["key"]
    assert ("http", "bearer") == (scheme["type"], scheme["scheme"])
    assert [{"key": []}, {}] == DOCUMENT["security"]


@pytest.mark.parametrize("page", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/client.py"])
def test_every_page_is_described_and_there(server: Server, page: str) -> None:
    """A page would be described that is not there, or be there unsaid."""
    content = OPERATIONS[page, "get"]["responses"]["200"]["content"]
    answer = server.get(page)
    assert answer.status == 200
    assert [answer.headers["content-type"].partition(";")[0]] == list(content)
