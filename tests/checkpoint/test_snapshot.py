"""Copies of checkpoints in host memory."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from hookline.checkpoint import CheckpointError
from hookline.checkpoint.diff import diff
from hookline.checkpoint.formats import check_plain, iterate_tensors
from hookline.checkpoint.snapshot import Snapshot
from hookline.optim.stepped import stepped_tensors
from tests.problems import raises_problem


def trained() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    step(model, optimizer)
    return model, optimizer


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    model(torch.randn(16, 4)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def content(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    return {
        "state_dict": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "meta": {"losses": [1.0, 2.0]},
    }


def pointers(value: Any) -> set[int]:
    """Return the addresses of the storages in a nested structure."""
    return {tensor.untyped_storage().data_ptr() for _, tensor in iterate_tensors(value)}


def dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to_dense().to(torch.complex64)


def test_a_snapshot_does_not_change_while_training_continues() -> None:
    model, optimizer = trained()
    checkpoint = content(model, optimizer)
    copy = Snapshot().take(checkpoint)
    assert diff(copy, check_plain(checkpoint)) == []
    before = Snapshot().take(copy)
    step(model, optimizer)
    checkpoint["meta"]["losses"].append(3.0)
    assert diff(copy, before) == []
    assert diff(copy, check_plain(content(model, optimizer)))


def test_the_second_snapshot_uses_the_memory_of_the_first() -> None:
    model, optimizer = trained()
    snapshot = Snapshot()
    first = pointers(snapshot.take(content(model, optimizer)))
    step(model, optimizer)
    second = snapshot.take(content(model, optimizer))
    assert pointers(second) == first
    assert diff(second, check_plain(content(model, optimizer))) == []


def test_a_tensor_of_another_shape_gets_new_memory_and_unused_buffers_are_freed() -> None:
    snapshot = Snapshot()
    snapshot.take({"a": torch.ones(3), "b": torch.ones(1000)})
    copy = snapshot.take({"a": torch.zeros(2, 2)})
    assert diff(copy, {"a": torch.zeros(2, 2)}) == []
    assert sum(buffer.numel() for buffer in snapshot._buffers.values()) == 4


def test_tensors_that_share_memory_share_it_in_the_copy() -> None:
    flat = torch.arange(10.0)
    copy = Snapshot().take(
        {"whole": flat, "part": flat[2:5], "tied": flat, "columns": flat.view(2, 5).t()}
    )
    assert len(pointers(copy)) == 1
    flat.zero_()
    assert copy["part"].tolist() == [2, 3, 4]
    assert copy["columns"].tolist() == torch.arange(10.0).view(2, 5).t().tolist()


def test_a_small_view_is_copied_without_its_large_storage() -> None:
    copy = Snapshot().take({"part": torch.randn(1_000_000)[:10]})
    assert copy["part"].untyped_storage().nbytes() == 40


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        torch.randn(3, 1).expand(3, 4),
        torch.zeros(0),
        torch.tensor(1.5),
        torch.eye(3).to_sparse(),
        torch.randn(4, dtype=torch.complex64).conj(),
        torch.ones(3).to(torch.float8_e4m3fn),
    ],
)
def test_every_kind_of_tensor_is_copied(tensor: torch.Tensor) -> None:
    copy = Snapshot().take({"x": tensor})["x"]
    assert copy.dtype == tensor.dtype
    assert torch.equal(dense(copy), dense(tensor))


def test_a_change_of_a_sparse_tensor_does_not_reach_the_snapshot() -> None:
    tensor = torch.eye(3).to_sparse()
    copy = Snapshot().take({"x": tensor})["x"]
    tensor.mul_(2)
    assert torch.equal(copy.to_dense(), torch.eye(3))


def change_through_data(weight: nn.Parameter) -> None:
    weight.data.mul_(0.5)


def change_through_numpy(weight: nn.Parameter) -> None:
    weight.detach().numpy()[:] = 7


def change_through_a_view(weight: nn.Parameter) -> None:
    weight.data.view(-1)[0] = 7


@pytest.mark.parametrize(
    "change", [change_through_data, change_through_numpy, change_through_a_view]
)
def test_a_change_that_torch_does_not_record_does_not_reach_the_snapshot(
    change: Callable[[nn.Parameter], None],
) -> None:
    weight = nn.Parameter(torch.ones(2, 2))
    copy = Snapshot().take({"state_dict": {"w": weight}})
    change(weight)
    assert copy["state_dict"]["w"].tolist() == [[1, 1], [1, 1]]


def test_a_value_that_cannot_be_stored_is_rejected_with_its_path() -> None:
    with raises_problem(path=("hooks", "MyHook", "seen")):
        Snapshot().take({"hooks": {"MyHook": {"seen": {1, 2}}}})


def test_postponed_tensors_are_copied_later() -> None:
    model, optimizer = trained()
    checkpoint = content(model, optimizer)
    snapshot = Snapshot()
    snapshot.take(checkpoint)
    before = check_plain(copy.deepcopy(checkpoint))
    step(model, optimizer)
    checkpoint = content(model, optimizer)
    after = check_plain(copy.deepcopy(checkpoint))
    result = snapshot.take(checkpoint, stepped_tensors(optimizer))
    late = {name for name, _ in model.named_parameters()}
    assert late < set(after["state_dict"]), "the statistics of batch norm are no parameters"
    for name, value in result["state_dict"].items():
        assert torch.equal(value, (before if name in late else after)["state_dict"][name])
    snapshot.rest.run()
    snapshot.rest.wait()
    assert diff(result, after) == []


@pytest.mark.parametrize("tied", [False, True])
def test_a_change_before_postponed_copies_are_made_is_an_error(tied: bool) -> None:
    model, optimizer = trained()
    state = content(model, optimizer)
    if tied:
        state["state_dict"]["again"] = state["state_dict"]["0.weight"]
    snapshot = Snapshot()
    snapshot.take(state, stepped_tensors(optimizer))
    with torch.no_grad():
        model[0].weight.clamp_(-0.01, 0.01)
    with pytest.raises(CheckpointError):
        snapshot.rest.run()
    snapshot.rest.wait()


def test_nothing_waits_for_copies_that_were_not_postponed() -> None:
    model, optimizer = trained()
    snapshot = Snapshot()
    snapshot.rest.wait()
    snapshot.take(content(model, optimizer))
    snapshot.rest.wait()
    step(model, optimizer)
    snapshot.rest.run()
