"""The visualizer, which passes values to its backends and draws on images."""

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
    """A painter on the image of `set_image`, and the way to all backends.

    Args:
        name: The name of the visualizer.
        image: The first image to draw on.
        vis_backends: One backend or several, as objects or configs.
        save_dir: The parent of the directory for files; without it, backends that write files are
            left out.
    """

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
        if isinstance(vis_backends, (dict, BaseVisBackend)):
            vis_backends = [vis_backends]
        directory = None if save_dir is None else osp.join(save_dir, "vis_data")
        self._vis_backends: dict[str, Any] = {}
        for backend in vis_backends or ():
            self._add_backend(backend, directory)
        if image is not None:
            self.set_image(image)

    def _add_backend(self, backend: Any, directory: str | None) -> None:
        label: Any = type(backend).__name__
        options: dict[str, Any] = {}
        if isinstance(backend, dict):
            options = {"save_dir": directory, **backend}
            label = options.pop("name", None) or options["type"]
        if isinstance(label, type):
            label = label.__name__
        if label in self._vis_backends:
            raise RuntimeError(f"two backends are called {label}; give them names")
        if not options:
            self._vis_backends[label] = backend
        elif options["save_dir"] is not None:
            self._vis_backends[label] = VISBACKENDS.build(options)

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

    def add_scalars(
        self,
        scalar_dict: dict[str, Any],
        step: int = 0,
        file_path: str | None = None,
        **kwargs: Any,
    ) -> None:
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
        """Do nothing. Subclasses draw a sample with its annotations and predictions."""

    def close(self) -> None:
        for backend in self._vis_backends.values():
            backend.close()

    @classmethod
    def get_instance(cls, name: str, **kwargs: Any) -> Any:
        """Return the visualizer with a name; the base class has it as its current one too."""
        instance = super().get_instance(name, **kwargs)
        Visualizer._instance_dict[name] = instance
        return instance
