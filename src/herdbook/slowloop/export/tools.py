"""What the tools look like, learned from how they were called, where nobody recorded their schemas. In whatever order."""

from __future__ import annotations

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
        self.calls: dict[tuple[str, str], int] = {}
        self.types: dict[tuple[str, str, str], set[str]] = {}
        self.given: dict[tuple[str, str, str], int] = {}

    def see(self, entity: str, name: str, arguments: dict[str, Any]) -> None:
        """One call."""
        self.calls[entity, name] = self.calls.get((entity, name), 0) + 1
        for argument, value in arguments.items():
            place = (entity, name, argument)
            self.types.setdefault(place, set()).add(TYPES[type(value)])
            self.given[place] = self.given.get(place, 0) + 1

    def schemas(self) -> dict[str, list[Schema]]:
        """For each path its tools, by name. What every call gave is required."""
        properties: dict[tuple[str, str], Schema] = {}
        for (entity, name, argument), types in sorted(self.types.items()):
            properties.setdefault((entity, name), {})[argument] = {"type": one_or_many(types)}
        found: dict[str, list[Schema]] = {}
        for (entity, name), count in sorted(self.calls.items()):
            own = properties.get((entity, name), {})
            required = [argument for argument in own if self.given[entity, name, argument] == count]
            parameters = {"type": "object", "properties": own, "required": required}
            function = {"name": name, "description": f"{name}, as it was called in the recorded runs", "parameters": parameters}
            found.setdefault(entity, []).append({"type": "function", "function": function})
        return found


def one_or_many(types: set[str]) -> str | list[str]:
    """JSON Schema's `type`; an integer is a number."""
    kept = sorted(types - {"integer"} if "number" in types else types)
    return kept[0] if len(kept) == 1 else kept
