"""Unmodified callbacks of Lightning, compared with runs in Lightning's Trainer."""

from __future__ import annotations

import logging
import warnings
from datetime import timedelta

import lightning.pytorch as pl
import pytest
import torch
from lightning.fabric.utilities.spike import TrainingSpikeException
from lightning.pytorch import callbacks as cb
from torch import nn

from hookline.compat.foreign import MissingAttribute
from hookline.compat.lightning import wrap
from hookline.engine import BaseHook
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook, GradientCumulativeOptimizerHook, LoggerHook
from tests.compat_foreign.matrix import CANNOT, DIFFERS, shows
from tests.compat_foreign.problem import Net, batches, loader, run_here, same_weights, sgd

NAME = "Lightning"


class LitNet(pl.LightningModule):
    """The same problem as Lightning users write it."""

    def __init__(self, backbone_frozen: bool = False) -> None:
        super().__init__()
        source = Net()
        self.backbone, self.head = source.backbone, source.head
        self.frozen = backbone_frozen
        self.loss = nn.CrossEntropyLoss()
        self.fail_at = -1

    forward = Net.forward

    def training_step(self, batch, index):
        if self.global_step == self.fail_at:
            raise ZeroDivisionError("on purpose")
        loss = self.loss(self(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, index, dataloader_idx=0):
        out = self(batch[0])
        self.log("val_loss", self.loss(out, batch[1]), batch_size=len(batch[1]))
        self.log("val_acc", (out.argmax(1) == batch[1]).float().mean(), batch_size=len(batch[1]))

    def configure_optimizers(self):
        return sgd(self.head if self.frozen else self)


class Recorder(pl.loggers.logger.Logger):
    """Keeps what is logged."""

    name, version = "", ""

    def __init__(self):
        super().__init__()
        self.logged = []

    def log_metrics(self, metrics, step=None):
        self.logged.append((step, dict(metrics)))

    def log_hyperparams(self, *args, **kwargs): ...


def run_there(tmp_path, *callbacks, epochs=8, model=None, logger=False, **options):
    model = model or LitNet()
    options.setdefault("num_sanity_val_steps", 0)
    given = {type(each) for each in callbacks}
    trainer = pl.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=logger,
        callbacks=list(callbacks),
        default_root_dir=tmp_path,
        enable_checkpointing=any(issubclass(kind, cb.Checkpoint) for kind in given),
        enable_progress_bar=any(issubclass(kind, cb.ProgressBar) for kind in given),
        enable_model_summary=any(issubclass(kind, cb.ModelSummary) for kind in given),
        log_every_n_steps=options.pop("log_every_n_steps", 2),
        **options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(model, loader(batches()), loader(batches(2, seed=1)))
    return trainer, model


def files(folder):
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and ".hookline" not in path.name
    )


@shows(NAME, "EarlyStopping", "the same stop epoch, best score and weights")
@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2},
        {"patience": 3, "min_delta": 0.05},
        {"stopping_threshold": 1.2},
        {"divergence_threshold": 1.3},
    ],
)
def test_early_stopping_stops_at_the_same_epoch(tmp_path, options):
    there, here = cb.EarlyStopping("val_loss", **options), cb.EarlyStopping("val_loss", **options)
    trainer, model = run_there(tmp_path / "a", there, epochs=12)
    runner = run_here(tmp_path / "b", here, epochs=12)
    assert here.stopped_epoch == there.stopped_epoch
    assert runner.epoch == trainer.current_epoch < 12
    assert runner.stop_reason.hook == "EarlyStopping"
    assert torch.allclose(here.best_score, there.best_score)
    assert same_weights(runner.model, model)


@shows(
    NAME,
    "ModelCheckpoint",
    "the same files and weights: top k, last, by step, with metrics in names",
)
@pytest.mark.parametrize(
    "options",
    [
        {
            "monitor": "val_loss",
            "save_top_k": 2,
            "filename": "{epoch}-{val_loss:.3f}",
            "save_last": True,
        },
        {"monitor": "val_acc", "mode": "max", "save_top_k": 1, "filename": "best-{val_acc:.2f}"},
        {"every_n_train_steps": 4, "save_top_k": -1},
        {"save_top_k": -1, "every_n_epochs": 3, "save_weights_only": True},
        {"save_last": "link", "save_top_k": -1},
    ],
)
def test_model_checkpoint_writes_the_same_files(tmp_path, options):
    one, other = (
        cb.ModelCheckpoint(dirpath=tmp_path / "a", **options),
        cb.ModelCheckpoint(dirpath=tmp_path / "b", **options),
    )
    run_there(tmp_path, one, epochs=4)
    run_here(tmp_path / "run", other, epochs=4)
    assert files(tmp_path / "a") == files(tmp_path / "b") != []
    for name in files(tmp_path / "a"):
        theirs = torch.load(tmp_path / "a" / name, weights_only=True)
        ours = torch.load(tmp_path / "b" / name, weights_only=True)
        assert theirs["global_step"] == ours["global_step"]
        assert all(
            torch.allclose(theirs["state_dict"][key], ours["state_dict"][key], atol=1e-6)
            for key in theirs["state_dict"]
        )
    assert one.best_model_path.rpartition("/")[2] == other.best_model_path.rpartition("/")[2]


def test_a_file_of_model_checkpoint_resumes_a_run_and_loads_in_lightning(tmp_path):
    kept = cb.ModelCheckpoint(dirpath=tmp_path / "files", save_top_k=-1, filename="{epoch}")
    whole = run_here(tmp_path / "a", kept, epochs=4)
    resumed = run_here(
        tmp_path / "b", epochs=4, model=Net(seed=5), resume=tmp_path / "files" / "epoch=1.ckpt"
    )
    assert same_weights(whole.model, resumed.model)
    assert same_weights(
        LitNet.load_from_checkpoint(tmp_path / "files" / "epoch=3.ckpt"), whole.model
    )


def test_the_old_best_continuesly_after_the_new_one_is_there(tmp_path):
    steps = []

    class Watch(BaseHook):
        def after_epoch(self, runner):
            steps.append(files(tmp_path / "files") if (tmp_path / "files").exists() else [])

    callback = cb.ModelCheckpoint(
        dirpath=tmp_path / "files", monitor="epoch", mode="max", filename="{epoch}"
    )
    run_here(tmp_path / "run", callback, Watch(), epochs=4)
    assert steps == [[], ["epoch=0.ckpt"], ["epoch=1.ckpt"], ["epoch=2.ckpt"]]
    assert files(tmp_path / "files") == ["epoch=3.ckpt"]


@shows(NAME, "LearningRateMonitor", "the same values, epoch by epoch")
def test_learning_rate_monitor_logs_the_same_rates(tmp_path):
    class Scheduled(LitNet):
        def configure_optimizers(self):
            optimizer = sgd(self)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]

    recorder, there, here = (
        Recorder(),
        cb.LearningRateMonitor("epoch"),
        cb.LearningRateMonitor("epoch"),
    )
    run_there(tmp_path, there, model=Scheduled(), logger=recorder, epochs=5)
    model = Net()
    optimizer = sgd(model)
    run_here(
        tmp_path,
        here,
        {"type": "ParamSchedulerHook"},
        model=model,
        optimizer=optimizer,
        scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 2),
        epochs=5,
    )
    assert here.lrs == there.lrs == {"lr-SGD": pytest.approx([0.5, 0.5, 0.05, 0.05, 0.005])}


def test_what_it_logs_is_in_our_events(tmp_path):
    runner = run_here(tmp_path, cb.LearningRateMonitor("step"), LoggerHook(interval=2), epochs=2)
    assert [point.value for point in runner.events.history("lr-SGD")] == [0.5] * 6


@shows(NAME, "DeviceStatsMonitor", "the same names")
def test_device_stats_monitor(tmp_path):
    recorder = Recorder()
    run_there(tmp_path, cb.DeviceStatsMonitor(), logger=recorder, epochs=1)
    runner = run_here(tmp_path, cb.DeviceStatsMonitor(), LoggerHook(interval=2), epochs=1)
    theirs = {name for _, row in recorder.logged for name in row if name.startswith("DeviceStats")}
    ours = {name for name in runner.events.latest() if name.startswith("DeviceStats")}
    assert ours == theirs != set()


@shows(NAME, "ThroughputMonitor", "the same names")
def test_throughput_monitor(tmp_path):
    recorder = Recorder()
    run_there(
        tmp_path,
        cb.ThroughputMonitor(batch_size_fn=lambda batch: len(batch[0]), window_size=3),
        logger=recorder,
        epochs=2,
    )
    monitor = cb.ThroughputMonitor(batch_size_fn=lambda batch: len(batch[0]), window_size=3)
    runner = run_here(tmp_path, monitor, LoggerHook(interval=2), epochs=2)
    theirs = {name for _, row in recorder.logged for name in row if "/" in name}
    assert (
        {name for name in runner.events.latest() if name.startswith(("train/", "validate/"))}
        == theirs
        != set()
    )
    assert runner.events.latest()["train/samples"] == 96


@shows(NAME, "Timer", "the same stop epoch; its elapsed time is in its state")
def test_timer(tmp_path):
    timer, there = (
        cb.Timer(duration=timedelta(microseconds=1), interval="epoch", verbose=False)
        for _ in range(2)
    )
    runner, (trainer, _) = run_here(tmp_path, timer), run_there(tmp_path, there)
    assert runner.epoch == trainer.current_epoch == 1
    assert runner.hooks[-1].state_dict()["time_elapsed"]["train"] == timer.time_elapsed() > 0


@shows(NAME, "WeightAveraging", "the same averaged weights at the end; validation uses the average")
@shows(
    NAME, "EMAWeightAveraging", "the same averaged weights at the end; validation uses the average"
)
@pytest.mark.parametrize("make", [cb.WeightAveraging, lambda: cb.EMAWeightAveraging(decay=0.8)])
def test_weight_averaging_gives_the_same_weights(tmp_path, make):
    trainer, model = run_there(tmp_path, make(), epochs=3)
    runner = run_here(tmp_path, make(), epochs=3)
    assert same_weights(runner.model, model)
    assert not same_weights(runner.model, run_here(tmp_path, epochs=3).model)
    assert runner.metrics["val_loss"] == pytest.approx(
        float(trainer.callback_metrics["val_loss"]), rel=1e-5
    )


def test_a_resumed_run_has_the_same_average(tmp_path):
    whole = run_here(tmp_path / "whole", cb.EMAWeightAveraging(decay=0.8), epochs=4)
    run_here(tmp_path / "run", cb.EMAWeightAveraging(decay=0.8), CheckpointHook(), epochs=2)
    resumed = run_here(
        tmp_path / "run",
        cb.EMAWeightAveraging(decay=0.8),
        CheckpointHook(),
        epochs=4,
        model=Net(seed=9),
        resume="auto",
    )
    assert resumed.iter == whole.iter == 24
    assert same_weights(whole.model, resumed.model)


@shows(
    NAME,
    "StochasticWeightAveraging",
    "the same weights without batch norm; with it, add PreciseBNHook",
    DIFFERS,
)
def test_stochastic_weight_averaging(tmp_path):
    _, model = run_there(
        tmp_path,
        cb.StochasticWeightAveraging(0.05, swa_epoch_start=0.5, annealing_epochs=2),
        epochs=6,
    )
    runner = run_here(
        tmp_path,
        cb.StochasticWeightAveraging(0.05, swa_epoch_start=0.5, annealing_epochs=2),
        epochs=6,
    )
    assert same_weights(runner.model, model)
    normed = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    with pytest.raises(HooklineError) as caught:
        run_here(tmp_path, cb.StochasticWeightAveraging(0.05), model=normed)
    assert caught.value.component == "StochasticWeightAveraging"
    assert caught.value.parameter == "max_epochs"


@shows(
    NAME,
    "GradientAccumulationScheduler",
    "the same weights and steps; requires GradientCumulativeOptimizerHook",
)
def test_gradient_accumulation_scheduler(tmp_path):
    trainer, model = run_there(tmp_path, cb.GradientAccumulationScheduler({1: 2, 2: 3}), epochs=3)
    owner = GradientCumulativeOptimizerHook()
    runner = run_here(
        tmp_path, cb.GradientAccumulationScheduler({1: 2, 2: 3}), owner=owner, epochs=3
    )
    assert runner.optimizer_steps == trainer.global_step == 6 + 3 + 2
    assert same_weights(runner.model, model)
    with pytest.raises(HooklineError) as caught:
        run_here(tmp_path, cb.GradientAccumulationScheduler({1: 2}))
    assert caught.value.component == "GradientAccumulationScheduler"
    assert caught.value.value == 2


@shows(
    NAME,
    "BackboneFinetuning",
    "the same weights: frozen at first, then with its own learning rate",
)
def test_backbone_finetuning(tmp_path):
    _, model = run_there(
        tmp_path, cb.BackboneFinetuning(2), model=LitNet(backbone_frozen=True), epochs=4
    )
    mine = Net()
    runner = run_here(
        tmp_path, cb.BackboneFinetuning(2), model=mine, optimizer=sgd(mine.head), epochs=4
    )
    assert same_weights(runner.model, model)
    assert len(runner.optimizer.param_groups) == 2


class Unfreeze(cb.BaseFinetuning):
    def freeze_before_training(self, pl_module):
        self.freeze(pl_module.backbone)

    def finetune_function(self, pl_module, epoch, optimizer):
        if epoch == 1:
            self.unfreeze_and_add_param_group(pl_module.backbone, optimizer, lr=0.1)


@shows(NAME, "BaseFinetuning", "a subclass: the same weights")
def test_base_finetuning(tmp_path):
    _, model = run_there(tmp_path, Unfreeze(), model=LitNet(backbone_frozen=True), epochs=3)
    mine = Net()
    assert same_weights(
        run_here(tmp_path, Unfreeze(), model=mine, optimizer=sgd(mine.head), epochs=3).model, model
    )


@shows(NAME, "ModelPruning", "the same weights are zero")
def test_model_pruning(tmp_path):
    _, model = run_there(tmp_path, cb.ModelPruning("l1_unstructured", amount=0.3), epochs=3)
    runner = run_here(tmp_path, cb.ModelPruning("l1_unstructured", amount=0.3), epochs=3)
    assert same_weights(runner.model, model)
    assert (runner.model.head.weight == 0).any()


@shows(NAME, "LambdaCallback", "the same calls in the same order")
@shows(
    NAME,
    "Callback",
    "the same calls in the same order, with the same epoch, step and trainer function",
)
@pytest.mark.parametrize("together", [1, 4])  # batches that make an optimizer step
def test_calls_come_in_the_same_order_with_the_same_counters(tmp_path, together):
    methods = [
        *(
            "setup",
            "on_fit_start",
            "on_train_start",
            "on_train_epoch_start",
            "on_train_batch_start",
            "on_before_zero_grad",
        ),
        *(
            "on_before_backward",
            "on_after_backward",
            "on_before_optimizer_step",
            "on_train_batch_end",
            "on_validation_start",
        ),
        *(
            "on_validation_epoch_start",
            "on_validation_batch_start",
            "on_validation_batch_end",
            "on_validation_epoch_end",
        ),
        *(
            "on_validation_end",
            "on_train_epoch_end",
            "on_train_end",
            "on_fit_end",
            "teardown",
        ),
    ]

    def recording(log):
        def method(name):
            def record(trainer, pl_module, *args, **kwargs):
                position = (
                    trainer.current_epoch,
                    trainer.global_step,
                    trainer.state.fn.value,
                    trainer.is_last_batch if "batch_end" in name else None,
                )
                log.append((name, *position, [arg for arg in args if isinstance(arg, int)]))

            return record

        return cb.LambdaCallback(**{name: method(name) for name in methods})

    there, here = [], []
    run_there(tmp_path, recording(there), epochs=2, accumulate_grad_batches=together)
    run_here(
        tmp_path,
        recording(here),
        epochs=2,
        owner=GradientCumulativeOptimizerHook(cumulative_iters=together),
    )
    assert here == there


class Stages(pl.Callback):
    """Notes the stage that it is set up for, which loader a batch is of, and whether a fit ends."""

    def __init__(self):
        self.seen = []

    def setup(self, trainer, pl_module, stage):
        self.seen.append(("setup", stage, trainer.state.fn.value))

    def on_load_checkpoint(self, trainer, pl_module, checkpoint):
        self.seen.append("load")

    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, *place):
        self.seen.append(("val", *place))

    on_test_batch_start = lambda self, *args: self.seen.append(("test", *args[3:]))  # noqa: E731

    def on_fit_end(self, trainer, pl_module):
        self.seen.append("on_fit_end")

    def teardown(self, trainer, pl_module, stage):
        self.seen.append(("teardown", stage, trainer.state.fn.value))


def test_a_callback_is_set_up_for_what_is_run(tmp_path):
    two = [batches(2, seed=1), batches(1, seed=2)]
    there, here = Stages(), Stages()
    trainer, model = run_there(tmp_path, there, epochs=1)
    trainer.validate(model, [loader(each) for each in two], verbose=False)
    model.test_step = lambda batch, batch_idx: None
    trainer.test(model, loader(two[0]), verbose=False)
    runner = run_here(tmp_path, here, epochs=1)
    runner.val_loader = dict(zip("ab", two, strict=True))
    runner.validate()
    runner.test_loader = two[0]
    runner.test()
    assert here.seen == there.seen
    assert [entry[1] for entry in here.seen if entry[0] == "setup"] == ["fit", "validate", "test"]


def test_a_callback_that_comes_after_a_training_is_set_up_for_the_test_that_it_sees(tmp_path):
    runner, stages = run_here(tmp_path, epochs=1), Stages()
    runner.register_hook(stages)
    runner.test_loader = batches(1)
    runner.test()
    assert stages.seen == [("setup", "test", "test"), ("test", 0), ("teardown", "test", "test")]


def test_an_evaluation_sets_a_callback_up_before_it_sees_the_loaded_checkpoint(tmp_path):
    run_here(tmp_path / "run", CheckpointHook(), epochs=1)
    stages = Stages()
    run_here(tmp_path, stages, train=False, load_from=tmp_path / "run" / "last.pth").validate()
    assert stages.seen[:2] == [("setup", "validate", "validate"), "load"]


def test_the_number_of_steps_is_that_of_the_optimizer(tmp_path):
    class Steps(pl.Callback):
        def on_train_start(self, trainer, pl_module):
            self.seen = trainer.max_steps, trainer.estimated_stepping_batches

    steps, owner = Steps(), GradientCumulativeOptimizerHook(cumulative_iters=4)
    runner = run_here(tmp_path, steps, epochs=None, max_iters=16, owner=owner)
    assert steps.seen == (5, 5)
    assert runner.optimizer_steps == 5


def test_values_that_a_callback_logs_are_reduced_over_the_epoch(tmp_path):
    class Logs(pl.Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            pl_module.log("last", float(batch_idx))
            pl_module.log("both", float(batch_idx), on_step=True, on_epoch=True)
            pl_module.log(
                "most",
                float(batch_idx),
                on_step=False,
                on_epoch=True,
                reduce_fx="max",
                batch_size=8,
            )

        def on_validation_batch_end(
            self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0
        ):
            pl_module.log("seen", float(batch_idx), batch_size=len(batch[1]))

    data = [*batches(1, seed=1), *batches(1, size=4, seed=2)]
    trainer, model = run_there(tmp_path, Logs(), epochs=2)
    trainer.validate(model, loader(data), verbose=False)
    runner = run_here(tmp_path, Logs(), epochs=2, val_loader=data)
    ours = runner.hooks[-1].trainer.callback_metrics
    wanted = {
        "last": 5.0,
        "both": 2.5,
        "both_step": 5.0,
        "both_epoch": 2.5,
        "most": 5.0,
        "seen": pytest.approx(1 / 3),
    }
    assert {name: float(ours[name]) for name in wanted} == wanted
    assert float(trainer.callback_metrics["seen"]) == wanted["seen"]
    fitted, _ = run_there(tmp_path, Logs(), epochs=2)
    assert {name: float(fitted.callback_metrics[name]) for name in wanted if name != "seen"} == {
        name: value for name, value in wanted.items() if name != "seen"
    }
    assert runner.events.latest()["seen"] == wanted["seen"]


def test_a_reduction_that_is_not_known_here_is_refused(tmp_path):
    class Logs(pl.Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            pl_module.log("odd", 1.0, on_epoch=True, reduce_fx=torch.median)

    with pytest.raises(HooklineError) as caught:
        run_here(tmp_path, Logs())
    assert caught.value.component == "Logs"
    assert caught.value.value == "median"
    assert caught.value.suggestion.known == ("mean", "sum", "min", "max")


@shows(NAME, "OnExceptionCheckpoint", "the same file after a failure, none after a good run")
def test_on_exception_checkpoint(tmp_path):
    class Fail(BaseHook):
        def after_forward(self, runner):
            if runner.iter == 7:
                raise ZeroDivisionError("on purpose")

    model = LitNet()
    model.fail_at = 7
    with pytest.raises(ZeroDivisionError):
        run_there(tmp_path, cb.OnExceptionCheckpoint(tmp_path / "a"), model=model)
    with pytest.raises(ZeroDivisionError):
        run_here(tmp_path / "run", cb.OnExceptionCheckpoint(tmp_path / "b"), Fail())
    theirs, ours = (
        torch.load(tmp_path / name / "on_exception.ckpt", weights_only=True) for name in "ab"
    )
    assert theirs["global_step"] == ours["global_step"] == 7
    run_here(tmp_path / "good", cb.OnExceptionCheckpoint(tmp_path / "c"))
    assert not (tmp_path / "c" / "on_exception.ckpt").exists()


@shows(NAME, "ModelSummary", "draws its table")
def test_model_summary(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "lightning.pytorch.callbacks.model_summary"):
        run_here(tmp_path, cb.ModelSummary(), epochs=1)
    text = caplog.text
    assert "backbone | Sequential | 112" in text
    assert "163       Total params" in text


@shows(NAME, "RichModelSummary", "draws its table")
@shows(NAME, "RichProgressBar", "draws its bars")
@shows(NAME, "TQDMProgressBar", "draws its bars")
@shows(NAME, "ProgressBar", "a subclass gets its totals")
def test_bars_and_tables_are_drawn(tmp_path, capsys):
    class Totals(cb.ProgressBar):
        seen = None

        def enable(self): ...
        def disable(self): ...
        def on_train_epoch_start(self, trainer, pl_module):
            self.seen = self.total_train_batches, self.total_val_batches

    mine = Totals()
    run_here(tmp_path, mine, epochs=1)
    assert mine.seen == (6, 2)
    for callback, wanted in (
        (cb.TQDMProgressBar(), "6/6"),
        (cb.RichProgressBar(), "6/6"),
        (cb.RichModelSummary(), "Total params: 163"),
    ):
        run_here(tmp_path, callback, epochs=1)
        shown = capsys.readouterr()
        assert wanted in shown.out + shown.err


@shows(
    NAME, "SpikeDetection", "the same error at the same batch, and the same file of batches to skip"
)
def test_spike_detection(tmp_path):
    def spiky():
        data = batches(12)
        data[9] = (data[9][0] * 100, data[9][1])
        return data

    def detection(folder):
        (tmp_path / folder).mkdir()
        file = str(tmp_path / folder / "skip.json")
        return cb.SpikeDetection(
            warmup=2, window=3, atol=1.0, rtol=1.5, finite_only=False, exclude_batches_path=file
        )

    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    with pytest.raises(TrainingSpikeException) as there:
        pl.Trainer(max_epochs=1, accelerator="cpu", callbacks=[detection("a")], **quiet).fit(
            LitNet(), loader(spiky())
        )
    with pytest.raises(TrainingSpikeException) as here:
        run_here(tmp_path / "run", detection("b"), epochs=1, train_loader=spiky(), val_loader=None)
    assert str(here.value) == str(there.value)
    assert (tmp_path / "b" / "skip.json").read_text() == (tmp_path / "a" / "skip.json").read_text()


@shows(
    NAME,
    "BatchSizeFinder",
    "runs trial fits with other loaders inside a run",
    CANNOT,
)
@shows(
    NAME,
    "LearningRateFinder",
    "runs trial fits inside a fit; use `hookline lr-find`",
    CANNOT,
)
def test_finders_say_that_they_cannot_run_here(tmp_path):
    with pytest.raises(
        MissingAttribute, match=r"BatchSizeFinder needs `trainer\.\S+` of lightning 2\.6\.6"
    ):
        run_here(tmp_path, cb.BatchSizeFinder())
    model = Net()
    model.lr = 0.1
    with pytest.raises(
        MissingAttribute, match=r"LearningRateFinder needs `trainer\.\S+` of lightning 2\.6\.6"
    ):
        run_here(tmp_path, cb.LearningRateFinder(), model=model)


@shows(
    NAME,
    "BasePredictionWriter",
    "never called: Hookline has no `trainer.predict`",
    CANNOT,
)
def test_prediction_writer_is_never_called(tmp_path):
    class Writer(cb.BasePredictionWriter):
        def write_on_epoch_end(self, *args):
            raise AssertionError

    run_here(tmp_path, Writer("epoch"), epochs=1)


def test_an_attribute_that_is_missing_names_callback_attribute_and_version(tmp_path):
    class Curious(pl.Callback):
        def on_train_start(self, trainer, pl_module):
            assert not hasattr(trainer, "tuner")
            assert getattr(pl_module, "nothing", 5) == 5
            trainer.tuner.run()

    with pytest.raises(
        MissingAttribute, match=r"Curious needs `trainer\.tuner` of lightning 2\.6\.6"
    ):
        run_here(tmp_path, Curious())


def test_only_sites_that_the_callback_overrides_are_hooked():
    hook = wrap(cb.EarlyStopping("val_loss"))
    always = {
        "before_run",
        "before_val",
        "after_val",
        "before_test",
        "after_test",
        "cleanup",
    }  # where the trainer's stage changes
    assert set(hook.get_triggered_stages()) == always | {"after_epoch", "after_train"}


def test_twins_get_numbered_names_and_keep_their_own_state(tmp_path):
    def twins():
        return cb.EarlyStopping("val_loss", patience=50), cb.EarlyStopping(
            "accuracy", mode="max", patience=50
        )

    runner = run_here(tmp_path, *twins(), CheckpointHook(), epochs=3)
    assert [hook.name for hook in runner.hooks[2:4]] == ["EarlyStopping", "EarlyStopping_2"]
    later = twins()
    resumed = run_here(tmp_path, *later, CheckpointHook(), epochs=3, resume="auto")
    assert [each.best_score for each in later] == [
        hook.callback.best_score for hook in runner.hooks[2:4]
    ]
    assert resumed.iter == 18


def test_a_resumed_run_keeps_its_patience(tmp_path):
    whole = run_here(tmp_path / "whole", cb.EarlyStopping("val_loss", patience=4), epochs=12)
    run_here(tmp_path / "run", cb.EarlyStopping("val_loss", patience=4), CheckpointHook(), epochs=3)
    resumed = run_here(
        tmp_path / "run",
        cb.EarlyStopping("val_loss", patience=4),
        CheckpointHook(),
        epochs=12,
        resume="auto",
    )
    assert resumed.epoch == whole.epoch < 12


def test_state_that_is_not_plain_is_refused_with_a_warning_that_names_the_callback(
    tmp_path, caplog
):
    class Odd(pl.Callback):
        def state_dict(self):
            return {"count": 3, "model": Net()}

    run_here(tmp_path, Odd(), CheckpointHook(), epochs=1)
    assert "Odd (lightning): 'model' of its state is neither a tensor nor plain data" in caplog.text
    assert torch.load(tmp_path / "last.pth", weights_only=True)["hooks"]["Odd"] == {"count": 3}


def test_classes_of_pytorch_lightning_are_wrapped_too(tmp_path):
    import pytorch_lightning.callbacks as old

    callback = old.EarlyStopping("val_loss", patience=2)
    assert (
        run_here(tmp_path, callback, epochs=12).epoch
        == run_here(tmp_path, cb.EarlyStopping("val_loss", patience=2), epochs=12).epoch
        < 12
    )
