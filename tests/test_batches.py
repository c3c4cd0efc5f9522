from __future__ import annotations

from typing import NamedTuple

import pytest
import torch

from hookline.batches import count_samples, move, move_each, named_loaders, pick_device, unpack
from hookline.errors import HooklineError

CPU = torch.device("cpu")
META = torch.device("meta")  # a device that every machine has and that is not the CPU


class Pair(NamedTuple):
    """A batch with named parts."""

    x: torch.Tensor
    y: str


@pytest.mark.parametrize("inputs", ["inputs", "input", "x", "images", "image", "pixel_values"])
@pytest.mark.parametrize("targets", ["targets", "target", "y", "labels", "label"])
def test_inputs_and_targets_are_found_by_their_usual_names(inputs: str, targets: str) -> None:
    assert unpack({"id": 0, targets: 2, inputs: 1}) == (1, 2)


def test_the_first_known_name_wins() -> None:
    assert unpack({"x": 1, "inputs": 2, "y": 3, "targets": 4}) == (2, 4)


@pytest.mark.parametrize("batch", [{"x": 1}, {"y": 1}, {}, (1, 2, 3), 7])
def test_a_batch_without_inputs_and_targets_is_an_error(batch: object) -> None:
    with pytest.raises(HooklineError):
        unpack(batch)


@pytest.mark.parametrize(
    ("outputs", "batch", "count"),
    [
        ({"num_samples": torch.tensor(7), "targets": [1, 2]}, [[1]], 7),
        ({"num_samples": 0}, [[1]], 0),
        ({"targets": [1, 2]}, [[1]], 2),
        ({"targets": 3}, [[1, 2]], 1),
        ({"targets": None}, ([1, 2, 3], [1]), 3),
        ({}, [[1, 2, 3]], 3),
        ({}, {"x": torch.zeros(4, 2), "y": [1]}, 4),
        ({}, {}, 1),
        ({}, torch.zeros(5, 2), 5),
        ({}, torch.zeros(0, 2), 1),
        ({}, None, 1),
    ],
)
def test_samples_are_counted_by_the_best_known_part(
    outputs: dict[str, object], batch: object, count: int
) -> None:
    assert count_samples(outputs, batch) == count


def test_all_tensors_are_moved_and_containers_keep_their_types() -> None:
    moved = move({"a": [torch.ones(1), "text"], "b": Pair(torch.ones(2), "y"), "c": (1,)}, META)
    assert moved["a"][0].device == moved["b"].x.device == META
    assert type(moved["a"]) is list
    assert moved["a"][1] == "text"
    assert isinstance(moved["b"], Pair)
    assert moved["b"].y == "y"
    assert moved["c"] == (1,)


def test_batches_are_moved_when_they_are_read() -> None:
    read = []

    def batches():
        for number in range(2):
            read.append(number)
            yield torch.ones(1)

    moved = iter(move_each(batches(), META))
    assert read == []
    assert next(moved).device == META
    assert read == [0]


def test_batches_for_the_cpu_are_left_alone() -> None:
    loader = [torch.ones(1)]
    assert move_each(loader, CPU) is loader


def test_the_device_auto_is_a_gpu_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for available, device in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda available=available: available)
        assert pick_device("auto") == torch.device(device)
    assert pick_device("cuda:1") == torch.device("cuda", 1)
    assert pick_device(META) == META


def test_a_single_loader_has_an_empty_name() -> None:
    assert named_loaders(None) == {}
    assert named_loaders([1]) == {"": [1]}
    assert named_loaders({"a": [1], "b": [2]}) == {"a": [1], "b": [2]}
