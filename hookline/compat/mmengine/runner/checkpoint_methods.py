"""Save checkpoints in MMEngine's layout."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from hookline.compat.mmengine.model import is_model_wrapper
from hookline.compat.mmengine.optim import OptimWrapper
from hookline.compat.mmengine.runner.files import storable
from hookline.compat.weights import weights_to_cpu


class CheckpointMethods:
    """`save_checkpoint` of the runner."""

    def save_checkpoint(
        self: Any,
        out_dir: str | Path,
        filename: str,
        save_optimizer: bool = True,
        save_param_scheduler: bool = True,
        meta: dict[str, Any] | None = None,
        by_epoch: bool = True,
    ) -> None:
        """Write a checkpoint at once. A hook should call `request_write`: it waits for a seam."""
        if save_optimizer and not isinstance(self.optim_wrapper, OptimWrapper):
            raise TypeError(
                "self.optim_wrapper should be an `OptimWrapper` or `OptimWrapperDict` instance, "
                f"but got {self.optim_wrapper}"
            )
        if not self.is_main:
            return
        position = {"epoch": self.epoch + by_epoch, "iter": self.iter + (not by_epoch)}
        position.update(meta or {})
        checkpoint = self._capture(position)
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
        if not self.loop.is_running:
            self.release_stores()

    def _capture(self: Any, position: dict[str, Any]) -> dict[str, Any]:
        model = self.model.module if is_model_wrapper(self.model) else self.model
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
        checkpoint: dict[str, Any] = {
            "meta": meta,
            "state_dict": weights_to_cpu(model.state_dict()),
            "message_hub": self.message_hub.state_dict(),
        }
        info = checkpoint["message_hub"]["runtime_info"]
        if "cfg" in info:
            info["cfg"] = self.masked_config_text
        self.add_exact_state(checkpoint)
        return checkpoint


def _states(schedulers: Any) -> Any:
    if isinstance(schedulers, dict):
        return {name: _states(part) for name, part in schedulers.items()}
    return [scheduler.state_dict() for scheduler in schedulers]
