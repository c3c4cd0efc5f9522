"""States of several objects in one checkpoint."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.checkpoint.parts import (
    collect_states,
    gather_states,
    load_states,
    select_rank_state,
    versions,
)
from hookline.dist import World
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


class TwoRanks(World):
    """Two ranks, of which the other one sends the same message."""

    def gather(self, message: bytes) -> list[bytes]:
        return [message, message]


def test_each_rank_gets_its_own_state_back() -> None:
    own = {"rng": torch.arange(4), "events": {"step": 3}}
    checkpoint = {"rng": None, "events": None, "by_rank": gather_states(TwoRanks(1, 2), own)}
    selected = select_rank_state(checkpoint, World(1, 2))
    assert torch.equal(selected["rng"], own["rng"])
    assert selected["events"] == {"step": 3}
    assert select_rank_state(checkpoint, World(0, 2)) is checkpoint


def test_a_new_rank_gets_new_random_numbers() -> None:
    checkpoint = {"meta": {"iter": 7}, "rng": None, "by_rank": []}
    second = select_rank_state(checkpoint, World(1, 3), seed=5)
    third = select_rank_state(checkpoint, World(2, 3), seed=5)
    assert not torch.equal(second["rng"]["torch"], third["rng"]["torch"])


def test_versions_name_the_package_and_torch() -> None:
    assert versions()["torch"] == torch.__version__
    assert set(versions()) == {"hookline", "torch", "python"}
