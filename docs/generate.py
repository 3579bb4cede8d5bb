"""Fill the made parts of docs/reference from the code: commands, verbs, errors, settings, limits, metrics.

    python docs/generate.py            write them (make docs)
    python docs/generate.py --check    say which pages are out of date, and write nothing

A made part stands between `<!-- made: name -->` and `<!-- end -->`; the prose around it is written by hand. What is made comes
from the classes themselves, so that it cannot drift.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import herdbook
from herdbook.base import limits, settings
from herdbook.base.errors import HerdbookError
from herdbook.service import requests

REFERENCE = Path(__file__).parent / "reference"
PART = re.compile(r"(<!-- made: ([a-z ]+) -->)\n.*?(<!-- end -->)", re.DOTALL)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return "\n".join(map(row, [head, ("---",) * len(head), *rows])) + "\n"


def row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def comments_of(source: str) -> dict[str, str]:
    """The trailing comment of each annotated name, by name: of a module's constants, or of a class's fields."""
    text = textwrap.dedent(source)
    lines = text.splitlines()
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")[2].strip()
    return found


# --- commands ---------------------------------------------------------------------------------------------------------


def help_of(*command: str) -> str:
    plain = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1", "PYTHON_COLORS": "0", "TERM": "dumb"}
    asked = [sys.executable, "-m", "herdbook", *command, "--help"]
    answer = subprocess.run(asked, capture_output=True, text=True, env=plain, stdin=subprocess.DEVNULL, timeout=60, check=True)
    return "\n".join(line.rstrip() for line in answer.stdout.strip().splitlines())


def commands() -> list[str]:
    """The commands in the order in which `herdbook --help` names them."""
    from herdbook.__main__ import COMMANDS

    return list(COMMANDS)


def command_sections() -> str:
    sections = [f"## herdbook {name}\n\n```text\n{help_of(name)}\n```\n" for name in commands()]
    return "\n".join([f"```text\n{help_of()}\n```\n", *sections])


def exit_codes() -> str:
    from herdbook.surfaces.cli.problems import EXIT_CODES

    return table(("exit code", "meaning"), [(str(code), meaning) for code, meaning in EXIT_CODES.items()])


# --- verbs ------------------------------------------------------------------------------------------------------------


def plain_type(kind: object) -> str:
    """A field's type as a reader of JSON knows it."""
    words = {"str": "text", "int": "integer", "float": "number", "bool": "true or false", "Any": "any JSON"}
    text = kind if isinstance(kind, str) else str(kind)
    if choice := re.search(r"Literal\[(.*?)\]", text):
        return " or ".join(f"`{word[1:-1]}`" for word in choice[1].split(", "))
    text = re.sub(r"list\[(.*)\]", r"list of \1", text.replace(" | None", ""))
    return re.sub(r"\b(str|int|float|bool|Any)\b", lambda found: words[found[1]], text).replace(" | ", " or ")


def default_of(field: Any) -> str:
    if field.required:
        return "required"
    if field.default in (msgspec.NODEFAULT, msgspec.UNSET, None):
        return ""
    return f"`{msgspec.json.encode(field.default).decode()}`"


def field_table(struct: type[msgspec.Struct]) -> str:
    comments, kinds = comments_of(inspect.getsource(struct)), struct.__annotations__
    fields = msgspec.structs.fields(struct)
    rows = [(f"`{each.name}`", plain_type(kinds[each.name]), default_of(each), comments.get(each.name, "")) for each in fields]
    return table(("field", "type", "default", ""), rows) if rows else "No fields.\n"


def verb_section(verb: Any) -> str:
    method = "POST" if verb.tells else "GET or POST"
    route = f"`{method} /v1/{verb.name}`, scope `{verb.scope}`."
    return f"## {verb.name}\n\n{inspect.getdoc(verb.request)}\n\n{route}\n\n{field_table(verb.request)}"


def shared_section(struct: type[msgspec.Struct]) -> str:
    return f"### {struct.__name__}\n\n{inspect.getdoc(struct)}\n\n{field_table(struct)}"


def verb_sections() -> str:
    from herdbook.service.verbs import VERBS

    asks = ", ".join(f"[{name}](#{name})" for name, verb in VERBS.items() if not verb.tells)
    tells = ", ".join(f"[{name}](#{name})" for name, verb in VERBS.items() if verb.tells)
    lists = f"Verbs that ask: {asks}.\n\nVerbs that tell: {tells}.\n"
    shared = [shared_section(requests.Used), shared_section(requests.Link)]
    return "\n".join([lists, *map(verb_section, VERBS.values()), "## Shared forms\n", *shared])


# --- errors, settings, limits, metrics ---------------------------------------------------------------------------------


def load_everything() -> None:
    """Errors are found as subclasses, so every module that may define one has to be loaded."""
    for module in pkgutil.walk_packages(herdbook.__path__, "herdbook."):
        if ".demo" not in module.name and not module.name.startswith(("herdbook.__main__", "herdbook.testing")):
            importlib.import_module(module.name)


def error_tree(kind: type[HerdbookError] = HerdbookError) -> Iterator[type[HerdbookError]]:
    yield kind
    for child in sorted(kind.__subclasses__(), key=lambda child: child.__name__):
        yield from error_tree(child)


def errors() -> dict[str, type[HerdbookError]]:
    """Every code a caller can see, with its class; a class without a code of its own only wraps another."""
    load_everything()
    return {kind.code: kind for kind in error_tree() if "code" in vars(kind) and kind is not HerdbookError}


def message_of(kind: type[HerdbookError]) -> str:
    return (kind.__doc__ or "").strip()


def error_table() -> str:
    from herdbook.surfaces.cli.problems import exit_code

    rows = []
    for code, kind in sorted(errors().items()):
        rows.append((f"`{code}`", str(kind.status), "yes" if kind.retry else "", str(exit_code(kind())), message_of(kind)))
    return table(("code", "status", "retry", "exit", "message"), rows)


def settings_table() -> str:
    rows = [(f"`{each.env}`", f"`{each.name}`", each.default, each.meaning) for each in settings.SETTINGS]
    return table(("variable", f"in `{settings.FILE_NAME}`", "default", "meaning"), rows)


def limits_table() -> str:
    comments = comments_of(inspect.getsource(limits))
    numbers = {name: value for name, value in vars(limits).items() if name.isupper() and isinstance(value, int)}
    rows = [(name.lower().replace("_", " "), f"{value:,}", comments.get(name, "")) for name, value in numbers.items()]
    return table(("limit", "value", ""), rows)


def metrics_text() -> str:
    """What the servers expose, before anything was asked of them."""
    from herdbook.gateway.metrics import GatewayMetrics
    from herdbook.surfaces.rest.metrics import Metrics

    return Metrics().text(waiting=0) + GatewayMetrics().text(under_way=0)


def metrics_table() -> str:
    text = metrics_text()
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    rows = [(f"`{name}`", kinds[name], meaning) for name, meaning in re.findall(r"^# HELP (\w+) (.+)$", text, re.MULTILINE)]
    return table(("metric", "kind", "meaning"), rows)


# --- tools of MCP -------------------------------------------------------------------------------------------------------


def tool_sections() -> str:
    from herdbook.surfaces.mcp.tools import offered

    return "\n".join(map(tool_section, offered()))


def tool_section(offer: Any) -> str:
    needed = offer.schema.get("required", [])
    rows = [
        (f"`{name}`", form_type(form), "required" if name in needed else "", form.get("description", ""))
        for name, form in offer.properties.items()
    ]
    verb = f"Verb [{offer.verb.name}](verbs.md#{offer.verb.name}); {'changes the record' if offer.verb.tells else 'only asks'}."
    fields = table(("field", "type", "", ""), rows) if rows else "No fields.\n"
    return f"## {offer.tool.name}\n\n{offer.tool.text}\n\n{verb}\n\n{fields}"


def form_type(form: Any) -> str:
    """A form's type in a word."""
    words = {"string": "text", "boolean": "true or false", "array": "list", None: "any JSON"}
    if "enum" in form:
        return " or ".join(f"`{word}`" for word in form["enum"])
    kinds = [each.get("type", "object") for each in form["anyOf"]] if "anyOf" in form else [form.get("type")]
    return " or ".join(words.get(kind, str(kind)) for kind in kinds)


# --- pages ------------------------------------------------------------------------------------------------------------

MADE: dict[str, Callable[[], str]] = {
    "commands": command_sections,
    "exit codes": exit_codes,
    "verbs": verb_sections,
    "errors": error_table,
    "settings": settings_table,
    "limits": limits_table,
    "mcp tools": tool_sections,
    "metrics": metrics_table,
}


def filled(text: str) -> str:
    """The page with its made parts made again."""
    return PART.sub(lambda part: f"{part[1]}\n\n{MADE[part[2]]().strip()}\n\n{part[3]}", text)


def stale_pages() -> dict[Path, str]:
    """Pages that no longer say what the code says, with what they should say.

    Line breaks do not count: Pythons differ in how they wrap the usage of a command.
    """
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(REFERENCE.glob("*.md"))}
    fresh = {path: filled(text) for path, text in pages.items()}
    return {path: text for path, text in fresh.items() if text.split() != pages[path].split()}


def main(arguments: list[str]) -> int:
    only_check = "--check" in arguments
    stale = stale_pages()
    for path, text in stale.items():
        if not only_check:
            path.write_text(text, encoding="utf-8")
        print(f"docs/reference/{path.name} " + ("is out of date: run make docs" if only_check else "written"))
    return 1 if stale and only_check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
