"""`Runner.predict`: the predictions for all samples, in their order, with the weights of an evaluation."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hookline import BaseHook, HooklineError, Runner, make_loader
from hookline.hooks import EMAHook
from tests.helpers import Tracer, batches, small_model
from tests.problems import raises_problem


def inputs(count: int = 20) -> torch.Tensor:
    return torch.randn(count, 6, generator=torch.Generator().manual_seed(2))


def runner(folder: Path, model: nn.Module | None = None, **parts: Any) -> Runner:
    parts = {"loss_fn": nn.CrossEntropyLoss(), "device": "cpu", "work_dir": folder, **parts}
    return Runner(model or small_model(), **parts)


@pytest.mark.parametrize(
    "loader",
    [
        list(inputs().split(8)),
        DataLoader(TensorDataset(inputs()), 8),
        DataLoader(TensorDataset(inputs(), torch.zeros(20)), 8),
        make_loader(TensorDataset(inputs(), torch.zeros(20)), batch_size=8),
        [{"inputs": part} for part in inputs().split(8)],
    ],
    ids=["tensors", "inputs", "inputs and targets", "make_loader", "dicts"],
)
def test_predictions_of_every_kind_of_batch_are_those_of_the_model(tmp_path, loader):
    run = runner(tmp_path)
    expected = run.model.eval()(inputs())
    torch.testing.assert_close(run.predict(loader), expected.detach())


def test_the_test_data_is_the_default(tmp_path):
    run = runner(tmp_path, test_loader=batches(3))
    assert run.predict().shape == (24, 3)


def test_several_loaders_give_predictions_by_name(tmp_path):
    run = runner(tmp_path)
    result = run.predict({"a": batches(1), "b": batches(2)})
    assert {name: each.shape for name, each in result.items()} == {"a": (8, 3), "b": (16, 3)}


class Boxes(nn.Module):
    """A model with its own prediction, of another length for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def predict_step(self, batch: torch.Tensor) -> list[torch.Tensor]:
        return [torch.zeros(index, 4) for index in range(len(batch))]


class Scores(nn.Module):
    """A model that returns a dict with its loss, as those of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, Any]:
        return OrderedDict(loss=None, logits=self.layer(x))


class Own(Scores):
    """A model with a `val_step`, whose predictions are used."""

    def val_step(self, batch: torch.Tensor) -> dict[str, Any]:
        return {"predictions": {"first": batch[:, 0], "length": batch.norm(dim=1)}}


def test_a_model_may_have_its_own_prediction(tmp_path):
    result = runner(tmp_path, Boxes()).predict([inputs(3), inputs(2)])
    assert [len(each) for each in result] == [0, 1, 2, 0, 1]


def test_a_model_that_computes_its_loss_is_called_with_the_whole_batch(tmp_path):
    run = runner(tmp_path, Scores(), loss_fn=None)
    assert run.predict([{"x": inputs(4)}]).shape == (4, 3)


def test_predictions_of_several_parts_are_dicts_by_sample(tmp_path):
    result = runner(tmp_path, Own()).predict([inputs(3), inputs(2)])
    assert [set(each) for each in result] == [{"first", "length"}] * 5
    assert torch.equal(result[0]["first"], inputs(3)[0, 0])


def test_a_prediction_has_its_own_sites_and_leaves_the_model_in_its_mode(tmp_path):
    tracer = Tracer()
    run = runner(tmp_path, hooks=[tracer])
    seen = []

    class Look(BaseHook):
        def before_predict(self, runner: Any) -> None:
            seen.append(runner.mode)

    run.register_hook(Look())
    run.model.train()
    run.predict(batches(1))
    assert tracer.log == ["before_run", "before_predict", "after_predict", "after_run", "cleanup"]
    assert seen == ["predict"]
    assert run.model.training


def test_the_averaged_weights_predict(tmp_path):
    model = small_model()
    hook = EMAHook(momentum=0.9)
    run = runner(
        tmp_path,
        model,
        train_loader=batches(4),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        hooks=[hook],
        max_epochs=1,
    ).train()
    with hook.averaged():
        expected = model.eval()(inputs()).detach()
    assert not torch.equal(model(inputs()), expected)
    torch.testing.assert_close(run.predict([inputs()]), expected)


def test_weights_of_a_checkpoint_predict_before_any_training(tmp_path):
    other = small_model(seed=5)
    torch.save(other.state_dict(), tmp_path / "other.pth")
    run = runner(tmp_path, load_from=tmp_path / "other.pth")
    torch.testing.assert_close(run.predict([inputs()]), other.eval()(inputs()).detach())


class Samples(Dataset[Any]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return inputs()[index]


@pytest.mark.parametrize("loader", [None, Samples()])
def test_data_that_cannot_be_predicted_is_an_error(tmp_path, loader):
    with raises_problem(HooklineError, parameter="loader"):
        runner(tmp_path).predict(loader)


def test_a_batch_without_inputs_is_an_error(tmp_path):
    with raises_problem(HooklineError, parameter="loader"):
        runner(tmp_path).predict([{"tokens": inputs()}])
