"""Hooks in loops that are not ours."""

from __future__ import annotations

import os
import signal

import pytest
import torch
from torch import nn

import hookline
from hookline.driver import Drive
from hookline.engine import BaseRunner
from hookline.errors import HooklineError
from hookline.events.read import RunLog
from hookline.hooks import (
    CheckpointHook,
    EarlyStoppingHook,
    EMAHook,
    GradientFlowHook,
    LoggerHook,
    OptimizerHook,
    StopAtHook,
)
from tests.helpers import Tracer, batches, make_runner, small_model
from tests.problems import raises_problem


def by_hand(hooks, tmp_path, *, model=None, epochs=2, every=1, **parts):
    """A loop as people write it; `every` batches make an optimizer step."""
    model = model or small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_fn = nn.CrossEntropyLoss()
    with hookline.drive(
        hooks, model, optimizer, batches(), max_epochs=epochs, work_dir=tmp_path, **parts
    ) as run:
        for number, (x, y) in enumerate(run, 1):
            loss = run.loss(loss_fn(model(x), y))
            loss.backward()
            if number % every == 0:
                optimizer.step()
                optimizer.zero_grad()
    return run


def test_sites_come_in_the_order_of_a_runner(tmp_path):
    theirs, ours = Tracer(), Tracer()
    by_hand([theirs], tmp_path)
    make_runner(tmp_path, ours).train()
    assert theirs.log == ours.log


def test_weights_counters_and_checkpoints_are_those_of_a_runner(tmp_path):
    run = by_hand([CheckpointHook(), EMAHook(momentum=0.8, warm_up=0)], tmp_path / "a")
    runner = make_runner(tmp_path / "b", CheckpointHook(), EMAHook(momentum=0.8, warm_up=0))
    runner.train()
    mine, other = (torch.load(tmp_path / name / "last.pth", weights_only=True) for name in "ab")
    assert (run.runner.iter, run.runner.epoch, run.runner.optimizer_steps) == (8, 2, 8)
    for part in ("state_dict", "ema_state_dict"):
        assert all(torch.equal(mine[part][key], other[part][key]) for key in mine[part])
    assert run.stop_reason == runner.stop_reason
    assert run.stop_reason.details == {"max_epochs": 2}


def test_a_run_resumes_in_the_middle_of_an_epoch(tmp_path):
    whole = by_hand([], tmp_path / "whole")

    class Stop(hookline.BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 5:
                runner.request_save()
                runner.request_stop("enough")

    stopped = by_hand([CheckpointHook(), Stop()], tmp_path / "run")
    assert (stopped.runner.iter, stopped.stop_reason.message) == (6, "enough")
    resumed = by_hand(
        [CheckpointHook()], tmp_path / "run", model=small_model(seed=5), resume="auto"
    )
    assert resumed.runner.iter == 8
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            whole.runner.model.parameters(), resumed.runner.model.parameters(), strict=True
        )
    )


def test_validation_is_a_function_that_returns_metrics(tmp_path):
    values, modes = iter([3.0, 2.0, 2.5, 2.6, 2.7]), []
    model = small_model()

    def validate():
        modes.append(model.training)
        return {"val_loss": next(values)}

    stopping = EarlyStoppingHook(patience=2, restore_best_weights=False)
    run = by_hand(
        [stopping, CheckpointHook(save_best="val_loss", rule="less")],
        tmp_path,
        model=model,
        epochs=9,
        validate=validate,
    )
    assert run.runner.epoch == 4
    assert run.stop_reason.hook == "EarlyStoppingHook"
    assert modes == [False] * 4
    assert model.training
    assert torch.load(tmp_path / "best_val_loss.pth", weights_only=True)["meta"]["epoch"] == 2


def test_gradients_that_are_added_up_count_as_one_step(tmp_path):
    ema = EMAHook(momentum=0.5, warm_up=0)
    run = by_hand([ema, GradientFlowHook(frequency=1)], tmp_path, every=2)
    assert run.runner.optimizer_steps == ema.updates == 4
    assert run.runner.hook("GradientFlowHook").steps == [1, 3, 5, 7]


def test_logs_are_written(tmp_path):
    by_hand([LoggerHook(interval=2)], tmp_path)
    assert '"loss"' in (tmp_path / "log.jsonl").read_text()


def test_values_that_the_loop_passes_beside_the_loss_are_logged(tmp_path):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hookline.drive(
        [LoggerHook(interval=2)], model, optimizer, batches(), max_epochs=1, work_dir=tmp_path
    ) as run:
        for x, y in run:
            loss = nn.functional.cross_entropy(model(x), y)
            run.loss(loss, error=loss.detach() * 2).backward()
            optimizer.step()
            optimizer.zero_grad()
    curves = RunLog(tmp_path).curves()
    for (_, loss), (_, error) in zip(curves["train/loss"], curves["train/error"], strict=True):
        assert error == pytest.approx(2 * loss)


class Records(hookline.BaseHook):
    def after_train_iter(self, runner):
        runner.events.put_text("note", "a text")
        runner.events.put_histogram("weights", runner.model[0].weight)


def test_records_that_no_hook_writes_are_reported(tmp_path, caplog):
    by_hand([Records()], tmp_path / "lost")
    assert "histogram 'weights', text 'note': recorded but not kept" in caplog.text
    caplog.clear()
    by_hand([Records(), LoggerHook()], tmp_path / "kept")
    assert "not kept" not in caplog.text
    assert '"note"' in (tmp_path / "kept" / "log.jsonl").read_text()


def several_by_hand(hooks, tmp_path, **parts):
    """A loop that steps two optimizers in every second iteration, and the second one twice."""
    model = small_model()
    optimizers = {
        "a": torch.optim.SGD(model[0].parameters(), lr=0.1, momentum=0.9),
        "b": torch.optim.Adam(model[2].parameters(), lr=0.01),
    }
    with hookline.drive(
        hooks, model, optimizers, batches(), max_epochs=2, work_dir=tmp_path, **parts
    ) as run:
        for x, y in run:
            run.loss(nn.functional.cross_entropy(model(x), y)).backward()
            if run.runner.iter % 2:
                for name in ("a", "b", "b"):
                    optimizers[name].step()
                for optimizer in optimizers.values():
                    optimizer.zero_grad()
    return run.runner


class StepIterations(hookline.BaseHook):
    def __init__(self):
        self.iterations = []

    def after_optimizer_step(self, runner):
        self.iterations.append(runner.iter)


def test_several_optimizers_are_followed_and_saved_after_their_step(tmp_path, caplog):
    steps = StepIterations()
    save = CheckpointHook(interval=3, by_epoch=False, save_last=False)
    runner = several_by_hand([steps, save, GradientFlowHook()], tmp_path)
    assert steps.iterations == [1, 3, 5, 7]
    assert runner.optimizer_steps == 4
    assert (tmp_path / "iter_4.pth").exists()  # requested after 3 iterations, inside a group
    assert "after_backward is never called" in caplog.text
    assert "GradientFlowHook has it" in caplog.text


def test_a_loop_with_several_optimizers_resumes_exactly(tmp_path):
    save = CheckpointHook(interval=2, by_epoch=False)
    whole = several_by_hand([], tmp_path / "whole")
    several_by_hand([save, StopAtHook(iter=4)], tmp_path / "parts")
    again = several_by_hand([CheckpointHook()], tmp_path / "parts", resume="auto")
    for one, other in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_an_optimizer_of_an_unknown_kind_does_not_delay_saves(tmp_path):
    class OwnOptimizer:
        param_groups = ()

        def state_dict(self):
            return {}

    run = hookline.drive(
        [CheckpointHook()], small_model(), OwnOptimizer(), batches(), max_epochs=1,
        work_dir=tmp_path,
    )  # fmt: skip
    with run:
        for _ in run:
            pass
    assert (tmp_path / "epoch_1.pth").exists()


def test_a_failure_in_the_loop_reaches_the_hooks_and_is_raised_unchanged(tmp_path):
    log = Tracer()
    run = hookline.drive([log], small_model(), None, batches(), max_epochs=1, work_dir=tmp_path)

    def loop():
        with run:
            for _ in run:
                _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        loop()
    assert log.log[-2:] == ["on_exception", "cleanup"]
    assert not run.runner.loop.is_running


def test_leaving_the_loop_early_is_an_ordinary_end(tmp_path):
    log = Tracer()
    with hookline.drive(
        [log], small_model(), None, batches(), max_epochs=3, work_dir=tmp_path
    ) as run:
        for _ in run:
            break
    assert log.log[-3:] == ["after_train", "after_run", "cleanup"]
    assert (run.stop_reason.hook, dict(run.stop_reason.details)) == ("", {})


def test_a_signal_asks_for_a_clean_end(tmp_path):
    run = hookline.drive(
        [CheckpointHook()], small_model(), None, batches(), max_epochs=3, work_dir=tmp_path
    )

    def loop():
        with run:
            for _ in run:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(hookline.Interrupted):
        loop()
    assert run.runner.iter == 1
    assert (tmp_path / "last.pth").exists()


def test_the_optimizer_is_left_as_it_was(tmp_path):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hookline.drive([], model, optimizer, batches(), max_epochs=1, work_dir=tmp_path) as run:
        for _ in run:
            assert optimizer._optimizer_step_post_hooks
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks


def test_a_loop_that_calls_us(tmp_path):
    log, same = Tracer(), Tracer()
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hookline.drive(
        [log], model, optimizer, max_epochs=2, epoch_length=4, work_dir=tmp_path
    ) as run:
        for _ in range(2):
            run.begin_epoch()
            for x, y in batches():
                run.begin_batch((x, y))
                run.loss(nn.functional.cross_entropy(model(x), y)).backward()
                optimizer.step()
                optimizer.zero_grad()
                assert run.end_batch()
            assert run.end_epoch()
    make_runner(tmp_path, same).train()
    assert log.log == same.log
    assert run.stop_reason.details == {"max_epochs": 2}


def told(hooks, tmp_path, model, batches_of_run, resume_state=None, fails=False):
    """A loop whose owner keeps weights and data and validates, and has us keep the rest."""
    runner = BaseRunner(
        model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        hooks=hooks,
        max_epochs=2,
        work_dir=tmp_path,
    )
    runner.epoch_length = 4
    with Drive(
        runner, handle_signals=False, owner_validates=True, resume_state=resume_state
    ) as run:
        for number, (x, y) in batches_of_run:
            if runner.inner_iter == 0 or number == batches_of_run[0][0]:
                run.begin_epoch()
            run.begin_batch((x, y))
            run.loss(nn.functional.cross_entropy(model(x), y)).backward()
            runner.optimizer.step()
            runner.optimizer.zero_grad()
            run.end_batch()
            if runner.inner_iter == 4:
                run.end_train_epoch()
                run.begin_validation()
                if fails:
                    raise ZeroDivisionError
                run.end_validation({"val_loss": float(10 - number)})
                run.end_epoch(train_epoch_ended=True)
    return run


@pytest.mark.parametrize("at", [4, 6])  # after an epoch, and inside of one
def test_the_owner_of_the_loop_can_save_and_restore_the_hooks(tmp_path, at):
    def hooks():
        return [
            EMAHook(momentum=0.8, warm_up=0),
            EarlyStoppingHook(monitor="val_loss", patience=9, restore_best_weights=False),
        ]

    data = list(enumerate(batches() * 2))
    whole = told(hooks(), tmp_path, small_model(), data).runner
    model = small_model()
    first = told(hooks(), tmp_path, model, data[:at])
    kept = first.state_dict()
    assert not {"state_dict", "optimizer", "rng"} & set(kept)
    log = Tracer()
    resumed = told([*hooks(), log], tmp_path, model, data[at:], resume_state=kept).runner
    assert (resumed.iter, resumed.epoch, resumed.optimizer_steps) == (8, 2, 8)
    assert log.log[:3] == ["before_run", "after_load_checkpoint", "before_train"]
    assert resumed.hook("EMAHook").updates == 8
    averages = [each.hook("EMAHook").average.state_dict() for each in (whole, resumed)]
    assert all(torch.equal(averages[0][name], averages[1][name]) for name in averages[0])
    assert (
        resumed.hook("EarlyStoppingHook").best_epoch == whole.hook("EarlyStoppingHook").best_epoch
    )
    assert resumed.best == whole.best


def test_a_validation_that_fails_gives_the_model_its_own_weights_back(tmp_path):
    model, ema = small_model(), EMAHook(momentum=0.9, warm_up=0)
    with pytest.raises(ZeroDivisionError):
        told([ema], tmp_path, model, list(enumerate(batches())), fails=True)
    whole = by_hand([], tmp_path, epochs=1).runner.model
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), whole.parameters(), strict=True)
    )


def test_a_loop_that_ended_without_a_word_is_tidied_up(tmp_path):
    log, model = Tracer(), small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = hookline.drive([log], model, optimizer, max_epochs=1, epoch_length=4, work_dir=tmp_path)
    run.__enter__()
    run.begin_epoch()
    run.close()
    assert log.log[-1] == "cleanup"
    assert "on_exception" not in log.log
    assert "after_train" not in log.log
    assert not run.runner.loop.is_running
    assert not optimizer._optimizer_step_post_hooks


def test_an_owner_of_optimize_is_refused(tmp_path):
    with raises_problem(HooklineError, component="OptimizerHook", site="optimize"):
        hookline.drive([OptimizerHook()], small_model(), max_epochs=1, work_dir=tmp_path)


def test_a_loop_without_data_is_an_error(tmp_path):
    run = hookline.drive([], small_model(), max_epochs=1, work_dir=tmp_path)
    with pytest.raises(HooklineError, match="loop"):
        next(iter(run))
