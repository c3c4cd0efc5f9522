from __future__ import annotations

import pytest
import torch

from hookline.dist import World
from hookline.metrics.base import Metric, move_metrics
from hookline.metrics.measurement import Measurement


class Largest:
    """A metric: the largest prediction."""

    def __init__(self) -> None:
        self.value = 99.0

    def update(self, predictions, targets) -> None:
        if targets is None:
            raise ValueError("no targets")
        self.value = max(self.value, float(predictions.max()))

    def compute(self) -> float:
        return self.value

    def reset(self) -> None:
        self.value = 0.0


class Kept:
    """A dataset's evaluation: the number of its batches."""

    def __init__(self) -> None:
        self.batches: list[object] = []

    def update(self, predictions) -> None:
        self.batches.append(predictions)

    def compute(self, ranks) -> dict[str, int]:
        return {"batches": len(self.batches)}


def outputs(value: float, targets: object = (1, 2)) -> dict[str, object]:
    return {"loss": value, "predictions": torch.tensor([value]), "targets": targets}


def keep(error: Exception, name: str) -> Exception:
    return error


def test_metrics_dataset_and_loss_are_measured_over_all_batches() -> None:
    measurement = Measurement({"largest": Largest()}, Kept(), keep)
    for value in (1.0, 3.0):
        measurement.update(outputs(value), None)
    results = measurement.compute("val_loss", World())
    assert results == {"largest": 3.0, "batches": 2, "val_loss": 2.0}


def test_a_metric_begins_empty_and_a_dataset_is_optional() -> None:
    measurement = Measurement({"largest": Largest()}, None, keep)
    measurement.update(outputs(1.0), None)
    assert measurement.compute("val_loss", World()) == {"largest": 1.0, "val_loss": 1.0}


def test_other_numbers_of_a_step_come_after_metrics_and_loss_and_replace_none() -> None:
    measurement = Measurement({"largest": Largest()}, None, keep)
    measurement.update({"entropy": 0.5, "largest": 7.0, **outputs(1.0)}, None)
    results = measurement.compute("val_loss", World())
    assert list(results.items()) == [("largest", 1.0), ("val_loss", 1.0), ("entropy", 0.5)]


def test_an_error_of_a_metric_is_kept_or_explained() -> None:
    with pytest.raises(ValueError, match="no targets"):
        Measurement({"largest": Largest()}, None, keep).update(outputs(1.0, None), None)
    explained = KeyError("largest")
    with pytest.raises(KeyError) as caught:
        Measurement({"largest": Largest()}, None, lambda error, name: KeyError(name)).update(
            outputs(1.0, None), None
        )
    assert caught.value.args == explained.args
    assert isinstance(caught.value.__cause__, ValueError)


def test_metrics_that_are_modules_are_moved() -> None:
    class Module(Largest):
        device = torch.device("cpu")

        def to(self, device: torch.device) -> Module:
            self.device = device
            return self

    plain, module = Largest(), Module()
    moved = move_metrics({"plain": plain, "module": module}, torch.device("meta"))
    assert moved == {"plain": plain, "module": module}
    assert module.device == torch.device("meta")
    assert isinstance(plain, Metric)
    assert not isinstance(object(), Metric)
