"""What a file says, fact by fact, with the line each comes from. Pure: text in, facts out; nothing is executed or guessed.

A fact that belongs in the repository itself (a pinned version, a rule of a linter) is flagged: an entry for it would only drift.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from herdbook.base import limits, strict_json
from herdbook.base.errors import InvalidRequest

KEY_WORDS: Final = 6
# A file of somebody else's repository may be made to cost: nothing here takes the square of a long line or a long file.
HEADING: Final = re.compile(r"(#{1,6})\s+(.*)$")
BULLET: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
BLANK: Final = (("<!-- herdbook: begin -->", "<!-- herdbook: end -->"), ("<!--", "-->"))
FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
PIN: Final = re.compile(
    r"(?i)\b[\w.-]{1,64}\s{0,8}(?:==|~=|>=|\^)\s*v?\d+(?:\.\d+)*|\b(?:pin(?:ned)?|lock(?:ed)?) (?:to|at) v?\d|"
    r"\b(?:requires?|use|needs?) (?:python|node(?:\.js)?|go|ruby|java|rust)\s{0,8}v?\d+(?:\.\d+)*"
)
LINT: Final = re.compile(
    r"(?i)\b(?:eslint|prettier|ruff|flake8|pylint|black|isort|rubocop|gofmt|clippy|stylelint|editorconfig)\b|\bline length\b|"
    r"\bindent(?:ation)?\b.{0,80}\b(?:spaces?|tabs?)\b|\b(?:tabs|spaces) (?:not|over|instead)|"
    r"\b(?:single|double) quotes\b|\btrailing commas?\b|\b(?:snake_case|camelCase|PascalCase)\b"
)
KINDS: Final = frozenset({"fact", "belief", "experience"})


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing a file says."""

    key: str
    value: Any
    line: int
    under: str = ""  # the heading it stands under, or who said it
    entity: str | None = None  # where the file itself says so
    kind: str = "fact"
    worked: bool | None = None
    why: str | None = None  # where the file itself says so

    @property
    def belongs_in_repository(self) -> str | None:
        """Why this is better kept in the repository's own files, if it is."""
        text = self.value if isinstance(self.value, str) else ""
        if PIN.search(text):
            return "a pinned version belongs in the project's own files"
        return "a rule of style belongs in the linter's configuration" if LINT.search(text) else None


def markdown(text: str) -> Iterator[Fact]:
    """Each item of a list and each paragraph, under its headings. Code, comments, tables and what we wrote are no facts."""
    under: list[tuple[int, str]] = []
    keys: dict[str, str] = {}
    for first, block in blocks(blanked(text)):
        heading = HEADING.match(block)
        if heading:
            depth = len(heading[1])
            under = [*(each for each in under if each[0] < depth), (depth, plain(heading[2].rstrip().rstrip("#")))]
            continue
        said = plain(block)
        if len(said.split()) >= 2:
            key = key_of(said)
            key = key if keys.setdefault(key, said) == said else f"{key}-{sha256(said.encode()).hexdigest()[:6]}"
            yield Fact(key, said, first, " > ".join(title for _, title in under))


def blanked(text: str) -> str:
    """Without comments and what we wrote, each line staying where it is."""
    for begin, end in BLANK:
        kept, at = [], 0
        while (start := text.find(begin, at)) >= 0 and (stop := text.find(end, start + len(begin))) >= 0:
            kept += [text[at:start], "\n" * text.count("\n", start, stop)]
            at = stop + len(end)
        text = "".join([*kept, text[at:]])
    return text


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """(first line, text) of each heading, item and paragraph."""
    held: list[str] = []
    first, fence = 0, ""
    for number, line in enumerate([*text.splitlines(), ""], 1):
        opened = FENCE.match(line)
        if fence or opened:
            fence = "" if fence and opened and opened[1].startswith(fence) else fence or (opened[1] if opened else "")
            line = ""
        item = BULLET.match(line)
        if held and (not line.strip() or item or HEADING.match(line)):
            yield first, " ".join(held)
            held = []
        if not line.strip() or line.lstrip().startswith(("|", "---", "***", "===")):
            continue
        if HEADING.match(line):
            yield number, line.strip()
            continue
        first = first if held else number
        held.append((item[1] if item else line).strip())


def plain(text: str) -> str:
    """Prose without its emphasis and links."""
    text = LINK.sub(r"\1", text)
    return " ".join(re.sub(r"(\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w))", "", text).split())


def key_of(said: str) -> str:
    """A name made of a fact's first words: the same fact in other words later on is seen to say otherwise."""
    words = re.findall(r"\w+", unicodedata.normalize("NFC", said.lower()))[:KEY_WORDS]
    return "-".join(words)[:80] or f"fact-{sha256(said.encode()).hexdigest()[:6]}"


def cursor_rules(text: str) -> Iterator[Fact]:
    """The same, behind a front matter whose globs say what the rules are about."""
    head, body, offset = "", text, 0
    if text.startswith("---\n") and "\n---" in text[4:]:
        head, _, body = text[4:].partition("\n---")
        offset = head.count("\n") + 2
    about = re.search(r"^globs:\s*(\S.*)$", head, re.MULTILINE)
    for fact in markdown(body):
        under = " > ".join(filter(None, [f"files {about[1].strip()}" if about else "", fact.under]))
        yield Fact(fact.key, fact.value, fact.line + offset, under)


def jsonl(text: str) -> Iterator[Fact]:
    """A line each: {"key", "value"} and perhaps "entity", "why", "kind", "worked"."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            row = loaded(line, f"line {number}")
            missing = [name for name in ("key", "value") if name not in row]
            if missing:
                raise InvalidRequest(f"line {number} has no {missing[0]!r}: each line is an object with `key` and `value`")
            yield row_fact(row, number, entity="entity")


def row_fact(row: Mapping[str, Any], number: int, *, entity: str) -> Fact:
    kind = row.get("kind", row.get("memory_type", "fact"))
    return Fact(
        str(row["key"])[: limits.KEY_CHARS_MAX],
        row["value"],
        number,
        entity=row.get(entity) or None,
        kind=kind if kind in KINDS else "experience",
        worked=row.get("worked") if isinstance(row.get("worked"), bool) else None,
        why=row.get("why") if isinstance(row.get("why"), str) else None,
    )


def mem0(text: str) -> Iterator[Fact]:
    """`{"results": [{"memory": ...}]}` or the list alone."""
    for number, row in enumerate(rows_of(text, "results", "memories"), 1):
        said = row.get("memory") or row.get("text") or row.get("data")
        if not isinstance(said, str) or not said.strip():
            raise InvalidRequest(f"row {number} has no `memory`: this is no export of mem0")
        who = next((str(row[name]) for name in ("agent_id", "user_id") if row.get(name)), "")
        yield Fact(key_of(said), said, number, under=f"of {who}" if who else "")


def amfs(text: str) -> Iterator[Fact]:
    """Its entries: a list, `{"entries": [...]}`, or a line each. Its confidence is its own, and is not taken over."""
    lines = text.strip().splitlines()
    many = len(lines) > 1 and lines[0].strip().startswith("{") and lines[0].strip().endswith("}")
    rows = (
        [loaded(line, f"line {number}") for number, line in enumerate(lines, 1) if line.strip()]
        if many
        else rows_of(text, "entries")
    )
    for number, row in enumerate(rows, 1):
        if not isinstance(row.get("key"), str) or "value" not in row:
            raise InvalidRequest(f"row {number} has no `key` or no `value`: this is no export of AMFS")
        made = row.get("provenance")
        who = made.get("agent_id") if isinstance(made, dict) else None
        fact = row_fact(row, number, entity="entity_path")
        yield Fact(fact.key, fact.value, number, f"of {who}" if who else "", fact.entity, fact.kind, fact.worked, fact.why)


def rows_of(text: str, *names: str) -> list[dict[str, Any]]:
    found = strict_json.loads(text)
    for name in names:
        if isinstance(found, dict) and isinstance(found.get(name), list):
            found = found[name]
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InvalidRequest(f"this is not a list of objects, nor an object with {' or '.join(f'`{name}`' for name in names)}")
    return found


def loaded(line: str, what: str) -> dict[str, Any]:
    try:
        found = strict_json.loads(line)
    except InvalidRequest as problem:
        raise InvalidRequest(f"{what}: {problem.message}") from problem
    if not isinstance(found, dict):
        raise InvalidRequest(f"{what} is not an object")
    return found


READERS: Final[Mapping[str, Callable[[str], Iterator[Fact]]]] = {
    "agents-md": markdown,
    "claude-md": markdown,
    "cursor-rules": cursor_rules,
    "gotchas": markdown,
    "mem0": mem0,
    "amfs": amfs,
    "jsonl": jsonl,
}
