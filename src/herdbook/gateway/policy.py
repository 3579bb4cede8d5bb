"""What a box may ask of a connection: rules of method and path pattern. Nothing is allowed unless a rule says so; block wins.

In a pattern `*` stands for any text within one part of the path, and the part `**` for any number of parts. An allowing rule is
matched exactly. A blocking one is matched in every spelling that some server takes for the same: any case, with or without a
slash at the end, with or without `;parameters`. Pure: no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from herdbook.base.errors import Forbidden, InvalidRequest
from herdbook.gateway.paths import CanonicalPath, canonical

# Not TRACE, whose answer is the request with its credential, and not CONNECT, which is another kind of proxy.
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PARAMETERS: Final = re.compile(r";[^/]*")
RULE: Final = re.compile(r"(?P<methods>\*|[A-Z]+(?:,[A-Z]+)*)\s+(?P<pattern>/\S*)")


class NotGranted(Forbidden):
    """This box may not use that connection: grant it with `herdbook gateway grant`."""

    code = "not_granted"


class NotAllowed(Forbidden):
    """No rule of this connection allows that call: allow it with `herdbook gateway rules`."""

    code = "not_allowed"


@dataclass(frozen=True, slots=True)
class Rule:
    """`GET,POST /repos/acme/**`, allowing or blocking."""

    methods: tuple[str, ...]
    pattern: str
    blocks: bool = False

    def __str__(self) -> str:
        methods = "*" if self.methods == METHODS else ",".join(self.methods)
        return f"{'block ' if self.blocks else ''}{methods} {self.pattern}"


def rule(text: str, *, blocks: bool = False) -> Rule:
    """A rule as people write it. Raises InvalidRequest with what is wrong."""
    found = RULE.fullmatch(text.strip())
    if found is None:
        raise InvalidRequest(f"{text!r} is not a rule: write METHOD[,METHOD] /pattern, such as 'GET /repos/acme/**'")
    methods = METHODS if found["methods"] == "*" else tuple(dict.fromkeys(found["methods"].split(",")))
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise InvalidRequest(f"a rule cannot name the method {unknown[0]}: it may name {', '.join(METHODS)}")
    pattern = canonical(found["pattern"].encode()).text
    if any("**" in part and part != "**" for part in pattern.split("/")):
        raise InvalidRequest(f"{text!r} is not a rule: `**` is a part of its own, as in /repos/**/merge")
    return Rule(methods, pattern, blocks)


def decide(rules: Iterable[Rule], method: str, path: CanonicalPath) -> Rule:
    """The rule that allows this call. Raises NotAllowed naming what stands against it."""
    allowing: Rule | None = None
    for each in rules:
        if each.blocks and blocks(each, method, path.text):
            raise NotAllowed(f"the rule `{each}` stands against {method} {path.text}: ask whoever set it", rule=str(each))
        if allowing is None and not each.blocks and allows(each, method, path.text):
            allowing = each
    if allowing is None:
        raise NotAllowed(f"no rule of this connection allows {method} {path.text}: allow it with `herdbook gateway rules`")
    return allowing


def allows(each: Rule, method: str, text: str) -> bool:
    return asked_as(method) & set(each.methods) != set() and matches(parts_of(each.pattern), text.split("/"))


def blocks(each: Rule, method: str, text: str) -> bool:
    if not asked_as(method) & set(each.methods):
        return False
    pattern = parts_of(each.pattern.casefold())
    return any(matches(pattern, spelling.split("/")) for spelling in spellings(text))


def asked_as(method: str) -> set[str]:
    """Who may GET may also HEAD, and a HEAD is blocked where a GET is."""
    return {"GET", "HEAD"} if method == "HEAD" else {method}


def spellings(text: str) -> Sequence[str]:
    """This path in every spelling that some server takes for the same place."""
    folded = text.casefold()
    found = {folded, PARAMETERS.sub("", folded)}
    return [*found, *(each.rstrip("/") or "/" for each in found), *(f"{each.rstrip('/')}/" for each in found)]


@lru_cache(maxsize=4_096)
def parts_of(pattern: str) -> tuple[tuple[str, ...] | None, ...]:
    """Each part as the texts between its stars, or None for `**`."""
    return tuple(None if part == "**" else tuple(part.split("*")) for part in pattern.split("/"))


def matches(pattern: Sequence[tuple[str, ...] | None], parts: Sequence[str]) -> bool:
    """Part by part. After a mismatch only the last `**` takes one part more, so it costs at most parts times parts."""
    at = where = 0
    retry: tuple[int, int] | None = None
    while where < len(parts):
        if at < len(pattern) and pattern[at] is None:
            at, retry = at + 1, (at + 1, where)
        elif at < len(pattern) and part_matches(pattern[at] or ("",), parts[where]):
            at, where = at + 1, where + 1
        elif retry is not None:
            at, where = retry[0], retry[1] + 1
            retry = (at, where)
        else:
            return False
    return all(each is None for each in pattern[at:])


def part_matches(texts: tuple[str, ...], part: str) -> bool:
    """The texts between the stars, in their order; each is taken where it first occurs."""
    if len(texts) == 1:
        return texts[0] == part
    first, *middle, last = texts
    if len(first) + len(last) > len(part) or not part.startswith(first) or not part.endswith(last):
        return False
    at, end = len(first), len(part) - len(last)
    for text in middle:
        found = part.find(text, at, end)
        if found < 0:
            return False
        at = found + len(text)
    return True
