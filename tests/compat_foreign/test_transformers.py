"""Unmodified callbacks of Hugging Face's Trainer, compared with runs in that Trainer."""

from __future__ import annotations

import re

import pytest
import torch
import transformers
from torch import nn
from torch.utils.data import SequentialSampler
from transformers import (
    DefaultFlowCallback,
    EarlyStoppingCallback,
    PrinterCallback,
    ProgressCallback,
    TrainerCallback,
)
from transformers.integrations import CodeCarbonCallback, TensorBoardCallback

from hookline.compat.foreign import MissingAttribute
from hookline.compat.transformers import wrap
from hookline.hooks import CheckpointHook, GradientCumulativeOptimizerHook, LoggerHook
from tests.compat_foreign.matrix import shows
from tests.compat_foreign.problem import Net, batches, run_here, same_weights, sgd

NAME = "Hugging Face transformers"


class Scored(nn.Module):
    """The same problem for a model that computes its loss itself, as those of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Net()
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, labels=None):
        logits = self.net(x)
        return (
            {"logits": logits}
            if labels is None
            else {"loss": self.loss(logits, labels), "logits": logits}
        )


class InOrder(transformers.Trainer):
    def _get_train_sampler(self, *args):
        return SequentialSampler(self.train_dataset)


def samples(data):
    return [{"x": x, "labels": y} for xs, ys in data for x, y in zip(xs, ys, strict=True)]


def run_there(tmp_path, *callbacks, epochs=8, resume=None, train=True, **arguments):
    model = Scored()
    optimizer = sgd(model)
    arguments = {"eval_strategy": "epoch", "save_strategy": "no", "logging_steps": 2, **arguments}
    trainer = InOrder(
        model,
        transformers.TrainingArguments(
            str(tmp_path),
            num_train_epochs=epochs,
            per_device_train_batch_size=8,
            per_device_eval_batch_size=8,
            use_cpu=True,
            report_to=[],
            max_grad_norm=0,
            disable_tqdm=True,
            **arguments,
        ),
        train_dataset=samples(batches()),
        eval_dataset=samples(batches(2, seed=1)),
        optimizers=(optimizer, torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)),
        callbacks=list(callbacks),
    )
    if train:
        trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
    return trainer


def run_dicts_here(tmp_path, *hooks, **parts):
    def as_dicts(data):
        return [{"x": x, "labels": y} for x, y in data]

    model = Scored()
    parts.setdefault("train_loader", as_dicts(batches()))
    return run_here(
        tmp_path,
        *hooks,
        model=model,
        optimizer=sgd(model),
        val_loader=as_dicts(batches(2, seed=1)),
        loss_fn=None,
        **parts,
    )


@shows(
    NAME,
    "EarlyStoppingCallback",
    "the same stop step, patience and weights; set `wrap(…, metric_for_best_model=…)`",
)
def test_early_stopping_stops_at_the_same_step(tmp_path):
    there, here = EarlyStoppingCallback(3), EarlyStoppingCallback(3)
    trainer = run_there(
        tmp_path, there, metric_for_best_model="loss", greater_is_better=False, epochs=12
    )
    runner = run_dicts_here(tmp_path, here, epochs=12)
    assert runner.optimizer_steps == trainer.state.global_step < 72
    assert here.early_stopping_patience_counter == there.early_stopping_patience_counter == 3
    assert runner.stop_reason.hook == "EarlyStoppingCallback"
    assert same_weights(runner.model, trainer.model)


def test_the_metric_can_be_given(tmp_path):
    runner = run_here(
        tmp_path, wrap(EarlyStoppingCallback(1), metric_for_best_model="accuracy"), epochs=12
    )
    assert runner.hooks[-1].shared.args.greater_is_better
    assert runner.epoch < 12


def test_a_metric_has_all_its_names(tmp_path):
    callback = EarlyStoppingCallback(1)
    assert run_here(tmp_path, wrap(callback, metric_for_best_model="val_acc"), epochs=12).epoch < 12
    assert callback.early_stopping_patience_counter == 1


@pytest.mark.parametrize(
    ("hooks", "parts", "expected"),
    [
        (
            [LoggerHook(interval=8)],
            {},
            {
                "logging_steps": 2,
                "gradient_accumulation_steps": 4,
                "eval_strategy": "epoch",
                "max_steps": -1,
            },
        ),
        (
            [CheckpointHook(interval=8, by_epoch=False)],
            {},
            {"save_strategy": "steps", "save_steps": 2},
        ),
        (
            [CheckpointHook(interval=2)],
            {},
            {"save_strategy": "steps", "save_steps": 4},
        ),  # an epoch has two steps
        ([], {"epochs": None, "max_iters": 16}, {"max_steps": 5}),  # of 4, 2, 4, 2 and 4 iterations
    ],
)
def test_intervals_are_counted_in_optimizer_steps(tmp_path, hooks, parts, expected):
    callback, owner = wrap(TrainerCallback()), GradientCumulativeOptimizerHook(cumulative_iters=4)
    runner = run_here(tmp_path, callback, *hooks, owner=owner, **{"epochs": 3, **parts})
    args = callback.shared.args
    assert {name: getattr(args, name) for name in expected} == expected
    assert callback.shared.state.max_steps == runner.optimizer_steps


def test_a_resumed_run_keeps_its_patience_and_its_best(tmp_path):
    whole = run_here(tmp_path / "whole", EarlyStoppingCallback(4), epochs=12)
    run_here(tmp_path / "run", EarlyStoppingCallback(4), CheckpointHook(), epochs=3)
    resumed = run_here(
        tmp_path / "run", EarlyStoppingCallback(4), CheckpointHook(), epochs=12, resume="auto"
    )
    assert resumed.epoch == whole.epoch < 12


class Everything(TrainerCallback):
    def __init__(self):
        self.log = []


def _record(name):
    def method(self, args, state, control, **kwargs):
        self.log.append(
            (
                name,
                state.global_step,
                pytest.approx(state.epoch),
                sorted(kwargs.get("logs") or kwargs.get("metrics") or ()),
            )
        )

    return method


EVENTS = (
    *(
        "init_end",
        "train_begin",
        "epoch_begin",
        "step_begin",
        "pre_optimizer_step",
        "optimizer_step",
        "substep_end",
        "step_end",
    ),
    *("epoch_end", "prediction_step", "evaluate", "train_end"),
)
for _name in EVENTS:
    setattr(Everything, f"on_{_name}", _record(_name))


@shows(
    NAME,
    "TrainerCallback",
    "the same events, order and steps; the same epochs without gradient accumulation",
)
@pytest.mark.parametrize("together", [1, 2])
def test_events_come_in_the_same_order_with_the_same_counters(tmp_path, together):
    there, here = Everything(), Everything()
    run_there(tmp_path, there, epochs=2, gradient_accumulation_steps=together)
    run_dicts_here(
        tmp_path, here, epochs=2, owner=GradientCumulativeOptimizerHook(cumulative_iters=together)
    )
    theirs = [entry[:3] for entry in there.log]
    if (
        together > 1
    ):  # our epoch grows with every batch, and the Trainer's need not: it is not compared
        theirs, ours = [entry[:2] for entry in theirs], [entry[:2] for entry in here.log]
    else:
        ours = [entry[:3] for entry in here.log]
    assert ours == theirs


class Logs(TrainerCallback):
    def __init__(self):
        self.rows = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.rows.append(
            (
                state.global_step,
                {
                    key: value
                    for key, value in logs.items()
                    if key in ("loss", "learning_rate", "eval_loss", "epoch")
                },
            )
        )


def test_logs_have_the_same_values_at_the_same_steps(tmp_path):
    there, here = Logs(), Logs()
    run_there(tmp_path, there, epochs=2)
    run_dicts_here(tmp_path, here, LoggerHook(interval=2), epochs=2)
    theirs = there.rows[:-1]  # the last one is the Trainer's speed report
    assert [step for step, _ in here.rows] == [step for step, _ in theirs]
    for (_, ours), (_, row) in zip(here.rows, theirs, strict=True):
        assert ours == pytest.approx(row, rel=1e-4)


@shows(NAME, "DefaultFlowCallback", "requests the same evaluations and saves, and the same end")
def test_default_flow_callback(tmp_path):
    class Count(TrainerCallback):
        def __init__(self):
            self.evaluated, self.saved = [], []

        def on_evaluate(self, args, state, control, **kwargs):
            self.evaluated.append(state.global_step)

        def on_save(self, args, state, control, **kwargs):
            self.saved.append(state.global_step)

    there, here = Count(), Count()
    steps = {
        "eval_strategy": "steps",
        "eval_steps": 4,
        "save_strategy": "steps",
        "save_steps": 5,
        "logging_steps": 3,
    }
    run_there(tmp_path / "a", there, epochs=2, **steps)
    flow = wrap(DefaultFlowCallback(), **steps)
    runner = run_dicts_here(
        tmp_path / "b", flow, here, CheckpointHook(interval=-1, save_best=False), epochs=2
    )
    ours = [
        step for step in here.evaluated if step % 6 or step == 12
    ]  # EvalHook also evaluates after each epoch
    assert ours == there.evaluated
    assert here.saved == there.saved
    assert runner.optimizer_steps == 12


@shows(NAME, "PrinterCallback", "prints the same losses")
def test_printer_callback(tmp_path, capsys):
    run_there(tmp_path, PrinterCallback(), epochs=1)
    theirs = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("{'loss'") or "eval_loss" in line
    ]
    run_dicts_here(tmp_path, PrinterCallback(), LoggerHook(interval=2), epochs=1)
    ours = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("{'loss'") or "eval_loss" in line
    ]
    assert len(ours) == 4
    losses = re.compile(r"'(?:eval_)?loss': '[\d.]+'")
    assert [losses.search(line)[0] for line in ours] == [
        losses.search(line)[0] for line in dict.fromkeys(theirs)
    ]


@shows(NAME, "ProgressCallback", "draws its bar")
def test_progress_callback(tmp_path, capsys):
    run_here(tmp_path, ProgressCallback(), epochs=2)
    assert "12/12" in capsys.readouterr().err


@shows(NAME, "TensorBoardCallback", "the same scalars in its event file")
def test_tensorboard_callback(tmp_path, monkeypatch):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def scalars(folder):
        events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
        events.Reload()
        return {
            tag: [(e.step, pytest.approx(e.value, rel=1e-4)) for e in events.Scalars(tag)]
            for tag in ("train/loss", "eval/loss")
        }

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "there"))
    run_there(tmp_path, TensorBoardCallback(), epochs=2)
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "here"))
    run_dicts_here(tmp_path / "run", TensorBoardCallback(), LoggerHook(interval=2), epochs=2)
    assert scalars(tmp_path / "here") == scalars(tmp_path / "there")


@shows(
    "Third parties",
    "codecarbon, through CodeCarbonCallback of transformers",
    "writes its emissions.csv",
)
@shows(NAME, "CodeCarbonCallback", "writes its emissions.csv")
def test_codecarbon_callback(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    # It swallows what goes wrong when it looks at the machine, and then writes nothing: it need not look at processes, of which another
    # may just end, nor start one that burns a core to learn the processor's name.
    (tmp_path / ".codecarbon.config").write_text(
        "[codecarbon]\nallow_multiple_runs = true\ntracking_mode = machine\n"
    )
    monkeypatch.setattr("cpuinfo.get_cpu_info", lambda: {"brand_raw": "a processor"})
    run_here(tmp_path / "run", CodeCarbonCallback(), epochs=1)
    rows = (tmp_path / "run" / "emissions.csv").read_text().splitlines()
    assert len(rows) == 2
    assert "energy_consumed" in rows[0]


def test_a_missing_attribute_names_callback_attribute_and_version(tmp_path):
    class Curious(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            return state.deepspeed_engine

    with pytest.raises(
        MissingAttribute,
        match=rf"Curious needs `state\.deepspeed_engine` of transformers {transformers.__version__}",
    ):
        run_here(tmp_path, Curious())


def test_a_save_request_without_a_checkpoint_hook_logs_a_warning(tmp_path, caplog):
    class Save(TrainerCallback):
        def on_epoch_end(self, args, state, control, **kwargs):
            control.should_save = True

    run_here(tmp_path, Save(), epochs=1)
    warnings = [record.message for record in caplog.records if "CheckpointHook" in record.message]
    assert len(warnings) == 1
    assert warnings[0].startswith("Save (transformers)")


def test_only_sites_that_the_callback_overrides_are_hooked():
    assert set(wrap(EarlyStoppingCallback()).get_triggered_stages()) == {
        "before_run",
        "before_train",
        "after_val_epoch",
        "after_val",
    }
