"""Changing files that belong to other programs, so that they can be put back to the byte.

What a file was before its first change is kept in the herdbook home. Where somebody has changed it since, only what is ours is
taken out again, and that is said.
"""

from __future__ import annotations

import base64
import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from herdbook.base import current_run, files
from herdbook.base.errors import HerdbookError, InvalidRequest, NotFound
from herdbook.base.whole_file import write_whole

FILE_BYTES_MAX: Final = 16 * 1024 * 1024  # a tool keeps the history of a user in its settings
OURS: Final = "herdbook"  # what is called so in another program's file is ours
BEGIN, END = "# herdbook: begin", "# herdbook: end"
BLOCK: Final = re.compile(rf"(?<!\n)\n*{BEGIN}\n.*?{END}\n?", re.DOTALL)
INDENT: Final = re.compile(r"^\{\r?\n([ \t]+)\S")

Change = Callable[[str], str]  # a file's text -> its text with what is ours in it; idempotent


@dataclass(frozen=True, slots=True)
class Edit:
    """One file of another program, with what is ours put in and taken out again."""

    path: Path
    put: Change
    take: Change
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Done:
    """What happened to a file, for people."""

    path: Path
    what: str
    diff: str


class Kept:
    """What files were before we changed them."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "connected"

    def place(self, path: Path) -> Path:
        return self.folder / f"{sha256(os.path.realpath(path).encode()).hexdigest()[:20]}.json"

    def before(self, path: Path) -> tuple[bytes | None, str] | None:
        """(the bytes it had, or None where it was not there; the digest it had after our change)."""
        found = current_run.load(self.place(path))
        if "after" not in found:
            return None
        return (None if found["before"] is None else base64.b64decode(found["before"])), str(found["after"])

    def keep(self, path: Path, before: bytes | None, after: bytes) -> None:
        encoded = None if before is None else base64.b64encode(before).decode()
        said = {"path": str(path), "before": encoded, "after": digest(after)}
        current_run.save(self.place(path), said)

    def drop(self, path: Path) -> None:
        self.place(path).unlink(missing_ok=True)


def put(edit: Edit, kept: Kept, *, dry_run: bool) -> Done:
    """Put ours in; a second time changes nothing."""
    now = read(edit.path)
    earlier = kept.before(edit.path)
    untouched = earlier is not None and now is not None and digest(now) == earlier[1]
    origin = earlier[0] if untouched and earlier is not None else now
    text = decoded(origin, edit.path)
    fresh = edit.put(text if untouched else edit.take(text) if earlier else text).encode()
    if fresh == now:
        return Done(edit.path, "as it should be", "")
    if not dry_run:
        kept.keep(edit.path, origin, fresh)
        write_whole(edit.path, fresh, mode=edit.mode)
    return Done(edit.path, "changed" if now is not None else "made", difference(edit.path, now, fresh))


def take(edit: Edit, kept: Kept, *, dry_run: bool) -> Done:
    """Take ours out: the file as it was, or where somebody has changed it since, without what is ours."""
    now, earlier = read(edit.path), kept.before(edit.path)
    if now is None:
        fresh: bytes | None = None
    elif earlier is not None and digest(now) == earlier[1]:
        fresh = earlier[0]
    else:
        fresh = edit.take(decoded(now, edit.path)).encode()
    said = "not there" if now is None else "had nothing of ours" if fresh == now else "put back"
    if not dry_run:
        if fresh is None:
            edit.path.unlink(missing_ok=True)
            with suppress(OSError):  # the folder is somebody's who has more in it
                edit.path.parent.rmdir()
        elif fresh != now:
            write_whole(edit.path, fresh, mode=edit.mode)
        kept.drop(edit.path)
    if earlier is not None and now is not None and digest(now) != earlier[1] and fresh != now:
        said = "changed since: only what is ours was taken out"
    return Done(edit.path, said, difference(edit.path, now, fresh))


def read(path: Path) -> bytes | None:
    try:
        return files.read(path, what="the agent's file", bytes_max=FILE_BYTES_MAX)
    except NotFound:
        return None


def decoded(data: bytes | None, path: Path) -> str:
    try:
        return "" if data is None else data.decode()
    except UnicodeDecodeError as problem:
        raise InvalidRequest(f"{path} is not UTF-8: change it by hand (herdbook connect AGENT --dry-run shows how)") from problem


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def difference(path: Path, now: bytes | None, fresh: bytes | None) -> str:
    old, new = ((data or b"").decode(errors="replace").splitlines() for data in (now, fresh))
    return "\n".join(difflib.unified_diff(old, new, f"{path} now", f"{path} then", lineterm=""))


# --- JSON ---


def json_edit(path: Path, ours: Mapping[str, Any]) -> Edit:
    """Ours merged into a file of JSON. Lists in it are shared: ours are added to theirs, and known by their command."""
    return Edit(path, lambda text: dumped(text, merged(parsed(text, path), ours)), lambda text: without(text, path, ours))


def parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(text) if text.strip() else {}
    except ValueError as problem:
        raise Unreadable(f"{path} is not plain JSON ({problem}), perhaps for its comments: add what is ours by hand") from problem
    if not isinstance(found, dict):
        raise Unreadable(f"{path} holds no JSON object: add what is ours by hand")
    return found


class Unreadable(HerdbookError):
    """A file of another program cannot be changed safely: change it by hand, as `--dry-run` shows on an empty one."""

    code, status = "unreadable", 400


def merged(into: Any, ours: Any) -> Any:
    """Ours in theirs; where both have an object or a list, both stay."""
    if isinstance(into, dict) and isinstance(ours, Mapping):
        both = {name: merged(into[name], value) for name, value in ours.items() if name in into and name != OURS}
        return {**into, **ours, **both}
    if isinstance(into, list) and isinstance(ours, list):
        return [*[each for each in into if not is_ours(each)], *ours]
    return ours if isinstance(ours, dict | list) else into


def is_ours(value: Any) -> bool:
    """Whether a hook is one of ours: by the command it runs."""
    return " hook " in (text := json.dumps(value)) and "herdbook" in text


def without(text: str, path: Path, ours: Mapping[str, Any]) -> str:
    """The text without what is ours."""
    if not text.strip():
        return text
    found = parsed(text, path)
    left = pruned(found, ours)
    return text if left == found else dumped(text, left)


def pruned(theirs: Any, ours: Any) -> Any:
    """Theirs without ours, and without what would be left empty by it."""
    if isinstance(theirs, dict) and isinstance(ours, Mapping):
        left = {}
        for name, value in theirs.items():
            kept = pruned(value, ours[name]) if name in ours else value
            emptied = kept in ({}, []) and value != kept
            if not (name in ours and (name == OURS or emptied)):
                left[name] = kept
        return left
    if isinstance(theirs, list) and isinstance(ours, list):
        return [each for each in theirs if not is_ours(each)]
    return theirs


def dumped(text: str, value: Any) -> str:
    """In the indentation the file has."""
    found = INDENT.match(text)
    indent: str | int = found[1] if found else 2
    return json.dumps(value, ensure_ascii=False, indent=indent) + ("\n" if text.endswith("\n") or not text else "")


# --- texts ---


def block_edit(path: Path, body: str, *, opening: str = "", mode: int = 0o644, taken: str | None = None) -> Edit:
    """Ours as a block between two comments at the end of a text; `taken` is what may not be in it already, outside."""

    def put_block(text: str) -> str:
        bare = take_block(text)
        if taken is not None and taken in bare:
            raise Unreadable(f"{path} has {taken} already: take it out, or leave it")
        lead = bare if bare.endswith("\n") or not bare else bare + "\n"
        return f"{lead or opening}{BEGIN}\n{body}{END}\n"

    def take_block(text: str) -> str:
        bare = BLOCK.sub("\n", text)
        return "" if bare.strip() in ("", opening.strip()) else text if bare == text else bare.rstrip("\n") + "\n"

    return Edit(path, put_block, take_block, mode)
