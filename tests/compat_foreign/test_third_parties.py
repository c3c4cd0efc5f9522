"""Callbacks of other packages, made for these frameworks; and configs; and `drive` in loops of others."""

from __future__ import annotations

import ignite.engine
import keras
import optuna
import pytest
import torch
from accelerate import Accelerator
from lightning.pytorch.callbacks import EarlyStopping
from optuna_integration import KerasPruningCallback, PyTorchLightningPruningCallback
from torch import nn
from tqdm.keras import TqdmCallback

import hookline
from hookline.compat import lightning as hookline_lightning
from hookline.errors import ConfigError
from hookline.hooks import CheckpointHook, EMAHook
from tests.compat_foreign.matrix import shows
from tests.compat_foreign.problem import Net, batches, loader, run_here, same_weights, sgd
from tests.compat_foreign.test_keras import run_there as in_keras
from tests.compat_foreign.test_lightning import run_there as in_lightning

NAME = "Third parties"


class PruneBadOnes(optuna.pruners.BasePruner):
    """Prunes from the fourth report on: what was reported until then is compared."""

    def prune(self, study, trial):
        return trial.last_step == 3


def reported(run):
    study = optuna.create_study(pruner=PruneBadOnes())

    def objective(trial):
        run(trial)
        return 0.0

    study.optimize(objective, n_trials=1)
    return study.trials[0].state, study.trials[0].intermediate_values


@shows(
    NAME,
    "optuna: PyTorchLightningPruningCallback",
    "reports the same values and prunes at the same epoch",
)
def test_optuna_in_lightning(tmp_path):
    there = reported(
        lambda trial: in_lightning(tmp_path, PyTorchLightningPruningCallback(trial, "val_loss"))
    )
    here = reported(
        lambda trial: run_here(tmp_path, PyTorchLightningPruningCallback(trial, "val_loss"))
    )
    assert here[0] == there[0] == optuna.trial.TrialState.PRUNED
    assert here[1] == pytest.approx(there[1], rel=1e-5)
    assert list(here[1]) == [0, 1, 2, 3]


@shows(NAME, "optuna: KerasPruningCallback", "reports the same values and prunes at the same epoch")
def test_optuna_in_keras(tmp_path):
    there = reported(lambda trial: in_keras(KerasPruningCallback(trial, "val_loss")))
    here = reported(lambda trial: run_here(tmp_path, KerasPruningCallback(trial, "val_loss")))
    assert here[0] == there[0] == optuna.trial.TrialState.PRUNED
    assert here[1] == pytest.approx(there[1], rel=1e-4)


@shows(NAME, "tqdm: TqdmCallback for Keras", "draws its bars")
def test_tqdm_for_keras(tmp_path, capsys):
    run_here(tmp_path, TqdmCallback(verbose=2), epochs=2)
    shown = capsys.readouterr().err
    assert "2/2" in shown
    assert "6.00/6.00" in shown or "6/6" in shown


CONFIG = """
work_dir: {folder}
model: {{type: mlp, hidden: [8]}}
dataset: {{type: digits}}
loader: {{batch_size: 256}}
optimizer: {{type: SGD, lr: 0.1}}
training: {{epochs: 3, metrics: [accuracy]}}
hooks:
  - {{type: lightning.pytorch.callbacks.EarlyStopping, monitor: val_loss, patience: 1, {extra}}}
  - {{type: keras.callbacks.CSVLogger, filename: {folder}/log.csv}}
  - {{type: transformers.PrinterCallback}}
"""


def test_a_config_names_callbacks_by_their_dotted_path(tmp_path):
    (tmp_path / "config.yaml").write_text(
        CONFIG.format(folder=tmp_path / "run", extra="min_delta: 100")
    )
    runner = hookline.Runner.from_config(tmp_path / "config.yaml")
    runner.train()
    assert runner.stop_reason.hook == "EarlyStopping"
    assert runner.epoch == 2
    assert len((tmp_path / "run" / "log.csv").read_text().splitlines()) == 3


def test_a_mistake_in_it_has_its_line_and_a_suggestion(tmp_path):
    (tmp_path / "config.yaml").write_text(
        CONFIG.format(folder=tmp_path / "run", extra="patince: 3")
    )
    with pytest.raises(
        ConfigError,
        match=r"config\.yaml:9: hooks\[0\] EarlyStopping: unknown parameter 'patince'; did you mean 'patience'",
    ):
        hookline.Runner.from_config(tmp_path / "config.yaml")


def test_callbacks_of_several_frameworks_run_side_by_side_and_keep_their_state(tmp_path):
    def hooks():
        return (
            EarlyStopping("val_loss", patience=4),
            keras.callbacks.ReduceLROnPlateau(patience=1),
            CheckpointHook(),
        )

    whole = run_here(tmp_path / "whole", *hooks(), epochs=12)
    run_here(tmp_path / "run", *hooks(), epochs=2)
    resumed = run_here(tmp_path / "run", *hooks(), epochs=12, resume="auto")
    assert resumed.epoch == whole.epoch
    assert same_weights(resumed.model, whole.model)


def test_wrap_refuses_what_is_no_callback():
    with pytest.raises(TypeError, match="an instance of Lightning's Callback"):
        hookline_lightning.wrap(Net())


def test_drive_in_a_loop_with_accelerate(tmp_path):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = Net()
    model, optimizer, data = accelerator.prepare(model, sgd(model), loader(batches()))
    ema = EMAHook(momentum=0.8, warm_up=0)
    with hookline.drive(
        [ema, CheckpointHook()], model, optimizer, data, max_epochs=2, work_dir=tmp_path
    ) as run:
        for x, y in run:
            with accelerator.accumulate(model):
                accelerator.backward(run.loss(nn.functional.cross_entropy(model(x), y)))
                optimizer.step()
                optimizer.zero_grad()
    assert run.runner.iter == 12
    assert run.runner.optimizer_steps == ema.updates == 6
    assert torch.load(tmp_path / "last.pth", weights_only=True)["meta"]["optimizer_steps"] == 6


def test_drive_in_an_engine_of_ignite(tmp_path):
    events = ignite.engine.Events
    model = Net()
    optimizer = sgd(model)
    trainer = ignite.engine.create_supervised_trainer(model, optimizer, nn.CrossEntropyLoss())
    ema = EMAHook(momentum=0.8, warm_up=0)
    with hookline.drive(
        [ema, CheckpointHook()], model, optimizer, max_epochs=2, epoch_length=6, work_dir=tmp_path
    ) as run:
        trainer.add_event_handler(events.EPOCH_STARTED, lambda engine: run.begin_epoch())
        trainer.add_event_handler(
            events.ITERATION_STARTED, lambda engine: run.begin_batch(engine.state.batch)
        )
        trainer.add_event_handler(
            events.ITERATION_COMPLETED,
            lambda engine: run.end_batch(engine.state.output) or engine.terminate(),
        )
        trainer.add_event_handler(
            events.EPOCH_COMPLETED, lambda engine: run.end_epoch() or engine.terminate()
        )
        trainer.run(batches(), max_epochs=2)
    runner = run_here(tmp_path / "run", EMAHook(momentum=0.8, warm_up=0), epochs=2)
    assert same_weights(model, runner.model)
    assert all(
        torch.allclose(a, b)
        for a, b in zip(
            ema.average.state_dict().values(),
            runner.hooks[-1].average.state_dict().values(),
            strict=True,
        )
    )
    assert sorted(path.name for path in tmp_path.glob("*.pth")) == [
        "epoch_1.pth",
        "epoch_2.pth",
        "last.pth",
    ]
