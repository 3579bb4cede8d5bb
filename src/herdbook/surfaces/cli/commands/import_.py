"""Notes that are kept elsewhere, as entries: each an unproven hint with the file, line and author it comes from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from herdbook.base import files as named
from herdbook.base import limits, strict_json, text
from herdbook.base.repository import entity_of
from herdbook.surfaces.cli.importing.authors import authors_of
from herdbook.surfaces.cli.importing.facts import READERS, Fact
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.problems import Usage, code_of, refusal
from herdbook.surfaces.cli.terminal import Answer, clipped, compact

FILE_BYTES_MAX: Final = 8 * 1024 * 1024
NO_ENTRY: Final = frozenset({"too_large", "invalid_text", "invalid_value"})  # what no entry can be, and the next fact may
EXAMPLES: Final = """\
example:
  $ printf '%s\\n' '# Tests' '- The sandbox rejects the first two calls.' '- Needs ruff 1.2' > AGENTS.md
  $ herdbook import agents-md AGENTS.md --entity acme/checkout --dry-run
  $ herdbook import agents-md AGENTS.md --entity acme/checkout

What is imported is unproven until an outcome says that it held. A second time, only what is new is written. Where an entry
says otherwise already, both stay as they are, and it is listed. What belongs in the repository is listed, and left there."""


@dataclass(slots=True)
class Sorted:
    """What came of each fact."""

    written: list[Answer] = field(default_factory=list)
    known: list[Answer] = field(default_factory=list)
    contradictions: list[Answer] = field(default_factory=list)
    repository: list[Answer] = field(default_factory=list)
    refused: list[Answer] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Read a file that is kept for agents, and write what it says as unproven entries."
    parser.add_argument("form", metavar="FORM", choices=READERS, help=f"one of {', '.join(READERS)}")
    parser.add_argument("file", metavar="FILE", help="the file, or for cursor-rules a folder of them")
    parser.add_argument("--entity", metavar="PATH", help="where it goes, if the file does not say (the repository's owner/name)")
    parser.add_argument("--all", action="store_true", help="also what belongs in the repository's own files")
    parser.add_argument("--dry-run", action="store_true", help="say what would be written, write nothing")


def run(invocation: Invocation) -> int:
    args = invocation.args
    found = Sorted()
    for path in files(Path(args.file), args.form):
        entity = text.entity_path(args.entity or entity_of(str(path.parent)))
        authors = authors_of(path)
        for fact in READERS[args.form](content(path)):
            try:
                sort(invocation, found, fact, entity=fact.entity or entity, origin=origin(path, fact, authors))
            except Exception as problem:  # because the two transports have two error classes; all but an unfit fact goes on
                told = refusal(problem)
                if told is None or code_of(told) not in NO_ENTRY:
                    raise
                found.refused.append({"key": fact.key, "file": str(path), "line": fact.line, "reason": str(problem)})
    answer = {name: getattr(found, name) for name in Sorted.__slots__} | {"dry_run": args.dry_run}
    invocation.show(answer, lines(found, dry_run=args.dry_run))
    return 1 if found.refused else 0


def files(path: Path, form: str) -> list[Path]:
    """The file, or those of a folder of rules, in order."""
    if form == "cursor-rules" and path.is_dir():
        found = sorted([*path.rglob("*.mdc"), *path.rglob("*.md")])
        if not found:
            raise Usage(f"there is no .mdc file in {path}")
        return found
    return [path]


def content(path: Path) -> str:
    """Its text. The mark that some editors put before everything else is no part of the first line."""
    data = named.read(path, what="the notes to import", bytes_max=FILE_BYTES_MAX)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise Usage(f"{path} is not UTF-8: {problem.reason} at byte {problem.start}: save it as UTF-8") from problem


def origin(path: Path, fact: Fact, authors: dict[int, str]) -> str:
    """Where a fact comes from, as the reason of its entry."""
    parts = [f"imported from {path.name} line {fact.line}"]
    if fact.under:
        parts.append(f"under {fact.under!r}" if not fact.under.startswith("of ") else fact.under)
    if fact.line in authors:
        parts.append(f"by {authors[fact.line]}")
    said = ", ".join(parts)
    return f"{fact.why} ({said})" if fact.why else said


def sort(invocation: Invocation, found: Sorted, fact: Fact, *, entity: str, origin: str) -> None:
    """Write the fact, or say why not."""
    shown: Answer = {"entity": entity, "key": fact.key, "value": fact.value, "why": origin}
    reason = fact.belongs_in_repository
    if reason and not invocation.args.all:
        found.repository.append(shown | {"reason": reason})
        return
    there = current(invocation, entity, fact.key)
    if there is not None:
        same = strict_json.canonical(there["value"]) == strict_json.canonical(fact.value)
        (found.known if same else found.contradictions).append(shown | {"there": there["value"], "version": there["version"]})
        return
    if not invocation.args.dry_run:
        # The same fact of the same file is the same request, whenever and however often it is imported.
        digest = sha256(strict_json.canonical([entity, fact.key, fact.value]).encode()).hexdigest()
        invocation.ask(
            "write", {"value": fact.value}, entity=entity, key=fact.key, why=origin[: limits.WHY_CHARS_MAX], kind=fact.kind,
            worked=fact.worked, request_id=f"import-{digest[:40]}",
        )  # fmt: skip
    found.written.append(shown)


def current(invocation: Invocation, entity: str, key: str) -> Answer | None:
    """The entry as it is, or None. Looking it up here is no read of anybody's run."""
    try:
        versions: list[Any] = invocation.ask("history", entity=entity, key=key)["versions"]
    except Exception as problem:  # because the two transports have two error classes; all but a missing entry go on
        told = refusal(problem)
        if told is None or code_of(told) != "not_found":
            raise
        return None
    return versions[-1] if versions else None


def lines(found: Sorted, *, dry_run: bool) -> Iterator[str]:
    done = "would be written" if dry_run else "written, unproven"
    yield f"{len(found.written)} {done}; {len(found.known)} known already"
    for each in found.written:
        yield f"  {clipped(each['key'])} = {compact(each['value'], 90)}"
    if found.contradictions:
        yield f"{len(found.contradictions)} say otherwise than the record, and were not written:"
        for each in found.contradictions:
            here, there = compact(each["value"], 60), compact(each["there"], 60)
            yield f"  {clipped(each['key'])}: here {here}, there (v{each['version']}) {there}"
    if found.repository:
        yield f"{len(found.repository)} belong in the repository, and were not written (--all writes them too):"
        for each in found.repository:
            yield f"  {compact(each['value'], 90)}: {each['reason']}"
    if found.refused:
        yield f"{len(found.refused)} can be no entry, and were not written:"
        for each in found.refused:
            yield f"  {each['file']} line {each['line']}: {clipped(each['reason'], 120)}"
