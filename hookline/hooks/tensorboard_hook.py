"""Write event files for TensorBoard."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hookline.batches import unpack
from hookline.engine import HOOKS, BaseRunner, state
from hookline.errors import HooklineError, require_at_least
from hookline.events.image_grid import image_grid
from hookline.events.tensorboard import TensorBoardWriter
from hookline.hooks.bases.tracker import TrackerHook


@HOOKS.register("TensorboardLoggerHook")
@HOOKS.register()
@dataclass
class TensorBoardHook(TrackerHook):
    """Write event files for TensorBoard.

    Figures, histograms and text that other hooks record are always written.

    Args:
        log_dir: Directory of the event files. None uses `tensorboard` in the work directory.
        interval: Number of iterations between two reports of scalars.
        log_graph: Write the graph of the model.
        log_images: Write grids of training images. A green frame marks a correct prediction.
        image_interval: Number of iterations between two grids.
        log_model: Write the paths of the last and the best checkpoints.

    Attributes:
        run_id: ID of the run, under which a resumed run continues.

    Example:
        ```yaml
        hooks:
          - {type: TensorBoardHook, interval: 50, log_images: true, image_interval: 1000}
        ```
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
        require_at_least(self, 1, "image_interval")
        self._graph_due = self.log_graph
        if not self.log_graph:
            self.disable_sites("before_train_iter")
        if not self.log_images:
            self.disable_sites("after_forward")

    def open_writer(self, runner: BaseRunner) -> TensorBoardWriter:
        self._writer = TensorBoardWriter(
            Path(self.log_dir) if self.log_dir else runner.work_dir / "tensorboard"
        )
        return self._writer

    def before_train_iter(self, runner: BaseRunner) -> None:
        if self._graph_due:
            self._graph_due = False
            self._write_graph(runner)

    def after_forward(self, runner: BaseRunner) -> None:
        if self.every_n_iters(runner, self.image_interval):
            picture = image_grid(
                _inputs(runner.batch),
                runner.outputs.get("predictions"),
                runner.outputs.get("targets"),
            )
            if picture is not None:
                runner.events.put_image("train/inputs", picture)

    def _write_graph(self, runner: BaseRunner) -> None:
        try:
            # Tracing runs the model, so trace a copy.
            model = copy.deepcopy(runner.model).eval()
            with warnings.catch_warnings(), torch.random.fork_rng(), torch.no_grad():
                warnings.simplefilter("ignore")
                self._writer.write_graph(model, _inputs(runner.batch))
        except Exception as error:  # Many models cannot be traced.
            runner.logger.warning(
                "%s: the model's graph cannot be written: %s",
                self.name,
                str(error).partition("\n")[0],
            )


def _inputs(batch: Any) -> Any:
    if type(batch) in (list, tuple) and len(batch) == 2:
        return batch[0]
    try:
        return unpack(batch)[0]
    except HooklineError:
        return batch
