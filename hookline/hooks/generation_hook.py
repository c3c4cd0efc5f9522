"""Generate text in validations, measure it and show examples."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from hookline.batches import IGNORED, named_loaders
from hookline.data.collators import padding_token
from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.errors import HooklineError, Suggestion, require_at_least
from hookline.metrics import Metric, build_metrics
from hookline.metrics.evaluators import full_name

COLUMNS = ("prompt", "expected", "generated")
CELL_CHARACTERS = 60
NEEDS_TEXT = Suggestion(advice="use a causal language model of transformers and the data set text")


@HOOKS.register()
@dataclass
class GenerationHook(BaseHook):
    """Generate text for the data of each evaluation, measure it and show examples in the report.

    The prompt of a sample is its tokens before the first label that is not -100, as in the data set
    `text` with `completion`. The model continues it with the most likely tokens, without random
    numbers. The model needs `generate`, as those of transformers have it, and the data set a
    `tokenizer`.

    Args:
        max_new_tokens: The largest number of tokens to generate.
        metrics: Metrics of generated and expected texts, such as `exact_match`; also as a mapping
            by name.
        num_examples: The number of examples in the report.

    Example:
        ```yaml
        hooks:
          - {type: GenerationHook, max_new_tokens: 16}
        ```
    """

    max_new_tokens: int = 32
    metrics: list[Any] | dict[str, Any] = field(default_factory=lambda: ["exact_match"])
    num_examples: int = 8

    ranks = "collective"

    def __post_init__(self) -> None:
        require_at_least(self, 1, "max_new_tokens")
        require_at_least(self, 0, "num_examples")
        self._metrics = build_metrics(self.metrics)
        self._by_set: dict[str, dict[str, Metric]] = {}
        self._examples: list[tuple[str, ...]] = []

    def before_run(self, runner: BaseRunner) -> None:
        if not callable(getattr(runner.model, "generate", None)):
            message = f"{self.name}: {type(runner.model).__name__} has no method 'generate'"
            raise HooklineError(message, suggestion=NEEDS_TEXT)

    def before_val_epoch(self, runner: BaseRunner) -> None:
        self._begin(runner.val_loader)

    def before_test_epoch(self, runner: BaseRunner) -> None:
        self._begin(runner.test_loader)

    def after_val_iter(self, runner: BaseRunner) -> None:
        self._generate(runner, runner.val_loader)

    def after_test_iter(self, runner: BaseRunner) -> None:
        self._generate(runner, runner.test_loader)

    def after_val_epoch(self, runner: BaseRunner) -> None:
        self._record(runner, "val")

    def after_test_epoch(self, runner: BaseRunner) -> None:
        self._record(runner, "test")

    def _begin(self, loaders: Any) -> None:
        self._examples = []
        self._by_set = {}
        for name in named_loaders(loaders):
            self._by_set[name] = deepcopy(self._metrics)
            for metric in self._by_set[name].values():
                metric.reset()

    def _generate(self, runner: BaseRunner, loaders: Any) -> None:
        name = runner.evaluation.set_name
        tokenizer = getattr(named_loaders(loaders)[name].dataset, "tokenizer", None)
        if tokenizer is None:
            raise HooklineError(f"{self.name}: the data has no tokenizer", suggestion=NEEDS_TEXT)
        prompts, expected = self._split(runner.batch)
        pad_id = padding_token(tokenizer)
        inputs = _pad_left(prompts, pad_id)
        model: Any = runner.model
        outputs = model.generate(
            **inputs,
            max_new_tokens=self.max_new_tokens,
            do_sample=False,
            num_beams=1,
            pad_token_id=pad_id,  # after the end of a text
        )
        new = outputs[:, inputs["input_ids"].shape[1] :]
        texts = [
            tokenizer.batch_decode(part, skip_special_tokens=True)
            for part in (prompts, expected, new.tolist())
        ]
        for metric in self._by_set[name].values():
            metric.update(texts[2], texts[1])
        missing = self.num_examples - len(self._examples)
        self._examples += list(zip(*texts, strict=True))[: max(missing, 0)]

    def _split(self, batch: Any) -> tuple[list[Tensor], list[Tensor]]:
        """Return the tokens of the prompts and the expected tokens of a batch."""
        needed = {"input_ids", "labels", "attention_mask"}
        has_labels = isinstance(batch, Mapping) and needed <= batch.keys()
        if not has_labels or batch["labels"].ndim != 2 or batch["attention_mask"].ndim != 2:
            message = f"{self.name}: needs batches with a prompt in each row, and its labels"
            raise HooklineError(message, suggestion=NEEDS_TEXT)
        prompts = []
        expected = []
        rows = (batch["input_ids"], batch["labels"], batch["attention_mask"].bool())
        for ids, labels, is_token in zip(*rows, strict=True):
            is_later = (labels != IGNORED).cumsum(0) > 0
            prompts.append(ids[is_token & ~is_later])
            expected.append(labels[labels != IGNORED])
        if any(len(prompt) == 0 for prompt in prompts):
            message = f"{self.name}: a sample has no prompt: all of its tokens have labels"
            raise HooklineError(message, suggestion=NEEDS_TEXT)
        return prompts, expected

    def _record(self, runner: BaseRunner, mode: str) -> None:
        for name, metrics in self._by_set.items():
            for key, metric in metrics.items():
                runner.metrics[full_name(name, key, mode)] = float(metric.compute())
        if self._examples:
            runner.events.put_text(f"generated/{mode}", _as_table(self._examples))


def _pad_left(prompts: list[Tensor], pad_id: int) -> dict[str, Tensor]:
    """Return prompts of different lengths as the inputs of `generate`."""
    width = max(len(prompt) for prompt in prompts)
    input_ids = prompts[0].new_full((len(prompts), width), pad_id)
    mask = torch.zeros_like(input_ids)
    for row, prompt in enumerate(prompts):
        input_ids[row, width - len(prompt) :] = prompt
        mask[row, width - len(prompt) :] = 1
    return {"input_ids": input_ids, "attention_mask": mask}


def _as_table(examples: list[tuple[str, ...]]) -> str:
    """Return examples as text in aligned columns, with a mark at those that differ."""
    rows: list[tuple[str, ...]] = [("", *COLUMNS)]
    for prompt, expected, generated in examples:
        mark = "" if generated.strip() == expected.strip() else "≠"
        rows.append((mark, *(_cell(text) for text in (prompt, expected, generated))))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _cell(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= CELL_CHARACTERS else f"{line[: CELL_CHARACTERS - 1]}…"
