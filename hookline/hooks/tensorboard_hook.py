"""TensorBoard: scalars, pictures, histograms, text and the graph of the model."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hookline.engine import HOOKS, BaseRunner, state
from hookline.engine.step import unpack
from hookline.errors import HooklineError
from hookline.events.image_grid import image_grid
from hookline.events.tensorboard import TensorBoardWriter
from hookline.tracking import TrackerHook


@HOOKS.register("TensorboardLoggerHook")
@HOOKS.register()
@dataclass
class TensorBoardHook(TrackerHook):
    """Write event files for TensorBoard to `log_dir` (`tensorboard` in the work directory if none is given).

    Scalars come every `interval` iterations. `log_images` adds every `image_interval` iterations a grid of training images,
    framed green where the class was predicted; `log_graph` the model's graph; `log_model` where checkpoints lie. What other
    hooks put into the events (figures, histograms, text) is always written.
    """

    log_dir: str | None = None
    interval: int = 50
    log_graph: bool = False
    log_images: bool = False
    image_interval: int = 1000
    log_model: bool = False
    run_id: str = state("")

    module = "tensorboard"
    extra = "tensorboard"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image_interval < 1:
            raise ValueError(f"TensorBoardHook: image_interval must be at least 1, got {self.image_interval}")
        self._graph_due = self.log_graph
        self.leave_alone(*([] if self.log_graph else ["before_train_iter"]), *([] if self.log_images else ["after_forward"]))

    def open_writer(self, runner: BaseRunner) -> TensorBoardWriter:
        self._writer = TensorBoardWriter(Path(self.log_dir) if self.log_dir else runner.work_dir / "tensorboard")
        return self._writer

    def before_train_iter(self, runner: BaseRunner) -> None:
        if self._graph_due:
            self._graph_due = False
            self._write_graph(runner)

    def after_forward(self, runner: BaseRunner) -> None:
        if self.every_n_iters(runner, self.image_interval):
            picture = image_grid(_inputs(runner.batch), runner.outputs.get("predictions"), runner.outputs.get("targets"))
            if picture is not None:
                runner.events.put_image("train/inputs", picture)

    def _write_graph(self, runner: BaseRunner) -> None:
        try:
            model = copy.deepcopy(runner.model).eval()  # a trace runs the model, and the run's own must not notice
            with warnings.catch_warnings(), torch.random.fork_rng(), torch.no_grad():
                warnings.simplefilter("ignore")
                self._writer.write_graph(model, _inputs(runner.batch))
        except Exception as error:  # many models cannot be traced
            runner.logger.warning("%s: the model's graph cannot be written: %s", self.name, str(error).partition("\n")[0])


def _inputs(batch: Any) -> Any:
    try:
        return (batch if type(batch) in (list, tuple) and len(batch) == 2 else unpack(batch))[0]
    except HooklineError:
        return batch
