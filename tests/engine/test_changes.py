"""What the user changes between two parts of a run takes effect, and is said."""

from __future__ import annotations

import logging

import pytest
import torch

from hookline import Runner
from hookline.engine.capture import capture
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook
from tests.helpers import batches, small_model


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


def test_a_changed_learning_rate_is_in_force_after_a_resume_and_is_reported(tmp_path, caplog):
    run(tmp_path, max_epochs=1)
    with caplog.at_level(logging.WARNING, logger="hookline"):
        resumed = run(tmp_path, lr=0.02, momentum=0.5, max_epochs=2, resume="auto")
    assert resumed.optimizer.param_groups[0]["lr"] == 0.02
    assert resumed.optimizer.param_groups[0]["momentum"] == 0.5
    assert "changed since the checkpoint and in force from now on: lr: 0.1 → 0.02" in caplog.messages
    assert "changed since the checkpoint and in force from now on: momentum: 0.0 → 0.5" in caplog.messages


def test_a_rate_that_only_a_schedule_changed_is_left_alone(tmp_path, caplog):
    first = run(tmp_path, max_epochs=1)
    first.optimizer.param_groups[0]["lr"] = 0.05  # as a schedule would
    first.store.prepare()
    first.store.save(capture(first), "last.pth", step=first.iter, epoch=first.epoch)
    first.store.unlock()
    assert run(tmp_path, max_epochs=2, resume="auto").optimizer.param_groups[0]["lr"] == 0.05
    assert run(tmp_path, lr=0.2, max_epochs=3, resume="auto").optimizer.param_groups[0]["lr"] == pytest.approx(0.1)
    assert "in force from now on" in caplog.text


def test_what_else_changed_in_the_config_is_listed(tmp_path, caplog):
    run(tmp_path, max_epochs=1, config={"work_dir": "a", "training": {"epochs": 1}, "token": "x"})
    with caplog.at_level(logging.WARNING, logger="hookline"):
        run(tmp_path, max_epochs=2, resume="auto", config={"work_dir": "b", "training": {"epochs": 2}, "token": "y", "new": 1})
    assert "the config is not the checkpoint's: training.epochs: 1 → 2; new: absent → 1" in caplog.messages


def test_weights_that_do_not_fit_are_refused_or_left_out_and_listed(tmp_path, caplog):
    run(tmp_path / "a", max_epochs=1)
    other = small_model(features=6, classes=4)
    with pytest.raises(HooklineError, match=r"does not fit the model: missing: 2.weight of shape \(4, 8\) \(it has \(3, 8\)\)"):
        run(tmp_path / "b", model=other, max_epochs=1, load_from=tmp_path / "a" / "last.pth")
    run(tmp_path / "c", model=other, max_epochs=1, load_from=tmp_path / "a" / "last.pth", load_strict=False)
    assert "weights that do not fit were left out: missing: 2.weight" in caplog.text


def test_a_run_that_could_not_be_resumed_exactly_says_so_before_it_trains(tmp_path, caplog):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    once = (batch for batch in batches(2))
    Runner(model, train_loader=once, optimizer=optimizer, loss_fn=torch.nn.CrossEntropyLoss(), work_dir=tmp_path, max_iters=1).train()
    assert "this run could not be resumed exactly: train_loader (generator): it can be read only once" in caplog.messages
