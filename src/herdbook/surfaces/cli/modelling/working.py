"""Training and serving: datasets out of the record, the trainer in a process of its own, a model server watched over."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from herdbook.base.errors import ExtraMissing, InvalidRequest, Unavailable
from herdbook.slowloop.export.registering import Registrar
from herdbook.slowloop.models import job as jobs
from herdbook.slowloop.models import upstreams
from herdbook.slowloop.models.job import Job
from herdbook.slowloop.models.serving import ModelServer
from herdbook.surfaces.cli.invocation import Invocation
from herdbook.surfaces.cli.terminal import Answer

LOOK_SECONDS: Final = 0.3
TINY_PARAMETERS: Final = 300_000
SAID_CHARS_MAX: Final = 800
RESTARTS_MAX: Final = 5
SETTLED_SECONDS: Final = 60  # after so long a server that ends has had its time, and is started afresh


def data(invocation: Invocation, folder: Path, job: Job) -> None:
    """The job's datasets, exported unless they are there: the same ones after a kill, all of one snapshot and so of one split."""
    from herdbook.slowloop.export.dataset import Choices, export

    for kind in dict.fromkeys(("sft", "dpo", job.then or "sft")):
        out = folder / "data" / kind
        if not out.exists():
            export(
                asker(invocation, folder / "data" / "sft" / "manifest.json"),
                out,
                Choices(kind=kind, entity=job.entity, holdout=job.holdout),
                keep=registrar(invocation),
                progress=invocation.terminal.progress("runs read"),
            )
        if kind == "sft" and not has_rows(out):
            raise InvalidRequest("no run teaches anything yet: herdbook export check says what each one lacks")
    if job.then and not has_rows(folder / "data" / job.then):
        raise InvalidRequest(
            f"no row for {job.then} comes out of these runs: herdbook export training OUT --kind {job.then} says why; "
            "leave out --then"
        )


def has_rows(dataset: Path) -> bool:
    """Whether there is something to train on."""
    file = dataset / "train.jsonl"
    return file.is_file() and file.stat().st_size > 0


def asker(invocation: Invocation, manifest: Path) -> Callable[[Mapping[str, Any]], Answer]:
    """Pages of runs, as they were when the dataset with this manifest was made, if it was."""
    made = json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else {}
    then = {name: made[name] for name in ("snapshot", "until") if name in made}
    return lambda fields: invocation.ask("runs", {**then, **fields})


def registrar(invocation: Invocation) -> Registrar:
    """It tells the record of a dataset; told again, it is the same one."""
    return Registrar(lambda verb, fields: invocation.ask(verb, dict(fields)))


def parameters_of(base: str) -> int:
    """About how many weights a base has: from the size of its files, two bytes each; unknown ones count as a billion."""
    files = list(Path(base).glob("*.safetensors")) if Path(base).is_dir() else []
    return TINY_PARAMETERS if base == jobs.TINY else sum(file.stat().st_size for file in files) // 2 or 10**9


def train(invocation: Invocation, folder: Path) -> None:
    """Run the trainer to its end, and show how far it is."""
    show = bar(invocation)
    with (folder / "trainer.log").open("ab") as log:
        words = [sys.executable, "-m", "herdbook.slowloop.models.training", str(folder.absolute())]
        with subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL) as process:
            try:
                while process.poll() is None:
                    for told in jobs.progress(folder)[-1:]:
                        show(told)
                    time.sleep(LOOK_SECONDS)
            finally:
                process.terminate()
    if process.returncode:
        said = (folder / "trainer.log").read_text(encoding="utf-8", errors="replace")[-SAID_CHARS_MAX:]
        if "ModuleNotFoundError" in said:
            raise ExtraMissing.of("train", what="the trainer")
        last = said.strip().rpartition("\n")[2]
        raise Unavailable(
            f"the trainer ended with code {process.returncode}: {last}; {folder / 'trainer.log'} has the rest, run it again"
        )


def bar(invocation: Invocation) -> Callable[[dict[str, Any]], None]:
    """How far the trainer is, in place; silent where nobody watches."""
    terminal = invocation.terminal
    watched = not terminal.as_json and terminal.remarks.isatty()

    def show(told: dict[str, Any]) -> None:
        if watched:
            done = int(told["done"] * 30)
            loss = f" loss {float(told['loss']):.3f}" if told.get("loss") is not None else ""
            terminal.remarks.write(f"\r\x1b[K{told['stage']} [{'#' * done}{' ' * (30 - done)}] {told['done']:.0%}{loss}")
            terminal.remarks.flush()

    return show


def serve(invocation: Invocation, name: str, *, threads: int) -> int:
    """A model server under the name of an upstream, started again when it ends, until somebody ends this command."""
    folder, failures = invocation.settings.upstreams, 0
    upstreams.checked_name(name)
    try:
        while failures < RESTARTS_MAX:
            began, server = time.monotonic(), ModelServer(threads=threads)
            try:
                server.ready()
                upstreams.put(folder, name, server.url)
                invocation.terminal.show(
                    {"upstream": name, "url": server.url}, [f"models are served at {server.url}, as the upstream {name}"]
                )
                sys.stdout.flush()
                server.wait()
            finally:
                server.stop()
            failures = failures + 1 if time.monotonic() - began < SETTLED_SECONDS else 1
            invocation.terminal.remark(f"the model server ended, and is started again ({failures} of {RESTARTS_MAX})")
    finally:
        with suppress(OSError):
            upstreams.drop(folder, name)
    raise Unavailable(f"the model server ended {RESTARTS_MAX} times in a row: look at what it says with `transformers serve`")
