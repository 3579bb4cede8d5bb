"""What leaves the record in another form: a training set out of the runs, or first a look at what the runs lack for one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from herdbook.base import text
from herdbook.base.repository import entity_of
from herdbook.surfaces.cli import agents_md
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.parser import number, whole_number
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer, Terminal, line, table

EXAMPLES = """\
example:
  $ herdbook export check                       # what each run lacks, and how to mend it
  herdbook export training out/sft              # copy what succeeded, in TRL's form
  $ herdbook export agents-md AGENTS.md --entity acme/checkout    # the proven few, between two markers
  herdbook export otlp                          # runs as spans, to OTEL_EXPORTER_OTLP_ENDPOINT
  herdbook export training out/dpo --kind dpo --for llamafactory --entity acme/checkout

A dataset is a folder: train and holdout rows, rows.jsonl (which run each row came from), manifest.json and a card. Secrets
and personal data are blotted out, which needs herdbook[export]. When no row comes out, the exit code is 1, and it says why."""

WHAT: Final = ("training", "check", "agents-md", "otlp")
KINDS: Final = ("sft", "dpo", "kto", "reward", "rl")
TARGETS: Final = ("trl", "openai", "llamafactory", "axolotl", "parquet")
NOTHING_CAME_OUT: Final = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Make a training set of the runs in the record, see what they lack for one, or send them on as spans."
    parser.add_argument("what", metavar="WHAT", choices=WHAT, help=f"one of {', '.join(WHAT)}")
    parser.add_argument("out", metavar="OUT", nargs="?", help="the dataset's new folder; for agents-md the file (AGENTS.md)")
    parser.add_argument("--kind", choices=KINDS, default="sft", help="what is to be learned from (sft)")
    parser.add_argument("--for", dest="target", choices=TARGETS, default="trl", help="whose form the rows have (trl)")
    parser.add_argument("--entity", metavar="ENTITY", help="only runs on this path and below it; for agents-md the path")
    parser.add_argument("--tokens", metavar="N", type=whole_number, default=800, help="for agents-md: how long it may be (800)")
    parser.add_argument("--attested", action="store_true", help="only runs that somebody outside the box vouches for")
    parser.add_argument("--holdout", metavar="SHARE", type=number, default=0.1, help="share of the runs to hold out (0.1)")
    parser.add_argument("--drop-secrets", action="store_true", help="leave out runs that held a secret")
    parser.add_argument("--content", action="store_true", help="for otlp: also the arguments and results of calls")
    parser.add_argument("--unscrubbed", action="store_true", help="do not look for secrets and personal data")


def run(invocation: Invocation) -> int:
    args = invocation.args
    if args.what == "agents-md":
        return proven_few(invocation)
    if args.what == "otlp":
        return spans(invocation)
    if (args.what == "training") != (args.out is not None):
        raise Usage("training takes a folder to write to, check takes none (see herdbook export --help)")
    if not 0 <= args.holdout < 1:
        raise Usage("--holdout is a share of the runs: 0 or more, and less than 1")
    return training(invocation) if args.what == "training" else check(invocation)


def proven_few(invocation: Invocation) -> int:
    """What stands at a path, into the file that agents read anyway."""
    args = invocation.args
    path = Path(args.out or "AGENTS.md")
    entity = text.entity_path(args.entity or entity_of(str(path.resolve().parent)))
    answer = invocation.ask("brief", entity=entity, tokens=max(args.tokens * 4, 2_000))
    part, count = agents_md.section([*answer["entries"], *answer["dead_ends"]], tokens_max=args.tokens)
    changed = agents_md.write(path, part)
    told = {"file": str(path), "entity": entity, "entries": count, "changed": changed}
    said = f"{count} proven entries of {line(entity)} in {line(path)}" + ("" if changed else ", as before")
    return invocation.show(told, [said])


def spans(invocation: Invocation) -> int:
    """Runs, to wherever OTEL_* says."""
    from herdbook.slowloop.export.otlp import export

    args = invocation.args
    if args.out is not None:
        raise Usage("otlp takes no folder: spans go to OTEL_EXPORTER_OTLP_ENDPOINT (http://localhost:4318)")
    entity = None if args.entity is None else text.entity_path(args.entity)
    progress = invocation.terminal.progress("runs sent")
    sent = export(asker(invocation), entity=entity, content=args.content, progress=progress)
    return invocation.show({"runs": sent.runs, "spans": sent.spans}, [f"{sent.runs:,} runs sent, in {sent.spans:,} spans"])


def training(invocation: Invocation) -> int:
    from herdbook.slowloop.export.dataset import Choices, export  # here: what it needs is only loaded when it is wanted
    from herdbook.slowloop.export.registering import Registrar

    args = invocation.args
    choices = Choices(
        kind=args.kind,
        target=args.target,
        entity=None if args.entity is None else text.entity_path(args.entity),
        attested_only=args.attested,
        drop_secrets=args.drop_secrets,
        unscrubbed=args.unscrubbed,
        holdout=args.holdout,
    )
    keep = Registrar(lambda verb, fields: invocation.ask(verb, dict(fields)))
    exported = export(asker(invocation), Path(args.out), choices, keep=keep, progress=invocation.terminal.progress("runs read"))
    answer = {**exported.manifest, "folder": str(exported.folder) if exported.rows else None, "artefact": keep.artefact}
    invocation.show(answer, training_lines(answer, invocation.terminal))
    return 0 if exported.rows else NOTHING_CAME_OUT


def asker(invocation: Invocation) -> Any:
    """Pages of runs, from this record or a server's."""
    return lambda fields: invocation.ask("runs", fields)


def training_lines(answer: Answer, terminal: Terminal) -> Iterator[str]:
    rows = sum(split["rows"] for split in answer["splits"].values())
    if rows:
        told = ", ".join(f"{split['rows']:,} rows in {split['file']}" for split in answer["splits"].values())
        yield terminal.paint(f"dataset {answer['id']} in {line(answer['folder'])}", "bold")
        yield f"  {told}; from {answer['used_runs']:,} of {answer['runs']:,} runs"
        yield from (f"  {count:,} pairs: {note}" for note, count in answer["pairs"].items())
        yield f"  known to the record as {line(answer['artefact'])}: herdbook artefacts"
    else:
        yield (
            terminal.paint("Nothing came out", "bold") + f": of {answer['runs']:,} runs none gave a row, and no folder was made."
        )
    yield from scrubbed_lines(answer)
    yield from left_out_lines(answer["left_out"])


def scrubbed_lines(answer: Answer) -> Iterator[str]:
    if answer["scrubbed"] is None:
        yield "  unscrubbed: nobody looked for secrets or personal data"
    elif answer["scrubbed"]:
        yield "  blotted out: " + ", ".join(f"{count:,} x {kind}" for kind, count in answer["scrubbed"].items())


def left_out_lines(left_out: Mapping[str, Any]) -> Iterator[str]:
    from herdbook.slowloop.export.card import REASONS

    if left_out:
        yield "left out:"
    yield from table([f"{told['runs']:,}", reason, REASONS[reason], named(told)] for reason, told in left_out.items())


def named(told: Mapping[str, Any]) -> str:
    """The first few, to go and look at."""
    return "such as " + line(told["named"][0])


def check(invocation: Invocation) -> int:
    """What keeps each run from teaching; nothing is written."""
    from herdbook.slowloop.export.collect import checked

    args = invocation.args
    entity = None if args.entity is None else text.entity_path(args.entity)
    answer = checked(asker(invocation), entity=entity, attested_only=args.attested)
    return invocation.show(answer, check_lines(answer))


def check_lines(answer: Answer) -> Iterator[str]:
    ended = f"{answer['successes']:,} successes, {answer['failures']:,} failures"
    yield f"{answer['usable']:,} of {answer['runs']:,} runs can teach: {ended}"
    yield from left_out_lines(answer["left_out"])
