from __future__ import annotations

import random
from collections import Counter

import pytest
import torch
from torch.utils.data import Dataset, Subset, TensorDataset

from hookline import Runner
from hookline.data import DATASETS, make_loader
from hookline.data.weights import find_targets, find_weights
from hookline.errors import ConfigError
from tests.data.loaders import LENGTH, Noisy, NumbersWithState, interrupted, straight

RARE = TensorDataset(torch.arange(1000), (torch.arange(1000) < 20).long())


def twice_as_likely(dataset):
    return [2.0 if index < 10 else 1.0 for index in range(len(dataset))]


def test_balanced_classes_come_equally_often():
    loader = make_loader(RARE, batch_size=50, sample_weights="balanced", seed=3)
    counts = Counter(int(target) for _, targets in loader for target in targets)
    assert sum(counts.values()) == 1000
    assert 430 < counts[1] < 570


def test_a_sample_without_weight_never_comes():
    weights = torch.zeros(100)
    weights[[3, 50]] = torch.tensor([1.0, 3.0])
    loader = make_loader(list(range(100)), batch_size=10, sample_weights=weights)
    counts = Counter(torch.cat(list(loader)).tolist())
    assert set(counts) == {3, 50}
    assert 60 < counts[50] < 90


def test_epochs_differ_and_ranks_divide_the_same_draws():
    def samples(rank, world_size, epoch):
        options = {"batch_size": 10 // world_size, "rank": rank, "world_size": world_size}
        loader = make_loader(list(range(100)), sample_weights=[1.0] * 100, **options)
        loader.set_epoch(epoch)
        return torch.cat(list(loader)).tolist()

    assert samples(0, 1, 0) != samples(0, 1, 1)
    assert sorted(samples(0, 2, 0) + samples(1, 2, 0)) == sorted(samples(0, 1, 0))


def test_a_sample_that_comes_twice_gets_other_random_numbers():
    class Drawing(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return random.random()

    weights = [1.0, 0.0, 0.0, 0.0]
    drawn = {}
    for workers in (0, 2):
        loader = make_loader(Drawing(), 2, num_workers=workers, sample_weights=weights)
        drawn[workers] = torch.cat(list(loader)).tolist()
        assert len(set(drawn[workers])) == 4
    assert drawn[0] == drawn[2]


@pytest.mark.parametrize("cuts", [[1], [5], [7], [2, 9]], ids=str)
def test_a_weighted_loader_continues_exactly(cuts):
    def make():
        return make_loader(Noisy(), 4, sample_weights=[1.0 + index for index in range(LENGTH)])

    assert interrupted(make, cuts) == straight(make)


def test_other_weights_are_refused_inside_an_epoch():
    state = make_loader(RARE, sample_weights="balanced").state_dict(2)
    loader = make_loader(RARE, sample_weights=[1.0] * 1000)
    with pytest.raises(ConfigError) as caught:
        loader.load_state_dict(state)
    assert caught.value.parameter == "sample_weights"


def test_a_config_balances_the_training_data_alone(tmp_path):
    config = {
        "work_dir": str(tmp_path),
        "model": "cnn",
        "dataset": "digits",
        "loader": {"sample_weights": "balanced"},
        "training": {"iters": 1},
    }
    runner = Runner.from_config(config)
    assert runner.train_loader.sampler.weights is not None
    assert runner.val_loader.sampler.weights is None


def test_classes_come_from_the_dataset():
    digits = DATASETS.build("digits")
    assert find_targets(Subset(digits, [5, 3])).tolist() == digits.targets[[5, 3]].tolist()
    assert find_targets(RARE).sum() == 20


def test_weights_come_from_a_function_also_by_its_path():
    assert find_weights(range(20), twice_as_likely).sum() == 30
    assert find_weights(range(20), f"{__name__}.twice_as_likely").sum() == 30


@pytest.mark.parametrize(
    "targets",
    [torch.rand(20), torch.zeros(20, 2, dtype=torch.long)],
    ids=["measurements", "several classes"],
)
def test_only_one_class_per_sample_can_be_balanced(targets):
    with pytest.raises(ConfigError) as caught:
        find_weights(TensorDataset(torch.arange(20), targets), "balanced")
    assert caught.value.parameter == "sample_weights"


@pytest.mark.parametrize(
    "weights",
    ["balanced", [1.0], [-1.0, 2.0, 1.0], [0.0] * 3, [float("nan")] * 3, ["a", "b", "c"]],
    ids=str,
)
def test_weights_that_do_not_fit_are_errors(weights):
    with pytest.raises(ConfigError) as caught:
        make_loader([1, 2, 3], sample_weights=weights)
    assert caught.value.parameter == "sample_weights"
    assert caught.value.suggestion.advice


def test_a_stream_has_no_weights():
    with pytest.raises(ConfigError) as caught:
        make_loader(NumbersWithState(), sample_weights="balanced")
    assert caught.value.parameter == "sample_weights"
