"""Rows about CheckpointHook."""

from __future__ import annotations

import contextlib
import time
from functools import cache
from pathlib import Path
from typing import Any

import torch

from hookline.engine import BaseHook, BaseRunner
from hookline.hooks import CheckpointHook, EMAHook, EvalHook
from tests.documents.runs import Notes, Scores, bare, files, new_folder, validated
from tests.documents.table import REQUIREMENTS, Section
from tests.helpers import batches, small_model

checkpoints = Section(REQUIREMENTS, "checkpoint hook")
checkpoints.defaults(
    CheckpointHook,
    {
        "interval": 1,
        "by_epoch": True,
        "save_optimizer": True,
        "save_scheduler": True,
        "max_keep_ckpts": 5,
        "save_last": True,
        "save_best": True,
        "best_metric": "accuracy",
        "rule": "greater",
        "out_dir": None,
        "filename_tmpl": "epoch_{}.pth",
    },
)


@cache
def saved(**options: Any) -> list[str]:
    """Return the checkpoints of a run of six epochs."""
    runner = bare(CheckpointHook(save_best=False, **options), train_loader=batches(2), max_epochs=6)
    return files(runner.work_dir)


@cache
def content(**options: Any) -> dict[str, Any]:
    """Return the last checkpoint of a run with an optimizer, a scheduler and an average."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    runner = bare(
        CheckpointHook(save_best=False, **options),
        EMAHook(momentum=0.5),
        model=model,
        optimizer=optimizer,
        scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 1),
    )
    checkpoint = torch.load(runner.work_dir / "last.pth", weights_only=True)
    return {**checkpoint, "runner": runner}


@cache
def best(scores: tuple[float, ...] = (0.1, 0.9, 0.5), **options: Any) -> Path:
    """Return the directory of a run with these accuracies; the losses are their opposites."""
    losses = [1 - score for score in scores]
    runner = validated(
        Scores(accuracy=list(scores), other=losses, val_loss=losses),
        EvalHook(),
        CheckpointHook(**options),
        epochs=len(scores),
    )
    return runner.work_dir


def epoch_of(path: Path) -> int:
    return torch.load(path, weights_only=True)["meta"]["epoch"]


def numbered(*numbers: int) -> list[str]:
    return [f"epoch_{number}.pth" for number in numbers]


checkpoints.add(
    "parameter",
    "`interval` counts the epochs between two checkpoints",
    lambda: saved(interval=2) == [*numbered(2, 4, 6), "last.pth"],
)
checkpoints.add(
    "parameter",
    "`by_epoch` of false counts iterations",
    lambda: saved(interval=5, by_epoch=False) == ["iter_10.pth", "iter_5.pth", "last.pth"],
)
checkpoints.add(
    "parameter",
    "`save_optimizer` of false leaves the optimizer out",
    lambda: "optimizer" in content() and "optimizer" not in content(save_optimizer=False),
)
checkpoints.add(
    "parameter",
    "`save_scheduler` of false leaves the scheduler out",
    lambda: "scheduler" in content() and "scheduler" not in content(save_scheduler=False),
)
checkpoints.add(
    "parameter",
    "`max_keep_ckpts` limits the number of numbered files",
    lambda: saved(max_keep_ckpts=2) == [*numbered(5, 6), "last.pth"],
)
checkpoints.add(
    "parameter",
    "`save_last` of false keeps no `last.pth`",
    lambda: "last.pth" not in saved(save_last=False),
)
checkpoints.add(
    "parameter",
    "`save_best` of false keeps no best file",
    lambda: not [name for name in files(best(save_best=False)) if "best" in name],
)
checkpoints.add(
    "parameter",
    "`best_metric` names the metric of the best file",
    lambda: (
        files(best(best_metric="other", rule="greater"), "best*") == ["best_other.pth"]
        and epoch_of(best(best_metric="other", rule="greater") / "best_other.pth") == 1
    ),
)
checkpoints.add(
    "parameter",
    "`rule` of less keeps the smallest value, whatever the name of the metric suggests",
    lambda: epoch_of(best(rule="less") / "best_accuracy.pth") == 1,
)
checkpoints.add(
    "parameter",
    "`rule` of greater keeps the largest value",
    lambda: epoch_of(best(rule="greater") / "best_accuracy.pth") == 2,
)


@checkpoints.row(
    "parameter", "`out_dir` is the directory of the files, instead of the work directory"
)
def _() -> None:
    folder = new_folder() / "elsewhere"
    runner = bare(CheckpointHook(out_dir=str(folder), save_best=False))
    assert files(folder) == [*numbered(1, 2), "last.pth"]
    assert files(runner.work_dir) == []


checkpoints.add(
    "file",
    "without `out_dir` the files are in the work directory",
    lambda: saved() == [*numbered(2, 3, 4, 5, 6), "last.pth"],
)
checkpoints.add(
    "parameter",
    "`filename_tmpl` names the numbered files",
    lambda: (
        saved(filename_tmpl="at_{:02d}.pth", interval=3) == ["at_03.pth", "at_06.pth", "last.pth"]
    ),
)


@checkpoints.row("behavior", "`meta` has the time, the epoch and the iteration")
def _() -> None:
    meta = content()["meta"]
    assert (meta["epoch"], meta["iter"]) == (2, 8)
    assert 0 <= time.time() - meta["time"] < 3600


@checkpoints.row("behavior", "`state_dict` has the weights of the model")
def _() -> None:
    weights = content()["runner"].model.state_dict()
    found = content()["state_dict"]
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[key], value) for key, value in weights.items())


@checkpoints.row("behavior", "`optimizer` has the state of the optimizer")
def _() -> None:
    expected = content()["runner"].optimizer.state_dict()
    found = content()["optimizer"]
    assert found["param_groups"][0]["lr"] == expected["param_groups"][0]["lr"]
    momentum = found["state"][0]["momentum_buffer"]
    assert torch.equal(momentum, expected["state"][0]["momentum_buffer"])


@checkpoints.row("behavior", "`scheduler` has the state of the scheduler")
def _() -> None:
    expected = content()["runner"].scheduler.state_dict()
    assert content()["scheduler"]["last_epoch"] == expected["last_epoch"]


@checkpoints.row("behavior", "`ema_state_dict` has the averaged weights if there is an average")
def _() -> None:
    average = content()["runner"].hook("EMAHook").average.state_dict()
    found = content()["ema_state_dict"]
    assert all(torch.equal(found[key], value) for key, value in average.items())
    assert not torch.equal(found["0.weight"], content()["state_dict"]["0.weight"])
    runner = bare(CheckpointHook(save_best=False), max_epochs=1)
    assert "ema_state_dict" not in torch.load(runner.work_dir / "last.pth", weights_only=True)


def moments(**options: Any) -> list[tuple[int, int]]:
    notes = Notes()
    bare(notes, CheckpointHook(save_best=False, **options), train_loader=batches(2))
    return [call[1:] for call in notes.calls if call[0] == "before_save_checkpoint"]


checkpoints.add(
    "moment",
    "a checkpoint by epoch is saved after each epoch",
    lambda: moments() == [(1, 2), (2, 4)],
)
checkpoints.add(
    "moment",
    "a checkpoint by iteration is saved after each iteration that is due",
    lambda: moments(by_epoch=False, interval=3, save_last=False) == [(1, 3)],
)
checkpoints.add(
    "moment",
    "the best checkpoint is saved after the validation that is the best so far",
    lambda: epoch_of(best() / "best_accuracy.pth") == 2,
)
checkpoints.add(
    "file",
    "older numbered files are removed",
    lambda: "epoch_1.pth" not in saved(),
)
checkpoints.add(
    "file",
    "the newest files are kept, as many as `max_keep_ckpts`",
    lambda: len([name for name in saved() if name.startswith("epoch_")]) == 5,
)


@checkpoints.row("file", "the best and the last file do not count")
def _() -> None:
    names = files(best(scores=(0.9, 0.1, 0.2, 0.3), max_keep_ckpts=1))
    assert names == ["best_accuracy.pth", "epoch_4.pth", "last.pth"]


@checkpoints.row("behavior", "a run that was interrupted resumes and ends with the same weights")
def _() -> None:
    class Break(BaseHook):
        def before_train_iter(self, runner: BaseRunner) -> None:
            if runner.iter == 6:
                raise RuntimeError("power cut")

    folder = new_folder()
    hook = {"type": "CheckpointHook", "save_best": False, "by_epoch": False, "interval": 3}
    whole = bare(dict(hook))
    with contextlib.suppress(RuntimeError):
        bare(dict(hook), Break(), folder=folder)
    resumed = bare(dict(hook), folder=folder, resume="auto")
    for ours, theirs in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
