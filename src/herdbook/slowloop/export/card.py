"""The dataset's card: what is in it, what was left out and why, and what it must not be taken for."""

from __future__ import annotations

from typing import Any, Final

REASONS: Final = {
    "contradictory": "its outcomes say both that it succeeded and that it failed",
    "duplicate": "the same row came from another run",
    "erased_subject": "its subject was erased",
    "no_actions": "no tool call was recorded: use `record_action`, a hook, or a wrapped client",
    "no_agent_message": "nothing the agent said or called is left",
    "no_counterpart": "no run of the same task, or with the same opening tool, ended the other way",
    "no_task_input": "its outcome does not say what was asked: pass `task_input` to `commit_outcome`",
    "not_a_success": "only runs that succeeded are copied",
    "pair_did_the_same": "the failed run did what the successful one did, so there is nothing to prefer",
    "revised": "its outcome was revised from success to failure, or back",
    "seal_broken": "an outcome is not what was written: herdbook doctor",
    "secret_found": "a secret or personal data was found in it",
    "unattested": "nobody outside the box vouches for its outcome",
    "unresolved": "it has no outcome",
}

SPLITTING: Final = """\
Runs of one task are in one split; the tasks that came up last are held out. `rows.jsonl` says which run each row came from,
`manifest.json` how the dataset was made, `row.schema.json` what a row looks like."""

CAUTION: Final = """\
It is what agents did and how it ended, not proof that what they did was the cause. A model trained on it imitates logged
decisions; whether it does the task better has to be measured on tasks."""


def card(manifest: dict[str, Any]) -> str:
    """Markdown."""
    choices, splits = manifest["choices"], manifest["splits"]
    where = f" under `{choices['entity']}`" if choices["entity"] else ""
    lines = [
        f"# Dataset {manifest['id']}: {choices['kind']} for {choices['target']}",
        "",
        f"From {manifest['used_runs']:,} of {manifest['runs']:,} runs{where} that had started by {manifest['until']}.",
        "",
        "| split | file | rows |",
        "| --- | --- | ---: |",
        *(f"| {name} | `{split['file']}` | {split['rows']:,} |" for name, split in splits.items()),
        "",
        SPLITTING,
        "",
        *left_out(manifest),
        *scrubbing(manifest),
        "## What it is not",
        "",
        CAUTION,
        "",
    ]
    return "\n".join(lines)


def left_out(manifest: dict[str, Any]) -> list[str]:
    rows = [f"| {reason} | {told['runs']:,} | {REASONS[reason]} |" for reason, told in manifest["left_out"].items()]
    if not rows:
        return ["Nothing was left out.", ""]
    return ["## Left out", "", "| reason | times | meaning |", "| --- | ---: | --- |", *rows, ""]


def scrubbing(manifest: dict[str, Any]) -> list[str]:
    found = manifest["scrubbed"]
    if found is None:
        return ["## Secrets and personal data", "", "**Not looked for: this dataset was exported unscrubbed.**", ""]
    told = ", ".join(f"{count:,} x {kind}" for kind, count in found.items()) or "nothing"
    return [
        "## Secrets and personal data",
        "",
        f"Found and replaced by `[REDACTED:kind]`: {told}. Names of people and postal addresses are not looked for.",
        "",
    ]
