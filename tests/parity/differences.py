"""The differences between hosts that are right, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Difference:
    """What hooks do differently in some hosts.

    Args:
        reason: Why the difference is right.
        hosts: The hosts.
        hooks: The fields of an observation that differ, for each hook: `calls.after_val`, or
            `weights` for all of them.
    """

    reason: str
    hosts: tuple[str, ...]
    hooks: dict[str, tuple[str, ...]] = field(default_factory=dict)


STEPPING = ("pull", "push", "mmengine epochs", "mmengine iterations", "lightning", "transformers")
READING = (
    "push",
    "mmcv epochs",
    "mmcv iterations",
    "mmengine epochs",
    "mmengine iterations",
    "lightning",
    "transformers",
)
OWNERS = (
    "AmpOptimizerHook",
    "Fp16OptimizerHook",
    "GradientCumulativeFp16OptimizerHook",
    "GradientCumulativeOptimizerHook",
    "ManualOptimizationHook",
    "OptimizerHook",
    "SAMHook",
)
TRACKERS = (
    "ClearMLHook",
    "DVCLiveHook",
    "MLflowHook",
    "NeptuneHook",
    "PeriodicWriterHook",
    "SwanLabHook",
    "TensorBoardHook",
    "TrackioHook",
    "WandbHook",
)
VALIDATION_BATCHES = ("calls.after_val_iter", "state.validation_drawn_at")

DIFFERENCES = (
    Difference(
        "the loop runs backward and steps the optimizer, so no hook can own `optimize`",
        STEPPING,
        dict.fromkeys(OWNERS, ("refused",)),
    ),
    Difference(
        "the Trainer decides when to validate",
        ("lightning", "transformers"),
        dict.fromkeys(("EvalHook", "DistEvalHook"), ("refused",)),
    ),
    Difference(
        "the owner of the data has no loader that the hook could read",
        ("push", "lightning", "transformers"),
        {"PreciseBNHook": ("refused",)},
    ),
    Difference(
        "MMEngine's val_step returns data samples, and not a dict",
        ("mmengine epochs", "mmengine iterations"),
        {"PreciseBNHook": ("refused",), "VisualizationHook": ("files", "records")},
    ),
    Difference(
        "the owner of the data continues with the next batch, and counts the bad iteration",
        READING,
        {
            "RollbackHook": (
                "files",
                "records",
                "scalars.rollbacks",
                "state.history",
                "state.recent",
                "state.skipped",
                "weights",
            )
        },
    ),
    Difference(
        "a run of iterations has no number of epochs",
        ("mmcv iterations",),
        {
            "CosineAnnealingLrUpdaterHook": ("refused",),
            "CosineAnnealingMomentumUpdaterHook": ("refused",),
            "LinearAnnealingLrUpdaterHook": ("refused",),
            "LinearAnnealingMomentumUpdaterHook": ("refused",),
            "PolyLrUpdaterHook": ("refused",),
        },
    ),
    Difference(
        "a loop of iterations does not count its only epoch",
        ("mmcv iterations", "mmengine iterations"),
        dict.fromkeys(TRACKERS, ("scalars.lr",)),
    ),
    Difference(
        "MMEngine counts an epoch, and saves, before it validates",
        ("mmengine epochs",),
        {
            "CheckpointHook": (
                "calls.before_save_checkpoint",
                "calls.after_save_checkpoint",
                "state.best_files",
            ),
            "EarlyStoppingHook": ("state.best_epoch", "state.stopped_epoch"),
            "IterTimerHook": ("scalars.eta",),
            "TimeTrackingHook": (
                "scalars.time/elapsed",
                "scalars.time/epoch",
                "scalars.time/remaining",
            ),
        },
    ),
    Difference(
        "MMEngine's loop of iterations validates before its epoch ends, and saves right after it",
        ("mmengine iterations",),
        {"CheckpointHook": ("calls.before_save_checkpoint", "calls.after_save_checkpoint")},
    ),
    Difference(
        "the run has a config, which is recorded as parameters",
        ("dl_framework",),
        {"MLflowHook": ("files",)},
    ),
    Difference(
        "the Trainer steps its own schedulers",
        ("lightning", "transformers"),
        {"ParamSchedulerHook": ("weights", "state.step_rates")},
    ),
    Difference(
        "the Trainer tests by itself",
        ("lightning", "transformers"),
        {"TestHook": ("calls",)},
    ),
    Difference(
        "the Trainer passes the loss to callbacks, but no predictions",
        ("lightning",),
        {"VisualizationHook": ("files", "records")},
    ),
    Difference(
        "the Trainer passes no predictions of training batches to callbacks",
        ("lightning", "transformers"),
        {"TrainMetricsHook": ("refused",)},
    ),
    Difference(
        "the Trainer does not report the batches of its evaluation",
        ("transformers",),
        {
            "CAMHook": (*VALIDATION_BATCHES, "files", "records"),
            "DetVisualizationHook": VALIDATION_BATCHES,
            "EmptyCacheHook": ("calls.after_val_iter",),
            "LoggerHook": ("calls.after_val_iter",),
            "SaliencyHook": (*VALIDATION_BATCHES, "files", "records"),
            "SegVisualizationHook": VALIDATION_BATCHES,
            "TextLoggerHook": ("calls.after_val_iter",),
            "VisualizationHook": (*VALIDATION_BATCHES, "files", "records"),
        },
    ),
    Difference(
        "the Trainer adds the speed of its evaluation to the metrics",
        ("transformers",),
        dict.fromkeys(("DVCLiveHook", "MLflowHook"), ("files",)),
    ),
    Difference(
        "the Trainer's scheduler has set the initial learning rate",
        ("transformers",),
        {"RollbackHook": ("state.bases",)},
    ),
)


def is_declared(host: str, hook: str, name: str) -> bool:
    """Return whether a difference is right."""
    return any(_covers(field, name) for field in declared(host, hook))


def declared(host: str, hook: str) -> Iterable[str]:
    """Return the fields in which a hook may differ in a host."""
    for difference in DIFFERENCES:
        if host in difference.hosts:
            yield from difference.hooks.get(hook, ())


def stale(host: str, hook: str, found: Iterable[str]) -> list[str]:
    """Return the declared fields in which nothing differs."""
    names = list(found)
    unused = []
    for field_name in declared(host, hook):
        if not any(_covers(field_name, name) for name in names):
            unused.append(field_name)
    return unused


def _covers(field_name: str, name: str) -> bool:
    return name == field_name or name.startswith(f"{field_name}.")
