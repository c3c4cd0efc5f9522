"""Models that step their optimizers themselves."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.hooks import (
    FreezeHook,
    HistogramHook,
    ManualOptimizationHook,
    ParamSchedulerHook,
    ThroughputHook,
)
from tests.helpers import batches


class Steps(BaseHook):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def after_optimizer_step(self, runner):
        self.seen.append(runner.iter)


class TwoSteps(nn.Module):
    """Steps one optimizer twice and the other once, and skips every third iteration."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.count = 0

    def train_step(self, batch, optimizers):
        self.count += 1
        loss = nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        if self.count % 3:
            loss.backward()
            for optimizer in (optimizers["a"], optimizers["a"], optimizers["b"]):
                optimizer.step()
                optimizer.zero_grad(set_to_none=False)
        return {"loss": loss.detach()}


class WithClosure(nn.Module):
    """Steps LBFGS with a closure."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def train_step(self, batch, optimizer):
        def closure():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
            loss.backward()
            return loss

        return {"loss": optimizer.step(closure).detach()}


def two_optimizers(model: nn.Module) -> dict[str, torch.optim.Optimizer]:
    return {
        "a": torch.optim.SGD([model.layer.weight], lr=0.1),
        "b": torch.optim.SGD([model.layer.bias], lr=0.1),
    }


def test_an_iteration_with_several_steps_counts_as_one(tmp_path):
    model = TwoSteps()
    steps = Steps()
    runner = Runner(
        model,
        train_loader=batches(6),
        optimizer=two_optimizers(model),
        max_epochs=1,
        hooks=[steps],
        work_dir=tmp_path,
    ).train()
    assert steps.seen == [0, 1, 3, 4]
    assert runner.optimizer_steps == 4
    assert isinstance(runner.hook("ManualOptimizationHook"), ManualOptimizationHook)


def test_schedules_of_several_optimizers_count_these_steps(tmp_path):
    model = TwoSteps()
    optimizers = two_optimizers(model)
    schedulers = {
        name: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        for name, optimizer in optimizers.items()
    }
    Runner(
        model,
        train_loader=batches(6),
        optimizer=optimizers,
        scheduler=schedulers,
        max_epochs=1,
        hooks=[ParamSchedulerHook(by_epoch=False)],
        work_dir=tmp_path,
    ).train()
    assert optimizers["a"].param_groups[0]["lr"] == pytest.approx(0.1 * 0.5**4)


def test_lbfgs_trains_with_its_closure(tmp_path):
    torch.manual_seed(0)
    model = WithClosure()
    runner = Runner(
        model,
        train_loader=batches(2),
        optimizer=torch.optim.LBFGS(model.parameters(), max_iter=4),
        max_epochs=2,
        hooks=[ManualOptimizationHook()],
        work_dir=tmp_path,
    ).train()
    torch.manual_seed(0)
    plain = WithClosure()
    optimizer = torch.optim.LBFGS(plain.parameters(), max_iter=4)
    for _ in range(2):
        for batch in batches(2):
            plain.train_step(batch, optimizer)
    assert torch.equal(model.layer.weight, plain.layer.weight)
    assert runner.optimizer_steps == 4


def test_a_model_that_steps_itself_beside_optimizer_hook_gets_the_name_of_the_right_hook(tmp_path):
    model = WithClosure()
    runner = Runner(
        model,
        train_loader=batches(2),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
        work_dir=tmp_path,
    )
    with pytest.raises(RuntimeError) as caught:
        runner.train()
    assert any("ManualOptimizationHook" in note for note in caught.value.__notes__)


class NeverSteps(nn.Linear):
    def train_step(self, batch, optimizer):
        return {"loss": nn.functional.cross_entropy(self(batch[0]), batch[1]).detach()}


def test_an_epoch_without_a_step_is_reported(tmp_path, caplog):
    model = NeverSteps(6, 3)
    runner = Runner(
        model,
        train_loader=batches(2),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=3,
        hooks=[ManualOptimizationHook()],
        work_dir=tmp_path,
    ).train()
    assert runner.optimizer_steps == 0
    assert caplog.text.count("no optimizer has stepped in the first epoch") == 1


def test_hooks_that_wait_for_gradients_are_named(tmp_path, caplog):
    model = TwoSteps()
    parts = {"train_loader": batches(2), "optimizer": two_optimizers(model), "max_epochs": 1}
    hooks = [HistogramHook(interval=1), ThroughputHook(), FreezeHook("layer.bias", end=1)]
    Runner(model, hooks=hooks, work_dir=tmp_path, **parts).train()
    expected = (
        "after_backward is never called, because this run steps its optimizers itself: "
        "HistogramHook has it"
    )
    assert [each for each in caplog.messages if "after_backward" in each] == [expected]
    assert "no optimizer has stepped" not in caplog.text


def test_after_a_run_the_optimizers_are_no_longer_followed(tmp_path):
    model = TwoSteps()
    optimizers = two_optimizers(model)
    Runner(
        model, train_loader=batches(2), optimizer=optimizers, max_epochs=1, work_dir=tmp_path
    ).train()
    hook_lists = [optimizer._optimizer_step_post_hooks for optimizer in optimizers.values()]
    assert not any(hook_lists)
