"""Secrets out of text that is about to be kept: commands, their output, what a hook was told. Pure: no I/O, no clock.

It takes out the values of variables whose names say that they hold a credential, and what has the shape of one. It errs on the
side of taking out too much, and says how much it took; it promises nothing about a secret that looks like an ordinary word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

MARK: Final = "[redacted]"
VALUE_CHARS_MIN: Final = 6  # shorter values are words of any log: "1", "main", "true"
NAMED: Final = re.compile(
    r"(?i)secret|passw|passphrase|token|credential|api_?key|private_?key|access_?key|auth|dsn|connection_?string|cookie|signature"
    r"|(?:^|_)(?:key|pass|pwd|pat|sas)(?:_|$)"
)
# What a credential is assigned to, looked at only where a name begins, and once: whoever writes the text may want it to cost.
ASSIGNED: Final = (
    r"(?<![\w.-])(?=[\w.-]*?"
    r"(?:secret|passw(?:or)?d|passphrase|pwd|token(?!s\b)|credential|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key))"
)
SHAPES: Final = tuple(
    re.compile(shape)
    for shape in (
        r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,})",
        r"\b(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}\b",
        r"\bxox[a-z]-[\w-]{10,}|\bhttps://hooks\.slack\.com/\S+",
        r"\b(?:sk|pk|rk)[-_](?:live|test|ant|proj|or|svcacct|admin)[-_][\w-]{8,}|\bsk-[A-Za-z0-9]{16,}",
        r"\bhf_[A-Za-z0-9]{30,}|\be2b_[0-9a-f]{40}\b|\bdapi[0-9a-f]{32}\b|\bdo[opr]_v1_[0-9a-f]{64}\b",
        r"\bAIza[\w-]{30,}|\bya29\.[\w-]{16,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{50,}|\bSG\.[\w-]{16,}\.[\w-]{16,}",
        r"\beyJ[\w-]{8,1024}\.[\w-]{4,}(?:\.[\w-]*)?",
        r"(?i)(?<=\bauthorization: )[^\r\n]+|(?<=\bbearer )[\w.~+/=-]{8,}|(?<=\bbasic )[\w+/=-]{8,}",
        r"(?<=://)[^\s/:@]*:[^\s/@]+(?=@)",
    )
)
ASSIGNMENT: Final = re.compile(rf"(?i)({ASSIGNED}[\w.-]++[\"']?\s{{0,3}}(?:=>|:=|[=:])\s{{0,3}}[\"']?)([^\s\"',;]{{4,}})")
OPTION: Final = re.compile(rf"(?i)({ASSIGNED}-[\w.-]++\s+)([^\s\"',;-][^\s\"',;]{{3,}})")
ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


class Redacted(NamedTuple):
    """A text without its secrets, and how many there were."""

    text: str
    taken: int


def redacted(text: str, environ: Mapping[str, str] | None = None) -> Redacted:
    """The text without secrets: those in the environment by value, the others by shape."""
    count = 0
    for value in secrets_of(environ or {}):
        count += text.count(value)
        text = text.replace(value, MARK)
    for shape in SHAPES:
        text, found = shape.subn(MARK, text)
        count += found
    for assignment in (ASSIGNMENT, OPTION):
        before = text.count(MARK)
        text = assignment.sub(lambda match: match[1] + MARK, text)
        count += text.count(MARK) - before
    return Redacted(text, count)


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """What variables with telling names hold, longest first, so that no part of one stays behind."""
    held = {value for name, value in environ.items() if len(value) >= VALUE_CHARS_MIN and named_secret(name)}
    return sorted(held, key=lambda value: (-len(value), value))


def named_secret(name: str) -> bool:
    """Whether a variable of this name is likely to hold a credential. A path is none: SSH_AUTH_SOCK names a socket."""
    return bool(NAMED.search(name)) and not name.upper().endswith(("_SOCK", "_FILE", "_PATH", "_DIR", "_ASKPASS"))


def looks_secret(name: str, value: str) -> bool:
    """Whether this variable must not be written down."""
    return named_secret(name) or redacted(f"{name}={value}").taken > 0


def plain(data: bytes | str) -> str:
    """Program output as prose: no colours, no cursor movements, no control characters, no broken UTF-8."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data.encode("utf-8", "replace").decode()
    return CONTROLS.sub("", ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


class Keepable(NamedTuple):
    """A value fit to be kept, how many secrets it took to make it so, and whether it was cut."""

    value: Any
    taken: int
    cut: bool


def keepable(value: Any, *, chars_max: int, environ: Mapping[str, str] | None = None) -> Keepable:
    """What a tool was given or gave back: without secrets, and no longer than is of use; what was cut says so, as text."""
    if value is None:
        return Keepable(None, 0, cut=False)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    safe, taken = redacted(plain(text), environ)
    if len(safe) > chars_max:
        return Keepable(f"{safe[:chars_max]}… ({len(safe) - chars_max} characters more)", taken, cut=True)
    if isinstance(value, str):
        return Keepable(safe, taken, cut=False)
    try:
        return Keepable(json.loads(safe), taken, cut=False)
    except ValueError:  # a secret was taken out of the middle of a number or an escape
        return Keepable(safe, taken, cut=False)
