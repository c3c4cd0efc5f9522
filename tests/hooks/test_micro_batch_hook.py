"""MicroBatchHook: iterations that run out of memory are repeated in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline.checkpoint import load_checkpoint
from hookline.hooks import (
    AmpOptimizerHook,
    CheckpointHook,
    EvalHook,
    GradientCumulativeOptimizerHook,
    MicroBatchHook,
    StopAtHook,
)
from tests.helpers import make_runner


class Limited(torch.autograd.Function):
    """The identity, which runs out of memory in the backward pass of more samples than a limit."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, limit: int) -> torch.Tensor:
        ctx.limit = limit
        return inputs.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        if len(gradient) > ctx.limit:
            raise torch.OutOfMemoryError("backward")
        return gradient, None


class Small(nn.Module):
    """A model for at most `limit` samples at a time; random numbers are drawn before it fails."""

    def __init__(self, limit: int = 10**6, backward_limit: int = 10**6) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(6, 8).double(), nn.Linear(8, 3).double()
        self.limit, self.backward_limit = limit, backward_limit
        self.eval_limit = 10**6

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        torch.rand(1)
        limit = self.limit if self.training else self.eval_limit
        if len(inputs) > limit:
            raise torch.OutOfMemoryError("forward")
        hidden = Limited.apply(self.first(inputs).tanh(), self.backward_limit)
        return self.last(hidden)


def data(count: int = 4, size: int = 37) -> list[Any]:
    generator = torch.Generator().manual_seed(3)
    return [
        (
            torch.randn(size, 6, dtype=torch.float64, generator=generator),
            torch.randint(3, (size,), generator=generator),
        )
        for _ in range(count)
    ]


def train(folder: Path, model: nn.Module, *hooks: Any, **options: Any) -> Any:
    runner = make_runner(
        folder, *hooks, model=model, **{"train_loader": data(), "seed": 1, **options}
    )
    runner.train()
    return runner


def close(a: nn.Module, b: nn.Module) -> bool:
    pairs = zip(a.parameters(), b.parameters(), strict=True)
    return all(torch.allclose(x, y, rtol=1e-12, atol=1e-13) for x, y in pairs)


@pytest.mark.parametrize("model", [Small(limit=16), Small(backward_limit=16)])
def test_weights_are_those_of_the_undisturbed_run(tmp_path: Path, model: nn.Module) -> None:
    hook = MicroBatchHook()
    runner = train(tmp_path, model, hook)
    plain = train(tmp_path, Small())
    assert close(model, plain.model)
    assert hook.size == 10  # 37, 19, 10
    assert (runner.iter, runner.optimizer_steps) == (plain.iter, plain.optimizer_steps)
    assert runner.outputs["predictions"].shape == (37, 3)


def test_it_works_with_accumulation_and_autocast(tmp_path: Path) -> None:
    owners = [GradientCumulativeOptimizerHook(cumulative_iters=2) for _ in range(2)]
    disturbed = train(tmp_path, Small(limit=16), MicroBatchHook(), owners[0])
    assert close(disturbed.model, train(tmp_path, Small(), owners[1]).model)
    runner = train(
        tmp_path,
        Small(limit=16).float(),
        MicroBatchHook(),
        AmpOptimizerHook(),
        train_loader=[(x.float(), y) for x, y in data()],
    )
    assert runner.optimizer_steps == 8


def test_the_size_is_kept_in_the_checkpoint(tmp_path: Path) -> None:
    save = [CheckpointHook(save_best=False), StopAtHook(iter=2)]
    train(tmp_path, Small(limit=16), MicroBatchHook(), *save)
    assert load_checkpoint(tmp_path / "last.pth")["hooks"]["MicroBatchHook"]["size"] == 10
    hook = MicroBatchHook()
    resumed = train(tmp_path, Small(limit=16), hook, CheckpointHook(save_best=False), resume="auto")
    assert hook.size == 10
    assert close(resumed.model, train(tmp_path / "plain", Small()).model)


def test_an_evaluation_shrinks_alone(tmp_path: Path) -> None:
    model = Small()
    model.eval_limit = 16
    hook = MicroBatchHook()
    runner = train(tmp_path, model, hook, EvalHook(), val_loader=data(2))
    plain = train(tmp_path, Small(), EvalHook(), val_loader=data(2))
    assert (hook.size, hook.eval_size) == (0, 10)
    assert runner.metrics["val_loss"] == pytest.approx(plain.metrics["val_loss"], rel=1e-12)


def test_a_single_sample_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(torch.OutOfMemoryError):
        train(tmp_path, Small(limit=0), MicroBatchHook())
    with pytest.raises(torch.OutOfMemoryError):
        train(tmp_path, Small(backward_limit=16))
