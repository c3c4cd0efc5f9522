"""MMEngine's runner, on Hookline's engine."""

from __future__ import annotations

import copy
import os
import os.path as osp
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from hookline.compat.mmengine.config import Config
from hookline.compat.mmengine.device import get_device
from hookline.compat.mmengine.dist import broadcast, get_dist_info, init_dist, is_distributed
from hookline.compat.mmengine.logging import MMLogger
from hookline.compat.mmengine.model.wrappers import unwrap_model
from hookline.compat.mmengine.optim import OptimWrapper, OptimWrapperDict
from hookline.compat.mmengine.registry import RUNNERS, DefaultScope
from hookline.compat.mmengine.runner.builders import RunnerBuilders
from hookline.compat.mmengine.runner.checkpoint_methods import CheckpointMethods
from hookline.compat.mmengine.runner.hook_methods import (
    HookMethods,
    MMEngineCheckpointer,
    MMEngineLoop,
    ValLoopEvaluation,
)
from hookline.compat.mmengine.runner.properties import RunnerProperties
from hookline.compat.mmengine.runner.utils import set_random_seed
from hookline.compat.mmengine.utils.dl_utils import collect_env, set_multi_processing
from hookline.compat.work_dir import WorkDir
from hookline.dist import World, current_world
from hookline.dist.wrapping import Parallel
from hookline.engine.manager import HookManager
from hookline.engine.session import RunSession
from hookline.events.storage import EventStorage
from hookline.metrics.best import BestTracker
from hookline.metrics.results import Metrics
from hookline.optim.step_hooks import follow_steps
from hookline.profiling.cost_report import DEFAULT_BUDGET, check_budget, parse_percentage
from hookline.progress import current_position

# Arguments that `from_cfg` takes from the config, and those that keep their defaults if missing.
FROM_CFG = (
    "train_dataloader",
    "val_dataloader",
    "test_dataloader",
    "train_cfg",
    "val_cfg",
    "test_cfg",
    "auto_scale_lr",
    "optim_wrapper",
    "param_scheduler",
    "val_evaluator",
    "test_evaluator",
    "default_hooks",
    "custom_hooks",
    "data_preprocessor",
    "load_from",
    "log_processor",
    "visualizer",
    "experiment_name",
)
OPTIONAL_IN_CFG = ("launcher", "env_cfg", "log_level", "default_scope", "randomness", "resume")


@RUNNERS.register_module()
class Runner(RunnerProperties, RunnerBuilders, CheckpointMethods, HookMethods):  # type: ignore[override]  # properties
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
        self._work_dir = WorkDir(osp.abspath(work_dir))
        os.makedirs(self._work_dir, exist_ok=True)
        self.cfg = copy.deepcopy(cfg) if isinstance(cfg, Config) else Config(cfg or {})
        _all_or_none(
            train_dataloader=train_dataloader, train_cfg=train_cfg, optim_wrapper=optim_wrapper
        )
        _all_or_none(val_dataloader=val_dataloader, val_cfg=val_cfg, val_evaluator=val_evaluator)
        _all_or_none(
            test_dataloader=test_dataloader, test_cfg=test_cfg, test_evaluator=test_evaluator
        )
        self._train_dataloader = train_dataloader
        self._val_dataloader = val_dataloader
        self._test_dataloader = test_dataloader
        self._train_loop = train_cfg
        self._val_loop = val_cfg
        self._test_loop = test_cfg
        self._val_evaluator = val_evaluator
        self._test_evaluator = test_evaluator
        if param_scheduler is not None and optim_wrapper is None:
            raise ValueError(
                "param_scheduler should be None when optim_wrapper is None, but got "
                f"{param_scheduler}"
            )
        self.optim_wrapper = optim_wrapper
        self.param_schedulers = param_scheduler
        self.auto_scale_lr = auto_scale_lr
        self._launcher = launcher
        self._distributed = launcher != "none"
        self._randomness_cfg = {"seed": None, **(randomness or {})}
        self.setup_env(env_cfg or {"dist_cfg": {"backend": "nccl"}})
        self.set_randomness(**self._randomness_cfg)
        self._name(experiment_name)
        self.default_scope = default_scope and DefaultScope.get_instance(
            self._experiment_name, scope_name=default_scope
        )
        self._load_from = load_from
        self._resume = resume
        self._has_loaded = False
        self._begin_engine()
        self.log_processor = self.build_log_processor(
            {} if log_processor is None else log_processor
        )
        self.logger = self.build_logger(log_level=log_level)
        self.best = BestTracker({}, self.logger)
        environment = [f"    {key}: {value}" for key, value in collect_env().items()]
        self.logger.info("\n".join(["environment:", *environment]))
        self.message_hub = self.build_message_hub()
        self.visualizer = self.build_visualizer(visualizer)
        if isinstance(model, dict) and data_preprocessor is not None:
            model = {"data_preprocessor": data_preprocessor, **model}
        self.model = self.wrap_model(self.cfg.get("model_wrapper_cfg"), self.build_model(model))
        self.parallel = Parallel(self.model, None, World(), "auto", sync_bn=False, compile=False)
        self._model_name = type(self._unwrapped_model).__name__
        self.register_hooks(default_hooks, custom_hooks)
        self.logger.info(f"Hooks will be executed in the following order:\n{self.get_hooks_info()}")
        if self.is_main:
            self.cfg.dump(
                osp.join(self._work_dir, osp.basename(self.cfg.filename or f"{self.timestamp}.py"))
            )

    @classmethod
    def from_cfg(cls, cfg: Any) -> Runner:
        """Return a runner from a whole config."""
        cfg = copy.deepcopy(cfg)
        given = {name: cfg.get(name) for name in FROM_CFG}
        others = {name: cfg[name] for name in OPTIONAL_IN_CFG if name in cfg}
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

    def set_randomness(
        self, seed: int | None, diff_rank_seed: bool = False, deterministic: bool = False
    ) -> None:
        self._deterministic = deterministic
        self._seed = set_random_seed(
            seed=seed, deterministic=deterministic, diff_rank_seed=diff_rank_seed
        )

    def train(self) -> nn.Module:  # type: ignore[override]
        """Train to the end, and return the model."""
        if self._train_loop is None:
            raise RuntimeError(
                "to train, pass `train_dataloader`, `train_cfg` and `optim_wrapper` to the runner"
            )
        model = self._unwrapped_model
        for method, needed in (("train_step", True), ("val_step", self._val_loop is not None)):
            if needed and not hasattr(model, method):
                raise AssertionError(f"the model, {type(model).__name__}, has no `{method}`")
        self._train_loop = self.build_train_loop(self._train_loop)
        self.optim_wrapper = self.build_optim_wrapper(self.optim_wrapper)
        for wrapper in _single_wrappers(self.optim_wrapper):
            # The current message hub may belong to a runner that was made later.
            wrapper.message_hub = self.message_hub
        self.scale_lr(self.optim_wrapper, self.auto_scale_lr)
        if self.param_schedulers is not None:
            self.param_schedulers = self.build_param_scheduler(self.param_schedulers)
        if self._val_loop is not None:
            self._val_loop = self.build_val_loop(self._val_loop)
        return self._run(self._train, graceful=True)  # type: ignore[no-any-return]

    def val(self) -> dict[str, Any]:
        """Validate, and return the metrics."""
        return self._evaluate("val")

    def test(self) -> dict[str, Any]:  # type: ignore[override]
        """Test, and return the metrics."""
        return self._evaluate("test")

    def scale_lr(self, optim_wrapper: Any, auto_scale_lr: dict[str, Any] | None = None) -> None:
        """Scale the learning rate by the ratio of the batch size to the base one, if enabled.

        Args:
            optim_wrapper: The wrapper of the optimizer.
            auto_scale_lr: `dict(base_batch_size=…, enable=True)`.
        """
        if not (auto_scale_lr or {}).get("enable", False):
            return
        if not isinstance(optim_wrapper, OptimWrapper):
            raise AssertionError("`scale_lr should be called after building OptimWrapper")
        loader: Any = self._train_dataloader
        size = loader["batch_size"] if isinstance(loader, dict) else loader.batch_size
        real = self.world_size * size
        ratio = real / (auto_scale_lr or {})["base_batch_size"]
        self.logger.info(f"the learning rate is multiplied by {ratio}: the batch size is {real}")
        for wrapper in _single_wrappers(optim_wrapper):
            for group in wrapper.optimizer.param_groups:
                group["lr"] *= ratio

    @property
    def _unwrapped_model(self) -> nn.Module:
        model: nn.Module = unwrap_model(self.model)
        return model

    def _train(self) -> nn.Module:
        self.stop_reason = None
        self.loop.iter_limit = None if hasattr(self.train_loop, "inner_iter") else self.max_iters
        self.checkpointer.remember_hyperparameters()
        self.sites.costs.start(self)
        self.best.reset()
        self.call_hook("before_run")
        self._init_model_weights()
        self.load_or_resume()
        loop: Any = self._train_loop
        self.optim_wrapper.initialize_count_status(self.model, loop.iter, loop.max_iters)
        compiled = self.cfg.get("compile")
        if compiled:
            model_: Any = self.model
            model_.train_step = torch.compile(
                model_.train_step, **({} if compiled is True else dict(compiled))
            )
        with self._following_optimizer():
            model = loop.run()
        self.call_hook("after_run")
        return model  # type: ignore[no-any-return]

    @contextmanager
    def _following_optimizer(self) -> Iterator[None]:
        """Call Hookline's sites around backward and step, which the model's train_step runs.

        A model with several optimizers has several losses, so these sites are not called for it.
        """
        wrapper = self.optim_wrapper
        if self.optimizer is None or not isinstance(wrapper, OptimWrapper):
            yield
            return
        wrapper.on_loss = self._after_forward
        try:
            with follow_steps(self.optimizer, self._after_step, self._after_backward):
                yield
        finally:
            wrapper.on_loss = None

    def _after_forward(self, loss: torch.Tensor) -> torch.Tensor:
        self.outputs = {"loss": loss}
        for call in self.sites.after_forward:
            call(self)
        self.loop.phase = "optimize"
        changed: torch.Tensor = self.outputs["loss"]
        return changed

    def _after_backward(self) -> None:
        for call in self.sites.after_backward:
            call(self)

    def _after_step(self) -> None:
        self.optimizer_steps += 1
        for call in self.sites.after_optimizer_step:
            call(self)

    def _evaluate(self, mode: str) -> dict[str, Any]:
        given = getattr(self, f"_{mode}_loop")
        if given is None:
            raise RuntimeError(
                f"to call {mode}(), pass `{mode}_dataloader`, `{mode}_cfg` and "
                f"`{mode}_evaluator` to the runner"
            )
        setattr(self, f"_{mode}_loop", getattr(self, f"build_{mode}_loop")(given))
        self.best.reset()

        def evaluate() -> dict[str, Any]:
            self.call_hook("before_run")
            self.load_or_resume()
            metrics: dict[str, Any] = getattr(self, f"{mode}_loop").run()
            self.call_hook("after_run")
            return metrics

        return self._run(evaluate, graceful=False)  # type: ignore[no-any-return]

    def _run(self, function: Callable[[], Any], graceful: bool) -> Any:
        """Call a function, with signals, failures and cleanup handled."""
        try:
            with RunSession(self, is_training=graceful):
                return function()
        finally:
            self._evaluation_scope.close()
            self.checkpointer.close(wait=False)
            while self._stores:
                self._stores.popitem()[1].unlock()

    def _init_model_weights(self) -> None:
        model: Any = self._unwrapped_model
        if hasattr(model, "init_weights"):
            model.init_weights()
            for value in model.state_dict().values():
                broadcast(value)

    def _begin_engine(self) -> None:
        """Set the attributes that Hookline's engine and its hooks use."""
        self.call_arguments = None
        self._stage = ""
        self._in_epoch = False
        self._requested_at = None
        self._evaluation_scope = ExitStack()
        self._stores: dict[Any, Any] = {}
        self._missed_validation = False
        self._locate_error = None
        self.mode = "train"
        self.stop_reason = None
        self.exception = None
        self.batch: Any = None
        self.batch_idx = 0
        self.outputs = {}
        self.checkpoint = None
        self.metrics = Metrics()
        self.loss_fn = None
        self.optimizer_steps = 0
        self.device = torch.device(get_device())
        self.world = current_world()
        self.events = EventStorage(self, current_position)
        self.evaluation = ValLoopEvaluation()
        self.checkpointer = MMEngineCheckpointer(self)
        self.loop = MMEngineLoop(self)
        self.loop.owns_data = False
        HookManager.__init__(self, "flat")
        self.sites.costs.budget = parse_percentage(DEFAULT_BUDGET)
        self.sites.costs.after_sample = check_budget

    def _name(self, experiment_name: str | None) -> None:
        stem = experiment_name
        if not stem and self.cfg.filename:
            stem = osp.splitext(osp.basename(self.cfg.filename))[0]
        name = f"{stem}_{self._timestamp}" if stem else self._timestamp
        self._experiment_name = name
        number = 1
        # A runner made in the same second has its own message hub.
        while MMLogger.check_instance_created(self._experiment_name):
            number += 1
            self._experiment_name = f"{name}_{number}"
        self._log_dir = osp.join(self._work_dir, self._timestamp)
        os.makedirs(self._log_dir, exist_ok=True)


def _single_wrappers(wrapper: Any) -> list[Any]:
    """Return the wrappers of single optimizers."""
    return list(wrapper.values()) if isinstance(wrapper, OptimWrapperDict) else [wrapper]


def _all_or_none(**parts: Any) -> None:
    if len({part is None for part in parts.values()}) > 1:
        given = ", ".join(f"{name}={part}" for name, part in parts.items())
        raise ValueError(
            f"{', '.join(parts)} should be either all None or not None, but got {given}."
        )
