"""MMEngine's runner on Hookline's engine: compiled dispatch, requests settled after a stage's hooks, the failure contract."""

from __future__ import annotations

import copy
import os
import os.path as osp
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from hookline.compat.mmengine.config import Config
from hookline.compat.mmengine.device import get_device
from hookline.compat.mmengine.dist import broadcast, get_dist_info, init_dist, is_distributed
from hookline.compat.mmengine.logging import MMLogger
from hookline.compat.mmengine.model import is_model_wrapper
from hookline.compat.mmengine.optim import OptimWrapper, OptimWrapperDict
from hookline.compat.mmengine.registry import RUNNERS, DefaultScope
from hookline.compat.mmengine.runner.building import Building
from hookline.compat.mmengine.runner.facts import Facts
from hookline.compat.mmengine.runner.hosting import Hosting
from hookline.compat.mmengine.runner.saving import Saving
from hookline.compat.mmengine.runner.utils import set_random_seed
from hookline.compat.mmengine.utils.dl_utils import collect_env, set_multi_processing
from hookline.dist import choose_strategy, current_world
from hookline.engine.metrics import Metrics
from hookline.engine.registration import HookHost
from hookline.engine.run import Run
from hookline.events.storage import EventStorage

FROM_CFG = (
    *("train_dataloader", "val_dataloader", "test_dataloader", "train_cfg", "val_cfg", "test_cfg", "auto_scale_lr", "optim_wrapper"),
    *("param_scheduler", "val_evaluator", "test_evaluator", "default_hooks", "custom_hooks", "data_preprocessor", "load_from"),
    *("log_processor", "visualizer", "experiment_name"),
)


@RUNNERS.register_module()
class Runner(Facts, Building, Saving, Hosting):
    """Trains, validates and tests as MMEngine's runner does, from objects or configs.

    Hooks run by ascending priority at every stage. Checkpoints that built-in hooks ask for are taken when all hooks of the
    stage have run. Hookline's own hooks can be registered too.
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
        auto_scale_lr: dict[str, Any] | None = None,
        optim_wrapper: Any = None,
        param_scheduler: Any = None,
        val_evaluator: Any = None,
        test_evaluator: Any = None,
        default_hooks: dict[str, Any] | None = None,
        custom_hooks: Sequence[Any] | None = None,
        data_preprocessor: Any = None,
        load_from: str | None = None,
        resume: bool = False,
        launcher: str = "none",
        env_cfg: dict[str, Any] | None = None,
        log_processor: Any = None,
        log_level: str = "INFO",
        visualizer: Any = None,
        default_scope: str | None = "mmengine",
        randomness: dict[str, Any] | None = None,
        experiment_name: str | None = None,
        cfg: Any = None,
    ) -> None:
        self._work_dir = osp.abspath(work_dir)
        os.makedirs(self._work_dir, exist_ok=True)
        self.cfg = copy.deepcopy(cfg) if isinstance(cfg, Config) else Config(cfg or {})
        _all_or_none(train_dataloader=train_dataloader, train_cfg=train_cfg, optim_wrapper=optim_wrapper)
        _all_or_none(val_dataloader=val_dataloader, val_cfg=val_cfg, val_evaluator=val_evaluator)
        _all_or_none(test_dataloader=test_dataloader, test_cfg=test_cfg, test_evaluator=test_evaluator)
        self._train_dataloader, self._val_dataloader, self._test_dataloader = train_dataloader, val_dataloader, test_dataloader
        self._train_loop, self._val_loop, self._test_loop = train_cfg, val_cfg, test_cfg
        self._val_evaluator, self._test_evaluator = val_evaluator, test_evaluator
        if param_scheduler is not None and optim_wrapper is None:
            raise ValueError(f"param_scheduler should be None when optim_wrapper is None, but got {param_scheduler}")
        self.optim_wrapper, self.param_schedulers, self.auto_scale_lr = optim_wrapper, param_scheduler, auto_scale_lr
        self._launcher, self._distributed = launcher, launcher != "none"
        self._randomness_cfg = {"seed": None, **(randomness or {})}
        self.setup_env(env_cfg or {"dist_cfg": {"backend": "nccl"}})
        self.set_randomness(**self._randomness_cfg)
        self._name(experiment_name)
        self.default_scope = default_scope and DefaultScope.get_instance(self._experiment_name, scope_name=default_scope)
        self._load_from, self._resume, self._has_loaded = load_from, resume, False
        self._begin_engine()
        self.log_processor = self.build_log_processor({} if log_processor is None else log_processor)
        self.logger = self.build_logger(log_level=log_level)
        self.logger.info("\n".join(["environment:", *(f"    {key}: {value}" for key, value in collect_env().items())]))
        self.message_hub = self.build_message_hub()
        self.visualizer = self.build_visualizer(visualizer)
        if isinstance(model, dict) and data_preprocessor is not None:
            model = {"data_preprocessor": data_preprocessor, **model}
        self.model = self.wrap_model(self.cfg.get("model_wrapper_cfg"), self.build_model(model))
        self._model_name = type(self.model.module if is_model_wrapper(self.model) else self.model).__name__
        self.register_hooks(default_hooks, custom_hooks)
        self.logger.info(f"Hooks will be executed in the following order:\n{self.get_hooks_info()}")
        if self.is_main:
            self.cfg.dump(osp.join(self._work_dir, osp.basename(self.cfg.filename or f"{self.timestamp}.py")))

    @classmethod
    def from_cfg(cls, cfg: Any) -> Runner:
        """A runner from a whole config."""
        cfg = copy.deepcopy(cfg)
        given = {name: cfg.get(name) for name in FROM_CFG}
        others = {name: cfg[name] for name in ("launcher", "env_cfg", "log_level", "default_scope", "randomness", "resume") if name in cfg}
        return cls(model=cfg["model"], work_dir=cfg["work_dir"], cfg=cfg, **given, **others)

    def setup_env(self, env_cfg: dict[str, Any]) -> None:
        if env_cfg.get("cudnn_benchmark"):
            torch.backends.cudnn.benchmark = True
        if env_cfg.get("mp_cfg"):
            set_multi_processing(**env_cfg["mp_cfg"], distributed=self._distributed)
        if self._distributed and not is_distributed():
            init_dist(self._launcher, **env_cfg.get("dist_cfg", {}))
        self._rank, self._world_size = get_dist_info()
        self.is_main = self._rank == 0
        now = torch.tensor(time.time(), dtype=torch.float64)
        broadcast(now)
        self._timestamp = time.strftime("%Y%m%d_%H%M%S", time.localtime(now.item()))

    def set_randomness(self, seed: int | None, diff_rank_seed: bool = False, deterministic: bool = False) -> None:
        self._deterministic = deterministic
        self._seed = set_random_seed(seed=seed, deterministic=deterministic, diff_rank_seed=diff_rank_seed)

    def train(self) -> nn.Module:
        """Train to the end; the model."""
        if self._train_loop is None:
            raise RuntimeError("there is nothing to train: give `train_dataloader`, `train_cfg` and `optim_wrapper` to the runner")
        model = self.model.module if is_model_wrapper(self.model) else self.model
        for method, needed in (("train_step", True), ("val_step", self._val_loop is not None)):
            if needed and not hasattr(model, method):
                raise AssertionError(f"the model, {type(model).__name__}, has no `{method}`")
        self._train_loop = self.build_train_loop(self._train_loop)
        self.optim_wrapper = self.build_optim_wrapper(self.optim_wrapper)
        for wrapper in self.optim_wrapper.values() if isinstance(self.optim_wrapper, OptimWrapperDict) else [self.optim_wrapper]:
            wrapper.message_hub = self.message_hub  # the current one may be that of a runner made since
        self.scale_lr(self.optim_wrapper, self.auto_scale_lr)
        if self.param_schedulers is not None:
            self.param_schedulers = self.build_param_scheduler(self.param_schedulers)
        if self._val_loop is not None:
            self._val_loop = self.build_val_loop(self._val_loop)
        return self._run(self._train, graceful=True)  # type: ignore[no-any-return]

    def val(self) -> dict[str, Any]:
        """Validate; the metrics."""
        return self._evaluate("val")

    def test(self) -> dict[str, Any]:
        """Test; the metrics."""
        return self._evaluate("test")

    def scale_lr(self, optim_wrapper: Any, auto_scale_lr: dict[str, Any] | None = None) -> None:
        """With `auto_scale_lr=dict(base_batch_size=…, enable=True)`: multiply the learning rate as the batch is larger than that."""
        if not (auto_scale_lr or {}).get("enable", False):
            return
        if not isinstance(optim_wrapper, OptimWrapper):
            raise AssertionError("`scale_lr should be called after building OptimWrapper")
        loader: Any = self._train_dataloader
        real = self.world_size * (loader["batch_size"] if isinstance(loader, dict) else loader.batch_size)
        ratio = real / (auto_scale_lr or {})["base_batch_size"]
        self.logger.info(f"the learning rate is multiplied by {ratio}: the batch size is {real}")
        for wrapper in optim_wrapper.values() if isinstance(optim_wrapper, OptimWrapperDict) else [optim_wrapper]:
            for group in wrapper.optimizer.param_groups:
                group["lr"] *= ratio

    def _train(self) -> nn.Module:
        self.call_hook("before_run")
        self._init_model_weights()
        self.load_or_resume()
        loop: Any = self._train_loop
        self.optim_wrapper.initialize_count_status(self.model, loop.iter, loop.max_iters)
        compiled = self.cfg.get("compile")
        if compiled:
            model_: Any = self.model
            model_.train_step = torch.compile(model_.train_step, **({} if compiled is True else dict(compiled)))
        model = loop.run()
        self.call_hook("after_run")
        return model  # type: ignore[no-any-return]

    def _evaluate(self, mode: str) -> dict[str, Any]:
        if getattr(self, f"_{mode}_loop") is None:
            raise RuntimeError(f"give `{mode}_dataloader`, `{mode}_cfg` and `{mode}_evaluator` to the runner to call {mode}()")
        setattr(self, f"_{mode}_loop", getattr(self, f"build_{mode}_loop")(getattr(self, f"_{mode}_loop")))

        def evaluate() -> dict[str, Any]:
            self.call_hook("before_run")
            self.load_or_resume()
            metrics: dict[str, Any] = getattr(self, f"{mode}_loop").run()
            self.call_hook("after_run")
            return metrics

        return self._run(evaluate, graceful=False)  # type: ignore[no-any-return]

    def _run(self, function: Callable[[], Any], graceful: bool) -> Any:
        """With signals, failures and cleanup seen to."""
        try:
            with Run(self, graceful=graceful):  # type: ignore[arg-type]  # it needs what a host of hooks has, and no more
                return function()
        finally:
            self.saver = None
            while self._stores:
                self._stores.popitem()[1].unlock()

    def _init_model_weights(self) -> None:
        model: Any = self.model.module if is_model_wrapper(self.model) else self.model
        if hasattr(model, "init_weights"):
            model.init_weights()
            for value in model.state_dict().values():
                broadcast(value)

    def _begin_engine(self) -> None:
        """What Hookline's engine and its hooks look for."""
        self.call_arguments = {}
        self._requests = []
        self._stage = ""
        self._stores: dict[Any, Any] = {}
        self._resumed_from = None
        self._missed_validation = False
        self.saver = None
        self.stop_reason = None
        self.exception: BaseException | None = None
        self.running = False
        self.batch: Any = None
        self.batch_idx = 0
        self.outputs: Any = {}
        self.checkpoint: dict[str, Any] | None = None
        self.metrics = Metrics()
        self.optimizer_steps = 0
        self.device = torch.device(get_device())
        self.world = current_world()
        self.parallel = SimpleNamespace(strategy=choose_strategy("auto", self.world))  # for the watch over other processes
        self.events = EventStorage(self)
        HookHost.__init__(self, "flat")
        self.costs = self.sites.costs

    def _name(self, experiment_name: str | None) -> None:
        stem = experiment_name or (osp.splitext(osp.basename(self.cfg.filename))[0] if self.cfg.filename else None)
        name = self._experiment_name = f"{stem}_{self._timestamp}" if stem else self._timestamp
        number = 1
        while MMLogger.check_instance_created(self._experiment_name):  # another runner of the same second: its hub is not ours
            number += 1
            self._experiment_name = f"{name}_{number}"
        self._log_dir = osp.join(self._work_dir, self._timestamp)
        os.makedirs(self._log_dir, exist_ok=True)


def _all_or_none(**parts: Any) -> None:
    if len({part is None for part in parts.values()}) > 1:
        given = ", ".join(f"{name}={part}" for name, part in parts.items())
        raise ValueError(f"{', '.join(parts)} should be either all None or not None, but got {given}.")
