"""The runner of iterations."""

from __future__ import annotations

from typing import Any

import torch

from hookline.compat.mmcv.runner.base_runner import BaseRunner, Workflow, check_meta
from hookline.compat.mmcv.runner.builder import RUNNERS
from hookline.compat.mmcv.runner.checkpointer import LATEST
from hookline.compat.mmcv.runner.hooks.iter_timer import IterTimerHook
from hookline.compat.mmcv.runner.position import ResumableEpoch
from hookline.signature import parameters


class IterLoader:
    """A loader that starts over at its end; `epoch` counts how often."""

    def __init__(self, dataloader: Any, state: dict[str, Any] | None = None) -> None:
        self._dataloader = dataloader
        self._epoch = 0 if state is None else int(state["epoch"])
        if self._epoch:
            self._set_sampler_epoch()
        self.iter_loader = ResumableEpoch(dataloader, state)

    @property
    def epoch(self) -> int:
        return self._epoch

    def __next__(self) -> Any:
        try:
            return next(self.iter_loader)
        except StopIteration:
            self._epoch += 1
            self._set_sampler_epoch()
            self.iter_loader = ResumableEpoch(self._dataloader)
            return next(self.iter_loader)

    def __len__(self) -> int:
        return len(self._dataloader)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._dataloader, name)

    def state(self) -> dict[str, Any]:
        """Return the epoch and the position in it, for a checkpoint."""
        return {"epoch": self._epoch, **self.iter_loader.state_after(self.iter_loader.position)}

    def _set_sampler_epoch(self) -> None:
        sampler: Any = getattr(self._dataloader, "sampler", None)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(self._epoch)


@RUNNERS.register_module()
class IterBasedRunner(BaseRunner):
    """A runner of workflows such as `[('train', 100), ('val', 10)]`, for `max_iters` iterations.

    To hooks of Hookline the whole run is one epoch.
    """

    # MMCV's runner of iterations calls before_epoch and after_epoch, once.
    engine_only_sites = frozenset({"before_train_epoch", "after_train_epoch"})
    is_one_epoch = True

    _loaders: list[IterLoader] = []

    def train(self, data_loader: Any, **kwargs: Any) -> None:  # type: ignore[override]
        self.model.train()
        self.mode = "train"
        self.data_loader = data_loader
        self.epoch = data_loader.epoch
        self.loop.await_batch()
        self._step(next(data_loader), **kwargs)
        self.loop.end_iteration(is_last=True)  # the workflow has the seam after its entry
        del self.data_batch

    @torch.no_grad()
    def val(self, data_loader: Any, **kwargs: Any) -> None:
        self.model.eval()
        self.mode = "val"
        self.data_loader = data_loader
        self.data_batch = data_batch = next(data_loader)
        self.call_hook("before_val_iter")
        step: Any = self.model.val_step
        # MMCV passes no optimizer here; a step that requires one gets it.
        optimizer = [self.optimizer] if len(parameters(step).required()) > 1 else []
        self.take_outputs(step(data_batch, *optimizer, **kwargs))
        self.call_hook("after_val_iter")
        del self.data_batch
        self.inner_iter += 1

    def run(
        self,
        data_loaders: list[Any],
        workflow: Workflow,
        max_iters: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Run the workflow to the end, or until a hook requests a stop."""
        if max_iters is not None:
            self.max_iters = max_iters
        assert self.max_iters is not None, "max_iters must be specified during instantiation"
        self.loop.iter_limit = self.max_iters
        self.logger.info("workflow: %s, max: %d iters", workflow, self.max_iters)
        self._run(data_loaders, workflow, lambda loaders: self._loop(loaders, workflow, kwargs))

    def save_checkpoint(
        self,
        out_dir: str,
        filename_tmpl: str = "iter_{}.pth",
        meta: dict[str, Any] | None = None,
        save_optimizer: bool = True,
        create_symlink: bool = True,
    ) -> None:
        """Save at once. `latest.pth` is the same file, unless `create_symlink` is False."""
        check_meta(meta)
        names = [filename_tmpl.format(self.iter + 1)]
        if create_symlink:
            names.append(LATEST)
        self.checkpointer.save_now(out_dir, names, save_optimizer, meta or {})

    def register_training_hooks(
        self,
        lr_config: Any,
        optimizer_config: Any = None,
        checkpoint_config: Any = None,
        log_config: Any = None,
        momentum_config: Any = None,
        timer_config: Any = None,
        custom_hooks_config: Any = None,
    ) -> None:
        """Register the default hooks, which count iterations unless configured otherwise."""
        if isinstance(log_config, dict):
            hooks = [_by_iteration(hook) for hook in log_config["hooks"]]
            log_config = {**log_config, "hooks": hooks}
        super().register_training_hooks(
            _by_iteration(lr_config),
            optimizer_config,
            _by_iteration(checkpoint_config),
            log_config,
            _by_iteration(momentum_config),
            timer_config or IterTimerHook(),
            custom_hooks_config,
        )

    def data_state(self) -> dict[str, Any]:
        return {**super().data_state(), "loaders": [loader.state() for loader in self._loaders]}

    def _loop(self, data_loaders: list[Any], workflow: Workflow, kwargs: dict[str, Any]) -> None:
        states = self._continue_at.get("loaders", [])
        if len(states) != len(data_loaders):
            states = [None] * len(data_loaders)
        pairs = zip(data_loaders, states, strict=True)
        self._loaders = [IterLoader(loader, state) for loader, state in pairs]
        self.data_loader = self._loaders[0]
        self.inner_iter = self.iter
        self.loop.begin_epoch()
        self._finish_resume()
        for index, mode in self._entries(workflow, self._has_iterations_left):
            self.inner_iter = self.flow[1]
            getattr(self, mode)(self._loaders[index], **kwargs)
        if self.stop_reason is None:
            self.loop.end_train_epoch()
            self.loop.end_whole_epoch()

    def _has_iterations_left(self) -> bool:
        return self.iter < (self.max_iters or 0)


def _by_iteration(config: Any) -> Any:
    """Let a config count iterations unless it is configured otherwise."""
    return {"by_epoch": False, **config} if isinstance(config, dict) else config
