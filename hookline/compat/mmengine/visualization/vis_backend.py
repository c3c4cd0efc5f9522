"""Backends of the visualizer: files, TensorBoard, and the trackers of Hookline's writers."""

from __future__ import annotations

import json
import os.path as osp
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from hookline.compat.mmengine.registry import VISBACKENDS
from hookline.events import Record
from hookline.events.writer import WRITERS, Writer
from hookline.secrets import mask_secrets


class BaseVisBackend:
    """The base class of backends, whose methods do nothing."""

    def __init__(self, save_dir: str = "") -> None:
        self._save_dir = save_dir

    @property
    def experiment(self) -> Any:
        """The object that the backend writes to."""
        return self

    def add_config(self, config: Any, **kwargs: Any) -> None: ...
    def add_graph(self, model: torch.nn.Module, data_batch: Any, **kwargs: Any) -> None: ...
    def add_image(self, name: str, image: Any, step: int = 0, **kwargs: Any) -> None: ...
    def add_scalar(self, name: str, value: Any, step: int = 0, **kwargs: Any) -> None: ...

    def add_scalars(
        self,
        scalar_dict: dict[str, Any],
        step: int = 0,
        file_path: str | None = None,
        **kwargs: Any,
    ) -> None:
        for name, value in scalar_dict.items():
            if name != "step":
                self.add_scalar(name, value, scalar_dict.get("step", step), **kwargs)

    def close(self) -> None: ...


@VISBACKENDS.register_module()
class LocalVisBackend(BaseVisBackend):
    """A backend that writes JSON lines, PNG files and the config to the save directory."""

    def __init__(
        self,
        save_dir: str,
        img_save_dir: str = "vis_image",
        config_save_file: str = "config.py",
        scalar_save_file: str = "scalars.json",
    ) -> None:
        super().__init__(save_dir)
        if not config_save_file.endswith((".py", ".json", ".yaml", ".yml")):
            raise ValueError("config_save_file must be a .py, .json or .yaml file")
        if not scalar_save_file.endswith(".json"):
            raise ValueError("scalar_save_file must be a .json file")
        self._img_save_dir = osp.join(save_dir, img_save_dir)
        self._config_save_file = osp.join(save_dir, config_save_file)
        self._scalar_save_file = osp.join(save_dir, scalar_save_file)

    def add_config(self, config: Any, **kwargs: Any) -> None:
        Path(self._save_dir).mkdir(parents=True, exist_ok=True)
        type(config)(mask_secrets(config.to_dict())).dump(self._config_save_file)

    def add_image(self, name: str, image: Any, step: int = 0, **kwargs: Any) -> None:
        from PIL import Image

        path = Path(self._img_save_dir, f"{name}_{step}.png")
        if not path.resolve().is_relative_to(Path(self._img_save_dir).resolve()):
            raise ValueError(f"the image {name!r} would lie outside {self._img_save_dir}")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(image, dtype=np.uint8)).save(path)

    def add_scalar(self, name: str, value: Any, step: int = 0, **kwargs: Any) -> None:
        self._append({name: value, "step": step}, self._scalar_save_file)

    def add_scalars(
        self,
        scalar_dict: dict[str, Any],
        step: int = 0,
        file_path: str | None = None,
        **kwargs: Any,
    ) -> None:
        row = dict(scalar_dict)
        row.setdefault("step", step)
        if file_path is not None:
            if osp.basename(file_path) == osp.basename(self._scalar_save_file):
                raise AssertionError(
                    "`file_path` and `scalar_save_file` have the same name, please set `file_path` "
                    "to another value"
                )
            self._append(row, osp.join(self._save_dir, file_path))
        self._append(row, self._scalar_save_file)

    def _append(self, row: dict[str, Any], path: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        numbers = {}
        for key, value in row.items():
            numbers[key] = value.item() if hasattr(value, "item") else value
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(numbers) + "\n")


@VISBACKENDS.register_module()
class TensorboardVisBackend(BaseVisBackend):
    """A backend that writes event files for TensorBoard, with MMEngine's tags."""

    def __init__(self, save_dir: str) -> None:
        super().__init__(save_dir)
        self._writer: Any = None

    @property
    def experiment(self) -> Any:
        if self._writer is None:
            self._writer = WRITERS.build({"type": "tensorboard", "log_dir": self._save_dir})
        return self._writer.board

    def add_config(self, config: Any, **kwargs: Any) -> None:
        masked = type(config)(mask_secrets(config.to_dict()))
        self.experiment.add_text("config", masked.pretty_text)

    def add_image(self, name: str, image: Any, step: int = 0, **kwargs: Any) -> None:
        self.experiment.add_image(name, image, step, dataformats="HWC")

    def add_scalar(self, name: str, value: Any, step: int = 0, **kwargs: Any) -> None:
        if isinstance(value, (int, float, torch.Tensor, np.ndarray, np.number)):
            self.experiment.add_scalar(name, value, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class WriterBackend(BaseVisBackend):
    """The base class of backends that use one of Hookline's writers, opened at the first write."""

    writer_type: ClassVar[str] = ""

    def __init__(self, save_dir: str, **kwargs: Any) -> None:
        super().__init__(save_dir)
        self._options = kwargs
        self._writer: Writer | None = None

    def options(self) -> dict[str, Any]:
        """Return the arguments of the writer."""
        return {}

    @property
    def experiment(self) -> Any:
        if self._writer is None:
            self._writer = WRITERS.build({"type": self.writer_type, **self.options()})
        return self._writer

    def add_config(self, config: Any, **kwargs: Any) -> None:
        self.experiment.write_config(mask_secrets(config.to_dict()))

    def add_image(self, name: str, image: Any, step: int = 0, **kwargs: Any) -> None:
        self.experiment.write(Record("image", name, image, step, 0, time.time()))

    def add_scalar(self, name: str, value: Any, step: int = 0, **kwargs: Any) -> None:
        self.add_scalars({name: value}, step)

    def add_scalars(
        self,
        scalar_dict: Mapping[str, Any],
        step: int = 0,
        file_path: str | None = None,
        **kwargs: Any,
    ) -> None:
        numbers = {}
        for key, value in scalar_dict.items():
            if key not in ("step", "epoch", "iter"):
                numbers[key] = float(value)
        self.experiment.write_scalars(
            "train",
            numbers,
            iter=scalar_dict.get("step", step),
            epoch=int(scalar_dict.get("epoch", 0)),
        )

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


@VISBACKENDS.register_module()
class WandbVisBackend(WriterBackend):
    """A backend for Weights & Biases; `init_kwargs` are passed to `wandb.init`."""

    writer_type = "wandb"

    def options(self) -> dict[str, Any]:
        return {"dir": self._save_dir, "init_kwargs": self._options.get("init_kwargs")}


@VISBACKENDS.register_module()
class MLflowVisBackend(WriterBackend):
    """A backend for MLflow with `exp_name`, `run_name`, `tags` and `tracking_uri`."""

    writer_type = "mlflow"

    def options(self) -> dict[str, Any]:
        names = {
            "exp_name": "experiment",
            "run_name": "name",
            "tags": "tags",
            "tracking_uri": "tracking_uri",
        }
        options = {}
        for name, writer_name in names.items():
            if self._options.get(name) is not None:
                options[writer_name] = self._options[name]
        return options


@VISBACKENDS.register_module()
class ClearMLVisBackend(WriterBackend):
    """A backend for ClearML; `init_kwargs` may hold `project_name` and `task_name`."""

    writer_type = "clearml"

    def options(self) -> dict[str, Any]:
        given = self._options.get("init_kwargs") or {}
        options = {}
        if "project_name" in given:
            options["project"] = given["project_name"]
        if "task_name" in given:
            options["name"] = given["task_name"]
        return options


@VISBACKENDS.register_module()
class DVCLiveVisBackend(WriterBackend):
    """A backend that writes DVCLive's files to the save directory."""

    writer_type = "dvclive"

    def options(self) -> dict[str, Any]:
        return {"dir": osp.join(self._save_dir, "dvclive")}


@VISBACKENDS.register_module()
class NeptuneVisBackend(WriterBackend):
    """A backend for offline records of Neptune, whose service has ended."""

    writer_type = "neptune"

    def options(self) -> dict[str, Any]:
        return {"dir": osp.join(self._save_dir, "neptune")}
