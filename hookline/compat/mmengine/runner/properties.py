"""The properties of MMEngine's runner."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.config import Config
from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.compat.openmmlab import format_stages
from hookline.secrets import mask_secrets
from hookline.version import __version__


def _counter(name: str) -> Any:
    """Return a property for a number that the training loop keeps."""

    def get(self: Any) -> Any:
        return getattr(self.train_loop, name) if isinstance(self.train_loop, BaseLoop) else 0

    def put(self: Any, value: Any) -> None:
        setattr(self.train_loop, f"_{name}", value)

    return property(get, put)


class RunnerProperties:
    """The properties of the runner. Those of MMEngine come first, then those of Hookline."""

    mmengine_version = f"hookline {__version__}"

    work_dir: Any = property(lambda self: self._work_dir)
    has_seed_per_rank: Any = property(
        lambda self: self._randomness_cfg.get("diff_rank_seed", False)
    )
    log_dir = property(lambda self: self._log_dir)
    experiment_name = property(lambda self: self._experiment_name)
    model_name = property(lambda self: self._model_name)
    launcher = property(lambda self: self._launcher)
    distributed = property(lambda self: self._distributed)
    rank = property(lambda self: self._rank)
    world_size = property(lambda self: self._world_size)
    deterministic = property(lambda self: self._deterministic)
    seed = property(lambda self: self._seed)
    timestamp = property(lambda self: self._timestamp)

    max_epochs = _counter("max_epochs")
    max_iters = _counter("max_iters")
    epoch = _counter("epoch")
    iter = _counter("iter")

    train_dataloader = property(lambda self: self.train_loop.dataloader)
    val_dataloader = property(lambda self: self.val_loop.dataloader)
    test_dataloader = property(lambda self: self.test_loop.dataloader)
    val_evaluator = property(lambda self: self.val_loop.evaluator)
    test_evaluator = property(lambda self: self.test_loop.evaluator)
    val_interval = property(lambda self: self.train_loop.val_interval)
    val_begin = property(lambda self: self.train_loop.val_begin)

    @property
    def train_loop(self: Any) -> Any:
        if self._train_loop is not None and not isinstance(self._train_loop, BaseLoop):
            self._train_loop = self.build_train_loop(self._train_loop)
        return self._train_loop

    @property
    def val_loop(self: Any) -> Any:
        if self._val_loop is not None and not isinstance(self._val_loop, BaseLoop):
            self._val_loop = self.build_val_loop(self._val_loop)
        return self._val_loop

    @property
    def test_loop(self: Any) -> Any:
        if self._test_loop is not None and not isinstance(self._test_loop, BaseLoop):
            self._test_loop = self.build_test_loop(self._test_loop)
        return self._test_loop

    @property
    def has_train_loop(self: Any) -> bool:
        """Whether the training loop was built, so that there are an epoch and an iteration."""
        return isinstance(self._train_loop, BaseLoop)

    @property
    def masked_config_text(self: Any) -> str:
        """The config as text for files, without passwords and tokens."""
        return Config(mask_secrets(self.cfg.to_dict())).pretty_text

    def get_hooks_info(self: Any) -> str:
        """Return, as text, the hooks of each stage in their order, as MMEngine prints it."""
        return format_stages({stage: self.sites.hooks[stage] for stage in Hook.stages})

    # The names that Hookline's hooks use.

    train_loader = property(lambda self: self._train_loop and self.train_loop.dataloader)
    test_loader = property(lambda self: self._test_loop and self.test_loop.dataloader)
    optimizer = property(lambda self: getattr(self.optim_wrapper, "optimizer", None))
    config = property(lambda self: self.cfg.to_dict())

    @property
    def val_loader(self: Any) -> Any:
        return self._val_loop and self.val_loop.dataloader

    @val_loader.setter
    def val_loader(self: Any, loader: Any) -> None:
        if self._val_loop is None:
            raise RuntimeError("to validate, pass val_dataloader, val_cfg and val_evaluator")
        self.val_loop.dataloader = loader

    @property
    def scheduler(self: Any) -> Any:
        return self.param_schedulers

    @scheduler.setter
    def scheduler(self: Any, scheduler: Any) -> None:
        self.param_schedulers = scheduler

    @property
    def inner_iter(self: Any) -> int:
        """The number of finished batches in the epoch, or in the run of a loop of iterations."""
        return int(getattr(self.train_loop, "inner_iter", self.iter))

    @inner_iter.setter
    def inner_iter(self: Any, value: int) -> None:
        if hasattr(self.train_loop, "inner_iter"):
            self.train_loop.inner_iter = value

    @property
    def epoch_length(self: Any) -> int | None:
        if self._train_loop is None:
            return None
        return getattr(self.train_loop, "epoch_length", None) or len(self.train_dataloader)
