"""Unmodified callbacks and algorithms of Composer, compared with runs in Composer's Trainer.

Composer requires an older torch and for torchvision. Its own code runs with this torch; what it imports of torchvision and of its
maker's client is replaced by empty names while it is imported.
"""

from __future__ import annotations

import re
from operator import attrgetter

import pytest
import torch
import transformers  # noqa: F401  # before the stubs: it looks for torchvision, too
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric

from hookline.compat.foreign import MissingAttribute
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook, GradientCumulativeOptimizerHook
from tests.compat_foreign import composer_stubs
from tests.compat_foreign.matrix import CANNOT, DIFFERS, UNTRIED, shows
from tests.compat_foreign.problem import Net, batches, run_here, same_weights, sgd

with composer_stubs.installed():
    import composer
    from composer import algorithms as al
    from composer import callbacks as cb
    from composer.loggers import InMemoryLogger

    from hookline.compat.composer import wrap

CALLBACKS, ALGORITHMS = "Composer: callbacks", "Composer: algorithms"
pytestmark = pytest.mark.filterwarnings("ignore")


class Conv(nn.Module):
    """A little of everything that algorithms look for."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm = nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32)
        self.second, self.pool = nn.Conv2d(32, 128, 3, padding=1), nn.MaxPool2d(2, 2)
        self.head = nn.Linear(128, 3)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        return self.head(self.pool(torch.relu(self.second(x))).mean((2, 3)))


def images(count=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(8, 3, 16, 16, generator=generator),
            torch.randint(3, (8,), generator=generator),
        )
        for _ in range(count)
    ]


def as_loader(data, size=8):
    return DataLoader(
        TensorDataset(torch.cat([x for x, _ in data]), torch.cat([y for _, y in data])),
        batch_size=size,
    )


class Composed(composer.ComposerModel):
    """The same problem as Composer's users write it."""

    def __init__(self, source):
        super().__init__()
        for name, part in source.named_children():
            self.add_module(name, part)
        self.run = type(source).forward
        self.loss_fn = nn.functional.cross_entropy

    def forward(self, batch):
        return self.run(self, batch[0])

    def loss(self, outputs, batch, **options):
        return self.loss_fn(outputs, batch[1], **options)

    def eval_forward(self, batch, outputs=None):
        return self(batch)

    def get_metrics(self, is_train=False):
        return {} if is_train else {"val_loss": MeanMetric()}

    def update_metric(self, batch, outputs, metric):
        metric.update(nn.functional.cross_entropy(outputs, batch[1]))


def run_there(*parts, epochs=4, pictures=False, source=None, **options):
    model = Composed(source or (Conv() if pictures else Net()))
    train, val = (images(), images(2, seed=1)) if pictures else (batches(), batches(2, seed=1))
    logger = InMemoryLogger()
    trainer = composer.Trainer(
        model=model,
        train_dataloader=options.pop("train_dataloader", None) or as_loader(train),
        eval_dataloader=as_loader(val),
        optimizers=sgd(model),
        max_duration=f"{epochs}ep",
        device="cpu",
        progress_bar=False,
        log_to_console=False,
        loggers=[logger],
        callbacks=[part for part in parts if isinstance(part, composer.Callback)],
        algorithms=[part for part in parts if isinstance(part, composer.Algorithm)],
        **options,
    )
    torch.manual_seed(7)
    trainer.fit()
    return trainer, model, logger.data


def run_pictures_here(tmp_path, *parts, epochs=4, **options):
    torch.manual_seed(7)
    options = {
        "model": Conv(),
        "train_loader": images(),
        "val_loader": images(2, seed=1),
        **options,
    }
    return run_here(tmp_path, *parts, epochs=epochs, loss_fn=nn.functional.cross_entropy, **options)


def logged(runner, name):
    return [point.value for point in runner.events.history(name)]


@shows(CALLBACKS, "EarlyStopper", "the same stop epoch and weights")
def test_early_stopper(tmp_path):
    trainer, model, _ = run_there(cb.EarlyStopper("val_loss", "eval", patience=2), epochs=12)
    runner = run_here(tmp_path, cb.EarlyStopper("val_loss", "eval", patience=2), epochs=12)
    assert runner.epoch == trainer.state.timestamp.epoch.value < 12
    assert runner.stop_reason.hook == "EarlyStopper"
    assert same_weights(runner.model, model)


@shows(CALLBACKS, "ThresholdStopper", "the same stop epoch")
def test_threshold_stopper(tmp_path):
    def stopper():
        return cb.ThresholdStopper("val_loss", "eval", 1.25, comp=torch.greater)

    trainer, _, _ = run_there(stopper(), epochs=12)
    assert (
        run_here(tmp_path, stopper(), epochs=12).epoch == trainer.state.timestamp.epoch.value < 12
    )


@shows(CALLBACKS, "NaNMonitor", "raises its error at the batch")
def test_nan_monitor(tmp_path):
    data = batches()
    data[3] = (data[3][0] * float("nan"), data[3][1])
    runner = run_here(tmp_path, cb.NaNMonitor(), train_loader=data, train=False)
    with pytest.raises(RuntimeError, match="Train loss contains a NaN"):
        runner.train()
    assert runner.iter == 3


@shows(CALLBACKS, "LRMonitor", "the same values at every step")
def test_lr_monitor(tmp_path):
    _, _, data = run_there(cb.LRMonitor(), epochs=2)
    assert (
        logged(run_here(tmp_path, cb.LRMonitor(), epochs=2), "lr-SGD/group0")
        == [value for _, value in data["lr-SGD/group0"]]
        == [0.5] * 12
    )


@shows(CALLBACKS, "OptimizerMonitor", "the same norms at every step")
def test_optimizer_monitor(tmp_path):
    _, _, data = run_there(cb.OptimizerMonitor(), epochs=2)
    runner = run_here(tmp_path, cb.OptimizerMonitor(), epochs=2)
    assert logged(runner, "l2_norm/grad/global") == pytest.approx(
        [float(value) for _, value in data["l2_norm/grad/global"]], rel=1e-4
    )
    assert logged(runner, "l2_norm/grad/head.weight")


@shows(CALLBACKS, "SpeedMonitor", "the same names")
def test_speed_monitor(tmp_path):
    _, _, data = run_there(cb.SpeedMonitor(window_size=2), epochs=2)
    runner = run_here(tmp_path, cb.SpeedMonitor(window_size=2), epochs=2)
    assert {name for name in data if name.startswith(("throughput", "time/t", "time/v"))} <= set(
        runner.events.latest()
    )


@shows(CALLBACKS, "RuntimeEstimator", "its estimates shrink to zero")
def test_runtime_estimator(tmp_path):
    values = logged(
        run_here(tmp_path, cb.RuntimeEstimator(skip_batches=1), epochs=6), "time/remaining_estimate"
    )
    assert len(values) > 20
    assert values[-1] < 0.01


@shows(CALLBACKS, "ActivationMonitor", "the same values at the same steps")
def test_activation_monitor(tmp_path):
    _, _, data = run_there(cb.ActivationMonitor(interval="2ba"), epochs=2)
    runner = run_here(tmp_path, cb.ActivationMonitor(interval="2ba"), epochs=2)
    name = "activations/l2_norm/head_output.0"
    theirs = [
        float(value)
        for key, rows in data.items()
        if key.endswith("l2_norm/head_output.0")
        for _, value in rows
    ]
    assert logged(runner, name) == pytest.approx(theirs, rel=1e-4)
    assert len(theirs) == 6


@shows(CALLBACKS, "FreeOutputs", "outputs are dropped after the loss")
def test_free_outputs(tmp_path):
    assert (
        run_here(tmp_path, cb.FreeOutputs(), epochs=1, val_loader=None)
        .outputs["predictions"]
        .numel()
        == 0
    )


@shows(CALLBACKS, "SystemMetricsMonitor", "the same names")
def test_system_metrics_monitor(tmp_path):
    _, _, data = run_there(cb.SystemMetricsMonitor(), epochs=1)
    runner = run_here(tmp_path, cb.SystemMetricsMonitor(), epochs=1)
    assert {name for name in data if "cpu" in name or "disk" in name} <= set(runner.events.latest())


@shows(CALLBACKS, "MemoryMonitor", "needs a GPU; harmless without one", UNTRIED)
@shows(CALLBACKS, "OOMObserver", "needs a GPU; harmless without one", UNTRIED)
@shows(CALLBACKS, "MemorySnapshot", "needs a GPU; harmless without one", UNTRIED)
@pytest.mark.parametrize("kind", [cb.MemoryMonitor, cb.OOMObserver, cb.MemorySnapshot])
def test_those_for_gpus_do_no_harm(tmp_path, kind):
    assert run_here(tmp_path, kind(), epochs=1).iter == 6


@shows(
    CALLBACKS,
    "CheckpointSaver",
    "the same files in Composer's format, written immediately and not at the seam",
    DIFFERS,
)
@shows(CALLBACKS, "LoadCheckpoint", "loads the weights of such a file")
def test_checkpoint_saver_and_load_checkpoint(tmp_path):
    def saver(folder):
        return cb.CheckpointSaver(
            folder=str(tmp_path / folder), filename="ep{epoch}.pt", latest_filename=None
        )

    def names(folder):
        return sorted(path.name for path in (tmp_path / folder).iterdir() if path.suffix == ".pt")

    run_there(saver("a"), epochs=2, run_name="run")
    runner = run_here(tmp_path / "run", saver("b"), epochs=2)
    assert names("b") == names("a") == ["ep1.pt", "ep2.pt"]
    loaded = run_here(
        tmp_path / "more",
        cb.LoadCheckpoint(str(tmp_path / "b" / "ep2.pt")),
        epochs=1,
        train=False,
        model=Net(seed=3),
    )
    loaded.hooks[-1].before_run(loaded)
    assert same_weights(loaded.model, runner.model)


@shows(
    CALLBACKS,
    "ImageVisualizer",
    "needs Composer's W&B logger; use VisualizationHook",
    UNTRIED,
)
@shows(CALLBACKS, "ExportForInferenceCallback", "fails when it traces the model", CANNOT)
@shows(CALLBACKS, "Generate", "needs Composer's HuggingFaceModel", UNTRIED)
@shows(CALLBACKS, "MLPerfCallback", "needs mlperf_logging", UNTRIED)
def test_callbacks_that_need_more_say_so(tmp_path):
    with pytest.raises(ImportError, match="mlperf"):
        cb.MLPerfCallback(str(tmp_path), 0)
    with pytest.raises(RuntimeError, match="Tracer cannot infer type"):
        run_here(
            tmp_path,
            cb.ExportForInferenceCallback("torchscript", str(tmp_path / "exported.pt")),
            epochs=1,
        )


# Algorithms. Those that draw random numbers are seeded alike in both.


def compare(tmp_path, make, pictures=True, **options):
    """The same weights at the end, and others than without the algorithm."""
    _, model, _ = run_there(make(), pictures=pictures, **options)
    if pictures:
        runner, plain = run_pictures_here(tmp_path, make()), run_pictures_here(tmp_path)
    else:
        torch.manual_seed(7)
        runner, plain = (
            run_here(tmp_path, make(), epochs=4, loss_fn=nn.functional.cross_entropy),
            run_here(tmp_path, epochs=4),
        )
    ours, theirs = runner.model.state_dict(), model.state_dict()
    assert list(ours) == [key for key in theirs if key in ours]
    assert all(torch.allclose(ours[key], theirs[key], atol=1e-4) for key in ours)
    other = plain.model.state_dict()
    assert list(ours) != list(other) or any(
        not torch.allclose(ours[key], other[key], atol=1e-6) for key in ours
    )
    return runner


@shows(ALGORITHMS, "GradientClipping", "the same weights")
def test_gradient_clipping(tmp_path):
    compare(tmp_path, lambda: al.GradientClipping("norm", 0.1), pictures=False)


@shows(ALGORITHMS, "LabelSmoothing", "the same weights")
def test_label_smoothing(tmp_path):
    compare(tmp_path, lambda: al.LabelSmoothing(0.2), pictures=False)


@shows(
    ALGORITHMS,
    "EMA",
    "the same weights and validation results, which use the average",
)
def test_ema(tmp_path):
    trainer, model, _ = run_there(al.EMA(half_life="3ba", update_interval="1ba"))
    runner, plain = (
        run_here(tmp_path, al.EMA(half_life="3ba", update_interval="1ba"), epochs=4),
        run_here(tmp_path, epochs=4),
    )
    assert same_weights(runner.model, model)
    assert runner.metrics["val_loss"] == pytest.approx(
        float(trainer.state.eval_metrics["eval"]["val_loss"].compute()), rel=1e-5
    )
    assert runner.metrics["val_loss"] != pytest.approx(plain.metrics["val_loss"], rel=1e-5)


@shows(ALGORITHMS, "SWA", "the same averaged weights at the end")
def test_swa(tmp_path):
    compare(
        tmp_path,
        lambda: al.SWA(swa_start="0.5dur", swa_end="1dur", update_interval="1ep"),
        pictures=False,
    )


@shows(ALGORITHMS, "LayerFreezing", "the same weights")
def test_layer_freezing(tmp_path):
    compare(tmp_path, lambda: al.LayerFreezing(freeze_start=0.2, freeze_level=0.9))


@shows(ALGORITHMS, "BlurPool", "the same layers and weights")
def test_blur_pool(tmp_path):
    runner = compare(tmp_path, al.BlurPool)
    assert type(runner.model.pool).__name__ == "BlurMaxPool2d"


@shows(
    ALGORITHMS, "SqueezeExcite", "the same layers by name, and the optimizer has their parameters"
)
@shows(ALGORITHMS, "Factorize", "the same layers by name, and the optimizer has their parameters")
@shows(
    ALGORITHMS, "GhostBatchNorm", "the same layers by name, and the optimizer has their parameters"
)
@shows(
    ALGORITHMS,
    "WeightStandardization",
    "the same layers by name, and the optimizer has their parameters",
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: al.SqueezeExcite(min_channels=32),
        lambda: al.Factorize(
            min_channels=32, latent_channels=8, min_features=32, latent_features=2
        ),
        lambda: al.GhostBatchNorm(4),
        al.WeightStandardization,
    ],
)
def test_model_surgery_makes_the_same_layers_and_trains_them(tmp_path, make):
    _, model, _ = run_there(make(), pictures=True, epochs=1)
    runner = run_pictures_here(tmp_path, make(), epochs=1)
    assert list(runner.model.state_dict()) == list(model.state_dict())
    assert list(runner.model.state_dict()) != list(Conv().state_dict())
    held = {id(p) for group in runner.optimizer.param_groups for p in group["params"]}
    assert {id(p) for p in runner.model.parameters()} == held


def test_a_run_with_a_changed_model_resumes(tmp_path):
    def hooks():
        return al.SqueezeExcite(min_channels=32), CheckpointHook()

    torch.manual_seed(0)
    run_pictures_here(tmp_path, *hooks(), epochs=2)
    resumed = run_pictures_here(tmp_path, *hooks(), epochs=3, resume="auto")
    assert resumed.iter == 12


@shows(ALGORITHMS, "ChannelsLast", "the weights have that layout")
def test_channels_last(tmp_path):
    runner = run_pictures_here(tmp_path, al.ChannelsLast(), epochs=1)
    assert runner.model.second.weight.is_contiguous(memory_format=torch.channels_last)


@shows(
    ALGORITHMS,
    "MixUp",
    "the same weights, with mixed targets or a mixed loss; random draws were fixed",
)
@pytest.mark.parametrize("interpolate", [False, True])
def test_mixup(tmp_path, interpolate, monkeypatch):
    monkeypatch.setattr("composer.algorithms.mixup.mixup._gen_mixing_coef", lambda alpha: 0.3)
    monkeypatch.setattr(
        "composer.algorithms.mixup.mixup._gen_indices", lambda count: torch.arange(count).flip(0)
    )
    compare(tmp_path, lambda: al.MixUp(interpolate_loss=interpolate), pictures=False)


@shows(ALGORITHMS, "CutMix", "inputs are mixed")
@shows(ALGORITHMS, "CutOut", "inputs are cut")
@shows(ALGORITHMS, "ColOut", "rows and columns are dropped")
@shows(ALGORITHMS, "ProgressiveResizing", "pictures are resized")
@pytest.mark.parametrize(
    "make",
    [
        al.CutMix,
        al.CutOut,
        al.ColOut,
        lambda: al.ProgressiveResizing(initial_scale=0.5, delay_fraction=0.2),
    ],
)
def test_algorithms_on_pictures_change_what_the_model_sees(tmp_path, make):
    seen = []

    class Watching(Conv):
        def forward(self, x):
            if self.training:
                seen.append(x)
            return super().forward(x)

    options = {"mode": "resize"} if "Progressive" in str(make) else {}
    callback = make()
    if options:
        callback.mode = "resize"
    run_pictures_here(tmp_path, callback, model=Watching(), epochs=2)
    assert len(seen) == 8
    assert any(
        x.shape != given.shape or not torch.equal(x, given)
        for x, (given, _) in zip(seen, images() * 2, strict=True)
    )


@shows(
    ALGORITHMS,
    "SelectiveBackprop",
    "trains on half of the samples; the loss_fn must accept `reduction`",
)
def test_selective_backprop(tmp_path):
    sizes = []

    class Watching(Conv):
        def forward(self, x):
            if self.training and torch.is_grad_enabled():
                sizes.append(len(x))
            return super().forward(x)

    run_pictures_here(
        tmp_path,
        al.SelectiveBackprop(start=0.0, end=1.0, keep=0.5, interrupt=0),
        model=Watching(),
        epochs=1,
    )
    assert 4 in sizes


@shows(ALGORITHMS, "GyroDropout", "dropout layers are replaced")
def test_gyro_dropout(tmp_path):
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    run_here(tmp_path, al.GyroDropout(0.5, 2, 2), model=model, epochs=2)
    assert type(model[1]).__name__ == "GyroDropoutLayer"


@shows(ALGORITHMS, "SAM", "replaces the optimizer with one that needs a closure", CANNOT)
@shows(ALGORITHMS, "NoOpModel", "replaces the model", CANNOT)
@pytest.mark.parametrize(("make", "what"), [(al.SAM, "optimizer"), (al.NoOpModel, "model")])
def test_what_replaces_parts_of_the_run_is_refused(tmp_path, make, what):
    with pytest.raises(HooklineError) as caught:
        run_here(tmp_path, make())
    assert caught.value.component == make.__name__
    assert caught.value.parameter == what


@shows(ALGORITHMS, "AugMix", "needs a torchvision data set", CANNOT)
@shows(ALGORITHMS, "RandAugment", "needs a torchvision data set", CANNOT)
@shows(ALGORITHMS, "SeqLengthWarmup", "needs Composer's HuggingFaceModel", CANNOT)
@pytest.mark.parametrize("make", [al.AugMix, al.RandAugment, al.SeqLengthWarmup])
def test_algorithms_for_other_data_say_so(tmp_path, make):
    with pytest.raises((TypeError, RuntimeError), match="requires"):
        run_here(tmp_path, make())


@shows(ALGORITHMS, "StochasticDepth", "needs a torchvision ResNet", UNTRIED)
@shows(ALGORITHMS, "Alibi", "needs a language model of transformers", UNTRIED)
@shows(ALGORITHMS, "GatedLinearUnits", "needs a BERT of transformers", UNTRIED)
@shows(
    ALGORITHMS,
    "LowPrecisionLayerNorm",
    "needs mixed precision",
    UNTRIED,
)
@shows(
    ALGORITHMS,
    "LowPrecisionGroupNorm",
    "needs mixed precision",
    UNTRIED,
)
def test_algorithms_that_have_nothing_to_do_do_no_harm(tmp_path):
    assert (
        run_pictures_here(
            tmp_path, al.LowPrecisionLayerNorm(), al.LowPrecisionGroupNorm(), epochs=1
        ).iter
        == 4
    )


def test_a_batch_is_an_optimizer_step_when_gradients_are_added_up(tmp_path):
    seen = []

    class Clock(composer.Callback):
        def batch_end(self, state, logger):
            seen.append(
                (
                    state.timestamp.epoch.value,
                    state.timestamp.batch.value,
                    state.timestamp.batch_in_epoch.value,
                )
            )

    run_here(tmp_path, Clock(), epochs=2, owner=GradientCumulativeOptimizerHook(cumulative_iters=2))
    assert seen == [(0, 1, 1), (0, 2, 2), (0, 3, 3), (1, 4, 1), (1, 5, 2), (1, 6, 3)]


@pytest.mark.parametrize(
    "together", [1, 2]
)  # iterations, or Composer's micro-batches, that make an optimizer step
def test_events_come_in_the_same_order_with_the_same_clock(tmp_path, together):
    own = [
        "init",
        "before_load",
        "after_load",
        "before_dataloader",
        "iteration_start",
        "iteration_end",
        "iteration_checkpoint",
    ]
    if together > 1:
        own.append("after_dataloader")  # here each iteration has its data

    class Everything(composer.Callback):
        def __init__(self):
            self.log = []

        def run_event(self, event, state, logger):
            if event.value not in own:
                clock = state.timestamp
                self.log.append(
                    (
                        event.value,
                        clock.epoch.value,
                        clock.batch.value,
                        clock.batch_in_epoch.value,
                        clock.sample.value,
                    )
                )

    there, here = Everything(), Everything()
    run_there(
        there,
        epochs=2,
        device_train_microbatch_size=8,
        train_dataloader=as_loader(batches(), 8 * together),
    )
    run_here(
        tmp_path, here, epochs=2, owner=GradientCumulativeOptimizerHook(cumulative_iters=together)
    )
    assert here.log == there.log


def test_the_count_of_samples_never_goes_back(tmp_path):
    class Samples(composer.Callback):
        def __init__(self):
            self.seen = []

        def run_event(self, event, state, logger):
            self.seen.append(state.timestamp.sample.value)

    samples = Samples()
    data = [*batches(5), *batches(1, size=3, seed=2)]
    run_here(tmp_path, samples, epochs=2, train_loader=data, val_loader=batches(2, size=16, seed=1))
    assert samples.seen == sorted(samples.seen)
    assert samples.seen[-1] == 12 * 8


def test_a_length_in_iterations_is_one_in_steps_of_the_optimizer(tmp_path):
    class Length(composer.Callback):
        def fit_start(self, state, logger):
            self.seen = str(state.max_duration)

    length, owner = Length(), GradientCumulativeOptimizerHook(cumulative_iters=4)
    runner = run_here(tmp_path, length, epochs=None, max_iters=16, owner=owner)
    assert "5" in length.seen
    assert runner.optimizer_steps == 5


def test_a_metric_has_all_its_names(tmp_path):
    stopper = cb.EarlyStopper("val_acc", "eval", patience=1)
    assert run_here(tmp_path, stopper, epochs=12).epoch < 12


@pytest.mark.parametrize("attribute", ["state.deepspeed_config_of_old", "state.model.tokenizer"])
def test_a_missing_attribute_names_callback_attribute_and_version(tmp_path, attribute):
    class Curious(composer.Callback):
        def epoch_end(self, state, logger):
            assert not hasattr(state.model, "nothing")
            return attrgetter(attribute.removeprefix("state."))(state)

    with pytest.raises(
        MissingAttribute, match=rf"Curious needs `{re.escape(attribute)}` of composer 0\.32\.1"
    ):
        run_here(tmp_path, Curious())


def test_only_sites_that_the_callback_overrides_are_hooked():
    stages = set(wrap(cb.LRMonitor()).get_triggered_stages())
    assert stages == {"before_run", "before_train_epoch", "after_optimizer_step", "cleanup"}
