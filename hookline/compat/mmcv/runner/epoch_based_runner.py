"""The runner that counts epochs."""

from __future__ import annotations

from typing import Any

import torch

from hookline.compat.mmcv.runner.base_runner import BaseRunner
from hookline.compat.mmcv.runner.builder import RUNNERS
from hookline.compat.mmcv.runner.position import Epoch
from hookline.compat.mmcv.runner.saving import LATEST


@RUNNERS.register_module()
class EpochBasedRunner(BaseRunner):
    """Runs `workflow`, such as `[('train', 2), ('val', 1)]`, until `max_epochs` epochs of training are done."""

    _current: Epoch | None = None

    def train(self, data_loader: Any, **kwargs: Any) -> None:  # type: ignore[override]
        self.model.train()
        self.mode, self.data_loader = "train", data_loader
        self.max_iters, self.epoch_length = self.max_epochs * len(data_loader), len(data_loader)  # type: ignore[operator]
        batches = self._begin_epoch(data_loader)
        for index, data_batch in enumerate(batches, start=batches.position):
            self.data_batch = data_batch
            self.inner_iter = self.batch_idx = index
            self.call_hook("before_train_iter")
            self.run_iter(data_batch, train_mode=True, **kwargs)
            self.call_hook("after_train_iter")
            del self.data_batch
            self.iter += 1
            if index + 1 < len(data_loader):  # at the last iteration its seam and the epoch's are one
                self._settle(index + 1)
                if self.stop_reason is not None:
                    return
        self._current = None
        self.call_hook("after_train_epoch")
        self.epoch += 1

    @torch.no_grad()
    def val(self, data_loader: Any, **kwargs: Any) -> None:
        self.model.eval()
        self.mode, self.data_loader = "val", data_loader
        self.call_hook("before_val_epoch")
        for index, data_batch in enumerate(data_loader):
            self.data_batch = data_batch
            self.inner_iter = self.batch_idx = index
            self.call_hook("before_val_iter")
            self.run_iter(data_batch, train_mode=False)
            self.call_hook("after_val_iter")
            del self.data_batch
        self.call_hook("after_val_epoch")

    def run(self, data_loaders: list[Any], workflow: list[tuple[str, int]], max_epochs: int | None = None, **kwargs: Any) -> None:
        """Train, and what else the workflow has, to the end or until a hook asks to stop."""
        self.max_epochs = max_epochs if max_epochs is not None else self.max_epochs
        if self.max_epochs is None:
            raise ValueError("max_epochs must be specified during instantiation")
        for loader, (mode, _) in zip(data_loaders, workflow, strict=False):
            if mode == "train":
                self.max_iters = self.max_epochs * len(loader)
                break
        self.logger.info("workflow: %s, max: %d epochs", workflow, self.max_epochs)
        self._run(data_loaders, workflow, lambda: self._loop(data_loaders, workflow, kwargs))

    def save_checkpoint(
        self,
        out_dir: str,
        filename_tmpl: str = "epoch_{}.pth",
        save_optimizer: bool = True,
        meta: dict[str, Any] | None = None,
        create_symlink: bool = True,
    ) -> None:
        """Save here and now; `latest.pth` is the same file, unless `create_symlink` is false."""
        names = [filename_tmpl.format(self.epoch + 1), *([LATEST] if create_symlink else [])]
        self.saving.now(out_dir, names, save_optimizer, meta or {})

    def place(self) -> dict[str, Any]:
        within = {} if self._current is None else {"epoch": self._current.place(self.inner_iter)}
        return {**super().place(), **within}

    def _loop(self, data_loaders: list[Any], workflow: list[tuple[str, int]], kwargs: dict[str, Any]) -> None:
        if "epoch" not in self._continue_at:
            self.finish_resume()
        for index, mode in self._entries(workflow, lambda: self.epoch < self.max_epochs):  # type: ignore[operator]
            getattr(self, mode)(data_loaders[index], **kwargs)

    def _begin_epoch(self, data_loader: Any) -> Epoch:
        """The hooks of its beginning, and the batches that the epoch still has."""
        place = self._continue_at.get("epoch")
        self.call_hook("before_train_epoch")
        self._current = Epoch(data_loader, place)
        self.finish_resume()
        return self._current


@RUNNERS.register_module()
class Runner(EpochBasedRunner):
    """The former name of EpochBasedRunner."""
