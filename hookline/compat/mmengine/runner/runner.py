"""MMEngine's runner, on Hookline's engine, where MMEngine is not installed."""

from __future__ import annotations

import inspect
import os
import os.path as osp
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline.compat.mmengine import ADVICE
from hookline.compat.mmengine.config import Config
from hookline.compat.mmengine.dist import broadcast, get_dist_info, get_rank, sync_random_seed
from hookline.compat.mmengine.logging import MessageHub, MMLogger
from hookline.compat.mmengine.model.wrappers import unwrap
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.mmengine.runner.builders import RunnerBuilders
from hookline.compat.mmengine.runner.checkpoint_methods import CheckpointMethods
from hookline.compat.mmengine.runner.engine_methods import EngineMethods
from hookline.compat.mmengine.runner.files import load_from_local
from hookline.compat.mmengine.runner.log_processor import LogProcessor
from hookline.compat.mmengine.visualization import Visualizer
from hookline.compat.weights import MODULE_PREFIX, load_fitting, rename_weights
from hookline.compat.work_dir import WorkDir
from hookline.dist import connect
from hookline.rng import seed_everything

DEFAULT_HOOKS: dict[str, Any] = {
    "runtime_info": {"type": "RuntimeInfoHook"},
    "timer": {"type": "IterTimerHook"},
    "sampler_seed": {"type": "DistSamplerSeedHook"},
    "logger": {"type": "LoggerHook"},
    "param_scheduler": {"type": "ParamSchedulerHook"},
    "checkpoint": {"type": "CheckpointHook", "interval": 1},
}


class Runner(RunnerBuilders, CheckpointMethods, EngineMethods):
    """A runner that trains, validates and tests as MMEngine's does, from objects or configs.

    Hooks run by ascending priority at every stage. Requested checkpoints are written when all hooks
    of the stage have run. Hooks of Hookline can be registered too.
    """

    def __init__(
        self,
        model: nn.Module | dict[str, Any],
        work_dir: str,
        train_dataloader: Any = None,
        val_dataloader: Any = None,
        test_dataloader: Any = None,
        train_cfg: Any = None,
        val_cfg: Any = None,
        test_cfg: Any = None,
        optim_wrapper: Any = None,
        param_scheduler: Any = None,
        val_evaluator: Any = None,
        test_evaluator: Any = None,
        default_hooks: dict[str, Any] | None = None,
        custom_hooks: Sequence[Any] | None = None,
        load_from: str | None = None,
        resume: bool = False,
        launcher: str = "none",
        log_processor: dict[str, Any] | None = None,
        log_level: str = "INFO",
        default_scope: str | None = "mmengine",
        randomness: dict[str, Any] | None = None,
        experiment_name: str | None = None,
        cfg: Any = None,
        **others: Any,
    ) -> None:
        if others:
            raise TypeError(f"Runner: {', '.join(others)}: not covered; {ADVICE}")
        if launcher not in ("none", "pytorch", "slurm"):
            raise ValueError(f"launcher {launcher!r} is not covered: use 'pytorch' and torchrun")
        _all_or_none(
            train_dataloader=train_dataloader, train_cfg=train_cfg, optim_wrapper=optim_wrapper
        )
        _all_or_none(val_dataloader=val_dataloader, val_cfg=val_cfg, val_evaluator=val_evaluator)
        _all_or_none(
            test_dataloader=test_dataloader, test_cfg=test_cfg, test_evaluator=test_evaluator
        )
        self.work_dir: Any = WorkDir(osp.abspath(work_dir))
        self.work_url: str | None = None  # MMEngine's work directories are local.
        self.cfg = Config(cfg or {})
        self._train_dataloader = train_dataloader
        self._val_dataloader = val_dataloader
        self._test_dataloader = test_dataloader
        self._train_loop = train_cfg
        self._val_loop = val_cfg
        self._test_loop = test_cfg
        self._val_evaluator = val_evaluator
        self._test_evaluator = test_evaluator
        self.optim_wrapper = optim_wrapper
        self.param_schedulers = param_scheduler
        self._load_from = load_from
        self._resume = resume
        self._has_loaded = False
        self.launcher = launcher
        self.distributed = launcher != "none"
        if self.distributed:
            connect()
        self.rank, self.world_size = get_dist_info()
        self._randomness_cfg = {"seed": None, **(randomness or {})}
        self.set_randomness(**self._randomness_cfg)
        self._name(experiment_name)
        self._begin_engine()
        self.log_processor = LogProcessor(**(log_processor or {}))
        self.logger = MMLogger.get_instance(
            self.experiment_name,
            log_level=log_level,
            log_file=osp.join(self.log_dir, f"{self.timestamp}.log"),
        )
        self.message_hub = MessageHub.get_instance(self.experiment_name)
        self.visualizer = Visualizer.get_instance(self.experiment_name, save_dir=self.log_dir)
        self.model = self.wrap_model(self.build_model(model))
        self._take_model()
        self.register_hooks(default_hooks, custom_hooks)
        self.logger.info(f"Hooks will be executed in the following order:\n{self.get_hooks_info()}")

    @classmethod
    def from_cfg(cls, cfg: Mapping[str, Any]) -> Runner:
        """Return a runner from a whole config."""
        parameters = inspect.signature(cls).parameters
        return cls(**{name: cfg[name] for name in parameters if name in cfg}, cfg=cfg)

    def register_default_hooks(self, hooks: dict[str, Any] | None = None) -> None:
        """Add the six default hooks, with the changes in `hooks`; None drops one."""
        wanted = {**DEFAULT_HOOKS, **(hooks or {})}
        for name, hook in wanted.items():
            if hook is None and name not in DEFAULT_HOOKS:
                raise AssertionError(
                    f"default_hooks: {name}=None drops nothing; the default hooks are "
                    f"{', '.join(DEFAULT_HOOKS)}"
                )
            if hook is not None:
                self.register_hook(hook)

    def register_custom_hooks(self, hooks: Sequence[Any]) -> None:
        for hook in hooks:
            self.register_hook(hook)

    def register_hooks(  # type: ignore[override]
        self, default_hooks: dict[str, Any] | None = None, custom_hooks: Sequence[Any] | None = None
    ) -> None:
        self.register_default_hooks(default_hooks)
        self.register_custom_hooks(custom_hooks or ())

    def set_randomness(
        self, seed: int | None, diff_rank_seed: bool = False, deterministic: bool = False
    ) -> None:
        """Seed python, numpy and torch; the seed is random by default."""
        self.seed = sync_random_seed() if seed is None else seed
        if diff_rank_seed:
            self.seed += get_rank()
        seed_everything(self.seed)
        if deterministic:
            torch.backends.cudnn.benchmark = False
            torch.use_deterministic_algorithms(True)

    @property
    def train_loop(self) -> Any:
        if self._train_loop is not None:
            self._train_loop = self.build_train_loop(self._train_loop)
        return self._train_loop

    @property
    def val_loop(self) -> Any:
        if self._val_loop is not None:
            self._val_loop = self.build_val_loop(self._val_loop)
        return self._val_loop

    @property
    def test_loop(self) -> Any:
        if self._test_loop is not None:
            self._test_loop = self.build_test_loop(self._test_loop)
        return self._test_loop

    train_dataloader = property(lambda self: self.train_loop.dataloader)
    val_dataloader = property(lambda self: self.val_loop.dataloader)
    test_dataloader = property(lambda self: self.test_loop.dataloader)
    val_evaluator = property(lambda self: self.val_loop.evaluator)
    test_evaluator = property(lambda self: self.test_loop.evaluator)

    def train(self) -> nn.Module:  # type: ignore[override]
        """Train to the end, and return the model."""
        if self.train_loop is None:
            raise RuntimeError(
                "to train, pass `train_dataloader`, `train_cfg` and `optim_wrapper` to the runner"
            )
        self.optim_wrapper = self.build_optim_wrapper(self.optim_wrapper)
        if self.param_schedulers is not None:
            self.param_schedulers = self.build_param_scheduler(self.param_schedulers)
        return self._run(self._train, graceful=True)  # type: ignore[no-any-return]

    def val(self) -> dict[str, Any]:
        """Validate, and return the metrics."""
        return self._evaluate("val")

    def test(self) -> dict[str, Any]:  # type: ignore[override]
        """Test, and return the metrics."""
        return self._evaluate("test")

    def load_checkpoint(
        self,
        filename: str | Path,
        map_location: Any = "cpu",
        strict: bool = False,
        revise_keys: Sequence[tuple[str, str]] = MODULE_PREFIX,
    ) -> dict[str, Any]:
        """Load weights, after hooks have loaded their part (`after_load_checkpoint`)."""
        checkpoint = load_from_local(filename, map_location)
        self.call_hook("after_load_checkpoint", checkpoint=checkpoint)
        weights = rename_weights(checkpoint.get("state_dict", checkpoint), revise_keys)
        load_fitting(self.model, weights, unwrap, strict, self.logger.warning)
        self._has_loaded = True
        self.logger.info(f"Load checkpoint from {filename}")
        return checkpoint

    def resume(self, filename: str | Path) -> None:
        """Continue from a checkpoint, written by this package or by MMEngine itself."""
        self._resume = True
        checkpoint = self.load_checkpoint(filename)
        self.restore_exact_state(checkpoint)
        self._restore_seed(checkpoint["meta"].get("seed"))
        if "message_hub" in checkpoint:
            self.message_hub.load_state_dict(checkpoint["message_hub"])
        if "optimizer" in checkpoint:
            self.optim_wrapper = self.build_optim_wrapper(self.optim_wrapper)
            self.optim_wrapper.load_state_dict(checkpoint["optimizer"])
        if "param_schedulers" in checkpoint and self.param_schedulers is not None:
            self.param_schedulers = self.build_param_scheduler(self.param_schedulers)
            states = checkpoint["param_schedulers"]
            for scheduler, state in zip(self.param_schedulers, states, strict=True):
                scheduler.load_state_dict(state)
        self.logger.info(f"resumed epoch: {self.epoch}, iter: {self.iter}")

    def _train(self) -> nn.Module:
        self._begin_training()
        self._take_optimizer()
        self.call_hook("before_run")
        model = unwrap(self.model)
        if hasattr(model, "init_weights"):
            model.init_weights()
            for value in model.state_dict().values():
                broadcast(value)
        self.load_or_resume()
        loop = self.train_loop
        self.optim_wrapper.initialize_count_status(self.model, loop.iter, loop.max_iters)
        with self._following_optimizer():
            trained: nn.Module = loop.run()
        self.call_hook("after_run")
        return trained

    def _evaluate(self, mode: str) -> dict[str, Any]:
        loop: BaseLoop | None = getattr(self, f"{mode}_loop")
        if loop is None:
            raise RuntimeError(
                f"to call {mode}(), pass `{mode}_dataloader`, `{mode}_cfg` and "
                f"`{mode}_evaluator` to the runner"
            )
        self.best.reset()

        def evaluate() -> dict[str, Any]:
            self.call_hook("before_run")
            self.load_or_resume()
            metrics: dict[str, Any] = loop.run()
            self.call_hook("after_run")
            return metrics

        return self._run(evaluate, graceful=False)  # type: ignore[no-any-return]

    def _restore_seed(self, seed: int | None) -> None:
        given = self._randomness_cfg["seed"]
        if seed is None or seed == given:
            return
        if given is not None:
            self.logger.warning(f"the seed of the checkpoint is {seed}, that of the run is {given}")
        self._randomness_cfg["seed"] = seed
        self.set_randomness(**self._randomness_cfg)
        sampler: Any = getattr(self.train_loop.dataloader, "sampler", None)
        if hasattr(sampler, "seed") and given is None:
            sampler.seed = seed  # The sampler was built with a random seed.

    def _name(self, experiment_name: str | None) -> None:
        now = torch.tensor(time.time(), dtype=torch.float64)
        broadcast(now)
        self.timestamp = time.strftime("%Y%m%d_%H%M%S", time.localtime(now.item()))
        name = f"{experiment_name}_{self.timestamp}" if experiment_name else self.timestamp
        self.experiment_name = name
        number = 1
        # A runner made in the same second has its own message hub.
        while MMLogger.check_instance_created(self.experiment_name):
            number += 1
            self.experiment_name = f"{name}_{number}"
        self.log_dir = osp.join(self.work_dir, self.timestamp)
        os.makedirs(self.log_dir, exist_ok=True)


def _all_or_none(**parts: Any) -> None:
    if len({part is None for part in parts.values()}) > 1:
        given = ", ".join(f"{name}={part}" for name, part in parts.items())
        raise ValueError(
            f"{', '.join(parts)} should be either all None or not None, but got {given}."
        )
