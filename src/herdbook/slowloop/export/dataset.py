"""A dataset in a folder: rows by split, which runs each row came from, a manifest, and a card. All of it or nothing.

The folder appears under its name only when it is complete. The same snapshot with the same choices gives the same bytes.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from herdbook.base.errors import Conflict
from herdbook.base.key_file import sync_folder
from herdbook.base.version import VERSION
from herdbook.slowloop.export import card, collect, companions, examples, splits, targets
from herdbook.slowloop.export.collect import AskPage, Collected
from herdbook.slowloop.export.drafts import Draft
from herdbook.slowloop.export.examples import Example
from herdbook.slowloop.export.files import Rows, rows_file
from herdbook.slowloop.export.scrub import Scrubber

SPLITS: Final = ("train", "holdout")
Split = str
Found = tuple[Split, Example]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What was asked for."""

    kind: str = "sft"  # one of examples.KINDS
    target: str = "trl"  # one of targets.TARGETS
    entity: str | None = None
    attested_only: bool = False
    drop_secrets: bool = False  # leave a run out in which something was found, instead of blotting it out
    unscrubbed: bool = False
    holdout: float = 0.1  # share of the runs


class MappedRow(msgspec.Struct):
    """A line of rows.jsonl, as far as it is asked."""

    runs: list[str]


Keep = Callable[[str, dict[str, Any], Iterator[str], str], None]  # name, manifest, the runs it has rows from, card


@dataclass(frozen=True, slots=True)
class Exported:
    """Where the dataset is, and its manifest."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def rows(self) -> int:
        return sum(split["rows"] for split in self.manifest["splits"].values())


def export(
    ask: AskPage,
    folder: Path,
    choices: Choices,
    *,
    keep: Keep | None = None,
    progress: Callable[[int], None] = lambda runs: None,
) -> Exported:
    """Write the dataset, and give its manifest; a dataset without a row is only its manifest, which says why, and no folder.

    `keep` has the record told of it before the folder has its name: no dataset is used that nobody can find again.
    """
    write = targets.writer(choices.target, choices.kind)
    refuse_over(folder)
    scrubber = None if choices.unscrubbed else Scrubber()
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        with Collected(made) as collected:
            snapshot = gather(ask, collected, choices, scrubber, progress=progress)
            manifest = written(made, collected, choices, write) | snapshot
        manifest["scrubbed"] = None if scrubber is None else dict(sorted(scrubber.found.items()))
        finish(made, manifest, choices)
        if sum(split["rows"] for split in manifest["splits"].values()):
            sync(made)
            if keep is not None:
                keep(folder.name, manifest, runs_of(made / "rows.jsonl"), card.card(manifest))
            made.chmod(0o755)
            refuse_over(folder)
            os.rename(made, folder)
            sync_folder(folder.parent)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return Exported(folder, manifest)


def sync(folder: Path) -> None:
    """After a power cut the record knows of no dataset that is half there."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(folder)


def refuse_over(folder: Path) -> None:
    if folder.exists():
        raise Conflict(f"{folder} is there already: name a new folder, or remove that one")


def runs_of(mapping: Path) -> Iterator[str]:
    """The runs that rows came from; one that gave several rows comes with each of them, mostly in a row."""
    decode = msgspec.json.Decoder(type=MappedRow).decode
    last: list[str] = []
    with mapping.open("rb") as lines:
        for line in lines:
            runs = decode(line).runs
            if runs != last:
                yield from runs
            last = runs


def gather(
    ask: AskPage,
    collected: Collected,
    choices: Choices,
    scrubber: Scrubber | None,
    *,
    progress: Callable[[int], None],
) -> dict[str, Any]:
    """Every run of the snapshot into `collected`; which snapshot that was."""
    snapshot: dict[str, Any] = {}
    for page in collect.pages(ask, collect.page_fields(choices.entity)):
        snapshot = {"snapshot": page["snapshot"], "until": page["until"]}
        collect.collect(
            page["runs"],
            collected,
            scrubber=scrubber,
            attested_only=choices.attested_only,
            drop_secrets=choices.drop_secrets,
        )
        progress(collected.runs)
    return snapshot


def written(folder: Path, collected: Collected, choices: Choices, write: targets.Writer) -> dict[str, Any]:
    """The rows, each once, and what the manifest says of them."""
    tools, seen, notes = collected.tools.schemas(), set[bytes](), Counter[str]()
    files = {split: rows_file(folder, split, choices.target, choices.kind) for split in SPLITS}
    encode = msgspec.json.Encoder(order="deterministic").encode
    with (folder / "rows.jsonl").open("wb") as mapping:
        for split, example in found(collected, choices):
            row = write(example, example.tools if example.tools is not None else tools.get(example.entity, []))
            encoded = encode(row)
            digest = blake2b(encoded, digest_size=8).digest()
            if digest in seen:
                collected.left_out.add("duplicate", example.sources[0])
                continue
            seen.add(digest)
            mapping.write(encode(place_of(example, split, files[split].count)) + b"\n")
            files[split].add(row, encoded)
            if example.note:
                notes[example.note] += 1
    if choices.kind == "reward":
        write_rewards(folder / "rewards.jsonl", collected)
    told = {split: closed(files[split]) for split in SPLITS}
    return {
        "runs": collected.runs,
        "used_runs": len(collected),
        "failed_calls": collected.failed_calls,  # of successful runs: row by row nobody is taught to repeat them
        "splits": told,
        "pairs": dict(sorted(notes.items())),
        "left_out": collected.left_out.as_dict(),
    }


def place_of(example: Example, split: Split, row: int) -> dict[str, Any]:
    """Which row this is, and what it is of."""
    return {"split": split, "row": row, "entity": example.entity, "task": example.task, "runs": example.sources}


def write_rewards(path: Path, collected: Collected) -> None:
    """A number for each run, for a regression head or a bandit: no trainer of pairs reads it."""
    encode = msgspec.json.Encoder(order="deterministic").encode
    with path.open("wb") as file:
        for draft in collected.all():
            told = {
                "run": draft.session,
                "ref": draft.ref,
                "entity": draft.entity,
                "type": draft.type,
                "attested": draft.attested,
            }
            file.write(encode(told | {"reward": examples.REWARDS[draft.type]}) + b"\n")


def closed(rows: Rows) -> dict[str, Any]:
    path = rows.close()
    return {"file": path.name, "rows": rows.count, "sha256": digest_of(path)}


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        state = sha256()
        while piece := file.read(1 << 20):
            state.update(piece)
    return state.hexdigest()


def found(collected: Collected, choices: Choices) -> Iterator[Found]:
    """Every example with its split."""
    late = splits.held_out(collected.tasks, collected.times, share=choices.holdout)

    def split(number: int) -> Split:
        return "holdout" if collected.tasks[number] in late else "train"

    if choices.kind in ("dpo", "reward"):
        yield from paired(collected, split)
        return
    for number, draft in enumerate(collected.all()):
        made = list(of_run(draft, choices))
        if not made:
            collected.left_out.add("not_a_success" if not draft.success else "no_agent_message", draft.session)
        yield from ((split(number), example) for example in made)


def of_run(draft: Draft, choices: Choices) -> Iterator[Example]:
    """What one run alone teaches."""
    if choices.kind == "kto":
        yield from filter(None, [examples.whole(draft)])
    elif not draft.success:
        return
    elif choices.kind == "rl":
        yield examples.practice(draft)
    elif choices.target in targets.PER_DECISION:
        yield from examples.decisions(draft)
    else:
        yield from filter(None, [examples.whole(draft)])


def paired(collected: Collected, split: Callable[[int], Split]) -> Iterator[Found]:
    """Pairs of one task; then, of what is left, pairs that opened with the same tool at the same path. Never across splits."""
    used: set[int] = set()
    for won, lost in splits.same_task_pairs(collected.tasks, collected.successes):
        used |= {won, lost}
        yield from pair(collected, won, lost, split(won), why="same task")
    opened = ((split(number), draft.entity, examples.first_tool(draft)) for number, draft in enumerate(collected.all()))
    kept: dict[tuple[str, ...], tuple[str, ...]] = {}
    openings = [kept.setdefault(each, each) for each in opened]  # a million runs open in a few ways
    for won, lost in splits.same_opening_pairs(openings, collected.successes, paired=used):
        used |= {won, lost}
        yield from pair(collected, won, lost, split(won), why="same opening tool")
    for number in range(len(collected)):
        if number not in used:
            collected.left_out.add("no_counterpart", collected.draft(number).session)


def pair(collected: Collected, won: int, lost: int, split: Split, *, why: str) -> Iterator[Found]:
    example = examples.pair(collected.draft(won), collected.draft(lost))
    if example is None:
        collected.left_out.add("pair_did_the_same", collected.draft(lost).session)
        return
    yield split, msgspec.structs.replace(example, note=f"{why}, {example.note}")


def finish(folder: Path, manifest: dict[str, Any], choices: Choices) -> None:
    """The manifest with its id, the card, and what the target's trainer wants beside the rows."""
    manifest["choices"] = asdict(choices)
    manifest["rows_sha256"] = digest_of(folder / "rows.jsonl")
    manifest["sha256"] = sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()  # of all that it says up to here
    manifest["id"] = manifest["sha256"][:16]
    manifest["herdbook"] = VERSION
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(card.card(manifest), encoding="utf-8")
    for name, text in companions.companions(choices.target, choices.kind).items():
        (folder / name).write_text(text, encoding="utf-8")
