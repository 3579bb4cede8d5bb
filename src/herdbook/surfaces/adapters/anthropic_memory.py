"""Anthropic's memory tool over a record: each file is an entry, each change of it a version with an author and a reason.

The model sees the files it expects under /memories. What it deletes or renames is superseded, not lost. Needs the package
`anthropic`.
"""

from __future__ import annotations

from typing import Any, Final

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from herdbook.client import Client, HerdbookError

ROOT: Final = "/memories"
PAGE: Final = 1_000


class HerdbookMemoryTool(BetaAbstractMemoryTool):
    """`HerdbookMemoryTool(herdbook.open(agent="support"), entity="acme/support")`, among the tools of a tool runner."""

    def __init__(self, book: Client, *, entity: str) -> None:
        super().__init__()
        self.book, self.entity = book, entity

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        key = key_of(command.path)
        if key and (text := self.text(key)) is not None:
            lines = text.split("\n")
            first, last = command.view_range or [1, len(lines)]
            last = len(lines) if last == -1 else last
            if not 1 <= first <= max(last, first) <= len(lines):
                raise ToolError(f"Error: view_range must be within lines 1 to {len(lines)} of {command.path}")
            shown = "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines[first - 1 : last], first))
            return f"Here's the content of {command.path} with line numbers:\n{shown}"
        below = self.below(key)
        if key and not below:
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        return "\n".join([f"Files in {command.path}:", *(f"{ROOT}/{each}" for each in below)])

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        key = named(command.path)
        if self.text(key) is not None:
            raise ToolError(f"Error: File {command.path} already exists")
        self.write(key, command.file_text, why="created through the memory tool")
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        key, text = self.there(command.path)
        count = text.count(command.old_str) if command.old_str else 0
        if count != 1:
            what = "did not appear" if count == 0 else f"appears {count} times"
            raise ToolError(f"No replacement was performed, old_str {what} in {command.path}. It must appear exactly once.")
        self.write(key, text.replace(command.old_str, command.new_str), why="text replaced through the memory tool")
        return f"The memory file {command.path} has been edited."

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        key, text = self.there(command.path)
        lines = text.split("\n")
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(f"Error: Invalid insert_line {command.insert_line}: it must be from 0 to {len(lines)}.")
        fresh = [*lines[: command.insert_line], command.insert_text.removesuffix("\n"), *lines[command.insert_line :]]
        self.write(key, "\n".join(fresh), why="lines inserted through the memory tool")
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        key = key_of(command.path)
        gone = ([key] if key and self.text(key) is not None else []) or self.below(key)
        if not key:
            raise ToolError(f"Error: {ROOT} itself cannot be deleted")
        if not gone:
            raise ToolError(f"Error: The path {command.path} does not exist")
        for each in gone:
            self.write(each, None, why="deleted through the memory tool")
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        old, new = named(command.old_path), named(command.new_path)
        moved = [(old, new)] if self.text(old) is not None else [(each, new + each[len(old) :]) for each in self.below(old)]
        if not moved:
            raise ToolError(f"Error: The path {command.old_path} does not exist")
        taken = [target for _, target in moved if self.text(target) is not None]
        if taken:
            raise ToolError(f"Error: The destination {ROOT}/{taken[0]} already exists")
        for source, target in moved:
            text = self.text(source)
            self.write(target, text, why=f"renamed from {ROOT}/{source}"[:400], links=self.link(source))
            self.write(source, None, why=f"renamed to {ROOT}/{target}"[:400])
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        for key in self.below(""):
            self.write(key, None, why="cleared through the memory tool")
        return "All memory cleared"

    # --- the record ---

    def text(self, key: str) -> str | None:
        """A file's text; None where there is none, or no more."""
        try:
            value = self.book.read(self.entity, key)["value"]
        except HerdbookError as problem:
            if problem.code != "not_found":
                raise refused(problem) from problem
            return None
        return value if isinstance(value, str) else None

    def there(self, path: str) -> tuple[str, str]:
        key = named(path)
        text = self.text(key)
        if text is None:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        return key, text

    def below(self, key: str) -> list[str]:
        """The files of a folder, in order."""
        found, after = [], None
        while True:
            page = self.book.list(self.entity, after=after, limit=PAGE)
            here = [path for path in page["paths"] if path["entity"] == self.entity]
            found += [entry["key"] for path in here for entry in path["entries"]]
            after = page["next"]
            if after is None:
                break
        prefix = f"{key}/" if key else ""
        return [each for each in found if each.startswith(prefix) and self.text(each) is not None]

    def write(self, key: str, text: str | None, *, why: str, **more: Any) -> None:
        try:
            self.book.write(self.entity, key, text, why=why, **more)
        except HerdbookError as problem:
            raise refused(problem) from problem

    def link(self, key: str) -> list[dict[str, Any]]:
        return [{"rel": "derived_from", "entity": self.entity, "key": key}]


def refused(problem: HerdbookError) -> ToolError:
    """The model is told why, and that an outage is one."""
    return ToolError(f"Error: {'the record is unavailable: ' if problem.away else ''}{problem.message}")


def key_of(path: str) -> str:
    """The entry's key for a path under /memories; empty for /memories itself. A way out of it is refused."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Error: Path must start with {ROOT}, got: {path[:200]}")
    parts = [part for part in path[len(ROOT) :].split("/") if part]
    if any(part in (".", "..") for part in parts) or "%2e" in path.lower():
        raise ToolError(f"Error: Path {path[:200]} would escape {ROOT}")
    return "/".join(parts)


def named(path: str) -> str:
    key = key_of(path)
    if not key:
        raise ToolError(f"Error: {ROOT} is the folder itself: name a file in it")
    return key
