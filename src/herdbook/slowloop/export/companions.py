"""The files that a trainer wants beside the rows: how to read them, and a configuration to start from. Pure.

The model to tune is left to whoever trains: a place to fill in is marked, and nothing is downloaded by us.
"""

from __future__ import annotations

import json
from typing import Any, Final

from herdbook.slowloop.export import schemas

MODEL: Final = "PUT-YOUR-MODEL-HERE"
TRL_COMMANDS: Final = {"sft": "sft", "dpo": "dpo", "kto": "kto", "reward": "reward", "rl": "grpo"}
AXOLOTL_TYPES: Final = {
    "sft": "chat_template",
    "dpo": "chat_template.default",
    "kto": "user_defined",
    "reward": "bradley_terry.chat_template",
}


def companions(target: str, kind: str) -> dict[str, str]:
    """Their names and texts."""
    make = {"trl": trl, "parquet": lambda kind: trl(kind, "parquet"), "axolotl": axolotl, "llamafactory": llamafactory}.get(
        target
    )
    return {"row.schema.json": json.dumps(schemas.schema(target, kind), indent=2) + "\n"} | (make(kind) if make else {})


def trl(kind: str, form: str = "json") -> dict[str, str]:
    command, file = TRL_COMMANDS[kind], "train.parquet" if form == "parquet" else "train.jsonl"
    length = "" if kind == "rl" else "max_length: 8192 # in tokens: the trainer leaves longer rows out, or cuts them\n"
    text = f"""\
# trl {command} --config trl.yaml           on several cards, with --accelerate_config fsdp.yaml
model_name_or_path: {MODEL}
datasets:
  - path: {form}
    data_files: {file}
{length}output_dir: model
use_peft: true
lora_r: 16
num_train_epochs: 3
eval_strategy: "no" # the held-out tasks are for the last judgement, not for choosing between epochs
report_to: none
"""
    told = {"trl.yaml": text, "fsdp.yaml": FSDP}
    return told | ({"prime_rl.toml": PRIME_RL} if (kind, form) == ("sft", "json") else {})


FSDP: Final = """\
# For `trl --accelerate_config fsdp.yaml`; set num_processes to the number of cards, and num_machines on several machines.
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_state_dict_type: FULL_STATE_DICT
mixed_precision: bf16
num_machines: 1
num_processes: 2
"""


PRIME_RL: Final = f"""\
# uv run sft @ prime_rl.toml                in prime-rl; newer versions take the data as `dataset` of a table [[data.source]]
max_steps = 1000
output_dir = "model"

[model]
name = "{MODEL}"

[data]
name = "." # this folder
splits = ["train"]
seq_len = 8192
batch_size = 16

[ckpt]
"""


def axolotl(kind: str) -> dict[str, str]:
    rows: dict[str, Any] = {"path": "train.jsonl", "ds_type": "json", "type": AXOLOTL_TYPES[kind]}
    if kind == "sft":
        rows |= {"field_messages": "messages", "roles_to_train": ["assistant"]}
    if kind == "dpo":
        rows |= {"field_messages": "messages", "field_chosen": "chosen", "field_rejected": "rejected"}
    if kind == "kto":
        fields = {"field_prompt": "prompt", "field_completion": "completion", "field_label": "label"}
        rows["type"] = fields | {"prompt_format": "{prompt}", "completion_format": "{completion}"}
    text = f"""\
# axolotl train axolotl.yaml                on several machines: add --launcher torchrun, or --use-ray where Ray runs
base_model: {MODEL}
{AXOLOTL_HEADS.get(kind, "")}datasets:
  - {json.dumps(rows)}
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_linear: true
num_epochs: 3
micro_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 0.0001
output_dir: model
# ray_num_workers: 4                        with --use-ray: how many of
# resources_per_worker: {{GPU: 1}}
"""
    return {"axolotl.yaml": text}


AXOLOTL_HEADS: Final = {
    "dpo": "rl: dpo\n",
    "kto": "rl: kto\nremove_unused_columns: false\n",
    "reward": "model_type: AutoModelForSequenceClassification\nnum_labels: 1\nreward_model: true\n"
    "chat_template: tokenizer_default\n",
}


def llamafactory(kind: str) -> dict[str, str]:
    columns = {"messages": "conversations", "system": "system", "tools": "tools"}
    columns |= {"dpo": PAIR, "reward": PAIR, "kto": {"kto_tag": "kto_tag"}}.get(kind, {})
    entry: dict[str, Any] = {"file_name": "train.jsonl", "formatting": "sharegpt", "columns": columns}
    entry |= {"ranking": True} if kind in ("dpo", "reward") else {}
    stage = {"reward": "rm"}.get(kind, kind)
    text = f"""\
# llamafactory-cli train llamafactory.yaml
model_name_or_path: {MODEL}
template: PUT-ITS-TEMPLATE-HERE
stage: {stage}
do_train: true
finetuning_type: lora
dataset_dir: .
dataset: herdbook
output_dir: model
num_train_epochs: 3
"""
    return {"dataset_info.json": json.dumps({"herdbook": entry}, indent=2) + "\n", "llamafactory.yaml": text}


PAIR: Final = {"chosen": "chosen", "rejected": "rejected"}
