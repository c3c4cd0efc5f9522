"""The complete text of the most important messages, so that their wording changes on purpose.

All other tests check fields. A change here is a change for users: read the message as one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline import BaseHook, Runner
from hookline.checkpoint import load_checkpoint
from hookline.hooks import (
    AmpOptimizerHook,
    CheckInvalidLossHook,
    EarlyStoppingHook,
    EvalHook,
    OptimizerHook,
    RollbackHook,
    StopAtHook,
)
from tests.helpers import batches, make_runner

CONFIG = """\
work_dir: FOLDER/run
device: cpu
model: {type: cnn, width: 2}
dataset: digits
training:
  iters: 1
"""


class MisspelledSite(BaseHook):
    def after_train_itr(self, runner: Any) -> None: ...


class UnknownArgument(BaseHook):
    def after_train_iter(self, lss: Any) -> None: ...


class NanLoss(BaseHook):
    def after_forward(self, runner: Any) -> None:
        runner.outputs["loss"] = runner.outputs["loss"] * float("nan")


def message_of(folder: Path, function: Callable[[], object]) -> str:
    """Return the message of a function's error, with the folder left out."""
    with pytest.raises(Exception) as error:
        function()
    return str(error.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hooks: [{type: EMAHook, momentun: 0.9}]",
            "hooks[0] EMAHook: unknown parameter 'momentun'; did you mean 'momentum'?",
        ),
        (
            "hooks: [{type: EarlyStopingHook}]",
            "hooks[0].type: unknown hook 'EarlyStopingHook'; did you mean 'EarlyStoppingHook'?",
        ),
        (
            "hooks: [{type: LoggerHook, interval: often}]",
            "hooks[0] LoggerHook: 'interval' must be a whole number, got 'often'",
        ),
        (
            "hooks: [{type: LoggerHook, interval: '5'}]",
            "hooks[0] LoggerHook: 'interval' must be a whole number, got '5'; leave out the quotes",
        ),
        (
            "hooks: [{type: LoggerHook, interval: 0}]",
            "hooks[0] LoggerHook: 'interval' must be at least 1, got 0",
        ),
        (
            "hooks: [{type: EvalHook, metric: acuracy}]",
            "hooks[0] EvalHook: metric 'acuracy' is not measured, only accuracy, val_loss; did you "
            "mean 'accuracy'?",
        ),
        (
            "hooks: [OptimizerHook, AmpOptimizerHook]",
            "hooks[1] AmpOptimizerHook: this hook and hooks[0] OptimizerHook (line 7) both own "
            "'optimize', and only one hook can; AmpOptimizerHook has the parameters of "
            "OptimizerHook, too: keep it alone",
        ),
        (
            "hooks: [{type: my_project.hooks.MyHook}]",
            "hooks[0].type: unknown hook 'my_project.hooks.MyHook': there is no module "
            "'my_project.hooks'",
        ),
        (
            "hooks: [{EMAHook: {momentum: 0.9}}]",
            "hooks[0]: missing 'type': the name of a hook; did you mean 'type: EMAHook'?",
        ),
        ("seeed: 1", "seeed: unknown key; did you mean 'seed'?"),
        ("batch_size: 8", "batch_size: unknown key; did you mean 'loader.batch_size'?"),
        ("loader: {batch_size: 0}", "loader: 'batch_size' must be at least 1, got 0"),
        (
            "optimizer: {type: AdamWW}",
            "optimizer.type: unknown optimizer 'AdamWW'; did you mean 'AdamW'?",
        ),
        (
            "resume: atuo",
            "resume: must be 'auto', null or a checkpoint; there is no file 'atuo'; did you mean "
            "'auto'?",
        ),
        ("seed: ${sede}", "seed: there is no key 'sede'; did you mean 'seed'?"),
        ("device: cuda\n", "duplicate key 'device', first on line 2"),
    ],
)
def test_mistakes_in_a_config(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"{CONFIG}{text}\n".replace("FOLDER", str(tmp_path)), encoding="utf-8")
    found = message_of(tmp_path, lambda: Runner.from_config(path).train())
    assert found == f"config.yaml:7: {message}"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "training.epoch=3",
            "command line: training.epoch: unknown key 'epoch'; did you mean 'epochs'?",
        ),
        (
            "hooks.loger.interval=3",
            "command line: hooks.loger.interval: there is no hook 'loger' (+hooks.loger.type=… "
            "adds one); did you mean 'logger'?",
        ),
    ],
)
def test_mistakes_in_an_override(tmp_path: Path, override: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    assert message_of(tmp_path, lambda: Runner.from_config(path, [override])) == message


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        (
            [MisspelledSite()],
            "MisspelledSite: 'after_train_itr' is not a site (declare your own in extra_sites); "
            "did you mean 'after_train_iter'?",
        ),
        (
            [UnknownArgument()],
            "UnknownArgument.after_train_iter: unknown argument 'lss'; did you mean 'loss'?",
        ),
        (
            [OptimizerHook(), AmpOptimizerHook()],
            "AmpOptimizerHook: both this hook and OptimizerHook own 'optimize', and only one hook "
            "can; AmpOptimizerHook has the parameters of OptimizerHook, too: keep it alone",
        ),
        (
            [RollbackHook()],
            "RollbackHook: has nothing to roll back to: register a CheckpointHook",
        ),
        (
            [NanLoss(), CheckInvalidLossHook(interval=1)],
            "CheckInvalidLossHook: the loss of iteration 1 is not finite, got nan",
        ),
    ],
)
def test_mistakes_in_python(tmp_path: Path, hooks: list[BaseHook], message: str) -> None:
    assert message_of(tmp_path, lambda: make_runner(tmp_path, *hooks).train()) == message


def test_checkpoint_files(tmp_path: Path) -> None:
    (tmp_path / "last.pth").write_bytes(b"garbage")
    assert message_of(tmp_path, lambda: load_checkpoint(tmp_path / "last.pth")) == (
        "last.pth: refused: not a file of torch.save with tensors and plain values"
    )
    torch.save({"evil": print}, tmp_path / "last.pth")
    assert message_of(tmp_path, lambda: load_checkpoint(tmp_path / "last.pth")) == (
        "last.pth: refused: only tensors and plain values are loaded, got 'builtins.print'"
    )
    assert message_of(tmp_path, lambda: load_checkpoint(tmp_path / "lst.pth")) == (
        "lst.pth: there is no such file; did you mean 'last.pth'?"
    )


def test_reasons_to_stop(tmp_path: Path) -> None:
    assert str(make_runner(tmp_path).train().stop_reason) == "reached max_epochs=2"
    runner = make_runner(tmp_path, StopAtHook(iter=2)).train()
    assert str(runner.stop_reason) == "StopAtHook: reached iter 2"
    hook = EarlyStoppingHook(patience=2, min_delta=100)
    runner = make_runner(tmp_path, EvalHook(), hook, val_loader=batches(1), max_epochs=5).train()
    best = f"{hook.best_score:.6g}"
    assert str(runner.stop_reason) == (
        f"EarlyStoppingHook: val_loss has not improved on {best} of epoch 1 in 2 validations"
    )
