"""The trainer, in a process of its own: `python -m herdbook.slowloop.models.training JOB`. Needs herdbook[train].

It copies what succeeded (SFT), and where the job says so goes on to prefer that to what failed (DPO or KTO), with TRL. Killed at
any time it goes on from its last checkpoint; the model appears under its name only when it is whole.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from herdbook.slowloop.models import job as jobs
from herdbook.slowloop.models.job import Job

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_DATASETS_OFFLINE": "1",
}


def train(folder: Path) -> None:
    """The job in this folder, from wherever it is."""
    job = jobs.load(folder)
    if job.threads:
        import torch

        torch.set_num_threads(job.threads)
    base = based_on(job, folder)
    if not Path(base).exists():
        for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
            os.environ.pop(name, None)  # a name and no folder: the trainer may fetch it
    last = stage(folder, "sft", lambda out: copy(job, folder, base, out))
    if job.then:
        copied = last
        last = stage(folder, job.then, lambda out: prefer(job, folder, copied, out))
    if not (folder / "model").exists():
        os.rename(last, folder / "model")
    say(folder, stage="done", done=1.0)


def based_on(job: Job, folder: Path) -> str:
    """The folder or name of the base; a tiny one is made once."""
    if job.base != jobs.TINY:
        return job.base
    from herdbook.slowloop.models import tiny

    stage(folder, "base", lambda out: tiny.make(out, folder / "data" / "sft" / "train.jsonl", seed=job.seed))
    return str(folder / "base")


def stage(folder: Path, name: str, run: Any) -> Path:
    """One stage, unless its result is there; the result is moved to its place when it is whole."""
    whole, made = folder / name, folder / f".{name}"
    if not whole.exists() and not (folder / "model").exists():
        shutil.rmtree(made, ignore_errors=True)
        run(made)
        os.rename(made, whole)
    return whole


def copy(job: Job, folder: Path, base: str, out: Path) -> None:
    """SFT on the agent's decisions: the loss is on the completion."""
    from trl import SFTConfig, SFTTrainer

    settings = SFTConfig(max_length=job.tokens_max, **common(job, folder / "sft.steps", learning_rate=job.learning_rate))
    trainer = SFTTrainer(
        model=model_of(base),
        processing_class=tokenizer_of(base),
        train_dataset=rows(folder / "data" / "sft").remove_columns(["weight"]),
        args=settings,
        peft_config=lora(job),
        callbacks=[progress_to(folder, "sft")],
    )
    go_on(trainer, folder / "sft.steps")
    keep(trainer, base, out)


def prefer(job: Job, folder: Path, start: Path, out: Path) -> None:
    """DPO on pairs or KTO on verdicts; they read the model from disk, since they load it a second time as the reference."""
    import trl

    kind = job.then
    settings, trainer_of = (trl.DPOConfig, trl.DPOTrainer) if kind == "dpo" else (trl.KTOConfig, trl.KTOTrainer)
    told = settings(max_length=job.tokens_max, **common(job, folder / f"{kind}.steps", learning_rate=job.learning_rate / 10))
    trainer = trainer_of(
        model=str(start),
        processing_class=tokenizer_of(str(start)),
        train_dataset=rows(folder / "data" / kind),
        args=told,
        peft_config=lora(job),
        callbacks=[progress_to(folder, kind)],
    )
    go_on(trainer, folder / f"{kind}.steps")
    keep(trainer, str(start), out)


def common(job: Job, steps: Path, *, learning_rate: float) -> dict[str, Any]:
    """What both trainers are told."""
    return {
        "output_dir": str(steps),
        "num_train_epochs": job.epochs,
        "per_device_train_batch_size": job.batch,
        "learning_rate": learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": 10,
        "seed": job.seed,
        "use_cpu": job.device == "cpu",
        "bf16": False if job.device == "cpu" else None,
        "gradient_checkpointing": job.device != "cpu",
        "dataloader_pin_memory": job.device != "cpu",
        "save_steps": 50,
        "save_total_limit": 1,
        "logging_steps": 10,
        "report_to": [],
        "disable_tqdm": True,
    }


def rows(folder: Path) -> Any:
    from datasets import load_dataset

    return load_dataset("json", data_files=str(folder / "train.jsonl"), split="train")


def model_of(base: str) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(base)


def tokenizer_of(base: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(base)


def lora(job: Job) -> Any:
    if not job.lora_rank:
        return None
    from peft import LoraConfig

    return LoraConfig(r=job.lora_rank, lora_alpha=2 * job.lora_rank, target_modules="all-linear", task_type="CAUSAL_LM")


def go_on(trainer: Any, steps: Path) -> None:
    """Train, from the last checkpoint if there is one."""
    trainer.train(resume_from_checkpoint=any(steps.glob("checkpoint-*")) or None)


def keep(trainer: Any, base: str, out: Path) -> None:
    """The whole model with its tokenizer: an adapter is merged in, so that every server can load it."""
    model = trainer.model.merge_and_unload() if hasattr(trainer.model, "merge_and_unload") else trainer.model
    model.save_pretrained(out)
    tokenizer_of(base).save_pretrained(out)


def progress_to(folder: Path, name: str) -> Any:
    """A callback that says how far a stage is."""
    from transformers import TrainerCallback

    def on_log(self: Any, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        done = state.global_step / max(state.max_steps, 1)
        say(folder, stage=name, done=done, step=state.global_step, steps=state.max_steps, loss=(logs or {}).get("loss"))

    return type("Progress", (TrainerCallback,), {"on_log": on_log})()


def say(folder: Path, **said: Any) -> None:
    with (folder / "progress.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"at": time.time(), **said}) + "\n")


if __name__ == "__main__":
    os.environ.update(OFFLINE)
    train(Path(sys.argv[1]))
