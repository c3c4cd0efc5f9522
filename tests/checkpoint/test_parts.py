"""States of several objects in one checkpoint."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.checkpoint.parts import as_tensor, collect_states, load_states, pack, unpack, versions
from hookline.errors import HooklineError


def optimizers(lr: float) -> dict[str, list[torch.optim.Optimizer]]:
    return {"g": [torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=lr)]}


def test_states_of_a_mapping_of_lists_round_trip() -> None:
    target = optimizers(lr=0.5)
    load_states(target, collect_states(optimizers(lr=0.1)))
    assert target["g"][0].param_groups[0]["lr"] == 0.1


def test_other_names_of_optimizers_are_an_error() -> None:
    with pytest.raises(HooklineError):
        load_states(optimizers(0.1), {"d": []})


def test_a_list_of_another_length_is_an_error() -> None:
    with pytest.raises(ValueError):
        load_states(optimizers(0.1), {"g": []})


def test_a_packed_state_round_trips_through_a_tensor() -> None:
    state = {"iter": 3, "rng": torch.arange(4)}
    copy = unpack(as_tensor(pack(state)))
    assert copy["iter"] == 3
    assert torch.equal(copy["rng"], state["rng"])


def test_versions_name_the_package_and_torch() -> None:
    assert versions()["torch"] == torch.__version__
    assert set(versions()) == {"hookline", "torch", "python"}
