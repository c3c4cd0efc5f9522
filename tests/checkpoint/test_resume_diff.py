"""Config changes between a checkpoint and the resumed run take effect and are logged."""

from __future__ import annotations

import logging

import pytest
import torch

from hookline import Runner
from hookline.checkpoint.resume_diff import config_changes, hyperparameters, reapply_changes
from hookline.engine.run_state import capture
from hookline.hooks import CheckpointHook
from tests.helpers import batches, small_model
from tests.problems import logged


def run(folder, lr=0.1, momentum=0.0, scheduler=None, model=None, **parts) -> Runner:
    torch.manual_seed(0)
    model = model or small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    runner = Runner(
        model,
        train_loader=batches(2),
        optimizer=optimizer,
        loss_fn=torch.nn.CrossEntropyLoss(),
        work_dir=folder,
        hooks=[CheckpointHook()],
        scheduler=scheduler(optimizer) if scheduler else None,
        **parts,
    )
    runner.train()
    return runner


def test_a_changed_learning_rate_takes_effect_after_a_resume_and_is_logged(tmp_path, caplog):
    run(tmp_path, max_epochs=1)
    with caplog.at_level(logging.WARNING, logger="hookline"):
        resumed = run(tmp_path, lr=0.02, momentum=0.5, max_epochs=2, resume="auto")
    assert resumed.optimizer.param_groups[0]["lr"] == 0.02
    assert resumed.optimizer.param_groups[0]["momentum"] == 0.5
    assert logged(caplog, "lr: 0.1 → 0.02")
    assert logged(caplog, "momentum: 0.0 → 0.5")


def test_a_rate_that_only_a_schedule_changed_is_kept(tmp_path, caplog):
    first = run(tmp_path, max_epochs=1)
    first.optimizer.param_groups[0]["lr"] = 0.05  # as a schedule would
    first.checkpointer.store.prepare()
    first.checkpointer.store.save(capture(first), "last.pth", step=first.iter, epoch=first.epoch)
    first.checkpointer.store.unlock()
    same = run(tmp_path, max_epochs=2, resume="auto")
    assert same.optimizer.param_groups[0]["lr"] == 0.05
    doubled = run(tmp_path, lr=0.2, max_epochs=3, resume="auto")
    assert doubled.optimizer.param_groups[0]["lr"] == pytest.approx(0.1)
    assert logged(caplog, "lr: 0.1 → 0.2")


def test_other_changes_in_the_config_are_listed(tmp_path, caplog):
    run(tmp_path, max_epochs=1, config={"work_dir": "a", "training": {"epochs": 1}, "token": "x"})
    with caplog.at_level(logging.WARNING, logger="hookline"):
        run(
            tmp_path,
            max_epochs=2,
            resume="auto",
            config={"work_dir": "b", "training": {"epochs": 2}, "token": "y", "new": 1},
        )
    (change,) = logged(caplog, "training.epochs: 1 → 2", "new: absent → 1")
    assert "work_dir" not in change.getMessage()
    assert "token" not in change.getMessage()


def test_hyperparameters_of_several_optimizers_are_described_by_name():
    weights = [torch.nn.Parameter(torch.ones(2))]
    optimizers = {"critic": torch.optim.SGD(weights, lr=0.2)}
    then = {"critic": [{"lr": 0.1, "momentum": 0.0}]}
    now = hyperparameters(optimizers)
    assert reapply_changes(optimizers, then, now) == ["critic.lr: 0.1 → 0.2"]


def test_without_an_optimizer_there_are_no_hyperparameters():
    assert hyperparameters(None) == []
    assert reapply_changes(None, [], []) == []


def test_equal_configs_have_no_changes_and_lists_are_compared_by_item():
    config = {"hooks": [{"type": "A"}], "empty": {}}
    assert config_changes(config, config) == []
    other = {**config, "hooks": [{"type": "B"}]}
    assert config_changes(config, other) == ["hooks[0].type: A → B"]


@pytest.mark.parametrize("key", ["work_dir", "experiment_dir", "resume", "load_from"])
def test_the_place_and_the_start_of_a_run_are_no_changes(key):
    assert config_changes({key: "a", "seed": 1}, {key: "b", "seed": 2}) == ["seed: 1 → 2"]
