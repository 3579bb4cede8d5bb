"""A draft pull request as data: from which fix, on which branch, and a body with what was read, by version, and the signals."""

from __future__ import annotations

import re
from typing import Any

from herdbook.watch.findings import KnownClass

BODY_CHARS_MAX = 30_000


def draft(
    finding: dict[str, Any],
    verdict: dict[str, Any],
    matched: KnownClass,
    *,
    job: dict[str, Any],
    repository: str,
    base: str,
    reads: list[str],
    changed: list[str],
) -> dict[str, Any]:
    """What the errand is asked to open: the agent's files, else the class's recorded fix, else a revert; the body says which."""
    body = job["body"]
    shas = (body.get("repositories") or {}).get(repository) or {}
    fix = (matched.fix or {}).get("files") or {}
    proposed = {path: content for path, content in finding["files"].items() if may_be_proposed(path)}
    if proposed:
        how, files, revert = "proposed by the agent", proposed, ""
    elif fix:
        how, files, revert = f"the fix on record with {matched.key}", fix, ""
    else:
        how, files, revert = "a revert of this release's files", {}, shas.get("before", "")
    return {
        "repository": repository,
        "base": base,
        "branch": f"herdbook/{slug(job['key'])}-{slug(finding['service'])}",
        "title": f"Draft: {matched.key} again in {job['key']}",
        "body": text(finding, verdict, job["key"], how=how, reads=reads),
        "files": files,
        "revert_to": revert,
        "revert_paths": changed,
        "how": how,
    }


def text(finding: dict[str, Any], verdict: dict[str, Any], key: str, *, how: str, reads: list[str]) -> str:
    signals = finding["signals"]
    parts = [
        f"`{key}` shows **{finding['label']}** on {finding['service']}. This change is {how}.",
        "Nobody has reviewed it, and nothing but a person merges it.",
        "### Why a draft was allowed",
        verdict["reason"],
        *(f"- entry `{each}`" for each in verdict["entries"]),
        *(f"- outcome `{each}`" for each in verdict["outcomes"]),
        "### Signals",
        *(f"- {each}" for each in signals.get("states", [])),
        *(fenced(each) for each in signals.get("lines", [])),
        "### What was read, by version",
        *(f"- `{each}`" for each in reads),
    ]
    if finding["diagnosis"]:
        parts += ["### The agent's words", fenced(finding["diagnosis"])]
    return "\n\n".join(parts)[:BODY_CHARS_MAX]


def fenced(text: str) -> str:
    """Words of a log, or of an agent that read it: they end no fence, mention nobody, close nothing and link nowhere."""
    return "~~~~\n" + text.replace("~~~~", "~ ~ ~ ~") + "\n~~~~"


def may_be_proposed(path: str) -> bool:
    """A file in the repository, and none of those that say what the repository's own machinery runs with its secrets."""
    parts = path.split("/")
    return path.isprintable() and not {"", ".", "..", ".git", ".github"} & {part.lower() for part in parts}


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60]
