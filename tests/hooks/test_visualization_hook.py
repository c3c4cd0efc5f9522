"""Pictures of predictions: when they are drawn, what is on them, and what happens to what cannot be drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from hookline import HOOKS
from hookline.errors import ConfigError
from hookline.hooks import DetVisualizationHook, EvalHook, SegVisualizationHook, VisualizationHook
from hookline.models.detector import Detector
from hookline.visual.classification import classification_picture, read_guesses, read_labels
from hookline.visual.colours import colour_of
from hookline.visual.render import render
from hookline.visual.samples import Samples
from tests.helpers import make_runner
from tests.visual.picture_parts import Records, conv_model, images

ALL = [VisualizationHook, DetVisualizationHook, SegVisualizationHook]


def run(tmp_path, *hooks, **parts):
    records = Records()
    parts.setdefault("train_loader", images())
    runner = make_runner(tmp_path, *hooks, records, model=parts.pop("model", None) or conv_model(), **parts)
    runner.train()
    return runner, records


def test_training_is_drawn_every_interval_and_validation_as_often_beginning_with_the_first(tmp_path):
    hooks = VisualizationHook(interval=3, backend="pillow"), EvalHook(interval=1, by_epoch=False)
    _, records = run(tmp_path, *hooks, val_loader=images(2, seed=1))
    assert records.names() == [
        ("VisualizationHook/val", 1),
        ("VisualizationHook/train", 3),
        ("VisualizationHook/val", 4),
        ("VisualizationHook/train", 6),
        ("VisualizationHook/val", 7),
    ]
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png"))
    assert files == [
        f"visualizations/VisualizationHook/{mode}/step_{step:06d}.png"
        for mode, steps in (("train", (3, 6)), ("val", (1, 4, 7)))
        for step in steps
    ]


@pytest.mark.parametrize("backend", ["matplotlib", "pillow"])
def test_the_picture_is_that_of_the_batch_and_what_the_model_said_of_it(tmp_path, backend):
    model, data = conv_model().eval(), images()
    _, records = run(
        tmp_path,
        VisualizationHook(interval=1, max_samples=3, backend=backend),
        EvalHook(interval=1),
        model=model,
        val_loader=data,
        max_iters=4,
    )
    (record,) = [record for record in records.records if record.name == "VisualizationHook/val"]
    with torch.no_grad():
        scores = model.eval()(data[0][0])[:3].numpy()
    pictures = [(image.numpy()[0][..., None].repeat(3, -1) * 255).round().astype(np.uint8) for image in data[0][0][:3]]
    expected = classification_picture(
        pictures, read_labels(data[0][1][:3].numpy()), read_guesses(scores), "validation, step 4", score_thr=0.3
    )
    assert np.array_equal(record.value, render(expected, backend))


def test_pictures_go_where_told_or_only_into_the_events(tmp_path):
    run(tmp_path / "a", VisualizationHook(interval=8, backend="pillow", out_dir=str(tmp_path / "there")))
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.png")] == ["there/train/step_000008.png"]
    _, records = run(tmp_path / "b", VisualizationHook(interval=8, backend="pillow", save=False))
    assert len(records.records) == 1
    assert not list((tmp_path / "b").rglob("*.png"))


@pytest.mark.parametrize(("draw_gt", "draw_pred"), [(True, False), (False, True)])
def test_only_truth_or_only_predictions_may_be_drawn(tmp_path, draw_gt, draw_pred):
    model, data = conv_model(), images()
    hook = VisualizationHook(interval=8, draw_gt=draw_gt, draw_pred=draw_pred, backend="pillow")
    _, records = run(tmp_path, hook, EvalHook(interval=2), model=model, train_loader=data, val_loader=data)
    (pixels,) = [record.value for record in records.records if record.name == "VisualizationHook/val"]
    inputs, targets = data[0]
    with torch.no_grad():
        guesses = read_guesses(model.eval()(inputs).numpy())
    shown = [(image.numpy()[0][..., None].repeat(3, -1) * 255).round().astype(np.uint8) for image in inputs]
    what = (read_labels(targets.numpy()), None) if draw_gt else (None, guesses)
    expected = classification_picture(shown, *what, "validation, step 8", score_thr=0.3)
    assert [text.text.startswith("truth") for text in expected.texts[1:]] == [draw_gt] * 5  # one line for each image, of the one kind
    assert np.array_equal(pixels, render(expected))


@pytest.mark.parametrize("cls", [DetVisualizationHook, SegVisualizationHook])
def test_boxes_and_masks_of_truth_or_prediction_alone_stand_in_one_column(cls):
    for left_out, caption in (("draw_pred", "truth"), ("draw_gt", "predicted")):
        boxes = [{"boxes": np.array([[4.0, 30, 24, 50]]), "labels": np.array([1])}]
        value = boxes if cls is DetVisualizationHook else np.ones((1, 64, 64), dtype=int)
        picture = cls(**{left_out: False}).picture([np.zeros((64, 64, 3), np.uint8)], Samples(None, value, value), [], "one column")
        captions = [text.text.partition(":")[0] for text in picture.texts if text.text.startswith(("truth", "predicted"))]
        assert captions == [caption]


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="draw_gt and draw_pred are both off"):
        VisualizationHook(draw_gt=False, draw_pred=False)


def test_where_there_is_no_display_show_says_why_and_the_run_goes_on(tmp_path, caplog, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    runner, _ = run(tmp_path, VisualizationHook(interval=8, show=True, backend="pillow"))
    assert runner.iter == 8
    assert "VisualizationHook: show: no window can be opened: there is no display" in caplog.text


def test_inputs_that_are_no_images_are_named_once_and_training_goes_on(tmp_path, caplog):
    runner = make_runner(tmp_path, VisualizationHook(interval=1))
    runner.train()
    assert runner.iter == 8
    assert caplog.messages.count("VisualizationHook: cannot draw: expected images [N, C, H, W], got [8, 6]") == 1
    assert "8 pictures were not drawn, because of errors: VisualizationHook 8" in caplog.text


def test_a_guessed_normalisation_is_noted_once(tmp_path, caplog):
    caplog.set_level("INFO")
    data = [(inputs * 2 - 1, targets) for inputs, targets in images()]
    run(tmp_path, VisualizationHook(interval=1, backend="pillow"), train_loader=data)
    notes = [message for message in caplog.messages if "look normalised" in message]
    assert notes == ["VisualizationHook: inputs look normalised and are drawn with mean 0.5 and std 0.5, a guess; 'mean' and 'std' say it"]


class Boxes(nn.Module):
    """Finds what it is told to find."""

    def __init__(self, found):
        super().__init__()
        self.layer, self.found = nn.Linear(1, 1), found

    def train_step(self, batch):
        return {"loss": self.layer(torch.ones(1, 1)).sum(), "predictions": [self.found] * 2, "targets": batch[1]}


TRUTH = {"boxes": torch.tensor([[4.0, 30, 24, 50]]), "labels": torch.tensor([1])}
SHAPES = [(torch.zeros(2, 3, 64, 64), [TRUTH, TRUTH])]


def test_boxes_of_truth_and_prediction_are_drawn_side_by_side(tmp_path):
    found = {"boxes": torch.tensor([[4.0, 30, 24, 50], [0, 0, 9, 9]]), "labels": torch.tensor([0, 0]), "scores": torch.tensor([0.9, 0.1])}
    hook = DetVisualizationHook(interval=1, class_names=["cat", "dog"], backend="pillow")
    _, records = run(tmp_path, hook, model=Boxes(found), train_loader=SHAPES, max_iters=1)
    pixels = records.records[0].value
    truth, predicted = (np.nonzero((pixels == colour_of(label)).all(-1))[1] for label in (1, 0))
    assert truth.min() < predicted.min()
    assert predicted.min() - truth.min() == 256 + 8  # the width of a tile and the gap


@pytest.mark.parametrize("backend", ["pillow", "matplotlib"])
def test_a_known_box_is_at_its_place_in_the_file(tmp_path, backend):
    hook = DetVisualizationHook(interval=1, draw_pred=False, max_samples=1, backend=backend, bbox_color="#ff00ff", thickness=1)
    run(tmp_path, hook, model=Boxes(TRUTH), train_loader=SHAPES, max_iters=1)
    pixels = np.asarray(Image.open(next(tmp_path.rglob("*.png"))))
    left, top, zoom = 10, 26, 4
    row = pixels[top + 50 * zoom - 1]
    marked = np.flatnonzero((row == (255, 0, 255)).all(-1))
    assert (marked.min(), marked.max()) == (left + 4 * zoom, left + 24 * zoom - 1)


def test_malformed_boxes_are_named_and_training_goes_on(tmp_path, caplog):
    found = {"boxes": torch.zeros(3, 5), "labels": torch.zeros(3)}
    runner, _ = run(tmp_path, DetVisualizationHook(interval=1), model=Boxes(found), train_loader=SHAPES, max_iters=3)
    assert runner.iter == 3
    assert "DetVisualizationHook: cannot draw: predictions: expected boxes [N, 4], got [3, 5]" in caplog.text


def test_the_detector_is_drawn_with_its_own_predictions(tmp_path):
    targets = {"boxes": torch.tensor([[[4.0, 30, 24, 50]]] * 2), "labels": torch.tensor([[1]] * 2)}
    hook = DetVisualizationHook(interval=1, backend="pillow", score_thr=0.0)
    _, records = run(tmp_path, hook, model=Detector(3, 3, width=4), train_loader=[(torch.rand(2, 3, 64, 64), targets)], max_iters=1)
    assert len(records.records) == 1


def test_masks_of_truth_and_prediction_are_drawn_with_a_legend(tmp_path):
    torch.manual_seed(0)
    target = torch.zeros(2, 16, 16, dtype=torch.long)
    target[:, 4:8, 4:8] = 1
    hook = SegVisualizationHook(interval=1, class_names=["background", "cat"], palette=["black", "#00ff00"], backend="pillow")
    _, records = run(tmp_path, hook, model=nn.Conv2d(3, 2, 1), train_loader=[(torch.zeros(2, 3, 16, 16), target)], max_iters=1)
    pixels = records.records[0].value
    edge = np.nonzero((pixels == (0, 255, 0)).all(-1))
    assert edge[0].min() == 26 + 4 * 12
    assert edge[1].min() in (10, 10 + 4 * 12)


def test_masks_of_the_wrong_shape_are_named(tmp_path, caplog):
    run(tmp_path, SegVisualizationHook(interval=4))
    assert "SegVisualizationHook: cannot draw: targets: expected masks [N, H, W]" in caplog.text


@pytest.mark.parametrize(
    ("cls", "wrong", "message"),
    [
        (VisualizationHook, {"interval": 0}, "interval must be at least 1"),
        (VisualizationHook, {"max_samples": 0}, "max_samples must be at least 1"),
        (VisualizationHook, {"backend": "pil"}, "unknown backend 'pil'"),
        (DetVisualizationHook, {"box_format": "xxyy"}, "unknown box_format 'xxyy'; did you mean 'xyxy'"),
        (DetVisualizationHook, {"bbox_color": "blueish"}, "unknown colour 'blueish'"),
        (DetVisualizationHook, {"thickness": 0}, "thickness must be at least 1"),
        (SegVisualizationHook, {"opacity": 1.5}, "opacity must be from 0 to 1"),
        (SegVisualizationHook, {"palette": [[1, 2]]}, "unknown colour"),
    ],
)
def test_impossible_parameters_are_refused(cls, wrong, message):
    with pytest.raises(ValueError, match=message):
        cls(**wrong)
    with pytest.raises(ConfigError, match=message):
        HOOKS.build({"type": cls.__name__, **wrong})


@pytest.mark.parametrize("cls", ALL)
def test_the_defaults_are_those_of_the_requirements(cls):
    hook = cls()
    assert (hook.interval, hook.draw_gt, hook.draw_pred, hook.show, hook.save) == (500, True, True, False, True)
    assert (hook.out_dir, hook.max_samples, hook.score_thr, hook.backend) == (None, 16, 0.3, "matplotlib")
