from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import nn

from hookline.checkpoint.diff import diff
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.formats import check_plain
from hookline.checkpoint.snapshot import Snapshot
from hookline.errors import ConfigError


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
    return {"state_dict": model.state_dict(), "optimizer": optimizer.state_dict(), "meta": {"losses": [1.0, 2.0]}}


def pointers(value: Any) -> set[int]:
    if isinstance(value, torch.Tensor):
        return {value.untyped_storage().data_ptr()}
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return {pointer for item in items for pointer in pointers(item)}


def test_a_snapshot_does_not_change_while_training_goes_on() -> None:
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


def test_a_tensor_of_another_shape_gets_new_memory_and_what_is_gone_is_let_go() -> None:
    snapshot = Snapshot()
    snapshot.take({"a": torch.ones(3), "b": torch.ones(1000)})
    copy = snapshot.take({"a": torch.zeros(2, 2)})
    assert diff(copy, {"a": torch.zeros(2, 2)}) == []
    assert sum(buffer.numel() for buffer in snapshot._buffers.values()) == 4


def test_tensors_that_share_memory_share_it_in_the_copy() -> None:
    flat = torch.arange(10.0)
    copy = Snapshot().take({"whole": flat, "part": flat[2:5], "tied": flat, "columns": flat.view(2, 5).t()})
    assert len(pointers(copy)) == 1
    flat.zero_()
    assert copy["part"].tolist() == [2, 3, 4]
    assert copy["columns"].tolist() == torch.arange(10.0).view(2, 5).t().tolist()


def test_a_small_view_does_not_drag_its_large_storage_along() -> None:
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
    dense = tensor.to_dense() if tensor.is_sparse else tensor
    assert torch.equal((copy.to_dense() if copy.is_sparse else copy).to(torch.complex64), dense.to(torch.complex64))
    assert copy.dtype == tensor.dtype


def test_what_cannot_be_stored_is_refused_where_it_is_seen_and_not_in_the_writer() -> None:
    with pytest.raises(ConfigError, match=r"hooks\.MyHook\.seen: a set"):
        Snapshot().take({"hooks": {"MyHook": {"seen": {1, 2}}}})


def test_what_may_wait_is_copied_when_the_snapshot_is_completed() -> None:
    model, optimizer = trained()
    snapshot = Snapshot()
    checkpoint = content(model, optimizer)
    wanted = Snapshot().take(checkpoint)
    copy = snapshot.take(checkpoint, later=model.parameters())
    assert diff(copy["optimizer"], wanted["optimizer"]) == []
    model(torch.randn(16, 4)).sum().backward()  # moves the statistics of the normalisation, and no parameter
    worker = threading.Thread(target=snapshot.complete)
    worker.start()
    snapshot.complete()
    worker.join()
    optimizer.step()
    assert diff(copy, wanted) == []


def test_a_tensor_that_did_not_wait_is_found_out() -> None:
    model, optimizer = trained()
    snapshot = Snapshot()
    snapshot.take(content(model, optimizer), later=model.parameters())
    step(model, optimizer)
    for _ in range(2):  # the thread that would write it is told as well
        with pytest.raises(CheckpointError, match=r"not saved: changed while the checkpoint was copied: state_dict\.0\.weight"):
            snapshot.complete()
    snapshot.take(content(model, optimizer))
    snapshot.complete()
