"""The stand-in for a Keras model and its optimizer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from keras.src.trainers.compile_utils import MetricsList

from hookline.compat.foreign import Facade
from hookline.engine.metrics import better_when
from hookline.errors import HooklineError

if TYPE_CHECKING:
    from hookline.compat.keras.hook import KerasHook

GROUP = "state_dict"  # under which an HDF5 file has the weights, by their names


class Model(Facade):
    """What of a Keras model the run can answer; requests become requests of ours: stop and save."""

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
            self._hook.runner.request_stop(f"{self._hook.name} asked to stop")

    @property
    def metrics(self) -> list[Any]:
        """By which a callback tells whether more of a metric is better."""
        named = [_Named(name, self._hook) for name in self._hook.runner.metric_objects]
        return [MetricsList(named)] if named else []

    def get_weights(self) -> list[Any]:
        return [value.detach().cpu().numpy().copy() for value in self._hook.runner.model.state_dict().values()]

    def set_weights(self, weights: list[Any]) -> None:
        with torch.no_grad():
            for target, value in zip(self._hook.runner.model.state_dict().values(), weights, strict=True):
                target.copy_(torch.as_tensor(value))

    def save_weights(self, filepath: Any, overwrite: bool = True) -> None:
        """An HDF5 file with the weights by their names."""
        self._hook.files.save(filepath, lambda checkpoint: checkpoint["state_dict"], _write_hdf5)

    def load_weights(self, filepath: Any, **options: Any) -> None:
        import h5py

        with h5py.File(filepath) as file:
            weights = {name: torch.as_tensor(value[()]) for name, value in file[GROUP].items()}
        self._hook.runner.model.load_state_dict(weights)

    def save(self, filepath: Any, overwrite: bool = True, **options: Any) -> None:
        """A checkpoint of ours under the name that was asked for; a torch model cannot be saved as a Keras one."""
        self._hook.files.save(filepath, lambda checkpoint: checkpoint)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_initial_epoch":
            raise HooklineError(f"{self._hook.name} wants to move the run to epoch {value}: a run here resumes with resume='auto'")
        super().__setattr__(name, value)


class Optimizer(Facade):
    stands_for = "model.optimizer"
    built = True

    @property
    def _optimizer(self) -> torch.optim.Optimizer:
        optimizer = self._hook.runner.optimizer
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise HooklineError(f"{self._hook.name} works on one optimizer, the run has {'none' if optimizer is None else 'several'}")
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


class _Named(Facade):
    """A metric's name and direction."""

    stands_for = "metric"

    def __init__(self, name: str, hook: KerasHook) -> None:
        super().__init__(hook)
        self.name = name
        direction = better_when(name)
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
