"""The shared parts of the adapters, which need no other framework."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from hookline.compat.foreign import AliasedMetrics, ChangedAttributes, ForeignHook
from hookline.compat.foreign.losses import MAX_PENDING, RunningLoss
from hookline.compat.foreign.state import decode, encode, select_plain
from hookline.compat.foreign.steps import accumulation_steps, count_optimizer_steps
from hookline.engine import BaseRunner
from hookline.hooks import GradientCumulativeOptimizerHook, OptimizerHook


def outputs(loss: float, samples: int) -> dict[str, torch.Tensor]:
    return {"loss": torch.tensor(loss), "targets": torch.zeros(samples)}


def make_runner(tmp_path, owner, epoch_length):
    model = torch.nn.Linear(2, 1)
    runner = BaseRunner(
        model,
        [torch.zeros(1, 2)] * epoch_length,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        max_epochs=1,
        work_dir=tmp_path,
        hooks=[owner],
    )
    runner.epoch_length = epoch_length
    return runner


def test_running_loss_is_weighted_by_samples_on_request():
    weighted, plain = RunningLoss(), RunningLoss(weighted=False)
    for loss in (weighted, plain):
        loss.add(outputs(1.0, 3))
        loss.add(outputs(5.0, 1))
    assert weighted.compute() == 2.0
    assert plain.compute() == 3.0


def test_running_loss_is_the_same_with_and_without_waiting():
    lazy, eager = RunningLoss(), RunningLoss()
    for number in range(MAX_PENDING + 3):
        lazy.add(outputs(number / 7, number % 5 + 1))
        latest = eager.add_and_compute(outputs(number / 7, number % 5 + 1))
    assert lazy.compute() == latest == eager.compute()


def test_running_loss_continues_from_its_state():
    loss, resumed = RunningLoss(), RunningLoss()
    assert not loss.has_losses
    assert math.isnan(loss.compute())
    loss.add(outputs(1.0, 3))
    resumed.load(loss.state())
    assert resumed.has_losses
    resumed.add(outputs(5.0, 1))
    assert resumed.compute() == 2.0


def test_aliased_metrics_find_every_spelling_of_a_name():
    metrics = AliasedMetrics(val_accuracy=0.5)
    assert metrics["acc"] == metrics["val/accuracy"] == metrics.get("accuracy") == 0.5
    assert "val_acc" in metrics
    assert "loss" not in metrics
    assert metrics.get("loss", 1.0) == 1.0
    with pytest.raises(KeyError):
        metrics["loss"]


def test_arrays_survive_encoding_and_are_copied():
    state = {"a": [np.arange(3), (1, "x")], "b": {"c": np.eye(2, dtype=np.float32)}}
    restored = decode(encode(state))
    assert np.array_equal(restored["a"][0], state["a"][0])
    assert restored["a"][1] == (1, "x")
    assert restored["b"]["c"].dtype == np.float32
    restored["a"][0][0] = 9
    assert state["a"][0][0] == 0


def test_values_that_are_not_plain_are_rejected_by_key():
    rejected = []
    state = {"good": 1, "texts": np.array(["x"], dtype=object), "bad": object()}
    assert select_plain(state, rejected.append) == {"good": 1}
    assert rejected == ["texts", "bad"]


def test_only_changed_attributes_are_state():
    class Callback:
        def __init__(self):
            self.patience = 3
            self.wait = 0
            self.best = torch.zeros(2)
            self.handle = object()

    callback, resumed = Callback(), Callback()
    changed = ChangedAttributes(callback)
    assert changed.collect() == {}
    callback.wait = 2
    callback.best[0] = 1
    state = changed.collect()
    assert sorted(state) == ["best", "wait"]
    resumed.patience = 5
    ChangedAttributes(resumed).restore(state)
    assert (resumed.patience, resumed.wait, resumed.best.tolist()) == (5, 2, [1.0, 0.0])


def test_a_wrapped_callback_gives_its_name_to_the_hook():
    class Base:
        def end(self): ...

    class Example(Base):
        def end(self): ...

    class ExampleHook(ForeignHook):
        base = Base
        expected = "an instance of Base"
        calls = {"after_train": ("end",), "before_train": ("begin",)}

        def before_train(self, runner): ...
        def after_train(self, runner): ...

    hook = ExampleHook.wrap(Example())
    assert type(hook).__name__ == "Example"
    assert hook.get_triggered_stages() == ["after_train"]
    with pytest.raises(TypeError, match="an instance of Base"):
        ExampleHook.wrap(object())


def test_an_epoch_ends_with_an_optimizer_step(tmp_path):
    runner = make_runner(tmp_path, GradientCumulativeOptimizerHook(cumulative_iters=4), 6)
    assert accumulation_steps(runner) == 4
    assert [count_optimizer_steps(runner, iters) for iters in (0, 4, 5, 6, 12, 16)] == [
        *(0, 1, 2, 2, 4, 5)
    ]
    plain = make_runner(tmp_path, OptimizerHook(), 6)
    assert count_optimizer_steps(plain, 7) == 7
