"""Our hooks inside of a real Lightning Trainer and a real Hugging Face Trainer have the effect that they have in a Runner."""

from __future__ import annotations

import lightning.pytorch as pl
import pytest
import torch

from hookline.compat import lightning as ours_in_lightning
from hookline.compat import transformers as ours_in_transformers
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook, EarlyStoppingHook, EMAHook, EvalHook, GradientFlowHook
from tests.compat_foreign.problem import batches, loader, run_here, same_weights
from tests.compat_foreign.test_lightning import LitNet
from tests.compat_foreign.test_lightning import run_there as in_lightning
from tests.compat_foreign.test_transformers import run_dicts_here
from tests.compat_foreign.test_transformers import run_there as in_transformers


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
    assert "EarlyStoppingHook: val_loss has not improved" in there.stop_reason
    assert there.hook("EarlyStoppingHook").best_score == pytest.approx(runner.hook("EarlyStoppingHook").best_score, rel=1e-5)
    assert same_weights(model, runner.model)  # and both went back to their best weights

    ours, theirs = (each.hook("EMAHook").average.state_dict() for each in (runner, there))
    assert list(ours) == list(theirs)
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-6) for name in ours)

    def checkpoints(folder):
        return sorted(path.name for path in folder.glob("*.pth"))

    assert (
        checkpoints(tmp_path / "there") == checkpoints(tmp_path / "here") == ["best_val_loss.pth", "epoch_2.pth", "epoch_4.pth", "last.pth"]
    )
    for name in checkpoints(tmp_path / "here"):
        mine, other = (torch.load(tmp_path / folder / name, weights_only=True) for folder in ("here", "there"))
        assert {key: mine["meta"][key] for key in ("epoch", "iter", "optimizer_steps")} == {
            key: other["meta"][key] for key in ("epoch", "iter", "optimizer_steps")
        }
        for part in ("state_dict", "ema_state_dict"):
            assert all(torch.allclose(mine[part][key], other[part][key], atol=1e-6) for key in mine[part])

    flow, same = there.hook("GradientFlowHook"), runner.hook("GradientFlowHook")
    assert flow.steps == same.steps != []
    assert {name: pytest.approx(row, rel=1e-3) for name, row in same.history.items()} == flow.history
    assert list((tmp_path / "there").rglob("*.png"))


def test_validation_in_lightning_is_with_the_average(tmp_path):
    averaged = ours_in_lightning.HooklineCallback([EMAHook(momentum=0.9, warm_up=0)], work_dir=tmp_path)
    trainer, model = in_lightning(tmp_path, averaged, epochs=2)
    runner = run_here(tmp_path, EMAHook(momentum=0.9, warm_up=0), epochs=2)
    plain = run_here(tmp_path, epochs=2)
    assert float(trainer.callback_metrics["val_loss"]) == pytest.approx(runner.metrics["val_loss"], rel=1e-5)
    assert runner.metrics["val_loss"] != pytest.approx(plain.metrics["val_loss"], rel=1e-5)
    assert same_weights(model, plain.model)  # and training never saw it


def test_hooks_state_goes_through_a_lightning_checkpoint(tmp_path):
    def callback():
        return ours_in_lightning.HooklineCallback([EarlyStoppingHook(monitor="val_loss", patience=50)], work_dir=tmp_path / "hooks")

    first = callback()
    trainer, _ = in_lightning(tmp_path, first, epochs=3)
    trainer.save_checkpoint(tmp_path / "kept.ckpt")
    second = callback()
    resumed = pl.Trainer(
        max_epochs=5, accelerator="cpu", logger=False, callbacks=[second], enable_checkpointing=False, enable_progress_bar=False
    )
    resumed.fit(LitNet(), loader(batches()), loader(batches(2, seed=1)), ckpt_path=tmp_path / "kept.ckpt", weights_only=False)
    assert second.runner.iter == 30
    assert second.runner.epoch == 5
    assert second.runner.hook("EarlyStoppingHook").best_epoch == first.runner.hook("EarlyStoppingHook").best_epoch


def test_a_failure_in_lightning_reaches_the_hooks(tmp_path):
    model = LitNet()
    model.fail_at = 7
    hooks = [CheckpointHook(save_on_exception=True)]
    callback = ours_in_lightning.HooklineCallback(hooks, work_dir=tmp_path / "hooks")
    with pytest.raises(ZeroDivisionError):
        in_lightning(tmp_path, callback, model=model)
    assert (tmp_path / "hooks" / "exception.pth").exists()
    assert not callback.runner.running


def test_a_hook_that_validates_is_told_that_the_trainer_does(tmp_path):
    callback = ours_in_lightning.HooklineCallback([EvalHook()], work_dir=tmp_path)
    with pytest.raises(HooklineError, match="here the owner of the loop decides when to validate: leave EvalHook out"):
        in_lightning(tmp_path, callback)
