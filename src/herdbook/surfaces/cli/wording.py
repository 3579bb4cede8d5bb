"""What the record says, in the words of the command line: options instead of fields, commands instead of verbs.

The record speaks to every surface alike, and its sentences name what travels: a header, a field, a verb. A sentence that is not
known here passes as it is.
"""

from __future__ import annotations

import re
from typing import Final

FORM: Final = re.compile(r"(?:\w+: )?(?P<what>.+) - at `\$\.(?P<field>\w+)(?P<inner>[^`]*)`")
BOUND: Final = re.compile(r"Expected `\w+` (?P<sign>[<>]=) (?P<number>-?\d+)")
KINDS: Final = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list"}
POSITIONAL: Final = frozenset({"entity", "key", "value", "query", "tool", "type", "old", "new", "ref", "box"})

SAID: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"^[Tt]his needs a key: .*"), "this server needs a key: set HERDBOOK_KEY"),
    (re.compile(r"name (it|what was used) as \{entity, key, version\}"), r"name \1 as ENTITY#KEY"),
    (re.compile(r"( does not hold a seal key) \((?:'[\w-]+' codec|[^)]*fromhex).*\): "), r"\1: "),
    (re.compile(r"the answer to commit_outcome names its ref"), "herdbook outcome prints its ref, brief the name of its run"),
    (re.compile(r"write it with kind='experience'"), "write it with --kind experience"),
    (re.compile(r"^(tokens|limit) must be between"), r"--\1 must be between"),
    (re.compile(r"`after` is not the `next` of a page"), "--after is not the one that a page ended with"),
    (re.compile(r"use `list`"), "use `herdbook ls`"),
)


def for_people(message: str) -> str:
    """The message as whoever typed a command understands it."""
    form = FORM.fullmatch(message)
    if form:
        return of_form(form)
    for pattern, replacement in SAID:
        message = pattern.sub(replacement, message, count=1)
    return message


def of_form(form: re.Match[str]) -> str:
    """A field that has not the documented form."""
    bound = BOUND.fullmatch(form["what"])
    inner = re.sub(r"\[\.*\d*\]", "", form["inner"]).strip(".")
    named = f"{inner} in {option(form['field'])}" if inner else option(form["field"])
    if bound is None:
        what = re.sub(r"`(\w+)`", lambda kind: KINDS.get(kind[1], kind[1]), form["what"])
        return f"{named}: {what[:1].lower()}{what[1:]}"
    return f"{named} must be {bound['number']} or {'more' if bound['sign'] == '>=' else 'less'}"


def option(field: str) -> str:
    return field.upper() if field in POSITIONAL else f"--{field.replace('_', '-')}"
