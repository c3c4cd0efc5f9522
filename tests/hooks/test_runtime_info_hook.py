"""The state of a run for code without a runner."""

from __future__ import annotations

import torch

from hookline.engine import BaseHook
from hookline.hooks import EvalHook, RuntimeInfoHook
from hookline.metrics import build_metrics
from tests.helpers import batches, make_runner


def test_the_info_follows_the_run(tmp_path):
    hook, seen = RuntimeInfoHook(), []

    class Look(BaseHook):
        def before_train_iter(self, runner):
            seen.append((hook.info["epoch"], hook.info["iter"], hook.info["lr"]))

    runner = make_runner(
        tmp_path,
        hook,
        Look(),
        EvalHook(),
        val_loader=batches(1),
        metrics=build_metrics(["accuracy"]),
        seed=7,
    )
    runner.train()
    assert seen == [(index // 4, index, 0.1) for index in range(8)]
    info = runner.get_service("runtime_info")
    assert info is hook.info
    assert (info["max_epochs"], info["max_iters"], info["seed"]) == (2, 8, 7)
    assert info["metrics"] == dict(runner.metrics)
    assert isinstance(info["loss"], torch.Tensor)
    assert not info["loss"].requires_grad


def test_the_info_has_the_learning_rate_of_the_iteration(tmp_path):
    hook, seen = RuntimeInfoHook(), []

    class Change(BaseHook):
        def before_train_iter(self, runner):
            seen.append(hook.info["lr"])

        def after_train_iter(self, runner):
            runner.optimizer.param_groups[0]["lr"] = 1.0 + runner.iter

    make_runner(tmp_path, hook, Change(), max_iters=3).train()
    assert seen == [0.1, 1.0, 2.0]
