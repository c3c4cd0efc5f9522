"""Make what the fine-tuning examples need, without a download: two tiny models, their tokenizers and data.

    python examples/finetune/make_models.py [FOLDER]

The models have random weights, so training them is an exercise of the machinery, not of language. A real job names a model of the
Hugging Face hub, or a folder with one, in their place.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

GOOD = ["good", "great", "fine", "lovely", "bright"]
BAD = ["bad", "poor", "dull", "awful", "weak"]
THINGS = ["story", "film", "song", "book", "meal", "play", "idea", "end"]
SIZES = {"hidden": 128, "layers": 2, "heads": 4}


def main(folder: Path) -> None:
    """Write `bert/`, `gpt2/` and the files of data to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(0)
    reviews = [make_review(rng) for _ in range(600)]
    sums = [make_sum(rng) for _ in range(1200)]
    write_lines(folder / "reviews_train.jsonl", reviews[:480])
    write_lines(folder / "reviews_val.jsonl", reviews[480:])
    write_lines(folder / "sums_train.jsonl", sums[:1000])
    write_lines(folder / "sums_val.jsonl", sums[1000:])
    words = sorted({word for each in reviews for word in each["text"].split()})
    make_bert(folder / "bert", words)
    make_gpt2(folder / "gpt2", sums)


def make_review(rng: random.Random) -> dict[str, str]:
    is_good = rng.random() < 0.5
    words = [rng.choice(GOOD if is_good else BAD) for _ in range(rng.randint(1, 3))]
    thing = rng.choice(THINGS)
    return {"text": f"a {' '.join(words)} {thing}", "label": "positive" if is_good else "negative"}


def make_sum(rng: random.Random) -> dict[str, str]:
    one, other = rng.randint(0, 4), rng.randint(0, 4)
    return {"question": f"{one} + {other} =", "answer": f" {one + other}"}


def write_lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def make_bert(folder: Path, words: list[str]) -> None:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: index for index, word in enumerate([*special, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), special, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=SIZES["hidden"],
        num_hidden_layers=SIZES["layers"],
        num_attention_heads=SIZES["heads"],
        intermediate_size=4 * SIZES["hidden"],
        max_position_embeddings=32,
    )
    BertForSequenceClassification(config).save_pretrained(folder)


def make_gpt2(folder: Path, sums: list[dict[str, str]]) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<end>", "<pad>"])
    tokenizer.train_from_iterator([row["question"] + row["answer"] for row in sums], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", pad_token="<pad>")
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(fast),
        n_positions=64,
        n_embd=SIZES["hidden"],
        n_layer=SIZES["layers"],
        n_head=SIZES["heads"],
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=1,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "finetune"))
