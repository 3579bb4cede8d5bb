"""Run by a Python that has the extra `train`: each dataset named is loaded with `datasets`, and TRL trains on it for a few steps.

The model is made here, of the smallest size that has every part: nothing is downloaded. Prints a line of JSON for each dataset.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TRANSFORMERS_VERBOSITY": "error"}

STEPS = 2
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content %}{{ m.content }}{% endif %}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LENGTH = 4_096  # tokens: a whole run with its policy has to fit


def tokenizer(text: str) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator([text], trainers.BpeTrainer(vocab_size=4_000, special_tokens=special, initial_alphabet=alphabet))
    found = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    found.chat_template = TEMPLATE
    return found


def model(words: Any, folder: Path, *, head: str = "lm") -> str:
    """A tiny model in a folder, since trainers load the model they compare with from where it came from."""
    from transformers import Qwen3Config, Qwen3ForCausalLM, Qwen3ForSequenceClassification

    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    more = {"num_key_value_heads": 1, "head_dim": 16, "num_labels": 1, "tie_word_embeddings": True}
    ends = {"eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id, "bos_token_id": None}
    config = Qwen3Config(vocab_size=len(words), max_position_embeddings=2 * LENGTH, **sizes, **more, **ends)
    made = (Qwen3ForCausalLM if head == "lm" else Qwen3ForSequenceClassification)(config)
    made.save_pretrained(folder)
    words.save_pretrained(folder)
    return str(folder)


def trained(kind: str, rows: Any, folder: Path, text: str) -> float:
    """A few steps of the trainer that this kind is for; the loss of the last."""
    import trl

    config, trainer = {
        "sft": (trl.SFTConfig, trl.SFTTrainer),
        "dpo": (trl.DPOConfig, trl.DPOTrainer),
        "kto": (trl.KTOConfig, trl.KTOTrainer),
        "reward": (trl.RewardConfig, trl.RewardTrainer),
        "rl": (trl.GRPOConfig, trl.GRPOTrainer),
    }[kind]
    words = tokenizer(text)
    where = model(words, folder / "model", head="score" if kind == "reward" else "lm")
    common: dict[str, Any] = {"output_dir": str(folder / "out"), "max_steps": STEPS, "per_device_train_batch_size": 2}
    common |= {"report_to": [], "save_strategy": "no", "use_cpu": True, "bf16": False, "gradient_checkpointing": False}
    common |= {"disable_tqdm": True, "logging_steps": 1}
    common |= {"max_completion_length": 8, "num_generations": 2} if kind == "rl" else {"max_length": LENGTH}
    more = {"reward_funcs": length_of} if kind == "rl" else {}
    run = trainer(model=where, args=config(**common), train_dataset=rows, processing_class=words, **more)
    return float(run.train().training_loss)


def length_of(completions: list[Any], **_: Any) -> list[float]:
    """Something to reward: what is learned is not the question here."""
    return [float(len(str(completion))) for completion in completions]


def main(folders: list[str]) -> None:
    from datasets import load_dataset

    for name in folders:
        folder = Path(name)
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        kind, target = manifest["choices"]["kind"], manifest["choices"]["target"]
        form = "parquet" if target == "parquet" else "json"
        rows = load_dataset(form, data_files=str(folder / manifest["splits"]["train"]["file"]), split="train")
        text = (folder / "train.jsonl").read_text(encoding="utf-8") if target == "trl" else ""
        loss = trained(kind, rows, folder / "trial", text) if text else None
        print(json.dumps({"kind": kind, "target": target, "rows": len(rows), "loss": loss}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
