"""What the tools look like, learned from how they were called, where nobody recorded their schemas. In whatever order."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Final

Schema = dict[str, Any]

TYPES: Final = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


class ToolsSeen:
    """The tools of each entity path, with the arguments they were given."""

    def __init__(self) -> None:
        self.forms: dict[tuple[str, str, tuple[str, ...], tuple[type, ...]], int] = {}  # of calls, as most are alike

    def see(self, entity: str, name: str, arguments: dict[str, Any]) -> None:
        """One call."""
        form = (entity, name, tuple(arguments), tuple(map(type, arguments.values())))
        self.forms[form] = self.forms.get(form, 0) + 1

    def schemas(self) -> dict[str, list[Schema]]:
        """For each path its tools, by name. What every call gave is required."""
        calls, given, seen = Counter[tuple[str, str]](), Counter[tuple[str, str, str]](), defaultdict[Any, set[str]](set)
        for (entity, name, arguments, types), count in self.forms.items():
            calls[entity, name] += count
            for argument, kind in zip(arguments, types, strict=True):
                given[entity, name, argument] += count
                seen[entity, name, argument].add(TYPES[kind])
        properties: dict[tuple[str, str], Schema] = {}
        for (entity, name, argument), kinds in sorted(seen.items()):
            properties.setdefault((entity, name), {})[argument] = {"type": one_or_many(kinds)}
        found: dict[str, list[Schema]] = {}
        for (entity, name), count in sorted(calls.items()):
            own = properties.get((entity, name), {})
            required = [argument for argument in own if given[entity, name, argument] == count]
            parameters = {"type": "object", "properties": own, "required": required}
            function = {"name": name, "description": f"{name}, as it was called in the recorded runs", "parameters": parameters}
            found.setdefault(entity, []).append({"type": "function", "function": function})
        return found


def one_or_many(types: set[str]) -> str | list[str]:
    """JSON Schema's `type`; an integer is a number."""
    kept = sorted(types - {"integer"} if "number" in types else types)
    return kept[0] if len(kept) == 1 else kept
