"""GenerationHook: the texts that it generates, their metrics and the table in the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline import HooklineError, Runner, make_loader
from hookline.data.collators import PaddingCollator
from hookline.hooks import EvalHook, GenerationHook
from hookline.report.collect import RunReader
from tests.text_parts import LETTERS, LetterModel, Letters, NextLetter, knowing_model


def run(folder: Path, hook: GenerationHook, model: nn.Module | None = None, **parts: Any) -> Runner:
    data = {"val_loader": make_loader(NextLetter(9), batch_size=4), **parts}
    return Runner(model or knowing_model(), hooks=[hook], device="cpu", work_dir=folder, **data)


def test_every_sample_is_compared_with_its_generated_text(tmp_path):
    metrics = run(tmp_path, GenerationHook(max_new_tokens=6)).validate()
    assert metrics["exact_match"] == pytest.approx(8 / 9)  # The model does not know fg.


def test_a_text_that_is_cut_does_not_match(tmp_path):
    metrics = run(tmp_path, GenerationHook(max_new_tokens=1)).validate()
    assert metrics["exact_match"] == pytest.approx(1 / 9)  # One completion is a single letter.


def test_the_test_data_and_each_named_set_have_their_own_result(tmp_path):
    loaders = {name: make_loader(NextLetter(count), 4) for name, count in (("a", 1), ("b", 9))}
    hook = GenerationHook(max_new_tokens=6)
    runner = run(tmp_path, hook, val_loader=loaders, test_loader=make_loader(NextLetter(5), 4))
    metrics = runner.validate()
    assert metrics["a/exact_match"] == 1
    assert 0 < metrics["b/exact_match"] < 1
    assert runner.test()["exact_match"] == pytest.approx(0.8)


def test_examples_are_in_the_report_and_wrong_ones_are_marked(tmp_path):
    model = LetterModel()
    runner = run(
        tmp_path,
        GenerationHook(max_new_tokens=6, num_examples=2),
        model,
        train_loader=make_loader(NextLetter(), batch_size=8),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
    )
    runner.train()
    records = RunReader(tmp_path).read()["records"]
    (record,) = [each for each in records if each["name"] == "generated/val"]
    lines = record["text"].splitlines()
    assert len(lines) == 3
    assert lines[0].split() == ["prompt", "expected", "generated"]
    assert all("≠" in line for line in lines[1:])


class WithoutPadding(Letters):
    """A tokenizer without a token for padding, in which token 0 is a letter."""

    pad_token_id = None

    def batch_decode(self, rows: Any, skip_special_tokens: bool = False) -> list[str]:
        return ["".join(LETTERS[int(token)] for token in row if token != 1) for row in rows]


class PaddingModel(LetterModel):
    """A model that pads the texts that have ended, as those of transformers do."""

    def generate(self, input_ids: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        tokens = super().generate(input_ids, *args, **options)
        new = tokens[:, input_ids.shape[1] :]
        ends = (new == Letters.eos_token_id).cumsum(1)
        new[:, 1:][ends[:, :-1] > 0] = options["pad_token_id"]
        return tokens


def test_a_tokenizer_without_padding_pads_generated_texts_with_its_end(tmp_path):
    data = NextLetter(9)
    data.tokenizer = WithoutPadding()
    model = PaddingModel()
    model.load_state_dict(knowing_model().state_dict())
    loader = make_loader(data, batch_size=4)
    metrics = run(tmp_path, GenerationHook(max_new_tokens=6), model, val_loader=loader).validate()
    assert metrics["exact_match"] == pytest.approx(8 / 9)


def test_batches_without_a_mask_are_an_error(tmp_path):
    class Unmasked(NextLetter):
        @staticmethod
        def collate_fn(samples):
            batch = PaddingCollator()(samples)
            del batch["attention_mask"]
            return batch

    with pytest.raises(HooklineError):
        run(tmp_path, GenerationHook(), val_loader=make_loader(Unmasked(4), 2)).validate()


def lengths(texts: list[str], expected: list[str]) -> torch.Tensor:
    return torch.tensor([float(len(text)) for text in texts])


def test_other_metrics_of_texts_are_measured(tmp_path):
    hook = GenerationHook(max_new_tokens=5, metrics={"length": lengths})
    metrics = run(tmp_path, hook).validate()
    assert "exact_match" not in metrics
    assert 1 < metrics["length"] < 5  # The end token ends a text.


def test_the_best_checkpoint_may_follow_generated_text(tmp_path):
    model = LetterModel()
    hooks = [GenerationHook(max_new_tokens=6), EvalHook(save_best="exact_match")]
    Runner(
        model,
        train_loader=make_loader(NextLetter(), batch_size=8, shuffle=True),
        val_loader=make_loader(NextLetter(9), batch_size=4),
        optimizer=torch.optim.SGD(model.parameters(), lr=5.0),
        hooks=hooks,
        max_epochs=3,
        device="cpu",
        work_dir=tmp_path,
    ).train()
    assert (tmp_path / "best_exact_match.pth").is_file()


class Plain(LetterModel):
    """A model without a generation."""

    generate = None  # type: ignore[assignment]


def test_a_model_without_generation_is_an_error_before_training(tmp_path):
    with pytest.raises(HooklineError):
        run(tmp_path, GenerationHook(), Plain()).validate()


class Whole(NextLetter):
    """Data in which every token has a label."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        ids = super().__getitem__(index)["input_ids"]
        return {"input_ids": ids, "labels": ids}


class WithoutTokenizer(NextLetter):
    def __init__(self) -> None:
        super().__init__()
        del self.tokenizer

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": [2, 3], "labels": [-100, 4]}


@pytest.mark.parametrize("data", [Whole(), WithoutTokenizer()], ids=["prompt", "tokenizer"])
def test_data_without_prompts_or_tokenizer_is_an_error(tmp_path, data):
    with pytest.raises(HooklineError):
        run(tmp_path, GenerationHook(), val_loader=make_loader(data, 4)).validate()
