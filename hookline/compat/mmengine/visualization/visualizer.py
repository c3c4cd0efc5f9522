"""The visualizer: hands what is recorded to its backends, and draws on images."""

from __future__ import annotations

import os.path as osp
from typing import Any

import numpy as np
import torch

from hookline.compat.mmengine.registry import VISBACKENDS, VISUALIZERS
from hookline.compat.mmengine.utils import ManagerMixin
from hookline.compat.mmengine.visualization.drawing import Drawing
from hookline.compat.mmengine.visualization.vis_backend import BaseVisBackend


@VISUALIZERS.register_module()
class Visualizer(Drawing, ManagerMixin):
    """`add_scalar`, `add_image` and the like go to every backend; `draw_…` change the image set with `set_image`."""

    def __init__(
        self,
        name: str = "visualizer",
        image: Any = None,
        vis_backends: Any = None,
        save_dir: str | None = None,
        fig_save_cfg: Any = None,
        fig_show_cfg: Any = None,
    ) -> None:
        ManagerMixin.__init__(self, name)
        self._dataset_meta: dict[str, Any] | None = None
        given = [vis_backends] if isinstance(vis_backends, (dict, BaseVisBackend)) else list(vis_backends or ())
        folder = None if save_dir is None else osp.join(save_dir, "vis_data")
        self._vis_backends: dict[str, Any] = {}
        for each in given:
            options = dict(each) if isinstance(each, dict) else {}
            label = options.pop("name", None) or (options["type"] if options else type(each).__name__)
            label = label if isinstance(label, str) else label.__name__
            if label in self._vis_backends:
                raise RuntimeError(f"two backends are called {label}; give them names")
            if options and options.get("save_dir", folder) is None:
                continue  # nowhere to write to
            self._vis_backends[label] = VISBACKENDS.build({"save_dir": folder, **options}) if options else each
        if image is not None:
            self.set_image(image)

    @property
    def dataset_meta(self) -> dict[str, Any] | None:
        return self._dataset_meta

    @dataset_meta.setter
    def dataset_meta(self, dataset_meta: dict[str, Any] | None) -> None:
        self._dataset_meta = dataset_meta

    def get_backend(self, name: str) -> Any:
        return self._vis_backends.get(name)

    def add_config(self, config: Any, **kwargs: Any) -> None:
        for backend in self._vis_backends.values():
            backend.add_config(config, **kwargs)

    def add_graph(self, model: torch.nn.Module, data_batch: Any, **kwargs: Any) -> None:
        for backend in self._vis_backends.values():
            backend.add_graph(model, data_batch, **kwargs)

    def add_image(self, name: str, image: np.ndarray[Any, Any], step: int = 0) -> None:
        for backend in self._vis_backends.values():
            backend.add_image(name, image, step)

    def add_scalar(self, name: str, value: Any, step: int = 0, **kwargs: Any) -> None:
        for backend in self._vis_backends.values():
            backend.add_scalar(name, value, step, **kwargs)

    def add_scalars(self, scalar_dict: dict[str, Any], step: int = 0, file_path: str | None = None, **kwargs: Any) -> None:
        for backend in self._vis_backends.values():
            backend.add_scalars(scalar_dict, step, file_path, **kwargs)

    def add_datasample(
        self,
        name: str,
        image: np.ndarray[Any, Any],
        data_sample: Any = None,
        draw_gt: bool = True,
        draw_pred: bool = True,
        show: bool = False,
        wait_time: int = 0,
        step: int = 0,
    ) -> None:
        """For a visualizer of your own: draw a sample with its annotations and predictions."""

    def close(self) -> None:
        for backend in self._vis_backends.values():
            backend.close()

    @classmethod
    def get_instance(cls, name: str, **kwargs: Any) -> Any:
        """The visualizer of a name; it is the current one of the base class too."""
        instance = super().get_instance(name, **kwargs)
        Visualizer._instance_dict[name] = instance
        return instance
