"""Models of your own: which there are, how they were examined, and which one answers under a name."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from herdbook.base import text
from herdbook.service.models.acts import EVALUATION
from herdbook.slowloop.models import job as jobs
from herdbook.slowloop.models import upstreams
from herdbook.slowloop.models.job import Job
from herdbook.slowloop.models.judging import MODEL, refusals
from herdbook.slowloop.models.upstream import at
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.modelling import examining, working
from herdbook.surfaces.cli.parser import number, whole_number
from herdbook.surfaces.cli.problems import Usage
from herdbook.surfaces.cli.terminal import Answer, line, table

EXAMPLES = """\
example:
  $ herdbook models ls                                   # models, and the names they answer under
  herdbook models train work/job --base Qwen3-0.6B --lora 16 --estimate      # what it would take
  herdbook models train work/job --base Qwen3-0.6B --lora 16                 # killed, it goes on where it was
  herdbook models evaluate work/job mine                 # served for the examination, and kept in the record
  herdbook models evaluate work/job mine --model http://127.0.0.1:8000/v1#tuned --base http://127.0.0.1:8000/v1#Qwen3-8B
  herdbook models show 3f0c5a9d1e7b2460                  # one, with the scores of its examination
  herdbook models serve laptop                           # models of this machine, as the upstream `laptop`
  herdbook models upstream vllm https://vllm.example/v1 --key-file vllm.key
  herdbook models route fixer vllm Qwen3-8B              # an upstream's own model answers as `fixer`
  herdbook models promote 3f0c5a9d1e7b2460 fixer laptop mine --percent 10 --why "ten percent for a week"
  herdbook models compare fixer                          # how the runs of each ended
  herdbook models rollback fixer

A trained model is promoted only if it agrees better with held-out successful runs than the base model, the most common call and
the nearest past decision do, each with an interval above 0 on 30 tasks or more, and no more with failed ones."""

WORDS: Final = {
    "train": ("JOB",),
    "ls": (),
    "evaluate": ("JOB", "NAME"),
    "show": ("MODEL",),
    "route": ("ALIAS", "UPSTREAM", "NAME"),
    "promote": ("MODEL", "ALIAS", "UPSTREAM", "NAME"),
    "rollback": ("ALIAS",),
    "compare": ("ALIAS",),
    "serve": ("UPSTREAM",),
    "upstream": ("UPSTREAM", "URL"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "See the models that were trained, let one answer under a name, compare it with what it replaced, go back."
    )
    parser.add_argument("act", metavar="ACT", choices=tuple(WORDS), help=", ".join(WORDS))
    parser.add_argument("words", metavar="WORD", nargs="*", help="what the act is about: see the examples")
    parser.add_argument("--model", metavar="URL#NAME", help="evaluate: where the trained model answers")
    parser.add_argument(
        "--base", metavar="BASE", help="train: a model's folder, its name, or tiny; evaluate: where it answers, as URL#NAME"
    )
    training_arguments(parser.add_argument_group("train"))
    parser.add_argument("--percent", metavar="P", type=number, help="promote: the share of the runs it answers (all)")
    parser.add_argument(
        "--entity",
        metavar="ENTITY",
        action="append",
        help="promote: answer all runs on this path (may be repeated); train: only its runs",
    )
    parser.add_argument("--key-file", metavar="FILE", type=Path, help="upstream: the credential it is shown")
    parser.add_argument("--tenant", metavar="N", type=whole_number, action="append", help="upstream: whom it serves (tenant 1)")
    parser.add_argument("--why", metavar="TEXT", help="the reason, for whoever looks at the history")


def training_arguments(group: argparse._ArgumentGroup) -> None:
    default = Job(base="")
    group.add_argument("--estimate", action="store_true", help="say what it would take, and train nothing")
    group.add_argument("--then", choices=("dpo", "kto"), default="", help="after the copying, prefer what succeeded")
    group.add_argument("--lora", metavar="RANK", type=whole_number, default=0, help="train an adapter of this rank (all weights)")
    group.add_argument("--epochs", metavar="N", type=number, default=default.epochs, help=f"how often ({default.epochs:g})")
    group.add_argument("--batch", metavar="N", type=whole_number, default=default.batch, help=f"rows at once ({default.batch})")
    group.add_argument("--rate", metavar="R", type=number, default=default.learning_rate, help=f"({default.learning_rate:g})")
    group.add_argument("--length", metavar="TOKENS", type=whole_number, default=default.tokens_max, help="longest row (1024)")
    group.add_argument("--device", choices=("cpu", "cuda", "auto"), default=default.device, help="where (cpu)")
    group.add_argument("--threads", metavar="N", type=whole_number, default=0, help="of the processor (all)")
    group.add_argument(
        "--holdout", metavar="SHARE", type=number, default=default.holdout, help="share of the runs to examine it on (0.3)"
    )


def run(invocation: Invocation) -> int:
    args = invocation.args
    wanted = WORDS[args.act]
    if len(args.words) != len(wanted):
        raise Usage(f"herdbook models {' '.join((args.act, *wanted))}: see herdbook models --help")
    acts: dict[str, Callable[[Invocation], int]] = {"ls": ls, "show": show, "compare": compare, "evaluate": evaluate}
    acts |= {"train": train, "serve": serve, "upstream": upstream}
    return acts.get(args.act, change)(invocation)


def ls(invocation: Invocation) -> int:
    models = invocation.ask("artefact_list", kind="model")["artefacts"]
    routes = invocation.ask("model_routes")["routes"]
    return invocation.show({"models": models, "routes": routes}, listed(models, routes))


def listed(models: list[Answer], routes: list[Answer]) -> Iterator[str]:
    if not models:
        yield "no model was trained yet: herdbook models train"
    yield from table([line(each["artefact"]), line(each["name"]), line(each["status"] or each["refused"])] for each in models)
    for route in routes:
        yield from routed(route)


def routed(route: Answer) -> Iterator[str]:
    """Who answers under an alias."""
    part = f"{route['percent']:g} % of the runs" + "".join(f", all on {line(path)}" for path in route["entities"])
    before = route["before"]
    yield f"{line(route['alias'])}: {target(route['model'])}" + (f", for {part}" if route["percent"] < 100 else "")
    if before is not None:
        yield f"  {'before' if route['percent'] >= 100 else 'the others'}: {target(before)}"


def target(each: Answer) -> str:
    whose = f"{line(each['artefact'])} as " if each["artefact"] else ""
    return f"{whose}{line(each['name'])} of {line(each['upstream'])}"


def train(invocation: Invocation) -> int:
    """Datasets out of the record, what it would take, and the training itself."""
    args, folder = invocation.args, Path(invocation.args.words[0])
    if args.base is None:
        raise Usage("say what is trained: --base with a model's folder, its name, or tiny")
    if len(args.entity or ()) > 1:
        raise Usage("models train takes one --entity: the path whose runs, and those below it, are learned from")
    entity = text.entity_path(args.entity[0]) if args.entity else None
    job = Job(
        base=args.base, epochs=args.epochs, batch=args.batch, learning_rate=args.rate, lora_rank=args.lora, then=args.then,
        tokens_max=args.length, device=args.device, threads=args.threads, entity=entity, holdout=args.holdout,
    )  # fmt: skip
    jobs.save(folder, job)
    working.data(invocation, folder, job)
    expected = jobs.estimate(folder, job, parameters=working.parameters_of(args.base))
    invocation.terminal.remark(estimated(expected))
    if longer := expected["longer_rows"]:
        invocation.terminal.remark(
            f"about {longer:,} rows are longer than {job.tokens_max:,} tokens, and are cut there: --length"
        )
    if not args.estimate:
        working.train(invocation, folder)
    made = None if args.estimate else str(folder / "model")
    says = [f"trained: {made}; herdbook models evaluate {folder} NAME examines it"] if made else []
    return invocation.show({"estimate": expected, "model": made}, says)


def estimated(expected: Answer) -> str:
    on_gpu = f"{expected['gpu_seconds']:,} s and ${expected['gpu_dollars']} on a GPU"
    what = f"{expected['rows']:,} rows, {expected['tokens']:,} tokens with repeats, {expected['parameters']:,} weights"
    return f"{what}: about {expected['cpu_seconds']:,} s on one core, or {on_gpu}"


def serve(invocation: Invocation) -> int:
    return working.serve(invocation, invocation.args.words[0], threads=invocation.args.threads)


def upstream(invocation: Invocation) -> int:
    """Name a place where models are served; `none` takes the name back."""
    args, (name, url) = invocation.args, invocation.args.words
    folder = invocation.settings.upstreams
    if url == "none":
        upstreams.drop(folder, name)
    else:
        upstreams.put(folder, name, url, key_file=args.key_file, tenants=args.tenant or (upstreams.DEFAULT_TENANT,))
    found = upstreams.listed(folder)
    told = [
        {"upstream": each.name, "url": each.url, "tenants": list(each.tenants), "key": each.key_file is not None}
        for each in found
    ]
    return invocation.show(
        {"upstreams": told}, table([each.name, each.url, "with a key" if each.key_file else ""] for each in found)
    )


def evaluate(invocation: Invocation) -> int:
    """Examine a model on what it was not taught, and keep it with its report. Without addresses it is served here for that."""
    args, (folder, name) = invocation.args, invocation.args.words
    if (args.model is None) != (args.base is None):
        raise Usage("give both addresses, --model URL#NAME and --base URL#NAME, or none")
    job = Path(folder)
    if args.model is not None:
        model = examining.evaluated(invocation, job, name=name, model=at(args.model), base=at(args.base))
    else:
        model = examining.served_here(invocation, job, name=name, threads=args.threads)
    return invocation.show(model, shown(model))


def show(invocation: Invocation) -> int:
    answer = invocation.ask("artefact_list", artefact=invocation.args.words[0])["artefacts"][0]
    return invocation.show(answer, shown(answer))


def shown(model: Answer) -> Iterator[str]:
    made_from = ", ".join(map(line, model["parents"])) or "nothing that is known"
    yield f"{line(model['artefact'])} {line(model['name'])}: {line(model['status'])}, made from {made_from}"
    report = model["metrics"].get(EVALUATION)
    if report is None:
        yield "it was not examined: herdbook models evaluate"
        return
    yield from scored(report)


def scored(report: Answer) -> Iterator[str]:
    """The scores of an examination, and what they allow."""
    yield f"on {report['tasks']} held-out tasks: {report['good_acts']} calls to copy, {report['bad_acts']} not to"
    names = {
        "next_tool": "next tool",
        "arguments": "arguments",
        "exact_call": "whole call",
        "agrees_with_failures": "failed calls",
    }
    yield from table(
        [["", *names.values()], *([line(who), *(score(told[name]) for name in names)] for who, told in report["scores"].items())]
    )
    for other, gain in report["gains"].items():
        yield f"  over {line(other)}: {gain['mean']:+.3f}, 95 % from {gain['low']:+.3f} to {gain['high']:+.3f}"
    for who, failures in (report.get("failed_answers") or {}).items():
        if failures:
            yield f"  {line(who)}: its server failed at {failures} answers, which count as no call"
    reasons = refusals(report)
    yield from (f"not to be promoted: {reason}" for reason in reasons)
    if not reasons:
        yield f"the {MODEL} may be promoted; measured is agreement with logged decisions, not success at tasks"


def score(found: Answer | None) -> str:
    return "-" if found is None else f"{found['mean']:.2f} ({found['low']:.2f}-{found['high']:.2f})"


def compare(invocation: Invocation) -> int:
    routes = invocation.ask("model_routes", alias=invocation.args.words[0], compare=True)["routes"]
    if not routes:
        raise Usage(f"nothing answers as {line(invocation.args.words[0])}: herdbook models ls")
    return invocation.show(routes[0], compared(routes[0]))


def compared(route: Answer) -> Iterator[str]:
    yield from routed(route)
    found = route["compared"]
    yield from table(
        [line(model), f"{told['successes']} of {told['runs']} runs ended well"] for model, told in found["models"].items()
    )
    difference = found["difference"]
    if difference is None:
        yield "nothing can be compared yet: both models need runs with an outcome on the same path"
    else:
        said = f"{difference['estimate']:+.3f}, 95 % from {difference['low']:+.3f} to {difference['high']:+.3f}"
        yield f"the model of now over the one before: {said}" + ("" if difference["sure"] else "; not enough to tell")


def change(invocation: Invocation) -> int:
    args = invocation.args
    fields = dict(zip((word.lower() for word in WORDS[args.act]), args.words, strict=True))
    if "model" in fields:
        fields["artefact"] = fields.pop("model")
        fields |= {name: value for name, value in (("percent", args.percent), ("entities", args.entity)) if value is not None}
    answer = invocation.ask(f"model_{args.act}", fields, why=args.why)
    return invocation.show(answer, routed(answer))
