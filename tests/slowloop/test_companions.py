"""The configurations beside a dataset are what their trainers read: keys of their documentation, files that are there."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml

from herdbook.slowloop.export import targets
from herdbook.slowloop.export.companions import companions

EVERY = [(target, kind) for target, kinds in targets.WRITERS.items() for kind in kinds]
# As they stand in each project's documentation: TRL's CLI and trainers, accelerate's configuration file, Axolotl's configuration
# reference and its pages on preferences, reward models and Ray, LLaMA-Factory's data README and examples, prime-rl's SFTConfig.
KEYS = {
    "trl.yaml": "model_name_or_path datasets max_length output_dir use_peft lora_r num_train_epochs eval_strategy report_to",
    "fsdp.yaml": "compute_environment distributed_type fsdp_config mixed_precision num_machines num_processes",
    "axolotl.yaml": "base_model model_type num_labels reward_model chat_template rl remove_unused_columns datasets adapter"
    " lora_r lora_alpha lora_target_linear num_epochs micro_batch_size gradient_accumulation_steps learning_rate output_dir",
    "llamafactory.yaml": "model_name_or_path template stage do_train finetuning_type dataset_dir dataset output_dir"
    " num_train_epochs",
    "prime_rl.toml": "max_steps output_dir model data ckpt",
}


def read(name: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(text) if name.endswith(".toml") else yaml.safe_load(text)
    return found


@pytest.mark.parametrize("target, kind", EVERY, ids=["-".join(each) for each in EVERY])
def test_every_key_is_one_its_trainer_has(target: str, kind: str) -> None:
    """A trainer would refuse the file, or worse, pass over what it does not know."""
    for name, text in companions(target, kind).items():
        if name in KEYS:
            assert set() == set(read(name, text)) - set(KEYS[name].split()), name


@pytest.mark.parametrize("kind, head", [("dpo", {"rl": "dpo"}), ("kto", {"rl": "kto"}), ("reward", {"num_labels": 1})])
def test_a_trainer_is_told_what_kind_of_rows_these_are(kind: str, head: dict[str, Any]) -> None:
    """Pairs would be taken for conversations."""
    told = read("axolotl.yaml", companions("axolotl", kind)["axolotl.yaml"])
    assert head == {name: told[name] for name in head}
    [rows] = told["datasets"]
    assert ("train.jsonl", "json") == (rows["path"], rows["ds_type"])


def test_prime_rl_reads_the_folder_it_stands_in() -> None:
    """A configuration would name a dataset that is not there."""
    told = read("prime_rl.toml", companions("trl", "sft")["prime_rl.toml"])
    assert (".", ["train"]) == (told["data"]["name"], told["data"]["splits"])
    assert "prime_rl.toml" not in companions("trl", "dpo")


def test_columns_of_llamafactory_are_those_of_the_rows() -> None:
    """It would find nothing under the names it was told."""
    for kind in targets.WRITERS["llamafactory"]:
        made = companions("llamafactory", kind)
        columns = set(json.loads(made["dataset_info.json"])["herdbook"]["columns"].values())
        assert set() == columns - set(json.loads(made["row.schema.json"])["properties"]), kind
