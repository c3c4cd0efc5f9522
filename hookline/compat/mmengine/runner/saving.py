"""What a runner saves, how it is put back, and where in a run it was."""

from __future__ import annotations

import os.path as osp
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hookline.checkpoint import CheckpointStore
from hookline.compat.mmengine.model import is_model_wrapper
from hookline.compat.mmengine.runner.checkpoint import (
    REVISE,
    _load_checkpoint,
    _load_checkpoint_to_model,
    find_latest_checkpoint,
    storable,
    weights_to_cpu,
)
from hookline.engine.capture import restore_hooks, restore_rng, rng_state


class Saving:
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
        """Write a checkpoint here and now. Hooks had better ask for one (`request_save`), which is then taken between two steps."""
        if file_client_args or backend_args:
            raise ValueError("only local files are covered (no file_client_args or backend_args)")
        if not self.is_main:
            return
        place = {"epoch": self.epoch + by_epoch, "iter": self.iter + (not by_epoch), **(meta or {})}
        checkpoint = self._capture({**self._inside(place), **place})
        if save_optimizer:
            checkpoint["optimizer"] = self.optim_wrapper.state_dict()
        if save_param_scheduler and self.param_schedulers is not None:
            checkpoint["param_schedulers"] = _states(self.param_schedulers)
        self.call_hook("before_save_checkpoint", checkpoint=checkpoint)
        metrics = {key: float(value) for key, value in self.metrics.items() if isinstance(value, (int, float))}
        self.store_in(out_dir).save(storable(checkpoint), filename, step=place["iter"], epoch=place["epoch"], metrics=metrics)

    def store_in(self: Any, directory: str | Path) -> CheckpointStore:
        """The store of a directory, which is this run's until it ends."""
        path = Path(osp.abspath(directory))
        if path not in self._stores:
            self._stores[path] = CheckpointStore(path)
            if self.is_main:
                self._stores[path].prepare()
        return self._stores[path]  # type: ignore[no-any-return]

    def position_after(self: Any) -> dict[str, Any]:
        """Where the run is once the stage whose hooks have just run is over."""
        inner = getattr(self.train_loop, "inner_iter", None)
        if self._stage == "after_train_iter":
            return {"epoch": self.epoch, "iter": self.iter + 1, "inner_iter": 0 if inner is None else self.batch_idx + 1}
        if self._stage == "after_train_epoch":
            return {"epoch": self.epoch + 1, "iter": self.iter, "inner_iter": 0}
        return {"epoch": self.epoch, "iter": self.iter, "inner_iter": inner or 0}

    def load_checkpoint(
        self: Any,
        filename: str | Path,
        map_location: Any = "cpu",
        strict: bool = False,
        revise_keys: Sequence[tuple[str, str]] = REVISE,
    ) -> dict[str, Any]:
        """Load weights; hooks take what is theirs of the file first (`after_load_checkpoint`)."""
        checkpoint = _load_checkpoint(filename, map_location=map_location)
        self.call_hook("after_load_checkpoint", checkpoint=checkpoint)
        model = self.model.module if is_model_wrapper(self.model) else self.model
        _load_checkpoint_to_model(model, checkpoint, strict, self.logger, revise_keys)
        self._has_loaded = True
        self.logger.info(f"Load checkpoint from {filename}")
        return checkpoint

    def resume(
        self: Any, filename: str | Path, resume_optimizer: bool = True, resume_param_scheduler: bool = True, map_location: Any = "default"
    ) -> None:
        """Go on where a checkpoint was taken, of this package or of MMEngine itself."""
        self._resume = True
        checkpoint = self.load_checkpoint(filename, map_location="cpu" if map_location == "default" else map_location)
        self._restore_position(checkpoint["meta"])
        self._restore_seed(checkpoint["meta"].get("seed"))
        self.message_hub.load_state_dict(checkpoint.get("message_hub", {"log_scalars": {}, "runtime_info": {}, "resumed_keys": {}}))
        if "optimizer" in checkpoint and resume_optimizer:
            self.optim_wrapper = self.build_optim_wrapper(self.optim_wrapper)
            self.optim_wrapper.load_state_dict(checkpoint["optimizer"])
        if "param_schedulers" in checkpoint and resume_param_scheduler and self.param_schedulers is not None:
            self.param_schedulers = self.build_param_scheduler(self.param_schedulers)
            _load_states(self.param_schedulers, checkpoint["param_schedulers"])
        if hasattr(self.train_loop, "epoch_rng"):
            self.train_loop.epoch_rng = checkpoint.get("epoch_rng")
        self._resumed_from = checkpoint
        self._has_loaded = True
        self.logger.info(f"resumed epoch: {self.epoch}, iter: {self.iter}")

    def load_or_resume(self: Any) -> None:
        """As `load_from` and `resume` of the constructor say, once."""
        if self._has_loaded:
            return
        if self._resume:
            found = self._load_from or find_latest_checkpoint(self.work_dir)
            self.logger.info(f"Auto resumed from the latest checkpoint {found}.")
            if found is not None:
                self.resume(found)
        elif self._load_from is not None:
            self.load_checkpoint(self._load_from)

    def finish_resume(self: Any) -> None:
        """The last act of resuming: hooks' state and random numbers as they were, where the file has them."""
        checkpoint, self._resumed_from = self._resumed_from, None
        if checkpoint is not None:
            restore_hooks(self, checkpoint)
            if "rng" in checkpoint and (self.is_main or not self._randomness_cfg.get("diff_rank_seed")):  # it is the main process's
                restore_rng(checkpoint["rng"])
            self._missed_validation = checkpoint["meta"].get("validation_due", False)

    def validate_if_missed(self: Any) -> None:
        """The validation that was due when the checkpoint was taken, unless the run is over anyway."""
        missed, self._missed_validation = self._missed_validation, False
        over = self.epoch >= self.max_epochs if hasattr(self.train_loop, "inner_iter") else self.iter >= self.max_iters
        if missed and not over and self.val_loop is not None:
            self.val_loop.run()

    def _capture(self: Any, place: dict[str, Any]) -> dict[str, Any]:
        model = self.model.module if is_model_wrapper(self.model) else self.model
        meta = {
            **place,
            "cfg": self.masked_config_text,
            "seed": self.seed,
            "experiment_name": self.experiment_name,
            "time": time.strftime("%Y%m%d_%H%M%S"),
            "mmengine_version": self.mmengine_version,
        }
        dataset: Any = getattr(getattr(self.train_loop, "dataloader", None), "dataset", None)
        if hasattr(dataset, "metainfo"):
            meta["dataset_meta"] = dataset.metainfo
        checkpoint = {"meta": meta, "state_dict": weights_to_cpu(model.state_dict()), "message_hub": self.message_hub.state_dict()}
        checkpoint["hooks"] = {hook.name: state for hook in self.hooks if (state := hook.state_dict())}
        checkpoint["rng"] = rng_state()
        if place["inner_iter"]:
            checkpoint["epoch_rng"] = self.train_loop.epoch_rng
        return checkpoint

    def _inside(self: Any, place: dict[str, Any]) -> dict[str, Any]:
        """What MMEngine's position lacks: how far inside of the epoch, and whether a validation comes next."""
        loop = self.train_loop
        by_epoch = hasattr(loop, "inner_iter")
        inner = loop.inner_iter + place["iter"] - loop.iter if by_epoch and place["epoch"] == loop.epoch else 0
        due = False
        if hasattr(loop, "validation_due") and self._stage == ("after_train_epoch" if by_epoch else "after_train_iter"):
            due = loop.validation_due(place["epoch"], loop.max_epochs) if by_epoch else loop.validation_due(place["iter"], loop.max_iters)
        return {"inner_iter": inner, "validation_due": due}

    def _restore_position(self: Any, meta: dict[str, Any]) -> None:
        loop = self.train_loop
        loop._epoch, loop._iter = meta["epoch"], meta["iter"]
        if hasattr(loop, "inner_iter"):
            length = len(loop.dataloader)
            loop.inner_iter = meta.get("inner_iter", max(meta["iter"] - meta["epoch"] * length, 0) % length)

    def _restore_seed(self: Any, seed: int | None) -> None:
        given = self._randomness_cfg.get("seed")
        if seed is None or seed == given:
            return
        if given is not None:
            self.logger.warning(f'The random seed in the checkpoint "{seed}" is different from the one in `randomness` "{given}"')
        self._randomness_cfg.update(seed=seed)
        self.set_randomness(**self._randomness_cfg)
        sampler: Any = getattr(self.train_loop.dataloader, "sampler", None)
        if hasattr(sampler, "seed") and given is None:
            sampler.seed = seed  # it was drawn anew, before the file could say what it had been


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
