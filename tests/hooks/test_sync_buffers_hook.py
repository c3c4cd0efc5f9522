"""Buffers that are the same everywhere; what it does with several processes is shown where these are started."""

from __future__ import annotations

import torch
from torch import nn

from hookline.hooks import SyncBuffersHook
from tests.helpers import make_runner


def test_on_one_process_there_is_nothing_to_synchronise(tmp_path):
    def run(folder, *hooks):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
        make_runner(folder, *hooks, model=model).train()
        return model.state_dict()

    plain, synced = run(tmp_path / "a"), run(tmp_path / "b", SyncBuffersHook())
    assert all(torch.equal(plain[key], synced[key]) for key in plain)


def test_in_a_process_group_buffers_become_their_mean(tmp_path):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1
    )
    try:
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
        make_runner(tmp_path / "run", SyncBuffersHook(), model=model).train()
        assert torch.isfinite(model[1].running_mean).all()
        assert model[1].num_batches_tracked == 8
    finally:
        torch.distributed.destroy_process_group()
