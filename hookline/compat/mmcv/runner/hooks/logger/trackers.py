"""Loggers that hand the scalars to a tracker, by Hookline's own writers: what cannot be delivered waits on disk."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from hookline.compat.mmcv.runner.hooks.hook import HOOKS
from hookline.compat.mmcv.runner.hooks.logger.base import LoggerHook
from hookline.events.backlog import Backlog
from hookline.events.delivery import Delivery
from hookline.events.writer import Writer, check_installed
from hookline.secrets import mask_secrets


class TrackerLoggerHook(LoggerHook):
    """A logger whose `open_writer(runner)` opens the tracker."""

    module: ClassVar[str]
    extra: ClassVar[str]
    slow: ClassVar[bool] = False
    ranks = "main"
    run_id = ""
    _delivery: Delivery | None = None

    def open_writer(self, runner: Any) -> Writer:
        raise NotImplementedError

    def before_run(self, runner: Any) -> None:
        super().before_run(runner)
        check_installed(self.module, self.extra)  # told now, not when the first batch is through
        if runner.work_dir is None:
            raise ValueError(f"{type(self).__name__}: the runner has no work_dir to keep records in")

    def before_train_epoch(self, runner: Any) -> None:
        super().before_train_epoch(runner)
        self._open(runner)

    def log(self, runner: Any) -> None:
        tags = {name: float(value) for name, value in self.get_loggable_tags(runner).items() if self.is_scalar(value)}
        self._open(runner).write_scalars("train", tags, iter=self.get_iter(runner), epoch=self.get_epoch(runner))

    def cleanup(self, runner: Any) -> None:
        if self._delivery is not None:
            delivery, self._delivery = self._delivery, None
            delivery.failed = runner.exception is not None
            delivery.close()

    def state_dict(self) -> dict[str, Any]:
        return {"run_id": self.run_id}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.run_id = state["run_id"]

    def _open(self, runner: Any) -> Delivery:
        """The way to the tracker; opened when the run knows whether it is a new one."""
        if self._delivery is None:
            fresh = not self.run_id
            self.run_id = self.run_id or uuid.uuid4().hex
            backlog = Backlog(Path(runner.work_dir) / f"{self.name}.undelivered.jsonl", self.run_id)
            self._delivery = Delivery(self.name, lambda: self.open_writer(runner), backlog, slow=self.slow)
            self._delivery.start(fresh=fresh, iteration=runner.iter)
            if runner.meta:
                self._delivery.write_config(mask_secrets({key: value for key, value in runner.meta.items() if key != "hook_msgs"}))
        return self._delivery


@HOOKS.register_module()
class TensorboardLoggerHook(TrackerLoggerHook):
    """Write event files for TensorBoard to `log_dir`, `tf_logs` in the work directory if none is given."""

    module, extra = "tensorboard", "tensorboard"

    def __init__(self, log_dir: str | None = None, interval: int = 10, ignore_last: bool = True, reset_flag: bool = False,
                 by_epoch: bool = True) -> None:  # fmt: skip
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        self.log_dir = log_dir

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.tensorboard import TensorBoardWriter

        return TensorBoardWriter(Path(self.log_dir) if self.log_dir else Path(runner.work_dir) / "tf_logs")


@HOOKS.register_module()
class NeptuneLoggerHook(TrackerLoggerHook):
    """Record the run offline in `neptune` in the work directory, for Neptune's service has ended; `init_kwargs` go to `init_run`."""

    module, extra = "neptune", "neptune"

    def __init__(self, init_kwargs: dict[str, Any] | None = None, interval: int = 10, ignore_last: bool = True, reset_flag: bool = True,
                 with_step: bool = True, by_epoch: bool = True) -> None:  # fmt: skip
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        self.init_kwargs, self.with_step = init_kwargs, with_step

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.neptune import NeptuneWriter

        return NeptuneWriter(Path(runner.work_dir) / "neptune", self.run_id, self.init_kwargs)


@HOOKS.register_module()
class DvcliveLoggerHook(TrackerLoggerHook):
    """Write DVCLive's files to `dvclive` in the work directory, or to the `dir` among the further arguments."""

    module, extra = "dvclive", "dvclive"

    def __init__(self, model_file: str | None = None, interval: int = 10, ignore_last: bool = True, reset_flag: bool = False,
                 by_epoch: bool = True, dvclive: Any = None, **kwargs: Any) -> None:  # fmt: skip
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        if model_file is not None or dvclive is not None or set(kwargs) - {"dir", "save_dvc_exp", "report"}:
            raise ValueError("DvcliveLoggerHook covers dir, save_dvc_exp and report; checkpoints are CheckpointHook's")
        self.options = kwargs

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.dvclive import DVCLiveWriter

        folder = Path(self.options.get("dir") or Path(runner.work_dir) / "dvclive")
        return DVCLiveWriter(folder, runner.iter > 0, self.options.get("save_dvc_exp", False), self.options.get("report"))


@HOOKS.register_module()
class WandbLoggerHook(TrackerLoggerHook):
    """Log to Weights & Biases, offline where there is no account; `init_kwargs` go to `wandb.init`."""

    module, extra = "wandb", "wandb"

    def __init__(self, init_kwargs: dict[str, Any] | None = None, interval: int = 10, ignore_last: bool = True, reset_flag: bool = False,
                 commit: bool = True, by_epoch: bool = True, with_step: bool = True) -> None:  # fmt: skip
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        self.init_kwargs, self.commit, self.with_step = dict(init_kwargs or {}), commit, with_step

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.wandb import WandbWriter

        rest = {key: value for key, value in self.init_kwargs.items() if key not in ("project", "name")}
        names = self.init_kwargs.get("project"), self.init_kwargs.get("name")
        return WandbWriter(*names, self.run_id, Path(runner.work_dir), False, rest)


@HOOKS.register_module()
class MlflowLoggerHook(TrackerLoggerHook):
    """Log to MLflow: at `MLFLOW_TRACKING_URI`, or in a database in the work directory."""

    module, extra, slow = "mlflow", "mlflow", True

    def __init__(self, exp_name: str | None = None, tags: dict[str, Any] | None = None, params: dict[str, Any] | None = None,
                 log_model: bool = False, interval: int = 10, ignore_last: bool = True, reset_flag: bool = False,
                 by_epoch: bool = True) -> None:  # fmt: skip
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        if log_model:
            raise ValueError("MlflowLoggerHook: log_model is not covered; hookline.hooks.MLflowHook uploads checkpoints")
        self.exp_name, self.tags, self.params = exp_name, tags, params

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.mlflow import MLflowWriter

        work_dir = Path(runner.work_dir)
        uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{(work_dir / 'mlflow.db').absolute()}"
        writer = MLflowWriter(uri, self.exp_name or "mmcv", None, self.run_id, self.tags, work_dir / "mlflow")
        if self.params:
            writer.write_config(mask_secrets(self.params))
        return writer


@HOOKS.register_module()
class ClearMLLoggerHook(TrackerLoggerHook):
    """Log to a ClearML task; `init_kwargs` may have `project_name` and `task_name`."""

    module, extra = "clearml", "clearml"

    def __init__(self, init_kwargs: dict[str, Any] | None = None, interval: int = 10, ignore_last: bool = True, reset_flag: bool = False,
                 by_epoch: bool = True) -> None:  # fmt: skip
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        self.init_kwargs = dict(init_kwargs or {})

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.clearml import ClearMLWriter

        title = self.init_kwargs.get("task_name") or Path(runner.work_dir).name
        return ClearMLWriter(self.init_kwargs.get("project_name", "mmcv"), title, None, False)
