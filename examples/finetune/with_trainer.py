"""The two fine-tuning jobs of this folder with the Trainer of Hugging Face, to compare with the configs.

python examples/finetune/make_models.py
python examples/finetune/with_trainer.py classification|causal_lm
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import load_dataset
from peft import LoraConfig, get_peft_model
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)

CLASSES = ["negative", "positive"]
JOBS: dict[str, dict[str, Any]] = {
    "classification": {"folder": "runs/reviews_trainer", "epochs": 3, "lr": 2e-3},
    "causal_lm": {"folder": "runs/sums_trainer", "epochs": 8, "lr": 3e-3},
}


class InOrder(Trainer):
    """A Trainer that reads the samples in a given order."""

    order: Sequence[int] | None = None

    def _get_train_sampler(self, *arguments: Any) -> Any:
        return super()._get_train_sampler(*arguments) if self.order is None else self.order


def classification() -> tuple[Any, Any, Any]:
    """Return model, samples and collator of the classification."""
    tokenizer = AutoTokenizer.from_pretrained("finetune/bert")

    def encode(rows: dict[str, list[str]]) -> dict[str, Any]:
        labels = [CLASSES.index(label) for label in rows["label"]]
        return {**tokenizer(rows["text"], truncation=True, max_length=32), "labels": labels}

    set_seed(1)
    base = AutoModelForSequenceClassification.from_pretrained("finetune/bert", num_labels=2)
    modules = ["query", "key", "value", "dense"]
    lora = LoraConfig(task_type="SEQ_CLS", r=32, lora_alpha=64, target_modules=modules)
    return get_peft_model(base, lora), read("reviews", encode), DataCollatorWithPadding(tokenizer)


def causal_lm() -> tuple[Any, Any, Any]:
    """Return model, samples and collator of the language model."""
    tokenizer = AutoTokenizer.from_pretrained("finetune/gpt2")

    def encode(rows: dict[str, list[str]]) -> dict[str, Any]:
        prompts = tokenizer(rows["question"])["input_ids"]
        answers = tokenizer(rows["answer"], add_special_tokens=False)["input_ids"]
        input_ids = []
        labels = []
        for prompt, answer in zip(prompts, answers, strict=True):
            learned = [*answer, tokenizer.eos_token_id]
            input_ids.append((prompt + learned)[:32])
            labels.append(([-100] * len(prompt) + learned)[:32])
        masks = [[1] * len(ids) for ids in input_ids]
        return {"input_ids": input_ids, "attention_mask": masks, "labels": labels}

    set_seed(1)
    base = AutoModelForCausalLM.from_pretrained("finetune/gpt2")
    lora = LoraConfig(
        task_type="CAUSAL_LM",
        r=32,
        lora_alpha=64,
        target_modules=["c_attn", "c_proj", "c_fc"],
        modules_to_save=["ln_f"],
        fan_in_fan_out=True,
    )
    return get_peft_model(base, lora), read("sums", encode), DataCollatorForSeq2Seq(tokenizer)


def read(name: str, encode: Any) -> Any:
    rows = load_dataset("json", data_files=f"finetune/{name}_train.jsonl", split="train")
    return rows.map(encode, batched=True, remove_columns=rows.column_names)


def make_trainer(
    job: str, folder: str | Path, epochs: int, cls: type = InOrder, **options: Any
) -> Any:
    """Return the Trainer of a job."""
    model, samples, collator = {"classification": classification, "causal_lm": causal_lm}[job]()
    arguments = TrainingArguments(
        str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=16,
        learning_rate=JOBS[job]["lr"],
        lr_scheduler_type="constant",
        optim="adamw_torch",
        max_grad_norm=1.0,
        save_strategy="epoch",
        save_total_limit=1,
        seed=1,
        use_cpu=True,
        disable_tqdm=True,
        report_to=[],
        **options,
    )
    trainer = cls(model, arguments, train_dataset=samples, data_collator=collator)
    trainer.remove_callback(PrinterCallback)
    return trainer


if __name__ == "__main__":
    chosen = sys.argv[1]
    trained = make_trainer(chosen, JOBS[chosen]["folder"], JOBS[chosen]["epochs"])
    print(trained.train().metrics)
