"""Samplers get the epoch, however deep they are nested."""

from __future__ import annotations

from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, TensorDataset

from hookline.hooks import DistSamplerSeedHook
from tests.helpers import batches, make_runner


def test_a_distributed_sampler_shuffles_in_each_epoch_also_inside_a_batch_sampler(tmp_path):
    dataset = TensorDataset(*batches(1, size=32)[0])
    for deep in (False, True):
        sampler = DistributedSampler(dataset, num_replicas=2, rank=0, shuffle=True)
        if deep:
            loader = DataLoader(dataset, batch_sampler=BatchSampler(sampler, 4, False))
        else:
            loader = DataLoader(dataset, sampler=sampler, batch_size=4)
        make_runner(
            tmp_path / str(deep), DistSamplerSeedHook(), train_loader=loader, max_epochs=3
        ).train()
        assert sampler.epoch == 2


def test_a_loader_without_a_sampler_is_no_trouble(tmp_path):
    assert make_runner(tmp_path, DistSamplerSeedHook()).train().epoch == 2
