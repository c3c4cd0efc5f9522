"""Pictures of predictions: when they are drawn, their contents, and data that cannot be drawn."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from torch import nn

from hookline import HOOKS
from hookline.errors import ConfigError
from hookline.hooks import DetVisualizationHook, EvalHook, SegVisualizationHook, VisualizationHook
from hookline.hooks.bases.result import ResultBatch
from hookline.models.detector import Detector
from hookline.visual.backends import render
from hookline.visual.boxes import TILE_SIZE
from hookline.visual.canvas import Text
from hookline.visual.classification import draw_classification, read_labels, read_predictions
from hookline.visual.colors import class_color
from hookline.visual.grid import GAP, MARGIN, TITLE_HEIGHT
from hookline.visual.samples import Samples
from tests.helpers import make_runner
from tests.visual.picture_parts import Records, conv_model, images

ALL = [VisualizationHook, DetVisualizationHook, SegVisualizationHook]


def run(tmp_path, *hooks, **parts):
    records = Records()
    parts.setdefault("train_loader", images())
    model = parts.pop("model", None) or conv_model()
    runner = make_runner(tmp_path, *hooks, records, model=model, **parts)
    runner.train()
    return runner, records


def to_bytes(inputs):
    """Return inputs [N, 1, H, W] from 0 to 1 as images [H, W, 3] of bytes."""
    pixels = (inputs.numpy() * 255).round().astype(np.uint8)
    return list(pixels.transpose(0, 2, 3, 1).repeat(3, -1))


def test_training_is_drawn_every_interval_and_validation_as_often_beginning_with_the_first(
    tmp_path,
):
    hook = VisualizationHook(interval=3, backend="pillow")
    evaluation = EvalHook(interval=1, by_epoch=False)
    _, records = run(tmp_path, hook, evaluation, val_loader=images(2, seed=1))
    assert records.names() == [
        ("VisualizationHook/val", 1),
        ("VisualizationHook/train", 3),
        ("VisualizationHook/val", 4),
        ("VisualizationHook/train", 6),
        ("VisualizationHook/val", 7),
    ]
    folder = tmp_path / "visualizations" / "VisualizationHook"
    files = sorted(path.relative_to(folder).as_posix() for path in tmp_path.rglob("*.png"))
    assert files == [
        "train/step_000003.png",
        "train/step_000006.png",
        "val/step_000001.png",
        "val/step_000004.png",
        "val/step_000007.png",
    ]


@pytest.mark.parametrize("backend", ["matplotlib", "pillow"])
@pytest.mark.parametrize(("draw_gt", "draw_pred"), [(True, True), (True, False), (False, True)])
def test_a_picture_shows_images_targets_and_predictions(tmp_path, backend, draw_gt, draw_pred):
    model = conv_model()
    data = images()
    hook = VisualizationHook(
        interval=100, max_samples=3, draw_gt=draw_gt, draw_pred=draw_pred, backend=backend
    )
    evaluation = EvalHook(interval=1)
    _, records = run(tmp_path, hook, evaluation, model=model, val_loader=data, max_iters=4)
    (record,) = records.records
    inputs, targets = data[0]
    with torch.no_grad():
        scores = model.eval()(inputs)[:3].numpy()
    truth = read_labels(targets[:3].numpy()) if draw_gt else None
    predictions = read_predictions(scores) if draw_pred else None
    expected = draw_classification(
        to_bytes(inputs[:3]), truth, predictions, "validation, step 4", score_thr=0.3
    )
    assert np.array_equal(record.value, render(expected, backend))


@pytest.mark.parametrize(("backend", "count"), [("matplotlib", 2), ("pillow", 0)])
def test_the_matplotlib_backend_draws_figures_in_the_drawing_thread(
    tmp_path, monkeypatch, backend, count
):
    threads = []
    draw = FigureCanvasAgg.draw

    def recording_draw(canvas):
        threads.append(threading.current_thread().name)
        draw(canvas)

    monkeypatch.setattr(FigureCanvasAgg, "draw", recording_draw)
    run(tmp_path, VisualizationHook(interval=4, backend=backend))
    assert threads == ["hookline-painter"] * count


def test_pictures_are_saved_in_out_dir(tmp_path):
    hook = VisualizationHook(interval=8, backend="pillow", out_dir=str(tmp_path / "there"))
    run(tmp_path / "run", hook)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png")] == [
        "there/train/step_000008.png"
    ]


def test_without_save_pictures_are_only_recorded(tmp_path):
    _, records = run(tmp_path, VisualizationHook(interval=8, backend="pillow", save=False))
    assert len(records.records) == 1
    assert not list(tmp_path.rglob("*.png"))


@pytest.mark.parametrize("cls", [DetVisualizationHook, SegVisualizationHook])
@pytest.mark.parametrize(("off", "caption"), [("draw_pred", "truth"), ("draw_gt", "predicted")])
def test_targets_or_predictions_alone_stand_in_one_column(cls, off, caption):
    value = np.ones((1, 64, 64), dtype=int)
    if cls is DetVisualizationHook:
        value = [{"boxes": np.array([[4.0, 30, 24, 50]]), "labels": np.array([1])}]
    image = np.zeros((64, 64, 3), np.uint8)
    batch = ResultBatch([image], Samples(None, value, value), [], "one column")
    canvas = cls(**{off: False}).draw(batch)
    texts = [shape.text for shape in canvas.shapes if isinstance(shape, Text)]
    captions = [text for text in texts if text.startswith(("truth", "predicted"))]
    assert len(captions) == 1
    assert captions[0].startswith(caption)


def test_without_a_display_show_is_ignored_with_a_warning(tmp_path, caplog, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    hook = VisualizationHook(interval=8, show=True, backend="pillow")
    runner, records = run(tmp_path, hook)
    assert runner.iter == 8
    assert not hook.show
    assert len(records.records) == 1
    assert caplog.messages[0].startswith("VisualizationHook: show")


def test_inputs_that_are_not_images_are_reported_once_and_training_continues(tmp_path, caplog):
    runner = make_runner(tmp_path, VisualizationHook(interval=1))
    runner.train()
    assert runner.iter == 8
    assert len([message for message in caplog.messages if "got [8, 6]" in message]) == 1
    assert caplog.messages[-1].startswith("8 pictures were not drawn")


def test_a_guessed_normalization_is_logged_once(tmp_path, caplog):
    caplog.set_level("INFO")
    data = [(inputs * 2 - 1, targets) for inputs, targets in images()]
    run(tmp_path, VisualizationHook(interval=1, backend="pillow"), train_loader=data)
    (message,) = [message for message in caplog.messages if "normalized" in message]
    assert message.startswith("VisualizationHook: ")
    assert "mean 0.5 and std 0.5" in message


class Boxes(nn.Module):
    """Predicts the boxes that it was made with."""

    def __init__(self, found):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.found = found

    def train_step(self, batch):
        return {
            "loss": self.layer(torch.ones(1, 1)).sum(),
            "predictions": [self.found] * 2,
            "targets": batch[1],
        }


TRUTH = {"boxes": torch.tensor([[4.0, 30, 24, 50]]), "labels": torch.tensor([1])}
SHAPES = [(torch.zeros(2, 3, 64, 64), [TRUTH, TRUTH])]


def test_boxes_of_truth_and_prediction_are_drawn_side_by_side(tmp_path):
    found = {
        "boxes": torch.tensor([[4.0, 30, 24, 50], [0, 0, 9, 9]]),
        "labels": torch.tensor([0, 0]),
        "scores": torch.tensor([0.9, 0.1]),
    }
    hook = DetVisualizationHook(interval=1, class_names=["cat", "dog"], backend="pillow")
    _, records = run(tmp_path, hook, model=Boxes(found), train_loader=SHAPES, max_iters=1)
    pixels = records.records[0].value
    truth = np.nonzero((pixels == class_color(1)).all(-1))[1]
    predicted = np.nonzero((pixels == class_color(0)).all(-1))[1]
    assert predicted.min() - truth.min() == TILE_SIZE + GAP


@pytest.mark.parametrize("backend", ["pillow", "matplotlib"])
def test_a_known_box_is_at_its_place_in_the_file(tmp_path, backend):
    style = {"bbox_color": "#ff00ff", "thickness": 1, "backend": backend}
    hook = DetVisualizationHook(interval=1, draw_pred=False, max_samples=1, **style)
    run(tmp_path, hook, model=Boxes(TRUTH), train_loader=SHAPES, max_iters=1)
    pixels = np.asarray(Image.open(next(tmp_path.rglob("*.png"))))
    zoom = TILE_SIZE // 64
    lower_edge = pixels[TITLE_HEIGHT + 50 * zoom - 1]
    marked = np.flatnonzero((lower_edge == (255, 0, 255)).all(-1))
    assert (marked.min(), marked.max()) == (MARGIN + 4 * zoom, MARGIN + 24 * zoom - 1)


def test_malformed_boxes_are_reported_and_training_continues(tmp_path, caplog):
    found = {"boxes": torch.zeros(3, 5), "labels": torch.zeros(3)}
    hook = DetVisualizationHook(interval=1)
    runner, _ = run(tmp_path, hook, model=Boxes(found), train_loader=SHAPES, max_iters=3)
    assert runner.iter == 3
    assert caplog.messages[0].startswith("DetVisualizationHook: ")
    assert "got [3, 5]" in caplog.messages[0]


def test_the_predictions_of_the_detector_are_drawn(tmp_path):
    targets = {"boxes": torch.tensor([[[4.0, 30, 24, 50]]] * 2), "labels": torch.tensor([[1]] * 2)}
    data = [(torch.rand(2, 3, 64, 64), targets)]
    hook = DetVisualizationHook(interval=1, backend="pillow", score_thr=0.0)
    model = Detector(3, 3, width=4)
    _, records = run(tmp_path, hook, model=model, train_loader=data, max_iters=1)
    assert len(records.records) == 1


def test_masks_of_truth_and_prediction_are_drawn_with_a_legend(tmp_path):
    torch.manual_seed(0)
    target = torch.zeros(2, 16, 16, dtype=torch.long)
    target[:, 4:8, 4:8] = 1
    colors = {"class_names": ["background", "cat"], "palette": ["black", "#00ff00"]}
    hook = SegVisualizationHook(interval=1, backend="pillow", **colors)
    data = [(torch.zeros(2, 3, 16, 16), target)]
    _, records = run(tmp_path, hook, model=nn.Conv2d(3, 2, 1), train_loader=data, max_iters=1)
    pixels = records.records[0].value
    rows, columns = np.nonzero((pixels == (0, 255, 0)).all(-1))
    assert rows.min() == TITLE_HEIGHT + 4 * 12
    assert columns.min() in (MARGIN, MARGIN + 4 * 12)


@pytest.mark.parametrize("background", ["sky", 0])
def test_a_given_background_class_is_left_clear(tmp_path, background):
    target = torch.zeros(2, 16, 16, dtype=torch.long)
    target[:, 4:8, 4:8] = 1
    colors = {"class_names": ["sky", "cat"], "palette": ["#ff0000", "#00ff00"]}
    hook = SegVisualizationHook(interval=1, draw_pred=False, background=background, **colors)
    data = [(torch.zeros(2, 3, 16, 16), target)]
    _, records = run(tmp_path, hook, model=nn.Conv2d(3, 2, 1), train_loader=data, max_iters=1)
    pixels = records.records[0].value
    assert (pixels == (0, 255, 0)).all(-1).any()
    assert not (pixels == (255, 0, 0)).all(-1).any()


def test_a_background_that_is_not_a_class_is_rejected_before_the_first_batch(tmp_path):
    hook = SegVisualizationHook(class_names=["sky", "cat"], background="skye")
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, hook)
    assert (caught.value.parameter, caught.value.value) == ("background", "skye")
    assert caught.value.suggestion.nearest == "sky"


def test_masks_of_a_wrong_shape_are_reported(tmp_path, caplog):
    run(tmp_path, SegVisualizationHook(interval=4))
    assert caplog.messages[0].startswith("SegVisualizationHook: ")
    assert "targets: expected masks" in caplog.messages[0]


@pytest.mark.parametrize(
    ("cls", "parameter", "value"),
    [
        (VisualizationHook, "interval", 0),
        (VisualizationHook, "max_samples", 0),
        (VisualizationHook, "backend", "matplot"),
        (DetVisualizationHook, "box_format", "xxyy"),
        (DetVisualizationHook, "bbox_color", "blueish"),
        (DetVisualizationHook, "text_color", [1, 2]),
        (DetVisualizationHook, "thickness", 0),
        (SegVisualizationHook, "opacity", 1.5),
    ],
)
def test_a_wrong_parameter_is_rejected(cls, parameter, value):
    with pytest.raises(ConfigError) as caught:
        cls(**{parameter: value})
    assert caught.value.component == cls.__name__
    assert caught.value.parameter == parameter
    assert caught.value.value == value
    with pytest.raises(ConfigError) as caught:
        HOOKS.build({"type": cls.__name__, parameter: value})
    assert caught.value.parameter == parameter


def test_a_wrong_color_of_a_palette_is_rejected():
    with pytest.raises(ConfigError) as caught:
        SegVisualizationHook(palette=["red", [1, 2]])
    assert caught.value.parameter == "palette"
    assert caught.value.value == [1, 2]


@pytest.mark.parametrize(
    ("cls", "parameter", "value", "nearest"),
    [
        (VisualizationHook, "backend", "matplot", "matplotlib"),
        (DetVisualizationHook, "box_format", "xxyy", "xyxy"),
    ],
)
def test_the_nearest_choice_is_suggested(cls, parameter, value, nearest):
    with pytest.raises(ConfigError) as caught:
        cls(**{parameter: value})
    assert caught.value.suggestion.nearest == nearest


def test_a_hook_that_draws_nothing_is_rejected():
    with pytest.raises(ConfigError) as caught:
        VisualizationHook(draw_gt=False, draw_pred=False)
    assert caught.value.parameter == "draw_pred"


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    ("parameter", "default"),
    [
        ("interval", 500),
        ("draw_gt", True),
        ("draw_pred", True),
        ("show", False),
        ("save", True),
        ("out_dir", None),
        ("max_samples", 16),
        ("score_thr", 0.3),
        ("backend", "matplotlib"),
    ],
)
def test_the_defaults_are_those_of_the_requirements(cls, parameter, default):
    assert getattr(cls(), parameter) == default
