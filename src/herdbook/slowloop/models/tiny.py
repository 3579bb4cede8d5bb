"""A small model made on the spot, for demonstrations and tests where nothing can be downloaded. Needs herdbook[train].

Random weights in a Qwen3 architecture with a vocabulary of the dataset's own: it knows nothing, and has the chat template whose
tool calls common servers understand. What it learns afterwards, it learned from the record alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

SPECIAL: Final = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
)
VOCABULARY: Final = 1_000
SHAPE: Final = {
    "hidden_size": 96,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 24,
    "max_position_embeddings": 1_024,
    "tie_word_embeddings": True,
}
# Our own wording, in the marks of the family: servers find the calls by these marks. The tools' schemas are shortened to names.
TEMPLATE: Final = """\
{%- for message in messages %}
{{- '<|im_start|>' + ('user' if message.role == 'tool' else message.role) + '\\n' }}
{%- if message.role == 'tool' %}{{- '<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{%- elif message.content %}{{- message.content }}{% endif %}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n' + {'name': call.function.name, 'arguments': call.function.arguments} | tojson + '\\n</tool_call>' }}
{%- endfor %}
{%- if loop.first %}{% for tool in tools or [] %}{{- '\\n# ' + tool.function.name }}{% endfor %}{% endif %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}
"""


def make(folder: Path, rows: Path, *, seed: int) -> int:
    """An untrained model whose words are those of a dataset in TRL's form; the number of its parameters."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = tokenizer_for([json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()[:500]])
    torch.manual_seed(seed)
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=len(tokenizer), **SHAPE, **ends))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return int(model.num_parameters())


def tokenizer_for(rows: list[dict[str, Any]]) -> Any:
    """A byte-level vocabulary learned from these conversations, with the template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()

    def wrapped() -> Any:
        found = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|im_end|>", pad_token="<|endoftext|>")
        found.chat_template = TEMPLATE
        return found

    plain = wrapped()
    texts = [plain.apply_chat_template(row["prompt"] + row["completion"], tools=row["tools"], tokenize=False) for row in rows]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=list(SPECIAL), initial_alphabet=alphabet)
    words.train_from_iterator(texts, trainer)
    return wrapped()
