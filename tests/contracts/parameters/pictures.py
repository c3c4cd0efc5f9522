"""Parameters of hooks that draw: observed are the pictures."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import ImageShow
from torch import nn

from hookline.hooks import EvalHook
from tests.contracts.parameters.rows import Below, Config, Observe, Row, rows
from tests.contracts.training import files_below, train
from tests.visual.picture_parts import Transformer, conv_model, images

IMAGES: dict[str, Any] = {"train_loader": images(2), "val_loader": None, "metrics": None}


def pictures(folder: Path) -> dict[str, str]:
    """Return a digest of each picture below a folder."""
    found = {}
    for name in files_below(folder, "*.png"):
        found[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    return found


def of_classifier(config: Config, folder: Path) -> dict[str, str]:
    """Return the pictures of four iterations of a small convolutional network."""
    train(folder, config, model=conv_model(), seed=0, **IMAGES)
    return pictures(folder.parent)


def of_transformer(config: Config, folder: Path) -> dict[str, str]:
    """Return the pictures of four iterations of a model with attention."""
    train(folder, config, model=Transformer(), seed=0, **IMAGES)
    return pictures(folder.parent)


def of_validation(config: Config, folder: Path) -> dict[str, str]:
    """Return the pictures of a run that validates after every iteration."""
    parts = {**IMAGES, "val_loader": images(1, seed=1)}
    train(folder, config, EvalHook(by_epoch=False), model=conv_model(), seed=0, **parts)
    return pictures(folder.parent)


def of_detector(config: Config, folder: Path) -> dict[str, str]:
    """Return the pictures of a model that predicts boxes."""
    parts = {**IMAGES, "train_loader": boxes(), "max_epochs": 1}
    train(folder, config, model=Detector(), **parts)
    return pictures(folder.parent)


def of_segmenter(config: Config, folder: Path) -> dict[str, str]:
    """Return the pictures of a model that predicts masks."""
    parts = {**IMAGES, "train_loader": masks(), "max_epochs": 1}
    train(folder, config, model=Segmenter(), **parts)
    return pictures(folder.parent)


class Detector(nn.Module):
    """A model that finds two boxes in each image, one of which it is not sure of."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.scale = nn.Parameter(torch.ones(1))

    def train_step(self, batch: Any) -> dict[str, Any]:
        inputs, targets = batch
        found = []
        for _ in inputs:
            places = torch.tensor([[2.0, 2.0, 20.0, 12.0], [12.0, 14.0, 16.0, 16.0]])
            scores = torch.tensor([0.9, 0.4])
            labels = torch.tensor([0, 1])
            found.append({"boxes": places, "labels": labels, "scores": scores})
        return {"loss": self.scale.sum(), "predictions": found, "targets": targets}


class Segmenter(nn.Module):
    """A model that divides each image into three stripes, and is less sure of the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def train_step(self, batch: Any) -> dict[str, Any]:
        inputs, targets = batch
        found = torch.zeros(len(inputs), 3, 32, 32)
        found[:, 0, :10] = 9.0
        found[:, 1, 10:20] = 9.0
        found[:, 2, 20:] = 1.0
        return {"loss": self.scale.sum(), "predictions": found, "targets": targets}


def boxes() -> list[Any]:
    inputs = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    place = torch.tensor([[3.0, 3.0, 18.0, 11.0]])
    return [(inputs, [{"boxes": place, "labels": torch.tensor([0])}] * 2)] * 2


def masks() -> list[Any]:
    inputs = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    targets = torch.zeros(2, 32, 32, dtype=torch.long)
    targets[:, 16:] = 1
    return [(inputs, targets)] * 2


def windows(observe: Observe) -> Observe:
    """Return an observation: how many windows the trainings of another one open."""

    def count(config: Config, folder: Path) -> int:
        opened: list[Any] = []

        def show(*picture: Any) -> bool:
            opened.append(picture)
            return True

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DISPLAY", ":0")
            patch.setattr(ImageShow, "show", show)
            observe(config, folder)
        return len(opened)

    return count


def results(observe: Observe) -> list[Row]:
    """Return the rows that all hooks share which draw what a model predicts."""
    table = rows(
        observe,
        {"interval": 2},
        interval=(2, 1),
        draw_gt=(True, False),
        draw_pred=(True, False),
        save=(True, False),
        out_dir=(None, Below("../elsewhere")),
        max_samples=(16, 1),
        score_thr=(0.3, 0.95),
        backend=("matplotlib", "pillow"),
        mean=(None, [0.2]),
        std=(None, [0.5]),
    )
    return table + rows(windows(observe), {"interval": 2}, show=(False, True))


EXPLAINED = {"interval": 2, "max_samples": 2}
EXPLANATION = rows(
    of_validation,
    EXPLAINED,
    interval=(2, 1),
    max_samples=(2, 1),
    mean=(None, [0.2]),
    std=(None, [0.5]),
)

ROWS: dict[str, list[Row]] = {
    "VisualizationHook": results(of_classifier),
    "DetVisualizationHook": [
        *results(of_detector),
        *rows(
            of_detector,
            {"interval": 2},
            class_names=(None, ["cat", "dog"]),
            palette=(None, ["red", "lime"]),
            bbox_color=(None, "blue"),
            text_color=(None, "blue"),
            thickness=(2, 1),
            box_format=("xyxy", "xywh"),
        ),
    ],
    "SegVisualizationHook": [
        *results(of_segmenter),
        *rows(
            of_segmenter,
            {"interval": 2},
            class_names=(None, ["sky", "road", "tree"]),
            palette=(None, ["red", "lime", "blue"]),
            opacity=(0.5, 0.8),
            show_edge=(True, False),
            background=(None, 1),
        ),
    ],
    "CAMHook": [*EXPLANATION, *rows(of_validation, EXPLAINED, layer=(None, "0"))],
    "SaliencyHook": [
        *EXPLANATION,
        *rows(
            of_validation,
            EXPLAINED,
            methods=(("saliency", "integrated_gradients"), ("saliency",)),
        ),
    ],
    "FeatureMapHook": rows(
        of_classifier,
        {"frequency": 2},
        frequency=(2, 1),
        max_features=(16, 2),
        sample_batch_idx=(0, 1),
        layers=(None, ["0"]),
        mean=(None, [0.2]),
        std=(None, [0.5]),
    ),
    "AttentionMapHook": rows(
        of_transformer,
        {"frequency": 2},
        frequency=(2, 1),
        layers=(None, ["fused"]),
        sample_batch_idx=(0, 1),
        max_heads=(8, 2),
        mean=(None, [0.2]),
        std=(None, [0.5]),
    ),
    "GradientFlowHook": rows(of_classifier, frequency=(100, 2)),
}
