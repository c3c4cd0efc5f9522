"""Reading samples spread over a data set."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from hookline.data import make_loader
from hookline.dry_run.findings import DryRunTimeout
from hookline.dry_run.samples import MAX_FINDINGS, read_samples, spread_indices


class Faulty(Dataset):
    """Ten samples, some of which raise an error."""

    def __init__(self, faulty=(), error=ValueError):
        self.faulty = set(faulty)
        self.error = error

    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index in self.faulty:
            raise self.error(f"no sample {index}")
        return index


class Numbers(IterableDataset):
    def __iter__(self):
        return iter(range(5))


def loader_with(dataset):
    return SimpleNamespace(dataset=dataset)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 101])
def test_every_index_comes_once_and_both_ends_come_first(count: int) -> None:
    order = list(spread_indices(count))
    assert sorted(order) == list(range(count))
    assert order[:2] == [0, count - 1][: min(count, 2)]


def test_a_small_data_set_is_read_completely() -> None:
    loader = make_loader(TensorDataset(torch.arange(1500)), batch_size=4)
    assert read_samples("training", loader) == ([], "1,500 of 1,500")


def test_without_time_only_the_first_sample_is_read() -> None:
    loader = make_loader(TensorDataset(torch.arange(1500)), batch_size=4)
    assert read_samples("training", loader, seconds=-1.0) == ([], "1 of 1,500")


def test_a_faulty_sample_is_named() -> None:
    (finding,), amount = read_samples("validation", loader_with(Faulty([4])))
    assert finding.where == "validation data"
    assert finding.text.startswith("sample 4: ValueError: no sample 4")
    assert amount == "10 of 10"


def test_reading_ends_after_a_few_errors() -> None:
    findings, amount = read_samples("test", loader_with(Faulty(range(10))))
    assert len(findings) == MAX_FINDINGS
    assert amount == f"{MAX_FINDINGS} of 10"


def test_the_time_limit_of_the_dry_run_is_no_finding() -> None:
    with pytest.raises(DryRunTimeout):
        read_samples("test", loader_with(Faulty([0], DryRunTimeout)))


@pytest.mark.parametrize("loader", [None, loader_with(Numbers()), loader_with(None), [1, 2]])
def test_data_without_indices_is_skipped(loader: object) -> None:
    assert read_samples("training", loader) == ([], "")


def test_all_loaders_of_a_mapping_are_read() -> None:
    loaders = {"a": loader_with(Faulty()), "b": loader_with(Faulty([0]))}
    findings, amount = read_samples("validation", loaders)
    assert len(findings) == 1
    assert amount == "20 of 20"
