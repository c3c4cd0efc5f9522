"""The runner of epochs."""

from __future__ import annotations

from typing import Any

import torch

from hookline.compat.mmcv.runner.base_runner import BaseRunner, Workflow, check_meta
from hookline.compat.mmcv.runner.builder import RUNNERS
from hookline.compat.mmcv.runner.checkpointer import LATEST
from hookline.compat.mmcv.runner.position import ResumableEpoch
from hookline.compat.persistent_workers import continuing_workers


@RUNNERS.register_module()
class EpochBasedRunner(BaseRunner):
    """A runner of workflows such as `[('train', 2), ('val', 1)]`, for `max_epochs` epochs."""

    # In MMCV, these are called around train and val epochs alike.
    engine_only_sites = frozenset({"before_epoch", "after_epoch"})

    _current: ResumableEpoch | None = None

    def train(self, data_loader: Any, **kwargs: Any) -> None:  # type: ignore[override]
        length = len(data_loader)
        self.model.train()
        self.mode = "train"
        self.data_loader = data_loader
        self.max_iters = self.max_epochs * length  # type: ignore[operator]
        self.epoch_length = length
        batches = self._begin_epoch(data_loader)
        for index, data_batch in enumerate(batches, start=batches.position):
            self._last_index = index
            self._step(data_batch, **kwargs)
            self.loop.end_iteration(is_last=index + 1 == length)
            del self.data_batch
            if self.stop_reason is not None:
                return
        self._current = None
        self.loop.end_train_epoch()
        self.loop.end_whole_epoch()

    @torch.no_grad()
    def val(self, data_loader: Any, **kwargs: Any) -> None:
        self.model.eval()
        self.mode = "val"
        self.data_loader = data_loader
        self.call_hook("before_val_epoch")
        with continuing_workers(data_loader, self.workers.take_resumed(data_loader)):
            batches = enumerate(data_loader)
        for index, data_batch in batches:
            self.data_batch = data_batch
            self._last_index = self.inner_iter = self.batch_idx = index
            self.call_hook("before_val_iter")
            self.run_iter(data_batch, train_mode=False)
            self.call_hook("after_val_iter")
            del self.data_batch
        self.inner_iter = 0  # of the next train epoch
        self.call_hook("after_val_epoch")

    def run(
        self,
        data_loaders: list[Any],
        workflow: Workflow,
        max_epochs: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Run the workflow to the end, or until a hook requests a stop."""
        if max_epochs is not None:
            self.max_epochs = max_epochs
        assert self.max_epochs is not None, "max_epochs must be specified during instantiation"
        for loader, (mode, _) in zip(data_loaders, workflow, strict=False):
            if mode == "train":
                self.max_iters = self.max_epochs * len(loader)
                break
        self.logger.info("workflow: %s, max: %d epochs", workflow, self.max_epochs)
        try:
            self._run(data_loaders, workflow, lambda loaders: self._loop(loaders, workflow, kwargs))
        finally:
            self._current = None  # Dropping the iterator ends its worker processes.

    def save_checkpoint(
        self,
        out_dir: str,
        filename_tmpl: str = "epoch_{}.pth",
        save_optimizer: bool = True,
        meta: dict[str, Any] | None = None,
        create_symlink: bool = True,
    ) -> None:
        """Save at once. `latest.pth` is the same file, unless `create_symlink` is False."""
        check_meta(meta)
        names = [filename_tmpl.format(self.epoch + 1)]
        if create_symlink:
            names.append(LATEST)
        self.checkpointer.save_now(out_dir, names, save_optimizer, meta or {})

    def data_state(self) -> dict[str, Any]:
        state = super().data_state()
        if self._current is not None:
            state["epoch"] = self._current.state_after(self.inner_iter)
        return state

    def _loop(self, data_loaders: list[Any], workflow: Workflow, kwargs: dict[str, Any]) -> None:
        if "epoch" not in self._continue_at:
            self._finish_resume()
        for index, mode in self._entries(workflow, self._has_epochs_left):
            getattr(self, mode)(data_loaders[index], **kwargs)

    def _has_epochs_left(self) -> bool:
        return self.epoch < (self.max_epochs or 0)

    def _begin_epoch(self, data_loader: Any) -> ResumableEpoch:
        """Call the sites before an epoch, and return the batches that it still has."""

        def open_data() -> None:
            self._current = ResumableEpoch(
                data_loader, self._continue_at.get("epoch"), self.workers.take_resumed(data_loader)
            )

        self.loop.begin_epoch(open_data)
        self._continue_at = {}
        assert self._current is not None
        return self._current


@RUNNERS.register_module()
class Runner(EpochBasedRunner):
    """The former name of EpochBasedRunner."""
