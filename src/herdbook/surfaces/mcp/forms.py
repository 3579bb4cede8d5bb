"""What a caller sent, as the verb's form wants it.

Models send lists, objects and numbers as text: that is read by the form, and what was understood is said in the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from herdbook.base import strict_json
from herdbook.base.errors import InvalidRequest
from herdbook.surfaces.mcp.tools import ALIASES, Offered, Schema

NUMBER: Final = re.compile(r"-?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,4})?")
WORDS: Final = {"true": True, "false": False}


def understood(offer: Offered, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """(the verb's fields, what was understood other than it was sent)."""
    fields: dict[str, Any] = dict(offer.tool.fixed)
    notes: list[str] = []
    for name, value in arguments.items():
        field = named(name, offer, arguments)
        if field != name:
            notes.append(f"understood `{name}` as `{field}`")
        if field in offer.tool.fixed and value != offer.tool.fixed[field]:
            raise InvalidRequest(f"{offer.tool.name} decides `{field}` itself: leave it out")
        form = offer.properties.get(field, {})
        if value is None and field not in offer.schema.get("required", ()):
            continue
        taken = read(value, form, offer.schema.get("$defs", {}))
        if taken is not value:
            notes.append(f"understood `{field}`, sent as {kind_of(value)}, as {kind_of(taken)}: {short(taken)}")
        fields[field] = taken
    missing = [
        name for name in offer.schema.get("required", ()) if name not in fields and "default" not in offer.properties[name]
    ]
    if missing:
        raise InvalidRequest(f"{offer.tool.name} needs {', '.join(f'`{name}`' for name in missing)}: send it")
    return fields, notes


def named(name: str, offer: Offered, arguments: Mapping[str, Any]) -> str:
    """The field meant by a name that the form does not have."""
    meant = ALIASES.get(name, name)
    return meant if name not in offer.properties and meant in offer.properties and meant not in arguments else name


def read(value: Any, form: Schema, shared: Schema) -> Any:
    """The value as the form wants it, or as it was sent where the form wants text or it reads as nothing better."""
    kinds = kinds_of(form, shared)
    if isinstance(value, float) and "integer" in kinds and value.is_integer():
        return int(value)
    if isinstance(value, list) and "array" in kinds:
        items = [read(each, form_of(form, "array").get("items", {}), shared) for each in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if not isinstance(value, str):
        return value
    if value[:1] in ("{", "[") and (not kinds or kinds & {"array", "object"}):
        found = parsed(value)
        if isinstance(found, dict | list) and (not kinds or kind_of(found) in ("an object", "a list")):
            return found
    if "string" in kinds or not kinds:
        return value
    if "array" in kinds:
        return [value]
    return scalar(value.strip(), kinds)


def scalar(text: str, kinds: set[str]) -> Any:
    """A number or a truth value out of text."""
    if "boolean" in kinds and text.lower() in WORDS:
        return WORDS[text.lower()]
    if kinds & {"number", "integer"} and NUMBER.fullmatch(text):
        return parsed(text) if "." in text or "e" in text.lower() or "number" not in kinds else float(text)
    return text


def parsed(text: str) -> Any:
    """The JSON in a text, or the text: not being JSON is no fault, but JSON that no store can keep is."""
    try:
        return strict_json.loads(text)
    except InvalidRequest as problem:
        if type(problem) is InvalidRequest:
            return text
        raise


def kinds_of(form: Schema, shared: Schema) -> set[str]:
    """The JSON types a form takes; nothing where it takes any."""
    if "$ref" in form:
        return kinds_of(shared[form["$ref"].rpartition("/")[2]], shared)
    if "anyOf" in form:
        return {kind for choice in form["anyOf"] for kind in kinds_of(choice, shared)}
    if "enum" in form:
        return {"string"}
    return {form["type"]} if "type" in form else set()


def form_of(form: Schema, kind: str) -> Schema:
    choices = form.get("anyOf", [form])
    return next((choice for choice in choices if choice.get("type") == kind), form)


def kind_of(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"
