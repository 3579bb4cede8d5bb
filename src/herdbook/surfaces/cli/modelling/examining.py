"""A model is examined and kept in the record: its hash, the datasets it was made from, its scores, and a card for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from herdbook.base.errors import NotFound
from herdbook.service.models.acts import EVALUATION
from herdbook.slowloop.export.card import card as dataset_card
from herdbook.slowloop.export.dataset import runs_of
from herdbook.slowloop.models import examination, judging
from herdbook.slowloop.models import job as jobs
from herdbook.slowloop.models.serving import served
from herdbook.slowloop.models.upstream import Upstream
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.modelling.working import registrar
from herdbook.surfaces.cli.terminal import Answer

KINDS: Final = ("sft", "dpo", "kto")  # datasets a job may have, each a folder of its data


def evaluated(invocation: Invocation, job: Path, *, name: str, model: Upstream, base: Upstream) -> Answer:
    """Ask both at every held-out decision; the model as it was kept."""
    data = job / "data"
    if not (data / "sft" / "manifest.json").is_file():
        raise NotFound(f"{data / 'sft'} holds no dataset: herdbook export training {data / 'sft'} --holdout 0.3 makes one")
    progress = invocation.terminal.progress("decisions asked for")
    report = examination.examined(data, model=asking(model, progress), base=asking(base, progress))
    report["failed_answers"] = {judging.MODEL: model.failures, judging.BASE: base.failures}
    (job / "evaluation.json").write_text(json.dumps(report, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return kept(invocation, job, report, name=name, model=model)


def served_here(invocation: Invocation, job: Path, *, name: str, threads: int) -> Answer:
    """The same for what a job made and what it was made from, served for as long as that takes."""
    choices, made = jobs.load(job), job / "model"
    if not (made / "config.json").is_file():
        raise NotFound(f"{made} is no model yet: herdbook models train {job} makes it")
    base = str((job / "base").absolute()) if choices.base == jobs.TINY else choices.base
    with served(threads=threads, device=choices.device) as url:
        model, before = (Upstream(url, each, at_once=1) for each in (str(made.absolute()), base))
        return evaluated(invocation, job, name=name, model=model, base=before)


def asking(upstream: Upstream, progress: Callable[[int], None]) -> examination.Caller:
    return lambda acts: upstream.calls(acts, progress=progress)


def kept(invocation: Invocation, job: Path, report: dict[str, Any], *, name: str, model: Upstream) -> Answer:
    """The model with its lineage, its scores and its card."""
    parents = [registered(invocation, folder) for kind in KINDS if (folder := job / "data" / kind).is_dir()]
    answer = invocation.ask(
        "artefact_keep",
        {
            "kind": "model",
            "name": name,
            "parents": parents,
            **made_of(job, model),
            "metrics": {EVALUATION: report},
            "card": card(name, report),
        },
    )
    return answer


def made_of(job: Path, model: Upstream) -> dict[str, Any]:
    """What was trained here is known by its files; what was trained elsewhere only by where it answers."""
    if (job / "model").is_dir():
        return {"hash": jobs.digest(job / "model"), "lineage": {"job": asdict(jobs.load(job))}}
    return {
        "hash": sha256(f"{model.url}#{model.name}".encode()).hexdigest(),
        "lineage": {"answers_at": f"{model.url}#{model.name}"},
    }


def registered(invocation: Invocation, folder: Path) -> str:
    """A dataset in the register, where its export has put it already, unless it was made from another record."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    keep = registrar(invocation)
    keep(folder.name, manifest, runs_of(folder / "rows.jsonl"), dataset_card(manifest))
    return str(keep.artefact)


def card(name: str, report: dict[str, Any]) -> str:
    """What it is for, how it did, and what that does not say."""
    reasons = judging.refusals(report)
    verdict = "It may be promoted." if not reasons else "It may not be promoted: " + "; ".join(reasons) + "."
    gains = "\n".join(
        f"- over {judging.RIVALS[rival]}: {gain['mean']:+.3f}, 95 % from {gain['low']:+.3f} to {gain['high']:+.3f}"
        for rival, gain in report["gains"].items()
    )
    return (
        f"# {name}\n\nA model for the decisions of the runs it was trained on. Examined on {report['tasks']} later tasks, "
        f"{report['good_acts']} calls of successful runs and {report['bad_acts']} of failed ones.\n\n{gains}\n\n{verdict}\n\n"
        "Measured is agreement with logged decisions, not success at tasks: compare the outcomes of its runs once it is served.\n"
    )
