"""What a runner tells about itself."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.config import Config
from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.engine.priority import Priority
from hookline.secrets import mask_secrets
from hookline.version import __version__


class Facts:
    """The properties of the runner."""

    mmengine_version = f"hookline {__version__}"

    work_dir: Any = property(lambda self: self._work_dir)
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
    _hooks = property(lambda self: self.hooks)

    max_epochs = property(lambda self: self._of_train_loop("max_epochs"))
    max_iters = property(lambda self: self._of_train_loop("max_iters"))
    epoch = property(lambda self: self._of_train_loop("epoch"))
    iter = property(lambda self: self._of_train_loop("iter"))

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
        """Whether there is a training loop already, and so an epoch and an iteration to speak of."""
        return isinstance(self._train_loop, BaseLoop)

    @property
    def masked_config_text(self: Any) -> str:
        """The config for files: without passwords and tokens."""
        return Config(mask_secrets(self.cfg.to_dict())).pretty_text

    def get_hooks_info(self: Any) -> str:
        """For each stage its hooks in their order, as MMEngine prints it."""
        blocks = []
        for stage in Hook.stages:
            rows = [f"({_label(hook):<12}) {type(hook).__name__:<35}" for hook in self.sites.plan[stage]]
            if rows:
                blocks.append("\n".join([f"{stage}:", *rows, " -------------------- "]))
        return "\n".join(blocks)

    def _of_train_loop(self: Any, name: str) -> Any:
        return getattr(self.train_loop, name) if isinstance(self.train_loop, BaseLoop) else 0

    # What Hookline's own hooks call the same things.

    train_loader = property(lambda self: self._train_loop and self.train_loop.dataloader)
    val_loader = property(lambda self: self._val_loop and self.val_loop.dataloader)
    test_loader = property(lambda self: self._test_loop and self.test_loop.dataloader)
    optimizer = property(lambda self: getattr(self.optim_wrapper, "optimizer", None))
    scheduler = property(lambda self: self.param_schedulers)
    loss = property(lambda self: self.outputs.get("loss") if isinstance(self.outputs, dict) else None)
    config = property(lambda self: self.cfg.to_dict())
    inner_iter = property(lambda self: getattr(self.train_loop, "inner_iter", self.iter))
    epoch_length = property(lambda self: len(self.train_dataloader) if self._train_loop is not None else None)


def _label(hook: Any) -> Any:
    value = hook.priority
    if isinstance(value, str):
        return value.upper()
    return next((priority.name for priority in Priority if priority == value), value)
