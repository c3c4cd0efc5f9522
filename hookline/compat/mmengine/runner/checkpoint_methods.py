"""Save, load and resume checkpoints in MMEngine's layout."""

from __future__ import annotations

import os.path as osp
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hookline.checkpoint import CheckpointStore
from hookline.compat.mmengine.model.wrappers import unwrap_model
from hookline.compat.mmengine.runner.checkpoint import (
    _load_checkpoint,
    _load_checkpoint_to_model,
    find_latest_checkpoint,
    storable,
    weights_to_cpu,
)
from hookline.compat.openmmlab import MODULE_PREFIX
from hookline.rng import rng_state


class CheckpointMethods:
    """`save_checkpoint`, `load_checkpoint` and `resume` of the runner."""

    def save_checkpoint(
        self: Any,
        out_dir: str | Path,
        filename: str,
        file_client_args: Any = None,
        save_optimizer: bool = True,
        save_param_scheduler: bool = True,
        meta: dict[str, Any] | None = None,
        by_epoch: bool = True,
        backend_args: Any = None,
    ) -> None:
        """Write a checkpoint at once. A hook should call `request_write`: it waits for a seam."""
        if file_client_args or backend_args:
            raise ValueError(
                "file_client_args and backend_args are not supported: files are kept on a local "
                "disk"
            )
        if not self.is_main:
            return
        position = {"epoch": self.epoch + by_epoch, "iter": self.iter + (not by_epoch)}
        position.update(meta or {})
        checkpoint = self._capture({**self._position_in_epoch(position), **position})
        if save_optimizer:
            checkpoint["optimizer"] = self.optim_wrapper.state_dict()
        if save_param_scheduler and self.param_schedulers is not None:
            checkpoint["param_schedulers"] = _states(self.param_schedulers)
        self._call_before_save(checkpoint)
        metrics = {}
        for key, value in self.metrics.items():
            if isinstance(value, (int, float)):
                metrics[key] = float(value)
        self.store_in(out_dir).save(
            storable(checkpoint),
            filename,
            step=position["iter"],
            epoch=position["epoch"],
            metrics=metrics,
        )

    def store_in(self: Any, directory: str | Path) -> CheckpointStore:
        """Return the store of a directory, which this run keeps locked until it ends."""
        path = Path(osp.abspath(directory))
        if path not in self._stores:
            self._stores[path] = CheckpointStore(path)
            if self.is_main:
                self._stores[path].prepare()
        return self._stores[path]  # type: ignore[no-any-return]

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

    def load_checkpoint(
        self: Any,
        filename: str | Path,
        map_location: Any = "cpu",
        strict: bool = False,
        revise_keys: Sequence[tuple[str, str]] = MODULE_PREFIX,
    ) -> dict[str, Any]:
        """Load weights, after hooks have loaded their part (`after_load_checkpoint`)."""
        checkpoint = _load_checkpoint(filename, map_location=map_location)
        self.call_hook("after_load_checkpoint", checkpoint=checkpoint)
        model = unwrap_model(self.model)
        _load_checkpoint_to_model(model, checkpoint, strict, self.logger, revise_keys)
        self._has_loaded = True
        self.logger.info(f"Load checkpoint from {filename}")
        return checkpoint

    def resume(
        self: Any,
        filename: str | Path,
        resume_optimizer: bool = True,
        resume_param_scheduler: bool = True,
        map_location: Any = "default",
    ) -> None:
        """Continue from a checkpoint, written by this package or by MMEngine itself."""
        self._resume = True
        if map_location == "default":
            map_location = "cpu"
        checkpoint = self.load_checkpoint(filename, map_location=map_location)
        self._restore_position(checkpoint["meta"])
        self._restore_seed(checkpoint["meta"].get("seed"))
        if "message_hub" in checkpoint:
            self.message_hub.load_state_dict(checkpoint["message_hub"])
        if "optimizer" in checkpoint and resume_optimizer:
            self.optim_wrapper = self.build_optim_wrapper(self.optim_wrapper)
            self.optim_wrapper.load_state_dict(checkpoint["optimizer"])
        has_schedulers = "param_schedulers" in checkpoint and self.param_schedulers is not None
        if has_schedulers and resume_param_scheduler:
            self.param_schedulers = self.build_param_scheduler(self.param_schedulers)
            _load_states(self.param_schedulers, checkpoint["param_schedulers"])
        if hasattr(self.train_loop, "epoch_rng"):
            self.train_loop.epoch_rng = checkpoint.get("epoch_rng")
        self._missed_validation = checkpoint["meta"].get("validation_due", False)
        self.loop.mark_resumed(self._state_of_rank(checkpoint))
        self._has_loaded = True
        self.logger.info(f"resumed epoch: {self.epoch}, iter: {self.iter}")

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

    def _capture(self: Any, position: dict[str, Any]) -> dict[str, Any]:
        model = unwrap_model(self.model)
        meta = {
            **position,
            "cfg": self.masked_config_text,
            "seed": self.seed,
            "experiment_name": self.experiment_name,
            "time": time.strftime("%Y%m%d_%H%M%S"),
            "mmengine_version": self.mmengine_version,
        }
        dataset: Any = getattr(getattr(self.train_loop, "dataloader", None), "dataset", None)
        if hasattr(dataset, "metainfo"):
            meta["dataset_meta"] = dataset.metainfo
        checkpoint = {
            "meta": meta,
            "state_dict": weights_to_cpu(model.state_dict()),
            "message_hub": self.message_hub.state_dict(),
        }
        hook_states: dict[str, Any] = {}
        for hook in self.hooks:
            state = hook.state_dict()
            if state:
                hook_states[hook.name] = state
        checkpoint["hooks"] = hook_states
        checkpoint["rng"] = rng_state()
        if position["inner_iter"]:
            checkpoint["epoch_rng"] = self.train_loop.epoch_rng
        return checkpoint

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

    def _restore_seed(self: Any, seed: int | None) -> None:
        given = self._randomness_cfg.get("seed")
        if seed is None or seed == given:
            return
        if given is not None:
            self.logger.warning(
                f'The random seed in the checkpoint "{seed}" is different from the one in '
                f'`randomness` "{given}"'
            )
        self._randomness_cfg.update(seed=seed)
        self.set_randomness(**self._randomness_cfg)
        sampler: Any = getattr(self.train_loop.dataloader, "sampler", None)
        if hasattr(sampler, "seed") and given is None:
            sampler.seed = seed  # the sampler was built with a random seed


def _states(schedulers: Any) -> Any:
    if isinstance(schedulers, dict):
        return {name: _states(part) for name, part in schedulers.items()}
    return [scheduler.state_dict() for scheduler in schedulers]


def _load_states(schedulers: Any, states: Any) -> None:
    if isinstance(schedulers, dict):
        for name, part in schedulers.items():
            _load_states(part, states[name])
    else:
        for scheduler, state in zip(schedulers, states, strict=False):
            scheduler.load_state_dict(state)
