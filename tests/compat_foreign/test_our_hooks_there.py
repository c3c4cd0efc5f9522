"""Our hooks inside of a real Lightning Trainer and a real Hugging Face Trainer have the effect that they have in a Runner."""

from __future__ import annotations

import itertools

import lightning.pytorch as pl
import pytest
import torch
from torch.utils.data import DataLoader
from transformers import TrainerCallback

from hookline.compat import lightning as ours_in_lightning
from hookline.compat import transformers as ours_in_transformers
from hookline.engine import BaseHook
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook, EarlyStoppingHook, EMAHook, EvalHook, GradientFlowHook
from tests.compat_foreign.problem import batches, loader, run_here, same_weights
from tests.compat_foreign.test_lightning import LitNet
from tests.compat_foreign.test_lightning import run_there as in_lightning
from tests.compat_foreign.test_transformers import run_dicts_here
from tests.compat_foreign.test_transformers import run_there as in_transformers
from tests.problems import logged


def our_hooks():
    return [
        EMAHook(momentum=0.8, warm_up=0),
        CheckpointHook(interval=2, save_best="val_loss", rule="less"),
        EarlyStoppingHook(monitor="val_loss", patience=3),
        GradientFlowHook(frequency=4),
    ]


def in_trainer(kind, tmp_path, epochs=12):
    if kind == "lightning":
        callback = ours_in_lightning.HooklineCallback(our_hooks(), work_dir=tmp_path)
        _, model = in_lightning(tmp_path / "trainer", callback, epochs=epochs)
    else:
        callback = ours_in_transformers.HooklineCallback(our_hooks(), work_dir=tmp_path)
        model = in_transformers(tmp_path / "trainer", callback, epochs=epochs).model
    return callback, model


@pytest.mark.parametrize("kind", ["lightning", "transformers"])
def test_averaging_saving_stopping_and_pictures_are_as_in_a_runner(tmp_path, kind):
    callback, model = in_trainer(kind, tmp_path / "there")
    run = run_here if kind == "lightning" else run_dicts_here
    runner = run(tmp_path / "here", *our_hooks(), epochs=12)
    there = callback.runner

    assert there.iter == runner.iter < 72  # EarlyStoppingHook stopped both
    assert there.stop_reason == runner.stop_reason
    assert there.stop_reason.hook == "EarlyStoppingHook"
    assert there.hook("EarlyStoppingHook").best_score == pytest.approx(
        runner.hook("EarlyStoppingHook").best_score, rel=1e-5
    )
    assert same_weights(model, runner.model)  # and both went back to their best weights

    ours, theirs = (each.hook("EMAHook").average.state_dict() for each in (runner, there))
    assert list(ours) == list(theirs)
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-6) for name in ours)

    def checkpoints(folder):
        return sorted(path.name for path in folder.glob("*.pth"))

    assert (
        checkpoints(tmp_path / "there")
        == checkpoints(tmp_path / "here")
        == ["best_val_loss.pth", "epoch_2.pth", "epoch_4.pth", "last.pth"]
    )
    for name in checkpoints(tmp_path / "here"):
        mine, other = (
            torch.load(tmp_path / folder / name, weights_only=True) for folder in ("here", "there")
        )
        assert {key: mine["meta"][key] for key in ("epoch", "iter", "optimizer_steps")} == {
            key: other["meta"][key] for key in ("epoch", "iter", "optimizer_steps")
        }
        for part in ("state_dict", "ema_state_dict"):
            assert all(
                torch.allclose(mine[part][key], other[part][key], atol=1e-6) for key in mine[part]
            )

    flow, same = there.hook("GradientFlowHook"), runner.hook("GradientFlowHook")
    assert flow.steps == same.steps != []
    assert {
        name: pytest.approx(row, rel=1e-3) for name, row in same.history.items()
    } == flow.history
    assert list((tmp_path / "there").rglob("*.png"))


def test_validation_in_lightning_is_with_the_average(tmp_path):
    averaged = ours_in_lightning.HooklineCallback(
        [EMAHook(momentum=0.9, warm_up=0)], work_dir=tmp_path
    )
    trainer, model = in_lightning(tmp_path, averaged, epochs=2)
    runner = run_here(tmp_path, EMAHook(momentum=0.9, warm_up=0), epochs=2)
    plain = run_here(tmp_path, epochs=2)
    assert float(trainer.callback_metrics["val_loss"]) == pytest.approx(
        runner.metrics["val_loss"], rel=1e-5
    )
    assert runner.metrics["val_loss"] != pytest.approx(plain.metrics["val_loss"], rel=1e-5)
    assert same_weights(model, plain.model)  # and training never saw it


class Lengths(BaseHook):
    """Records the length of the run and the epochs that a hook sees."""

    def __init__(self):
        self.epochs = []

    def before_train(self, runner):
        self.seen = runner.epoch_length, runner.max_epochs, runner.max_iters

    def before_train_epoch(self, runner):
        self.epochs.append((runner.epoch, runner.inner_iter))


@pytest.mark.parametrize(
    "at", [12, 13, 15, 18]
)  # after an epoch, twice inside of one, and after its last batch
def test_what_hooks_keep_goes_through_a_lightning_checkpoint(tmp_path, at):
    def callback():
        hooks = [
            EMAHook(momentum=0.8, warm_up=0),
            EarlyStoppingHook(monitor="val_loss", patience=50),
            Lengths(),
        ]
        return ours_in_lightning.HooklineCallback(hooks, work_dir=tmp_path / "hooks")

    class Keep(pl.Callback):
        def on_train_batch_end(self, trainer, *args):
            if trainer.global_step == at:
                trainer.save_checkpoint(tmp_path / "kept.ckpt")

    whole = callback()
    in_lightning(tmp_path, whole, Keep(), epochs=5)
    resumed = callback()
    trainer = pl.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        callbacks=[resumed],
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    data = Resumable(batches(), start=at % 6)
    trainer.fit(
        LitNet(),
        data,
        loader(batches(2, seed=1)),
        ckpt_path=tmp_path / "kept.ckpt",
        weights_only=False,
    )

    ours, other = whole.runner, resumed.runner
    assert (
        (other.iter, other.epoch, other.inner_iter)
        == (ours.iter, ours.epoch, ours.inner_iter)
        == (30, 5, 0)
    )
    assert other.hook("Lengths").epochs[0] == (at // 6, at % 6)
    assert other.hook("EMAHook").updates == ours.hook("EMAHook").updates == 30
    averages = [each.hook("EMAHook").average.state_dict() for each in (ours, other)]
    assert all(
        torch.allclose(averages[0][name], averages[1][name], atol=1e-6) for name in averages[0]
    )
    assert other.hook("EarlyStoppingHook").best_epoch == ours.hook("EarlyStoppingHook").best_epoch


class Resumable(DataLoader):
    """Begins its first pass where the run was: else Lightning would see the epoch's first batches again."""

    def __init__(self, data, start):
        super().__init__(data, batch_size=None)
        self.start = start

    def state_dict(self):
        return {}

    def load_state_dict(self, state): ...

    def __iter__(self):
        start, self.start = self.start, 0
        return itertools.islice(super().__iter__(), start, None)


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({"max_epochs": 3}, (6, 3, 18)),
        (
            {"max_epochs": -1, "max_steps": 5, "accumulate_grad_batches": 4},
            (6, 3, 16),
        ),  # 4 + 2 + 4 + 2 + 4 batches
        ({"max_epochs": 2, "max_steps": 50}, (6, 2, 12)),
        ({"max_epochs": 9, "max_steps": 8}, (6, 2, 8)),
    ],
)
def test_hooks_in_lightning_know_how_long_the_run_is(tmp_path, options, seen):
    hook = Lengths()
    callback = ours_in_lightning.HooklineCallback([hook], work_dir=tmp_path)
    in_lightning(tmp_path, callback, epochs=options.pop("max_epochs"), **options)
    assert hook.seen == seen
    assert callback.runner.iter == seen[2]


@pytest.mark.parametrize("at", [12, 14])  # after an epoch, and inside of one
def test_what_hooks_keep_goes_through_a_checkpoint_of_the_trainer(tmp_path, at):
    def callback():
        hooks = [
            EMAHook(momentum=0.8, warm_up=0),
            EarlyStoppingHook(monitor="val_loss", patience=50),
            Lengths(),
        ]
        return ours_in_transformers.HooklineCallback(hooks, work_dir=tmp_path / "hooks")

    whole, resumed = callback(), callback()
    in_transformers(tmp_path, whole, epochs=4, save_strategy="steps", save_steps=at)
    in_transformers(tmp_path, resumed, epochs=4, resume=tmp_path / f"checkpoint-{at}")

    ours, other = whole.runner, resumed.runner
    assert (
        (other.iter, other.epoch, other.inner_iter)
        == (ours.iter, ours.epoch, ours.inner_iter)
        == (24, 4, 0)
    )
    assert other.hook("Lengths").epochs[0] == (at // 6, at % 6)
    assert other.hook("EMAHook").updates == ours.hook("EMAHook").updates == 24
    averages = [each.hook("EMAHook").average.state_dict() for each in (ours, other)]
    assert all(
        torch.allclose(averages[0][name], averages[1][name], atol=1e-6) for name in averages[0]
    )
    assert other.hook("EarlyStoppingHook").best_epoch == ours.hook("EarlyStoppingHook").best_epoch


def test_a_checkpoint_of_the_trainer_without_our_file_is_reported(tmp_path, caplog):
    in_transformers(tmp_path, epochs=2, save_strategy="epoch")
    callback = ours_in_transformers.HooklineCallback([Lengths()], work_dir=tmp_path / "hooks")
    in_transformers(tmp_path, callback, epochs=2, resume=tmp_path / "checkpoint-6")
    assert logged(caplog, "HooklineCallback", "step 6")
    assert callback.runner.hook("Lengths").epochs == [(1, 0)]


class Fails(TrainerCallback):
    """Fails once, in a step or while the Trainer evaluates."""

    def __init__(self, method, at):
        setattr(self, method, self.count)
        self.left = at

    def count(self, *args, **kwargs):
        self.left -= 1
        if self.left == 0:
            raise ZeroDivisionError("on purpose")


@pytest.mark.parametrize(("method", "at"), [("on_step_end", 3), ("on_prediction_step", 2)])
def test_a_failure_in_the_trainer_reaches_the_hooks_of_a_callback_that_is_entered(
    tmp_path, method, at
):
    ema = EMAHook(momentum=0.9, warm_up=0)
    callback = ours_in_transformers.HooklineCallback(
        [ema, CheckpointHook(save_on_exception=True)], work_dir=tmp_path / "hooks"
    )
    with pytest.raises(ZeroDivisionError), callback:
        in_transformers(tmp_path, callback, Fails(method, at), epochs=2)
    model = callback.runner.model
    assert not callback.runner.loop.is_running
    assert not model._forward_hooks
    saved = torch.load(tmp_path / "hooks" / "exception.pth", weights_only=True)
    assert all(
        torch.equal(value, saved["state_dict"][name]) for name, value in model.state_dict().items()
    )
    assert not all(
        torch.equal(value, ema.average.state_dict()[name])
        for name, value in model.state_dict().items()
    )


def test_what_a_failed_training_left_is_tidied_up_before_the_next_one(tmp_path):
    class Tidy(BaseHook):
        done = 0

        def cleanup(self, runner):
            self.done += 1

    tidy, models = Tidy(), []
    callback = ours_in_transformers.HooklineCallback([tidy], work_dir=tmp_path / "hooks")
    with pytest.raises(ZeroDivisionError):
        in_transformers(tmp_path, callback, Fails("on_step_end", 3), epochs=1)
    models.append(callback.runner.model)
    assert models[0]._forward_hooks
    models.append(in_transformers(tmp_path, callback, epochs=1).model)
    assert tidy.done == 2
    assert not models[0]._forward_hooks
    assert not models[1]._forward_hooks


def test_a_loss_that_the_trainer_computes_itself_is_not_mixed_up_with_an_older_one(tmp_path):
    class Losses(BaseHook):
        def before_train_iter(self, runner):
            runner.outputs = {"loss": "of a batch before"}

        def after_train_iter(self, runner):
            assert runner.loss is None

    callback = ours_in_transformers.HooklineCallback([Losses()], work_dir=tmp_path / "hooks")
    trainer = in_transformers(tmp_path, callback, epochs=1, train=False)
    trainer.compute_loss_func = lambda outputs, labels, **others: torch.nn.functional.cross_entropy(
        outputs["logits"], labels
    )
    trainer.train()
    assert callback.runner.iter == 6


def test_validation_that_fails_in_lightning_leaves_the_models_own_weights(tmp_path):
    class Broken(LitNet):
        def validation_step(self, batch, index):
            raise ZeroDivisionError("on purpose")

    callback = ours_in_lightning.HooklineCallback(
        [EMAHook(momentum=0.9, warm_up=0)], work_dir=tmp_path
    )
    model = Broken()
    with pytest.raises(ZeroDivisionError):
        in_lightning(tmp_path, callback, model=model)
    assert same_weights(model, run_here(tmp_path, epochs=1).model)


def test_a_failure_in_lightning_reaches_the_hooks(tmp_path):
    model = LitNet()
    model.fail_at = 7
    hooks = [CheckpointHook(save_on_exception=True)]
    callback = ours_in_lightning.HooklineCallback(hooks, work_dir=tmp_path / "hooks")
    with pytest.raises(ZeroDivisionError):
        in_lightning(tmp_path, callback, model=model)
    assert (tmp_path / "hooks" / "exception.pth").exists()
    assert not callback.runner.loop.is_running


def test_a_hook_that_validates_is_rejected_because_the_trainer_does(tmp_path):
    callback = ours_in_lightning.HooklineCallback([EvalHook()], work_dir=tmp_path)
    with pytest.raises(HooklineError, match="EvalHook"):
        in_lightning(tmp_path, callback)
