"""Made-up shapes: masks and boxes fit the pixels, and scores are right."""

from __future__ import annotations

import pytest
import torch

from hookline import DATASETS
from hookline.data import describe, make_loader
from hookline.data.shapes import SHAPES, ShapesDetection, ShapesSegmentation
from tests.problems import raises_problem


def test_the_same_split_is_the_same_data_and_another_is_not():
    one, two, other = (ShapesSegmentation(split, count=4) for split in ("train", "train", "val"))
    assert torch.equal(one.inputs, two.inputs)
    assert not torch.equal(one.inputs, other.inputs)
    assert len(ShapesSegmentation("val")) == 128


def test_boxes_are_as_tight_as_the_masks():
    boxes, masks = ShapesDetection(count=20), ShapesSegmentation(count=20)
    for (image, found), (same, mask) in zip(boxes, masks, strict=True):
        torch.testing.assert_close(image, same)
        seen = torch.zeros_like(mask)
        for box, label in zip(found["boxes"].int().tolist(), found["labels"].tolist(), strict=True):
            if label < 0:
                continue
            left, top, right, bottom = box
            inside = mask[top:bottom, left:right] == label + 1
            assert inside[0].any()
            assert inside[-1].any()
            assert inside[:, 0].any()
            assert inside[:, -1].any()
            assert bool(inside.all()) == (SHAPES[label] == "square")
            seen[top:bottom, left:right] = 1
        assert (mask[seen == 0] == 0).all()


def test_they_describe_the_parameters_of_a_model():
    info = describe(DATASETS.build({"type": "shapes_segmentation", "count": 2}))
    assert (info.in_channels, info.num_classes, info.input_shape) == (3, 4, (3, 64, 64))
    assert describe(DATASETS.build({"type": "shapes_detection", "count": 2})).class_names == SHAPES


def test_batches_of_boxes_are_stacked():
    images, targets = next(iter(make_loader(ShapesDetection(count=6, size=32), batch_size=4)))
    assert images.shape == (4, 3, 32, 32)
    assert targets["boxes"].shape == (4, 3, 4)
    assert targets["labels"].shape == (4, 3)


def perfect(data):
    return [
        {
            "boxes": boxes[labels >= 0],
            "labels": labels[labels >= 0],
            "scores": torch.ones(int((labels >= 0).sum())),
        }
        for boxes, labels in zip(data.boxes, data.labels, strict=True)
    ]


def test_perfect_predictions_score_1_and_none_score_0():
    data = ShapesDetection("val", count=20)
    assert data.evaluate(perfect(data)) == {"ap50": 1.0}
    nothing = {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0), "scores": torch.zeros(0)}
    assert data.evaluate([nothing] * 20) == {"ap50": 0.0}


def test_a_box_found_twice_or_in_the_wrong_place_costs_precision():
    data = ShapesDetection("val", count=20)
    twice = [
        {key: torch.cat([value, value]) for key, value in one.items()} for one in perfect(data)
    ]
    shifted = [{**one, "boxes": one["boxes"] + 20} for one in perfect(data)]
    assert data.evaluate(shifted)["ap50"] < 0.2
    assert 0.4 < data.evaluate(twice)["ap50"] < 1.0
    sure = [
        {
            **one,
            "scores": torch.cat(
                [torch.ones(len(one["labels"]) // 2), torch.zeros(len(one["labels"]) // 2)]
            ),
        }
        for one in twice
    ]
    assert data.evaluate(sure)["ap50"] == 1.0  # false ones below all right ones do not count


@pytest.mark.parametrize(
    ("parameter", "value", "nearest"), [("split", "tran", "train"), ("size", 8, None)]
)
def test_wrong_parameters_are_rejected(parameter, value, nearest):
    with raises_problem(component="shapes", parameter=parameter, value=value, nearest=nearest):
        ShapesSegmentation(**{parameter: value})


def test_shapes_may_be_side_by_side_in_any_order():
    pairs = []
    for boxes, labels in zip(ShapesDetection().boxes, ShapesDetection().labels, strict=True):
        (one, *_), (two, *_) = boxes[:1].tolist(), boxes[1:2].tolist()
        same_rows = one[1] < two[3] and two[1] < one[3]
        if labels[0] >= 0 and labels[1] >= 0 and same_rows:
            pairs.append(one[0] < two[0])
    assert set(pairs) == {True, False}
