"""The stand-in for a Keras model and its optimizer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from keras.src.trainers.compile_utils import MetricsList

from hookline.compat.foreign import Facade
from hookline.engine import StopReason
from hookline.errors import HooklineError
from hookline.metrics.direction import infer_direction

if TYPE_CHECKING:
    from hookline.compat.keras.hook import KerasHook

GROUP = "state_dict"  # the group of an HDF5 file that holds the weights by name


class Model(Facade):
    """The attributes of a Keras model that a run can provide.

    Requests to stop and to save are passed on to the runner.
    """

    stands_for = "model"
    _hook: KerasHook
    built = True
    history: Any = None

    def __init__(self, hook: KerasHook) -> None:
        super().__init__(hook)
        self._stop = False
        self.optimizer = Optimizer(hook)

    @property
    def stop_training(self) -> bool:
        return self._stop

    @stop_training.setter
    def stop_training(self, wanted: bool) -> None:
        self._stop = wanted
        if wanted:
            self._hook.runner.request_stop(StopReason("requested a stop", self._hook.name))

    @property
    def metrics(self) -> list[Any]:
        """The metrics, whose direction callbacks look up here."""
        metrics = [_MetricInfo(name, self._hook) for name in self._hook.runner.evaluation.metrics]
        return [MetricsList(metrics)] if metrics else []

    def get_weights(self) -> list[Any]:
        weights = self._hook.runner.model.state_dict().values()
        return [value.detach().cpu().numpy().copy() for value in weights]

    def set_weights(self, weights: list[Any]) -> None:
        targets = self._hook.runner.model.state_dict().values()
        with torch.no_grad():
            for target, value in zip(targets, weights, strict=True):
                target.copy_(torch.as_tensor(value))

    def save_weights(self, filepath: Any, overwrite: bool = True) -> None:
        """Write the weights by name to an HDF5 file."""
        self._hook.files.save(filepath, lambda checkpoint: checkpoint["state_dict"], _write_hdf5)

    def load_weights(self, filepath: Any, **options: Any) -> None:
        import h5py

        with h5py.File(filepath) as file:
            weights = {name: torch.as_tensor(value[()]) for name, value in file[GROUP].items()}
        self._hook.runner.model.load_state_dict(weights)

    def save(self, filepath: Any, overwrite: bool = True, **options: Any) -> None:
        """Write a checkpoint of Hookline's: Keras' format cannot hold a torch model."""
        self._hook.files.save(filepath, lambda checkpoint: checkpoint)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_initial_epoch":
            raise HooklineError(
                f"cannot move the run to epoch {value}; resume it with resume='auto'",
                component=self._hook.name,
                parameter=name,
            )
        super().__setattr__(name, value)


class Optimizer(Facade):
    """The attributes of a Keras optimizer that a torch optimizer can provide."""

    stands_for = "model.optimizer"
    built = True

    @property
    def _optimizer(self) -> torch.optim.Optimizer:
        optimizer = self._hook.runner.optimizer
        if not isinstance(optimizer, torch.optim.Optimizer):
            found = "none" if optimizer is None else "several"
            raise HooklineError(
                f"needs a run with one optimizer, and this run has {found}",
                component=self._hook.name,
            )
        return optimizer

    @property
    def learning_rate(self) -> float:
        return float(self._optimizer.param_groups[0]["lr"])

    @learning_rate.setter
    def learning_rate(self, rate: Any) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = float(rate)

    lr = learning_rate

    @property
    def iterations(self) -> int:
        return self._hook.runner.optimizer_steps


class _MetricInfo(Facade):
    """The name and the direction of a metric."""

    stands_for = "metric"

    def __init__(self, name: str, hook: KerasHook) -> None:
        super().__init__(hook)
        self.name = name
        direction = infer_direction(name)
        if direction is not None:
            self._direction = "up" if direction == "greater" else "down"


def _write_hdf5(path: Path, weights: dict[str, Any]) -> None:
    import h5py

    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with h5py.File(temporary, "w") as file:
            for name, value in weights.items():
                file.create_dataset(f"{GROUP}/{name}", data=value.detach().cpu().numpy())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
