"""Draw the results of a test."""

from __future__ import annotations

import os.path as osp
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class NaiveVisualizationHook(Hook):
    """Passes test images and results to the visualizer's `add_datasample`."""

    priority = "NORMAL"

    def __init__(self, interval: int = 1, draw_gt: bool = True, draw_pred: bool = True) -> None:
        self.draw_gt = draw_gt
        self.draw_pred = draw_pred
        self._interval = interval

    def before_train(self, runner: Any) -> None:
        runner.visualizer.add_graph(runner.model, None)

    def after_test_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        if not self.every_n_inner_iters(batch_idx, self._interval):
            return
        for data, output in zip(data_batch, outputs, strict=False):
            sample = data["data_sample"]
            image = _as_image(data["inputs"], (sample.ori_height, sample.ori_width))
            name = osp.basename(sample.img_path)
            runner.visualizer.add_datasample(
                name, image, sample, output, self.draw_gt, self.draw_pred
            )


def _as_image(tensor: torch.Tensor, size: tuple[int, int]) -> np.ndarray[Any, Any]:
    batch = tensor.detach().cpu().float().reshape(1, *tensor.shape[-3:])
    image = F.interpolate(batch, size=size, mode="bilinear")[0]
    return image.clamp(0, 255).byte().permute(1, 2, 0).numpy()
