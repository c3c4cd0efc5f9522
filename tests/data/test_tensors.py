from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from hookline.data import DATASETS, DataInfo, describe
from hookline.errors import ConfigError


def build(inputs, targets):
    return DATASETS.build({"type": "tensors", "inputs": str(inputs), "targets": str(targets)})


def test_numpy_and_torch_files_are_read_with_the_types_that_models_expect(tmp_path):
    np.save(tmp_path / "inputs.npy", np.random.rand(5, 3))
    torch.save(torch.tensor([0, 1, 2, 1, 0], dtype=torch.int32), tmp_path / "targets.pt")
    data = build(tmp_path / "inputs.npy", tmp_path / "targets.pt")
    assert (data[0][0].dtype, data[0][1].dtype) == (torch.float32, torch.int64)
    assert describe(data) == DataInfo(num_classes=3, input_shape=(3,))


def test_bytes_are_images_and_real_targets_are_no_classes(tmp_path):
    np.save(tmp_path / "images.npy", np.full((2, 1, 4, 4), 255, np.uint8))
    np.save(tmp_path / "targets.npy", np.array([0.5, 1.5]))
    data = build(tmp_path / "images.npy", tmp_path / "targets.npy")
    assert data[0][0].max() == 1
    assert data[0][1].dtype == torch.float32
    assert describe(data) == DataInfo(in_channels=1, input_shape=(1, 4, 4))


def test_nothing_in_a_file_is_executed(tmp_path):
    class Evil:
        def __reduce__(self):
            return (exec, ("raise AssertionError('executed')",))

    torch.save(torch.zeros(1), tmp_path / "targets.pt")
    torch.save(Evil(), tmp_path / "evil.pt")
    np.save(tmp_path / "evil.npy", np.array([Evil()]), allow_pickle=True)
    with pytest.raises(ConfigError) as caught:
        build(tmp_path / "evil.pt", tmp_path / "targets.pt")
    assert isinstance(caught.value.__cause__, pickle.UnpicklingError)
    with pytest.raises(ValueError, match="allow_pickle"):
        build(tmp_path / "evil.npy", tmp_path / "targets.pt")


def test_wrong_files_are_named(tmp_path):
    torch.save([1, 2], tmp_path / "list.pt")
    (tmp_path / "table.csv").write_text("1,2")
    with pytest.raises(ConfigError, match=r"absent\.pt"):
        build(tmp_path / "list.pt", tmp_path / "absent.pt")
    with pytest.raises(ConfigError, match=r"list\.pt"):
        build(tmp_path / "list.pt", tmp_path / "list.pt")
    with pytest.raises(ConfigError, match=r"table\.csv"):
        build(tmp_path / "table.csv", tmp_path / "table.csv")
