"""A loss that goes wrong costs a few batches, not the run."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import nn

from hookline import Runner, make_loader
from hookline.data import DATASETS
from hookline.engine import BaseHook
from hookline.errors import ConfigError, InvalidLoss
from hookline.hooks import CheckpointHook, EMAHook, RollbackHook, StopAtHook, build_hook
from hookline.models import MODELS
from tests.dist import jobs
from tests.dist.processes import run_job
from tests.helpers import batches, make_runner
from tests.problems import logged


class Break(BaseHook):
    """Makes the loss of certain batches something else, and notes which batches are trained on in the end."""

    def __init__(self, at: dict[tuple[int, int], float], always: bool = True) -> None:
        self.at, self.always = dict(at), always
        self.trained: dict[int, tuple[int, int]] = {}

    def after_forward(self, runner):
        place = (runner.epoch, runner.batch_idx)
        self.trained[runner.iter] = place
        if place in self.at:
            runner.outputs["loss"] = runner.outputs["loss"] * self.at[place]
            if not self.always:
                del self.at[place]


def train(tmp_path, bad, hook=None, *more, always=True, **parts):
    broken, hook = Break(bad, always), hook or RollbackHook()
    loader = make_loader(
        torch.utils.data.TensorDataset(*batches(1, size=40)[0]), batch_size=4, shuffle=True, seed=1
    )
    parts = {"train_loader": loader, "max_epochs": 3, **parts}
    runner = make_runner(
        tmp_path,
        CheckpointHook(by_epoch=False, interval=4, save_best=False),
        hook,
        broken,
        *more,
        **parts,
    )
    runner.train()
    return runner, hook, broken


NAN = math.nan


def test_it_rolls_back_and_continues_without_the_bad_batches(tmp_path, caplog):
    runner, hook, broken = train(tmp_path, {(1, 7): NAN})
    assert runner.stop_reason.details == {"max_epochs": 3}
    assert runner.iter == 28
    assert all(math.isfinite(p.sum().item()) for p in runner.model.parameters())
    places = [broken.trained[index] for index in range(28)]
    assert places == [
        (epoch, batch)
        for epoch in range(3)
        for batch in range(10)
        if (epoch, batch) not in [(1, 6), (1, 7)]
    ]
    (entry,) = hook.history
    assert math.isnan(entry.pop("loss"))
    assert entry == {
        "iter": 18,
        "epoch": 2,
        "rank": 0,
        "why": "not finite",
        "skipped": [[1, 6], [1, 7]],
        "lr_cut": 1.0,
        "checkpoint": "iter_16.pth",
        "back_to": 16,
    }
    assert logged(caplog, "iter_16.pth", "[7, 8]")


def test_only_batches_after_the_checkpoint_are_passed_over(tmp_path):
    _, hook, broken = train(tmp_path, {(1, 6): NAN}, RollbackHook(skip_batches=5))
    assert hook.skipped == [[1, 6]]
    assert list(broken.trained.values()).count((1, 6)) == 0


def test_a_checkpoint_is_never_of_the_bad_step_and_the_run_is_as_if_it_had_not_been(tmp_path):
    """With the batch left out from the start the weights are the same, bit for bit."""

    class LeaveOut(BaseHook):
        priority = "LOWEST"

        def before_train(self, runner):
            runner.loop.skipped_batches = {(1, 1)}

    runner, _, _ = train(
        tmp_path / "a", {(1, 1): NAN}, RollbackHook(skip_batches=1), EMAHook(momentum=0.9)
    )
    other, _, _ = train(tmp_path / "b", {}, RollbackHook(), EMAHook(momentum=0.9), LeaveOut())
    assert runner.iter == other.iter == 29
    for one, two in zip(
        runner.model.state_dict().values(), other.model.state_dict().values(), strict=True
    ):
        assert torch.equal(one, two)
    assert torch.equal(
        runner.hook("EMAHook").average.average[0], other.hook("EMAHook").average.average[0]
    )
    for name in ("iter_12", "iter_16", "last"):
        assert torch.isfinite(
            torch.load(tmp_path / "a" / f"{name}.pth", weights_only=True)["state_dict"]["0.weight"]
        ).all()


@pytest.mark.parametrize(
    "place, max_iters", [((0, 0), None), ((0, 9), None), ((2, 9), None), ((1, 1), 12)]
)
def test_first_and_last_batches_of_epochs_and_of_the_run_can_be_bad_too(tmp_path, place, max_iters):
    parts = {"max_epochs": None, "max_iters": max_iters} if max_iters else {}
    runner, hook, _ = train(tmp_path, {place: NAN}, RollbackHook(skip_batches=1), **parts)
    assert [place] == [tuple(each) for each in hook.skipped]
    assert runner.iter == (max_iters or 29)
    assert (tmp_path / "last.pth").exists()
    assert torch.isfinite(runner.model[0].weight).all()
    assert torch.load(tmp_path / "last.pth", weights_only=True)["meta"]["iter"] == runner.iter


def test_a_spike_counts_if_that_is_wanted(tmp_path):
    _, quiet, _ = train(tmp_path / "a", {(1, 5): 50.0})
    assert quiet.history == []
    _, hook, _ = train(tmp_path / "b", {(1, 5): 50.0}, RollbackHook(spike=10.0))
    (entry,) = hook.history
    assert entry["iter"] == 16
    assert entry["why"].startswith("a spike, above ")


def test_after_too_many_rollbacks_the_run_fails(tmp_path):
    bad = {(1, batch): NAN for batch in range(2, 10)}
    with pytest.raises(InvalidLoss, match="2 rollbacks"):
        train(tmp_path, bad, RollbackHook(max_rollbacks=2, skip_batches=1))


def test_several_bad_places_are_each_passed_over(tmp_path):
    runner, hook, _ = train(
        tmp_path, {(0, 3): NAN, (1, 5): math.inf, (2, 8): NAN}, RollbackHook(skip_batches=1)
    )
    assert [tuple(place) for place in hook.skipped] == [(0, 3), (1, 5), (2, 8)]
    assert runner.iter == 27


def test_the_learning_rate_is_cut_and_stays_cut(tmp_path):
    runner, hook, _ = train(
        tmp_path, {(1, 5): NAN, (1, 6): NAN}, RollbackHook(lr_factor=0.5, skip_batches=1)
    )
    assert len(hook.history) == 2
    assert {entry["back_to"] for entry in hook.history} == {12}
    assert runner.optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * 0.25)


def test_a_schedule_continues_from_the_cut_rate_also_after_a_resume(tmp_path):
    schedule = {"type": "PolyLrUpdaterHook", "by_epoch": False}

    class Rates(BaseHook):
        def __init__(self):
            self.seen = {}

        def after_optimizer_step(self, runner):
            self.seen[runner.iter] = runner.optimizer.param_groups[0]["lr"]

    rates, later = Rates(), Rates()
    parts = {"max_epochs": None, "max_iters": 30}
    train(
        tmp_path,
        {(1, 5): NAN},
        RollbackHook(lr_factor=0.5),
        schedule,
        rates,
        StopAtHook(iter=20),
        **parts,
    )
    assert rates.seen[11] == pytest.approx(0.1 * 19 / 30)
    assert rates.seen[19] == pytest.approx(0.05 * 11 / 30)
    train(
        tmp_path,
        {(1, 5): NAN},
        RollbackHook(lr_factor=0.5),
        schedule,
        later,
        resume="auto",
        **parts,
    )
    assert later.seen[25] == pytest.approx(0.05 * 5 / 30)


def test_an_interrupted_run_remembers_what_to_pass_over(tmp_path):
    bad = {(1, 5): NAN}
    straight, _, _ = train(tmp_path / "straight", bad)
    train(tmp_path / "cut", bad, RollbackHook(), StopAtHook(iter=14))
    resumed, hook, _ = train(tmp_path / "cut", bad, RollbackHook(), resume="auto")
    assert resumed.iter == straight.iter == 28
    assert len(hook.history) == 1
    assert torch.equal(resumed.model[0].weight, straight.model[0].weight)


def test_what_was_logged_beyond_the_checkpoint_is_not_left_double(tmp_path):
    train(tmp_path, {(1, 5): NAN}, RollbackHook(), {"type": "LoggerHook", "interval": 1})
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    losses = {row["iter"]: row["loss"] for row in rows if "loss" in row}
    assert [row["iter"] for row in rows if "loss" in row] == list(range(1, 29))
    assert all(math.isfinite(loss) for loss in losses.values())


def test_a_bad_loss_amid_accumulation_leaves_nothing_in_the_gradients(tmp_path):
    accumulate = build_hook({"type": "GradientCumulativeOptimizerHook", "cumulative_iters": 4})
    runner, hook, _ = train(tmp_path, {(1, 5): NAN}, RollbackHook(skip_batches=1), accumulate)
    assert len(hook.history) == 1
    assert torch.isfinite(runner.model[0].weight).all()


def test_it_needs_someone_who_saves(tmp_path):
    with pytest.raises(ConfigError, match="CheckpointHook"):
        make_runner(tmp_path, RollbackHook()).train()


def test_checkpoints_of_another_run_are_not_gone_back_to(tmp_path):
    train(tmp_path, {})
    runner, hook, _ = train(tmp_path, {(0, 1): NAN})
    assert hook.history[0]["checkpoint"] == "start.pth"
    assert runner.iter == 28


class DelayedLoss(RollbackHook):
    """Sees each loss one step late, as on a GPU."""

    def _known_step(self, step):
        before, self._pending = self._pending, (step, None)
        return None if before is None else before[0]._replace(losses=before[0].losses.tolist())


def test_a_loss_that_is_known_one_step_later_is_rolled_back_too(tmp_path):
    hook = DelayedLoss(skip_batches=1)
    runner, _, _ = train(tmp_path, {(1, 5): NAN}, hook)
    assert [tuple(place) for place in hook.skipped] == [(1, 5)]
    assert runner.iter == 29


@pytest.mark.slow
def test_a_bad_loss_of_one_rank_rolls_all_ranks_back(tmp_path):
    first, second = run_job(2, jobs.roll_back, tmp_path, spike=10.0)
    assert [(entry["epoch"], entry["rank"]) for entry in first["history"]] == [(2, 1), (3, 1)]
    assert math.isnan(first["history"][0]["loss"])
    assert first["history"][1]["why"].startswith("a spike, above ")
    bad = {(1, 3), (2, 4)}
    expected = [
        (epoch, batch) for epoch in range(3) for batch in range(7) if (epoch, batch) not in bad
    ]
    for result in (first, second):
        assert repr(result["history"]) == repr(first["history"])  # NaN is not equal to itself.
        assert result["trained"] == expected
        for name, weight in result["weights"].items():
            assert torch.isfinite(weight).all()
            assert torch.equal(weight, first["weights"][name])
            assert torch.equal(weight, result["never_bad"][name])


@pytest.mark.parametrize(
    "wrong",
    [{"max_rollbacks": 0}, {"spike": 0.5}, {"lr_factor": 0}, {"window": 1}, {"skip_batches": 0}],
)
def test_wrong_parameters_are_rejected(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        build_hook({"type": "RollbackHook", **wrong})


@pytest.mark.slow
def test_an_injected_nan_costs_less_than_one_percent_of_accuracy_on_digits(tmp_path):
    def accuracy(folder, bad):
        torch.manual_seed(0)
        model = MODELS.build({"type": "mlp", "in_features": 64, "num_classes": 10})
        loaders = {
            split: make_loader(
                DATASETS.build({"type": "digits", "split": split}),
                batch_size=64,
                shuffle=split == "train",
                seed=0,
            )
            for split in ("train", "val")
        }
        hook = RollbackHook()
        runner = Runner(
            model, train_loader=loaders["train"], val_loader=loaders["val"], optimizer=torch.optim.AdamW(model.parameters(), lr=3e-3),
            loss_fn=nn.CrossEntropyLoss(), metrics=["accuracy"], max_epochs=12, work_dir=folder, seed=0, hooks=[hook, Break(bad)],
        )  # fmt: skip
        runner.train()
        return runner.metrics["accuracy"], hook

    undisturbed, _ = accuracy(tmp_path / "good", {})
    disturbed, hook = accuracy(tmp_path / "bad", {(5, 7): NAN})
    assert len(hook.history) == 1
    assert abs(undisturbed - disturbed) <= 0.01
    assert undisturbed > 0.95
