"""Every reason to stop, and the same end whether or not the run was interrupted."""

from __future__ import annotations

import math
import signal

import pytest
import torch

from hookline import Runner
from hookline.engine import BaseHook, Interrupted
from hookline.errors import ConfigError
from hookline.hooks import (
    CheckpointHook,
    EarlyStoppingHook,
    EMAHook,
    EvalHook,
    StopAtHook,
    build_hook,
)
from tests.helpers import batches, make_runner, small_model
from tests.problems import logged, raises_problem


class Scores(BaseHook):
    """Replaces the measured loss and accuracy by given numbers, one for each epoch."""

    priority = "LOWEST"  # after_*: first

    def __init__(self, *scores: float) -> None:
        self.scores = scores

    def after_val_epoch(self, runner):
        score = self.scores[min(runner.epoch, len(self.scores) - 1)]
        runner.metrics.update({"val_loss": score, "accuracy": score})


def train(tmp_path, hook, scores, *more, **parts):
    parts = {
        "train_loader": batches(2),
        "val_loader": batches(1),
        "max_epochs": len(scores),
        **parts,
    }
    hooks = [{"type": "EvalHook"}, {"type": "CheckpointHook"}, Scores(*scores), hook, *more]
    runner = make_runner(tmp_path, *hooks, metrics={"accuracy": Nothing()}, **parts)
    runner.train()
    return runner


class Nothing:
    def update(self, preds, targets): ...
    def compute(self):
        return 0.0

    def reset(self): ...


FALLING = (5.0, 4.0, 3.0, 2.0, 1.0)


def test_it_stops_when_patience_is_over_and_gives_the_reason(tmp_path):
    hook = EarlyStoppingHook(patience=2)
    runner = train(tmp_path, hook, (3.0, 2.0, 2.5, 2.0, 1.0))
    assert runner.epoch == 4
    assert runner.stop_reason.hook == "EarlyStoppingHook"
    assert runner.stop_reason.details == {
        "monitor": "val_loss",
        "parameter": "patience",
        "score": 2.0,
        "best": 2.0,
        "best_epoch": 2,
        "wait_count": 2,
    }
    assert (hook.best_score, hook.best_epoch, hook.wait_count, hook.stopped_epoch) == (2.0, 2, 2, 4)


def test_it_does_not_stop_while_there_is_progress(tmp_path):
    hook = EarlyStoppingHook(patience=1)
    runner = train(tmp_path, hook, FALLING)
    assert runner.stop_reason.details == {"max_epochs": 5}
    assert hook.stopped_epoch is None


def test_no_patience_stops_at_the_first_validation_without_progress(tmp_path):
    assert train(tmp_path, EarlyStoppingHook(patience=0), (3.0, 2.0, 2.0, 1.0)).epoch == 3


def test_progress_smaller_than_min_delta_is_none(tmp_path):
    assert (
        train(
            tmp_path, EarlyStoppingHook(patience=2, min_delta=0.5), (3.0, 2.9, 2.6, 2.5, 1.0)
        ).epoch
        == 3
    )


@pytest.mark.parametrize(
    "mode, monitor, scores, epochs",
    [
        ("min", "accuracy", (1.0, 2.0, 3.0, 4.0), 3),
        ("max", "val_loss", (4.0, 3.0, 2.0, 1.0), 3),
        ("max", "val_loss", (1.0, 2.0, 3.0, 4.0), 4),
        ("auto", "val_loss", (1.0, 2.0, 3.0, 4.0), 3),
        ("auto", "val/accuracy", (4.0, 3.0, 2.0, 1.0), 3),
        ("auto", "accuracy", (1.0, 2.0, 3.0, 4.0), 4),
    ],
)
def test_the_mode_gives_the_direction(tmp_path, mode, monitor, scores, epochs):
    assert (
        train(tmp_path, EarlyStoppingHook(monitor=monitor, mode=mode, patience=2), scores).epoch
        == epochs
    )


def test_a_metric_without_a_known_direction_needs_a_mode(tmp_path):
    with raises_problem(component="EarlyStoppingHook", parameter="monitor", nearest="val_loss"):
        train(tmp_path, EarlyStoppingHook(monitor="val_los"), FALLING)
    with pytest.raises(ConfigError, match="'quux'.*mode"):
        make_runner(
            tmp_path,
            EarlyStoppingHook(monitor="quux"),
            metrics={"quux": Nothing()},
            val_loader=batches(1),
        ).train()
    with pytest.raises(ConfigError, match="'quux'.*mode"):
        make_runner(tmp_path, EarlyStoppingHook(monitor="quux")).train()
    assert EarlyStoppingHook(monitor="quux", mode="max").mode == "max"


def test_metrics_that_a_custom_hook_adds_can_be_monitored_and_select_the_best(tmp_path):
    class Judge(BaseHook):
        priority = "LOWEST"  # the nearest to the validation: before those that read its results

        def after_val_epoch(self, runner):
            runner.metrics["wisdom"] = [0.1, 0.3, 0.2, 0.2, 0.2][runner.epoch]

    judged = {"monitor": "wisdom", "mode": "max", "patience": 2}
    hooks = [Judge(), EvalHook(), EarlyStoppingHook(**judged), CheckpointHook(best_metric="wisdom")]
    runner = make_runner(tmp_path, *hooks, val_loader=batches(1), max_epochs=5)
    runner.train()
    assert runner.epoch == 4
    assert (tmp_path / "best_wisdom.pth").exists()


def test_only_what_beats_the_baseline_resets_the_patience(tmp_path):
    hook = EarlyStoppingHook(patience=3, baseline=1.0)
    runner = train(tmp_path, hook, (5.0, 4.0, 3.0, 0.5))
    assert runner.epoch == 3
    assert runner.stop_reason.details["parameter"] == "patience"
    assert (
        train(
            tmp_path / "reached",
            EarlyStoppingHook(patience=3, baseline=1.0),
            (5.0, 0.9, 0.8, 0.7, 0.6),
        ).epoch
        == 5
    )


@pytest.mark.parametrize("mode, scores", [("min", (5.0, 3.0, 2.0)), ("max", (5.0, 6.0, 8.0))])
def test_it_stops_at_the_stopping_threshold(tmp_path, mode, scores):
    hook = EarlyStoppingHook(mode=mode, stopping_threshold=scores[1])
    runner = train(tmp_path, hook, scores)
    assert runner.epoch == 2
    assert runner.stop_reason.details["parameter"] == "stopping_threshold"
    assert hook.best_epoch == 2


@pytest.mark.parametrize("mode, scores", [("min", (5.0, 9.0, 2.0)), ("max", (5.0, 1.0, 8.0))])
def test_it_stops_at_the_divergence_threshold(tmp_path, mode, scores):
    runner = train(tmp_path, EarlyStoppingHook(mode=mode, divergence_threshold=scores[1]), scores)
    assert runner.epoch == 2
    assert runner.stop_reason.details["parameter"] == "divergence_threshold"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_metric_that_is_not_finite_is_a_reason_to_stop(tmp_path, bad):
    runner = train(tmp_path, EarlyStoppingHook(), (5.0, bad, 2.0))
    assert runner.epoch == 2
    assert runner.stop_reason.hook == "EarlyStoppingHook"
    assert runner.stop_reason.details["parameter"] == "check_finite"


def test_without_check_finite_a_nan_only_costs_patience(tmp_path):
    hook = EarlyStoppingHook(check_finite=False, patience=3)
    assert train(tmp_path, hook, (math.nan, math.nan, 5.0, 4.0)).epoch == 4
    assert (hook.best_score, hook.wait_count) == (4.0, 0)


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_an_interrupted_run_stops_at_the_same_epoch_with_the_same_weights(tmp_path, cut):
    scores = (3.0, 2.0, 2.5, 2.0, 2.2, 1.0, 1.0)
    straight_hook, hook = EarlyStoppingHook(patience=3), EarlyStoppingHook(patience=3)
    straight = train(tmp_path / "straight", straight_hook, scores, EMAHook(momentum=0.5))
    train(
        tmp_path / "cut",
        EarlyStoppingHook(patience=3),
        scores,
        EMAHook(momentum=0.5),
        StopAtHook(epoch=cut),
    )
    resumed = train(tmp_path / "cut", hook, scores, EMAHook(momentum=0.5), resume="auto")
    assert (straight.epoch, resumed.epoch) == (5, 5)
    assert resumed.stop_reason == straight.stop_reason
    assert hook.wait_count == straight_hook.wait_count
    assert_same(straight.model, resumed.model)
    assert_same(hook_average(straight), hook_average(resumed))


def assert_same(a, b):
    for one, two in zip(a.state_dict().values(), b.state_dict().values(), strict=True):
        assert torch.equal(one, two)


def hook_average(runner):
    return runner.hook("EMAHook").average


def test_resuming_a_run_that_had_stopped_trains_no_further_unless_the_config_now_allows_it(
    tmp_path,
):
    scores = (3.0, 2.0, 2.5, 2.5, 2.5, 2.5)
    first = train(tmp_path, EarlyStoppingHook(patience=2), scores)
    again = train(tmp_path, EarlyStoppingHook(patience=2), scores, resume="auto")
    assert (first.iter, again.iter) == (8, 8)
    assert again.stop_reason == first.stop_reason
    assert_same(first.model, again.model)
    more = train(tmp_path, EarlyStoppingHook(patience=3), scores, resume="auto")
    assert more.epoch == 5


class Keep(BaseHook):
    """Keeps the weights and the average of each epoch."""

    def __init__(self):
        self.seen = []

    def after_epoch(self, runner):
        ema = [
            hook.average.average[0].clone() for hook in runner.hooks if isinstance(hook, EMAHook)
        ]
        self.seen.append((runner.model[0].weight.detach().clone(), *ema))


@pytest.mark.parametrize("restore", [True, False])
@pytest.mark.parametrize("patience", [2, 10])
def test_the_best_weights_are_there_at_the_end_and_the_last_checkpoint_is_still_the_last(
    tmp_path, restore, patience
):
    keep, hook = Keep(), EarlyStoppingHook(patience=patience, restore_best_weights=restore)
    runner = train(tmp_path, hook, (3.0, 2.0, 2.5, 2.5), keep)
    assert torch.equal(runner.model[0].weight, keep.seen[1 if restore else 3][0])
    assert torch.equal(
        torch.load(tmp_path / "last.pth", weights_only=True)["state_dict"]["0.weight"],
        keep.seen[3][0],
    )


def test_restored_weights_are_logged_once_and_a_later_test_restores_nothing(tmp_path, caplog):
    caplog.set_level("INFO", "hookline")
    runner = train(
        tmp_path, EarlyStoppingHook(patience=10), (3.0, 2.0, 2.5, 2.5), test_loader=batches(1)
    )
    (record,) = logged(caplog, "EarlyStoppingHook", "epoch 2", level="INFO")
    other = small_model(seed=7)
    runner.model.load_state_dict(other.state_dict())
    runner.test()
    assert_same(runner.model, other)
    assert logged(caplog, "EarlyStoppingHook", "epoch 2", level="INFO") == [record]


class Weights(BaseHook):
    """Keeps the weights after each iteration; may interrupt one as Ctrl-C does."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.interrupt_at = interrupt_at
        self.weights: dict[int, list[float]] = {}

    def after_train_iter(self, runner):
        self.weights[runner.iter] = runner.model[0].weight.flatten().tolist()
        if runner.iter == self.interrupt_at:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("interrupt_at", [4, 5])  # inside an epoch, and at its end
def test_an_interrupted_run_continues_with_its_own_weights(tmp_path, interrupt_at):
    def run(folder, weights):
        hooks = [{"type": "EvalHook"}, Scores(1.0, 2.0, 3.0, 4.0), EarlyStoppingHook(), weights]
        parts = {"train_loader": batches(2), "val_loader": batches(1), "max_epochs": 4}
        return make_runner(folder, *hooks, {"type": "CheckpointHook"}, **parts)

    whole, parts = Weights(), Weights(interrupt_at)
    run(tmp_path / "whole", whole).train()
    runner = run(tmp_path / "parts", parts)
    with pytest.raises(Interrupted):
        runner.train()
    runner.train()
    assert parts.weights == whole.weights
    assert runner.hook("EarlyStoppingHook").best_epoch == 1


def test_with_an_average_its_best_state_comes_back_too_and_is_never_mixed_up_with_the_weights(
    tmp_path,
):
    keep = Keep()
    runner = train(
        tmp_path,
        EarlyStoppingHook(patience=2),
        (3.0, 2.0, 2.5, 2.5),
        EMAHook(momentum=0.5),
        keep,
        test_loader=batches(1),
    )
    weights, average = keep.seen[1]
    assert not torch.equal(weights, average)
    assert torch.equal(runner.model[0].weight, weights)
    assert torch.equal(runner.hook("EMAHook").average.average[0], average)
    runner.test()
    assert torch.equal(runner.hook("EMAHook").average.average[0], average)


def test_a_validation_of_the_same_iteration_is_not_counted_twice(tmp_path):
    class Twice(BaseHook):
        def after_epoch(self, runner):
            runner.request_validate()

    hook = EarlyStoppingHook(patience=3)
    train(tmp_path, hook, (3.0, 4.0, 4.0), Twice())
    assert hook.wait_count == 2


def test_a_misspelled_metric_is_found_before_training(tmp_path):
    hook = EarlyStoppingHook(monitor="val_acuracy", mode="max")
    with raises_problem(component="EarlyStoppingHook", parameter="monitor", nearest="accuracy"):
        train(tmp_path, hook, FALLING)
    assert hook.runner.iter == 0


def test_without_validation_data_it_warns(tmp_path, caplog):
    make_runner(tmp_path, EarlyStoppingHook()).train()
    assert logged(caplog, "EarlyStoppingHook", "val_loss")


@pytest.mark.parametrize("wrong", [{"patience": -1}, {"min_delta": -0.1}, {"mode": "most"}])
def test_wrong_parameters_are_rejected(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        build_hook({"type": "EarlyStoppingHook", **wrong})


def test_it_works_by_iteration_and_with_the_default_hooks(tmp_path, caplog):
    caplog.set_level("INFO", "hookline")
    model = small_model()
    runner = Runner(
        model, train_loader=batches(4), val_loader=batches(2, seed=9), optimizer=torch.optim.SGD(model.parameters(), lr=0.0), max_iters=40,
        loss_fn=torch.nn.CrossEntropyLoss(), metrics=["accuracy"], work_dir=tmp_path,
        hooks=[{"type": "EvalHook", "by_epoch": False, "interval": 3}, {"type": "EarlyStoppingHook", "patience": 4}],
    )  # fmt: skip
    runner.train()
    assert runner.iter == 15
    assert runner.stop_reason.hook == "EarlyStoppingHook"
