"""Pet's storage, writers and timers, and its hooks in a Hookline run."""

from __future__ import annotations

import json
import logging

import pytest
import torch
from torch import nn

from hookline.compat import pet
from hookline.compat.pet import EventStorage, LRScheduler, PetHooks, TrainHook
from hookline.errors import ConfigError
from hookline.hooks import CheckpointHook
from tests.helpers import make_runner


def test_a_storage_smooths_what_is_to_be_smoothed():
    with EventStorage(start_iter=5) as storage:
        assert pet.get_event_storage() is storage
        for value in (1.0, 2.0, 9.0):
            storage.put_scalars(loss=torch.tensor(value))
            storage.put_scalar("lr", value, smoothing_hint=False)
            storage.step()
        with EventStorage() as inner:
            assert pet.get_event_storage() is inner
        assert pet.get_event_storage() is storage
    assert storage.iter == 8
    assert storage.latest() == {"loss": 9.0, "lr": 9.0}
    assert storage.latest_with_smoothing_hint(3) == {"loss": 2.0, "lr": 9.0}
    history = storage.history("loss")
    assert history.values() == [(1.0, 5), (2.0, 6), (9.0, 7)]
    assert (history.avg(2), history.global_avg(), history.median(20)) == (5.5, 4.0, 2.0)
    assert storage.events.latest() == {"loss": 9.0, "lr": 9.0}
    with pytest.raises(AssertionError, match="different smoothing_hint"):
        storage.put_scalar("lr", 1.0)
    with pytest.raises(KeyError, match="No history metric available for acc"):
        storage.history("acc")
    with pytest.raises(AssertionError, match="inside a 'with EventStorage"):
        pet.get_event_storage()


def test_a_timer_leaves_its_pauses_out(clock):
    timer = pet.Timer(clock)
    clock.advance(0.5)
    timer.pause()
    clock.advance(30.0)
    assert timer.is_paused()
    timer.resume()
    clock.advance(0.25)
    assert timer.seconds() == 0.75
    for wrong, match in ((timer.resume, "not paused"), (timer.pause, "already paused")):
        if wrong == timer.pause:
            timer.pause()
        with pytest.raises(ValueError, match=match):
            wrong()
    timer.reset()
    assert not timer.is_paused()


def test_writers_write_what_is_in_the_storage(tmp_path, caplog):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    writers = [
        pet.CommonMetricPrinter("r50.yaml", 4),
        pet.JSONWriter(tmp_path / "m.json"),
        pet.TensorboardXWriter(tmp_path / "tb"),
    ]
    optimizer = torch.optim.SGD(nn.Linear(6, 3).parameters(), lr=0.5)
    hooks = [
        pet.IterationTimer(4, 0, 0, False),
        LRScheduler(optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 100)),
    ]
    with caplog.at_level(logging.INFO):
        make_runner(tmp_path, PetHooks([*hooks, pet.PeriodicWriter(writers, 4, 2)])).train()
    rows = [json.loads(line) for line in (tmp_path / "m.json").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 3, 5, 7]
    assert {"time", "lr", "epoch", "total_loss"} <= rows[0].keys()
    board = EventAccumulator(str(tmp_path / "tb")).Reload()
    assert [event.step for event in board.Scalars("total_loss")] == [1, 3, 5, 7]
    assert "[r50.yaml][Training][epoch: 2/2][iter: 4/4][eta: 0:00:00][total_loss: " in caplog.text
    assert "[lr: 0.500000]" in caplog.text


def test_hooks_are_called_in_the_order_of_the_list_and_finished_after_a_failure(tmp_path):
    calls = []

    class Named(TrainHook):
        def __init__(self, label):
            self.label = label

        def before_step(self, storage):
            calls.append(f"before {self.label}")

        def after_step(self, storage):
            calls.append(f"after {self.label}")
            if self.label == "b" and storage.iter == 1:
                raise ZeroDivisionError

        def after_train(self, storage):
            calls.append(f"end {self.label}")

    with pytest.raises(ZeroDivisionError):
        make_runner(tmp_path, PetHooks([Named("a"), Named("b")])).train()
    assert calls == ["before a", "before b", "after a", "after b"] * 2 + ["end a", "end b"]


def test_a_run_by_iterations_has_no_epochs(tmp_path):
    seen = []

    class Look(TrainHook):
        def after_step(self, storage, *args, epoch=None, max_epoch=None, **kwargs):
            seen.append((storage.iter, epoch, max_epoch, kwargs))

    make_runner(tmp_path, PetHooks([Look()]), max_iters=2).train()
    assert seen == [(0, None, None, {}), (1, None, None, {})]


def test_a_scheduler_continues_where_it_was_when_a_run_is_resumed(tmp_path):
    def run(folder, **parts):
        torch.manual_seed(0)
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        hook = PetHooks(
            [LRScheduler(optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7))]
        )
        saver = CheckpointHook(by_epoch=False, interval=1, max_keep_ckpts=-1, async_save=False)
        runner = make_runner(
            tmp_path / folder, hook, saver, model=model, optimizer=optimizer, max_iters=8, **parts
        )
        runner.train()
        return runner

    whole = run("whole")
    resumed = run("resumed", resume=tmp_path / "whole" / "iter_3.pth")
    assert torch.equal(whole.model.weight, resumed.model.weight)
    assert (
        whole.optimizer.param_groups[0]["lr"]
        == resumed.optimizer.param_groups[0]["lr"]
        == pytest.approx(0.1 * 0.7**8)
    )


def test_an_object_without_hook_methods_is_rejected():
    rejected = object()
    with pytest.raises(ConfigError) as caught:
        PetHooks([rejected])
    assert caught.value.component == "PetHooks"
    assert caught.value.value is rejected


def test_importing_a_name_that_is_not_covered_logs_a_suggestion(caplog):
    with pytest.raises(ImportError):
        from hookline.compat.pet import PeriodicWrite  # noqa: F401
    assert "did you mean 'PeriodicWriter'" in caplog.text
    with pytest.raises(ImportError):
        from hookline.compat.pet.lib.utils.logger import build_train_hooks  # noqa: F401
    assert "make a list of IterationTimer" in caplog.text


def test_statistics_of_too_few_batches_raise():
    with pytest.raises(
        ValueError, match="meant to run for 5 iterations, but the data ended after 1"
    ):
        pet.update_bn_stats(nn.Sequential(nn.BatchNorm1d(2)), [torch.randn(4, 2)], "cpu", 5)
