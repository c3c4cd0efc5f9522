"""Exact resume: the position in an epoch, random numbers and the state of hooks."""

from __future__ import annotations

import os.path as osp
from pathlib import Path
from typing import Any

from hookline.checkpoint import CheckpointStore
from hookline.compat.mmengine.runner.files import find_latest_checkpoint
from hookline.compat.persistent_workers import capture_workers
from hookline.rng import rng_state


class ExactResume:
    """The parts of a checkpoint that MMEngine leaves out, and the choice of a checkpoint."""

    def add_exact_state(self: Any, checkpoint: dict[str, Any]) -> None:
        """Add random numbers, the state of hooks and the position to a checkpoint."""
        meta = checkpoint["meta"]
        meta.update({**self._position_in_epoch(meta), **meta})
        hook_states: dict[str, Any] = {}
        for hook in self.hooks:
            state = hook.state_dict()
            if state:
                hook_states[hook.name] = state
        checkpoint["hooks"] = hook_states
        checkpoint["rng"] = rng_state()
        workers = {"val": capture_workers(getattr(self._val_loop, "dataloader", None))}
        if meta["inner_iter"]:
            checkpoint["epoch_rng"] = self.train_loop.epoch_rng
            workers["train"] = self.train_loop.worker_rng
        elif hasattr(self.train_loop, "worker_rng"):
            workers["train"] = capture_workers(self.train_loop.dataloader)
        checkpoint["worker_rng"] = workers

    def restore_exact_state(self: Any, checkpoint: dict[str, Any]) -> None:
        """Restore the position; the first iteration restores random numbers and hooks."""
        self._restore_position(checkpoint["meta"])
        workers = checkpoint.get("worker_rng", {})
        self._val_workers = workers.get("val")
        if hasattr(self.train_loop, "epoch_rng"):
            self.train_loop.epoch_rng = checkpoint.get("epoch_rng")
            self.train_loop.resumed_workers = workers.get("train")
        self._missed_validation = checkpoint["meta"].get("validation_due", False)
        self.loop.mark_resumed(self._state_of_rank(checkpoint))

    def load_or_resume(self: Any) -> None:
        """Load or resume once, as the constructor's `load_from` and `resume` demand."""
        if self._has_loaded:
            return
        if self._resume:
            found = self._load_from or find_latest_checkpoint(self.work_dir)
            self.logger.info(f"Auto resumed from the latest checkpoint {found}.")
            if found is not None:
                self.resume(found)
        elif self._load_from is not None:
            self.load_checkpoint(self._load_from)

    def validate_if_missed(self: Any) -> None:
        """Run the validation that was due when the checkpoint was taken, unless the run is over."""
        missed = self._missed_validation
        self._missed_validation = False
        if hasattr(self.train_loop, "inner_iter"):
            is_over = self.epoch >= self.max_epochs
        else:
            is_over = self.iter >= self.max_iters
        if missed and not is_over and self.val_loop is not None:
            self.val_loop.run()

    def store_in(self: Any, directory: str | Path) -> CheckpointStore:
        """Return the store of a directory, which this run keeps locked until it ends."""
        path = Path(osp.abspath(directory))
        if path not in self._stores:
            self._stores[path] = CheckpointStore(path)
            if self.is_main:
                self._stores[path].prepare()
        return self._stores[path]  # type: ignore[no-any-return]

    def release_stores(self: Any) -> None:
        """Let other runs write to the directories of this one."""
        while self._stores:
            self._stores.popitem()[1].unlock()

    def position_after(self: Any) -> dict[str, Any]:
        """Return the position after the stage that ends now: a user's loop counts later."""
        inner = getattr(self.train_loop, "inner_iter", None)
        if self._stage == "after_train_iter":
            return {
                "epoch": self.epoch,
                "iter": self.iter + 1,
                "inner_iter": 0 if inner is None else self.batch_idx + 1,
            }
        if self._stage == "after_train_epoch":
            return {"epoch": self.epoch + 1, "iter": self.iter, "inner_iter": 0}
        return {"epoch": self.epoch, "iter": self.iter, "inner_iter": inner or 0}

    def _call_before_save(self: Any, checkpoint: dict[str, Any]) -> None:
        """Call `before_save_checkpoint` with the counters at the time of the request."""
        counters = (self.epoch, self.iter)
        if self._requested_at is not None:
            self.epoch, self.iter = self._requested_at
        try:
            self.call_hook("before_save_checkpoint", checkpoint=checkpoint)
        finally:
            if self._requested_at is not None:
                self.epoch, self.iter = counters

    def _state_of_rank(self: Any, checkpoint: dict[str, Any]) -> dict[str, Any]:
        """Return a checkpoint without its random numbers, which are rank 0's, if ranks differ."""
        if self.is_main or not self.has_seed_per_rank:
            return checkpoint
        return {key: value for key, value in checkpoint.items() if key != "rng"}

    def _position_in_epoch(self: Any, position: dict[str, Any]) -> dict[str, Any]:
        """Return the batches of the epoch and a pending validation, which MMEngine leaves out."""
        loop = self.train_loop
        inner = 0
        is_due = False
        if not hasattr(loop, "inner_iter"):
            if hasattr(loop, "is_validation_due"):
                is_due = loop.is_validation_due(position["iter"], loop.max_iters)
            return {"inner_iter": inner, "validation_due": is_due}
        if position["epoch"] == loop.epoch:
            inner = loop.inner_iter + position["iter"] - loop.iter
        if position.get("inner_iter", inner) == 0:
            is_due = loop.is_validation_due(position["epoch"], loop.max_epochs)
        return {"inner_iter": inner, "validation_due": is_due}

    def _restore_position(self: Any, meta: dict[str, Any]) -> None:
        loop = self.train_loop
        loop._epoch = meta["epoch"]
        loop._iter = meta["iter"]
        if "inner_iter" in meta and hasattr(loop, "inner_iter"):
            loop.inner_iter = meta["inner_iter"]
        elif hasattr(loop, "inner_iter"):  # a checkpoint of MMEngine
            length = len(loop.dataloader)
            loop.inner_iter = max(meta["iter"] - meta["epoch"] * length, 0) % length
        if hasattr(loop, "validated_at"):
            by_epoch = hasattr(loop, "inner_iter")
            loop.validated_at = meta["epoch"] if by_epoch else meta["iter"]
