"""Loggers that send scalars to a tracker, through Hookline's writers.

Scalars that cannot be delivered are kept on disk.
"""

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
    """The base class of these loggers; subclasses implement `open_writer`."""

    module: ClassVar[str]
    extra: ClassVar[str]
    slow: ClassVar[bool] = False
    ranks = "main"
    run_id = ""
    _delivery: Delivery | None = None

    def open_writer(self, runner: Any) -> Writer:
        """Return a writer for the tracker."""
        raise NotImplementedError

    def before_run(self, runner: Any) -> None:
        super().before_run(runner)
        check_installed(self.module, self.extra)  # fail before the first batch
        if runner.work_dir is None:
            raise ValueError(
                f"{type(self).__name__}: the runner has no work_dir to keep records in"
            )

    def before_train_epoch(self, runner: Any) -> None:
        super().before_train_epoch(runner)
        self._open(runner)

    def log(self, runner: Any) -> None:
        scalars = {}
        for name, value in self.get_loggable_tags(runner).items():
            if self.is_scalar(value):
                scalars[name] = float(value)
        self._open(runner).write_scalars(
            "train", scalars, iter=self.get_iter(runner), epoch=self.get_epoch(runner)
        )

    def cleanup(self, runner: Any) -> None:
        delivery = self._delivery
        if delivery is not None:
            self._delivery = None
            delivery.failed = runner.exception is not None
            delivery.close()

    def state_dict(self) -> dict[str, Any]:
        return {"run_id": self.run_id}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.run_id = state["run_id"]

    def _open(self, runner: Any) -> Delivery:
        """Return the connection to the tracker.

        The first call opens it, once the run is known to be a new or a resumed one.
        """
        if self._delivery is not None:
            return self._delivery
        fresh = not self.run_id
        self.run_id = self.run_id or uuid.uuid4().hex
        backlog = Backlog(Path(runner.work_dir) / f"{self.name}.undelivered.jsonl", self.run_id)
        delivery = Delivery(self.name, lambda: self.open_writer(runner), backlog, slow=self.slow)
        self._delivery = delivery
        delivery.start(fresh=fresh, iteration=runner.iter)
        if runner.meta:
            config = {key: value for key, value in runner.meta.items() if key != "hook_msgs"}
            delivery.write_config(mask_secrets(config))
        return delivery


@HOOKS.register_module()
class TensorboardLoggerHook(TrackerLoggerHook):
    """Writes event files for TensorBoard to `log_dir`, or to `tf_logs` in the work directory."""

    module = "tensorboard"
    extra = "tensorboard"

    def __init__(
        self,
        log_dir: str | None = None,
        interval: int = 10,
        ignore_last: bool = True,
        reset_flag: bool = False,
        by_epoch: bool = True,
    ) -> None:
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        self.log_dir = log_dir

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.tensorboard import TensorBoardWriter

        return TensorBoardWriter(Path(self.log_dir or Path(runner.work_dir) / "tf_logs"))


@HOOKS.register_module()
class NeptuneLoggerHook(TrackerLoggerHook):
    """Records the run offline in `neptune` in the work directory: Neptune's service has ended.

    Args:
        init_kwargs: Arguments of `neptune.init_run`.
    """

    module = "neptune"
    extra = "neptune"

    def __init__(
        self,
        init_kwargs: dict[str, Any] | None = None,
        interval: int = 10,
        ignore_last: bool = True,
        reset_flag: bool = True,
        with_step: bool = True,
        by_epoch: bool = True,
    ) -> None:
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        self.init_kwargs = init_kwargs
        self.with_step = with_step

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.neptune import NeptuneWriter

        return NeptuneWriter(Path(runner.work_dir) / "neptune", self.run_id, self.init_kwargs)


@HOOKS.register_module()
class DvcliveLoggerHook(TrackerLoggerHook):
    """Writes DVCLive's files to `dir`, by default `dvclive` in the work directory."""

    module = "dvclive"
    extra = "dvclive"

    def __init__(
        self,
        model_file: str | None = None,
        interval: int = 10,
        ignore_last: bool = True,
        reset_flag: bool = False,
        by_epoch: bool = True,
        dvclive: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        unknown = set(kwargs) - {"dir", "save_dvc_exp", "report"}
        if model_file is not None or dvclive is not None or unknown:
            raise ValueError(
                "DvcliveLoggerHook covers dir, save_dvc_exp and report; "
                "for checkpoints use CheckpointHook"
            )
        self.options = kwargs

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.dvclive import DVCLiveWriter

        folder = Path(self.options.get("dir") or Path(runner.work_dir) / "dvclive")
        return DVCLiveWriter(
            folder,
            runner.iter > 0,
            self.options.get("save_dvc_exp", False),
            self.options.get("report"),
        )


@HOOKS.register_module()
class WandbLoggerHook(TrackerLoggerHook):
    """Logs to Weights & Biases, offline if there is no account.

    Args:
        init_kwargs: Arguments of `wandb.init`.
    """

    module = "wandb"
    extra = "wandb"

    def __init__(
        self,
        init_kwargs: dict[str, Any] | None = None,
        interval: int = 10,
        ignore_last: bool = True,
        reset_flag: bool = False,
        commit: bool = True,
        by_epoch: bool = True,
        with_step: bool = True,
    ) -> None:
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        self.init_kwargs = dict(init_kwargs or {})
        self.commit = commit
        self.with_step = with_step

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.wandb import WandbWriter

        options = dict(self.init_kwargs)
        project = options.pop("project", None)
        name = options.pop("name", None)
        return WandbWriter(project, name, self.run_id, Path(runner.work_dir), False, options)


@HOOKS.register_module()
class MlflowLoggerHook(TrackerLoggerHook):
    """Logs to MLflow, at `MLFLOW_TRACKING_URI` or in a database in the work directory."""

    module = "mlflow"
    extra = "mlflow"
    slow = True

    def __init__(
        self,
        exp_name: str | None = None,
        tags: dict[str, Any] | None = None,
        params: dict[str, Any] | None = None,
        log_model: bool = False,
        interval: int = 10,
        ignore_last: bool = True,
        reset_flag: bool = False,
        by_epoch: bool = True,
    ) -> None:
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        if log_model:
            raise ValueError(
                "MlflowLoggerHook: log_model is not covered; hookline.hooks.MLflowHook uploads "
                "checkpoints"
            )
        self.exp_name = exp_name
        self.tags = tags
        self.params = params

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.mlflow import MLflowWriter

        work_dir = Path(runner.work_dir)
        uri = os.environ.get("MLFLOW_TRACKING_URI")
        if not uri:
            uri = f"sqlite:///{(work_dir / 'mlflow.db').absolute()}"
        writer = MLflowWriter(
            uri, self.exp_name or "mmcv", None, self.run_id, self.tags, work_dir / "mlflow"
        )
        if self.params:
            writer.write_config(mask_secrets(self.params))
        return writer


@HOOKS.register_module()
class ClearMLLoggerHook(TrackerLoggerHook):
    """Logs to a ClearML task.

    Args:
        init_kwargs: `project_name` and `task_name` of the task.
    """

    module = "clearml"
    extra = "clearml"

    def __init__(
        self,
        init_kwargs: dict[str, Any] | None = None,
        interval: int = 10,
        ignore_last: bool = True,
        reset_flag: bool = False,
        by_epoch: bool = True,
    ) -> None:
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        self.init_kwargs = dict(init_kwargs or {})

    def open_writer(self, runner: Any) -> Writer:
        from hookline.events.clearml import ClearMLWriter

        title = self.init_kwargs.get("task_name") or Path(runner.work_dir).name
        return ClearMLWriter(self.init_kwargs.get("project_name", "mmcv"), title, None, False)
