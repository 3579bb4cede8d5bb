"""A training job as data: which model, which dataset, how. Its folder holds all it needs and all it made, so a kill costs little.

    JOB/job.json        the choices        JOB/data/sft, dpo, kto       the datasets
    JOB/progress.jsonl  how far it is      JOB/model                    the result: whole, or not there
Files are read and written here; no trainer is imported.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from herdbook.base.errors import Conflict, InvalidRequest, NotFound

BYTES_PER_TOKEN: Final = 4  # of JSON text, about; an estimate says so
# Floating point operations per parameter and token, forward and backward (Kaplan et al. 2020, section 2.1).
FLOPS_PER_PARAMETER_TOKEN: Final = 6
CPU_FLOPS: Final = 2e10  # what a core does in practice
GPU_FLOPS: Final = 2e13
GPU_HOUR_DOLLARS: Final = 2.0
BEGUN: Final = ("base", "sft.steps", "sft", "model")  # what a trainer leaves, from its first step on
TINY: Final = "tiny"  # the base that is made on the spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The choices."""

    base: str  # a folder with a model and its tokenizer, a name that the trainer can fetch, or `tiny`
    epochs: float = 3.0
    batch: int = 16
    learning_rate: float = 2e-4
    lora_rank: int = 0  # 0: every weight is trained
    then: str = ""  # after the copying: dpo, kto or nothing
    tokens_max: int = 1_024
    device: str = "cpu"  # cpu, cuda or auto
    threads: int = 0  # of a processor; 0: as many as the trainer likes
    seed: int = 0
    entity: str | None = None  # whose runs: on this path and below it
    holdout: float = 0.3  # share of the runs to examine it on

    def __post_init__(self) -> None:
        positive = (
            min(self.epochs, self.batch, self.learning_rate, self.tokens_max) > 0 and min(self.lora_rank, self.threads) >= 0
        )
        if (
            not positive
            or not 0 <= self.holdout < 1
            or self.device not in ("cpu", "cuda", "auto")
            or self.then not in ("", "dpo", "kto")
        ):
            raise InvalidRequest(
                "a job needs positive epochs, batch, rate and tokens; cpu, cuda or auto; then dpo, kto or nothing; holdout < 1"
            )


def save(folder: Path, job: Job) -> None:
    """Keep the choices. A job that has begun keeps those it began with: Conflict for others; an estimate begins nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "job.json"
    before = load(folder) if file.exists() else job
    if before != job and any((folder / each).exists() for each in BEGUN):
        raise Conflict(f"{folder} began with other choices: {file} shows them; take a new folder for these")
    if (before.entity, before.holdout) != (job.entity, job.holdout):
        shutil.rmtree(folder / "data", ignore_errors=True)
    file.write_text(json.dumps(asdict(job), indent=2, sort_keys=True) + "\n", encoding="utf-8")


def load(folder: Path) -> Job:
    try:
        return Job(**json.loads((folder / "job.json").read_text(encoding="utf-8")))
    except FileNotFoundError as problem:
        raise NotFound(f"{folder} holds no job: herdbook models train makes one") from problem


def estimate(folder: Path, job: Job, *, parameters: int) -> dict[str, Any]:
    """Rows, tokens, time and cost before anything is trained: an order of magnitude, from the size of the files."""
    file = folder / "data" / "sft" / "train.jsonl"
    sizes = [len(line) // BYTES_PER_TOKEN for line in lines(file)]
    rows = len(sizes)
    tokens = round(min(file.stat().st_size / BYTES_PER_TOKEN, rows * job.tokens_max) * job.epochs) * (2 if job.then else 1)
    work = FLOPS_PER_PARAMETER_TOKEN * parameters * tokens
    on_gpu = work / GPU_FLOPS
    return {
        "rows": rows,
        "longer_rows": sum(size > job.tokens_max for size in sizes),
        "tokens": tokens,
        "parameters": parameters,
        "cpu_seconds": round(work / CPU_FLOPS),
        "gpu_seconds": round(on_gpu, 1),
        "gpu_dollars": round(on_gpu / 3_600 * GPU_HOUR_DOLLARS, 2),
    }


def lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def progress(folder: Path) -> list[dict[str, Any]]:
    """What the trainer has said so far; a line that is being written is left for the next look."""
    file = folder / "progress.jsonl"
    whole = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
    return [json.loads(line) for line in whole]


def digest(model: Path) -> str:
    """Of all files of a model, names included."""
    state = sha256()
    for path in sorted(each for each in model.rglob("*") if each.is_file()):
        state.update(path.relative_to(model).as_posix().encode() + b"\0" + sha256(path.read_bytes()).digest())
    return state.hexdigest()
