"""Rows about the hooks that draw."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from hookline import Runner
from hookline.engine import BaseRunner
from hookline.hooks import DetVisualizationHook, SegVisualizationHook, VisualizationHook
from hookline.hooks.bases.result import ResultBatch
from tests.documents.runs import bare, full, messages, new_folder
from tests.documents.table import REQUIREMENTS, Section
from tests.visual.picture_parts import Records, Transformer, images

pictures = Section(REQUIREMENTS, "visualization hook")
pictures.defaults(
    VisualizationHook,
    {
        "interval": 500,
        "draw_gt": True,
        "draw_pred": True,
        "show": False,
        "save": True,
        "out_dir": None,
        "max_samples": 16,
        "score_thr": 0.3,
        "backend": "matplotlib",
    },
)


@cache
def drawn(**options: Any) -> tuple[Runner, dict[str, np.ndarray]]:
    """Return a run of two epochs of six iterations, and its pictures by path."""
    runner = full(VisualizationHook(**{"interval": 4, "backend": "pillow", **options}))
    folder = runner.work_dir / "visualizations"
    return runner, read(folder)


def read(folder: Path) -> dict[str, np.ndarray]:
    return {
        path.relative_to(folder).as_posix(): np.asarray(Image.open(path).convert("RGB"))
        for path in sorted(folder.rglob("*.png"))
    }


TRAIN = [f"VisualizationHook/train/step_{step:06d}.png" for step in (4, 8, 12)]
VAL = [f"VisualizationHook/val/step_{step:06d}.png" for step in (6, 12)]


def differs(**options: Any) -> bool:
    """Return whether an option changes the picture."""
    usual, changed = drawn()[1][TRAIN[0]], drawn(**options)[1][TRAIN[0]]
    return usual.shape != changed.shape or not np.array_equal(usual, changed)


pictures.add(
    "parameter",
    "`interval` counts the iterations between two pictures",
    lambda: [name for name in drawn()[1] if "/train/" in name] == TRAIN,
)
pictures.add("parameter", "`draw_gt` of false leaves the truth out", lambda: differs(draw_gt=False))
pictures.add(
    "parameter", "`draw_pred` of false leaves the predictions out", lambda: differs(draw_pred=False)
)


@pictures.row(
    "parameter", "`show` opens a window, and without a display the log says that it cannot"
)
def _() -> None:
    with messages() as found:
        full(VisualizationHook(show=True, interval=4, backend="pillow"), max_epochs=1)
    assert any("display" in line for line in found)


pictures.add(
    "parameter", "`save` of false writes no files", lambda: list(drawn(save=False)[1]) == []
)


@pictures.row("parameter", "`out_dir` is the directory of the files")
def _() -> None:
    folder = new_folder() / "pictures"
    full(VisualizationHook(interval=4, out_dir=str(folder), backend="pillow"), max_epochs=1)
    assert "train/step_000004.png" in read(folder)


@pictures.row("file", "without `out_dir` the files are in `visualizations/` of the work directory")
def _() -> None:
    assert set(drawn()[1]) == {*TRAIN, *VAL}


@pictures.row("parameter", "`max_samples` limits the number of samples in a picture")
def _() -> None:
    assert drawn(max_samples=1)[1][TRAIN[0]].shape[1] < drawn()[1][TRAIN[0]].shape[1]


pictures.add(
    "parameter",
    "`score_thr` marks predictions with a lower score",
    lambda: differs(score_thr=1.0),
)
pictures.add(
    "parameter", "`backend` chooses the library that draws", lambda: differs(backend="matplotlib")
)
pictures.add(
    "moment",
    "`after_train_iter` draws training batches",
    lambda: TRAIN[0] in drawn()[1] and drawn()[1][TRAIN[0]].std() > 0,
)
pictures.add(
    "moment",
    "`after_val_iter` draws the first validation batch",
    lambda: VAL[0] in drawn()[1] and drawn()[1][VAL[0]].std() > 0,
)

boxes = Section(REQUIREMENTS, "detection pictures")


class Samples:
    """Two images with a box and a mask each."""

    targets = [
        {"boxes": torch.tensor([[4.0, 4.0, 24.0, 24.0]]), "labels": torch.tensor([index])}
        for index in (0, 1)
    ]
    predictions = [{**target, "scores": torch.tensor([0.6])} for target in targets]


class Masks:
    """Two images with a mask each."""

    targets = np.zeros((2, 32, 32), dtype=np.int64)
    predictions = np.zeros((2, 3, 32, 32), dtype=np.float32)


Masks.targets[:, 8:20, 8:20] = 1
Masks.predictions[:, 2, 4:16, 4:16] = 5.0


def picture(hook: Any, samples: Any, names: tuple[str, ...] = ("cat", "dog", "cow")) -> np.ndarray:
    """Draw without a run."""
    from hookline.visual.backends import render

    gray = [np.full((32, 32, 3), 120, np.uint8)] * 2
    names = tuple(hook.class_names or names)
    return np.asarray(render(hook.draw(ResultBatch(gray, samples, names, "title")), "pillow"))


def changes(cls: Any, samples: Any, **options: Any) -> bool:
    usual, changed = picture(cls(), samples), picture(cls(**options), samples)
    return usual.shape != changed.shape or not np.array_equal(usual, changed)


def has_color(pixels: np.ndarray, color: tuple[int, int, int]) -> bool:
    return bool((pixels == color).all(-1).any())


boxes.add(
    "class",
    "DetVisualizationHook extends VisualizationHook",
    lambda: issubclass(DetVisualizationHook, VisualizationHook),
)
boxes.add(
    "parameter",
    "`class_names` are written beside the boxes",
    lambda: changes(DetVisualizationHook, Samples, class_names=["first", "second"]),
)
boxes.add(
    "parameter",
    "`palette` has the colors of the classes",
    lambda: has_color(
        picture(DetVisualizationHook(palette=["#ff0102", "#010203"]), Samples), (255, 1, 2)
    ),
)
boxes.add(
    "parameter",
    "`bbox_color` is the color of all boxes",
    lambda: has_color(picture(DetVisualizationHook(bbox_color="#03fe05"), Samples), (3, 254, 5)),
)
boxes.add(
    "parameter",
    "`text_color` is the color of the text",
    lambda: changes(DetVisualizationHook, Samples, text_color="#fe00fe"),
)
boxes.add(
    "parameter",
    "`thickness` is the width of the lines",
    lambda: changes(DetVisualizationHook, Samples, thickness=5),
)
boxes.add(
    "parameter",
    "`score_thr` hides boxes with a lower score",
    lambda: (
        changes(DetVisualizationHook, Samples, score_thr=0.7)
        and not changes(DetVisualizationHook, Samples, score_thr=0.5)
    ),
)

masks = Section(REQUIREMENTS, "segmentation pictures")
masks.add(
    "class",
    "SegVisualizationHook extends VisualizationHook",
    lambda: issubclass(SegVisualizationHook, VisualizationHook),
)
masks.add(
    "parameter",
    "`class_names` are in the legend",
    lambda: changes(SegVisualizationHook, Masks, class_names=["one", "two", "three"]),
)
masks.add(
    "parameter",
    "`palette` has the colors of the classes",
    lambda: has_color(
        picture(
            SegVisualizationHook(palette=["#010101", "#ff0102", "#0203f0"], opacity=1.0), Masks
        ),
        (255, 1, 2),
    ),
)
masks.add(
    "parameter",
    "`opacity` is that of the masks over the image",
    lambda: changes(SegVisualizationHook, Masks, opacity=0.9),
)
masks.add(
    "parameter",
    "`show_edge` of false draws no edges",
    lambda: changes(SegVisualizationHook, Masks, show_edge=False),
)

contents = Section(REQUIREMENTS, "contents of pictures")


@cache
def everything() -> list[tuple[str, int]]:
    records = Records()
    hooks: list[Any] = [{"type": "FeatureMapHook", "frequency": 2}]
    hooks += [{"type": "CAMHook", "interval": 2, "max_samples": 2}]
    hooks += [{"type": "SaliencyHook", "interval": 2, "max_samples": 2, "methods": ["saliency"]}]
    hooks += [{"type": "GradientFlowHook", "frequency": 2}]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))
    parts: dict[str, Any] = {"train_loader": images(2), "max_epochs": 1}
    bare(*hooks, records, model=model, **parts)
    attention: BaseRunner = bare(
        {"type": "AttentionMapHook", "frequency": 2}, records, model=Transformer(), **parts
    )
    assert attention.iter == 2
    return records.names()


contents.add(
    "behavior",
    "predictions are drawn: the class of an image, boxes and masks",
    lambda: (
        drawn()[1][TRAIN[0]].size > 0
        and picture(DetVisualizationHook(), Samples).std() > 0
        and picture(SegVisualizationHook(), Masks).std() > 0
    ),
)
KINDS = {
    "feature maps of inner layers are drawn": "FeatureMapHook",
    "attention is drawn": "AttentionMapHook",
    "class activation maps are drawn": "CAMHook",
    "gradients with respect to the input are drawn as heat maps": "SaliencyHook",
    "gradients of the layers are drawn": "GradientFlowHook",
}
for _text, _hook in KINDS.items():
    contents.add(
        "behavior",
        _text,
        lambda hook=_hook: any(name.startswith(hook) for name, _ in everything()),
    )
