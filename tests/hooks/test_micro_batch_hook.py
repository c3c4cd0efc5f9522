"""MicroBatchHook: iterations that run out of memory are repeated in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline.checkpoint import load_checkpoint
from hookline.errors import ConfigError
from hookline.hooks import (
    AmpOptimizerHook,
    CheckpointHook,
    EvalHook,
    GradientCumulativeOptimizerHook,
    ManualOptimizationHook,
    MicroBatchHook,
    OptimizerHook,
    SAMHook,
    StopAtHook,
)
from tests.helpers import make_runner
from tests.optim.small_memory import Small, small_batches


def train(folder: Path, model: nn.Module, *hooks: Any, **options: Any) -> Any:
    runner = make_runner(
        folder, *hooks, model=model, **{"train_loader": small_batches(4), "seed": 1, **options}
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


class Failing(Small):
    """A model that runs out of memory in one backward pass, with partial gradients."""

    def __init__(self, failing_call: int) -> None:
        super().__init__()
        self.failing_call = failing_call
        self.calls = 0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.backward_limit = 16 if self.calls == self.failing_call else 10**6
        self.calls += 1
        return super().forward(inputs)


@pytest.mark.parametrize("failing_call", [0, 1, 2])
def test_gradients_of_earlier_batches_survive_a_failed_backward_pass(
    tmp_path: Path, failing_call: int
) -> None:
    owners = [GradientCumulativeOptimizerHook(cumulative_iters=3) for _ in range(2)]
    model = Failing(failing_call)
    runner = train(tmp_path, model, MicroBatchHook(), owners[0])
    plain = train(tmp_path, Small(), owners[1])
    assert model.calls > 8
    assert close(model, plain.model)
    assert runner.optimizer_steps == plain.optimizer_steps


def test_a_run_that_fits_is_bit_equal_to_one_without_the_hook(tmp_path: Path) -> None:
    runner = train(tmp_path, Small(), MicroBatchHook(), OptimizerHook(grad_clip={"max_norm": 0.1}))
    plain = train(tmp_path, Small(), OptimizerHook(grad_clip={"max_norm": 0.1}))
    for one, other in zip(runner.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_activations_above_a_limit_count_as_out_of_memory(tmp_path: Path) -> None:
    model = Small()
    # Per sample: 6 inputs, 8 hidden values and their copy, 3 log-probabilities, a target.
    hook = MicroBatchHook(activation_limit_mb=16 * (6 + 8 + 8 + 3 + 1) * 8 / 1e6)
    runner = train(tmp_path, model, hook)
    assert hook.size == 10
    assert runner.optimizer_steps == 8
    assert close(model, train(tmp_path, Small()).model)


@pytest.mark.parametrize("model", [Small(limit=16), Small(backward_limit=16)])
def test_buffers_of_a_failed_attempt_are_restored(tmp_path: Path, model: nn.Module) -> None:
    model.norm = nn.BatchNorm1d(6).double()
    model.register_forward_pre_hook(lambda module, inputs: (module.norm(inputs[0]),))
    train(tmp_path, model, MicroBatchHook(), max_epochs=1)
    assert model.norm.num_batches_tracked == 4 * 4  # parts of 10, 10, 10 and 7 samples


def test_a_loss_scale_is_used_for_each_part(tmp_path: Path) -> None:
    scale = {"loss_scale": 1024.0, "dtype": "float16"}
    seen: list[float] = []
    model = Small(limit=16)
    model.last.weight.register_hook(lambda gradient: seen.append(gradient.abs().max().item()))
    runner = train(tmp_path, model, MicroBatchHook(), AmpOptimizerHook(**scale))
    plain = Small()
    expected: list[float] = []
    plain.last.weight.register_hook(lambda gradient: expected.append(gradient.abs().max().item()))
    train(tmp_path, plain, AmpOptimizerHook(**scale))
    assert runner.optimizer_steps == 8
    assert max(seen) > 0.5 * max(expected)  # scaled as in the undisturbed run


class Stepping(nn.Linear):
    def train_step(self, batch: Any, optimizer: Any) -> dict[str, Any]:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("hooks", "parts"),
    [
        ([ManualOptimizationHook()], {"model": Stepping(6, 3)}),
        ([], {"loss_fn": nn.CrossEntropyLoss(reduction="sum")}),
    ],
)
def test_an_iteration_that_cannot_be_divided_is_an_error_before_training(
    tmp_path: Path, hooks: list[Any], parts: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError) as caught:
        make_runner(tmp_path, MicroBatchHook(), *hooks, **parts).train()
    assert caught.value.component == "MicroBatchHook"


def test_it_works_with_accumulation_and_autocast(tmp_path: Path) -> None:
    owners = [GradientCumulativeOptimizerHook(cumulative_iters=2) for _ in range(2)]
    disturbed = train(tmp_path, Small(limit=16), MicroBatchHook(), owners[0])
    assert close(disturbed.model, train(tmp_path, Small(), owners[1]).model)
    runner = train(
        tmp_path,
        Small(limit=16).float(),
        MicroBatchHook(),
        AmpOptimizerHook(),
        train_loader=[(x.float(), y) for x, y in small_batches(4)],
    )
    assert runner.optimizer_steps == 8


@pytest.mark.parametrize("make", [lambda: SAMHook(rho=0.05), OptimizerHook])
def test_closures_and_sam_evaluate_a_batch_in_parts(tmp_path: Path, make: Any) -> None:
    def optimizer(model: nn.Module) -> torch.optim.Optimizer:
        if make is OptimizerHook:
            return torch.optim.LBFGS(model.parameters(), max_iter=3)
        return torch.optim.SGD(model.parameters(), lr=0.1)

    model, plain = Small(backward_limit=16), Small()
    train(tmp_path, model, MicroBatchHook(), make(), optimizer=optimizer(model))
    train(tmp_path, plain, make(), optimizer=optimizer(plain))
    for one, other in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(one, other, rtol=1e-8, atol=1e-9)


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
    runner = train(tmp_path, model, hook, EvalHook(), val_loader=small_batches(2))
    plain = train(tmp_path, Small(), EvalHook(), val_loader=small_batches(2))
    assert (hook.size, hook.eval_size) == (0, 10)
    assert runner.metrics["val_loss"] == pytest.approx(plain.metrics["val_loss"], rel=1e-12)


def test_a_single_sample_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(torch.OutOfMemoryError):
        train(tmp_path, Small(limit=0), MicroBatchHook())
    with pytest.raises(torch.OutOfMemoryError):
        train(tmp_path, Small(backward_limit=16))
