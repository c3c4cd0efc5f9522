"""The runner that users meet: the engine's, with the default hooks, and built from a config if wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from hookline.config import build, load_config
from hookline.data import make_resumable, share_loaders
from hookline.dist import connect
from hookline.engine import HOOKS, BaseRunner
from hookline.engine.registration import HookOrConfig
from hookline.errors import suggest
from hookline.hooks import get_default_hooks
from hookline.hooks.builder import given_hooks
from hookline.metrics import build_metrics
from hookline.signature import parameters


class Runner(BaseRunner):
    """Trains, validates and tests a model, with hooks.

    `hooks` are added to the default ones (OptimizerHook, IterTimerHook, LoggerHook, EvalHook, CheckpointHook, ReportHook); a hook of the
    same class, or with the same owned site, takes a default one's place, and `drop_hooks` names those not wanted at all.
    With several processes there is an UnevenBatchHook too, and with a `scheduler` (one, a list, or a dict of lists) a
    ParamSchedulerHook, unless another hook steps it.
    `metrics` are objects by name, or names such as `["accuracy"]`. A plain DataLoader is replaced by one with the same data,
    batches and workers whose order depends on the seed alone, so that a run can resume in the middle of an epoch.
    """

    def __init__(
        self,
        model: Any,
        *,
        hooks: Iterable[HookOrConfig] = (),
        drop_hooks: Iterable[str] = (),
        metrics: Mapping[str, Any] | Sequence[Any] | None = None,
        **parts: Any,
    ) -> None:
        known = {**parameters(BaseRunner).known, **parameters(Runner).known}
        for name in parts:
            if name not in known:
                raise TypeError(f"{type(self).__name__}: unknown argument {name!r}{suggest(name, known)}")
        given = given_hooks(hooks)
        without = set(drop_hooks)
        if parts.get("optimizer") is None or isinstance(parts["optimizer"], Mapping):
            without.add("OptimizerHook")  # nothing to step, or the model's train_step does it
        if type(parts.get("train_loader")) is DataLoader and parts["train_loader"].generator is None:
            parts["train_loader"] = make_resumable(parts["train_loader"], parts.get("seed") or 0) or parts["train_loader"]
        world = connect()
        for name in ("train_loader", "val_loader", "test_loader"):
            parts[name] = share_loaders(parts.get(name), world.rank, world.size, training=name == "train_loader")
        weighs = HOOKS.get("UnevenBatchHook")
        defaults = get_default_hooks(replaced_by=given, without=without)
        if world.size > 1 and "UnevenBatchHook" not in without and not any(isinstance(hook, weighs) for hook in given):
            defaults.append(weighs())
        if parts.get("scheduler") is not None and not any(getattr(hook, "steps_schedulers", False) for hook in given):
            defaults.append(HOOKS.build("ParamSchedulerHook"))
        super().__init__(model, hooks=[*defaults, *given], metrics=build_metrics(metrics or {}), **parts)

    @classmethod
    def from_config(cls, config: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Runner:
        """A runner from a config file (or a loaded config); ConfigError lists all that is wrong with it."""
        return cls(**build(load_config(config, overrides)))
