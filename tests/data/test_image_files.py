from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
import torch

from hookline.data import describe
from hookline.data.image_files import CIFAR10, MNIST
from tests.problems import raises_problem


def write_idx(path, array, packed=False):
    raw = (
        struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
        + array.astype(np.uint8).tobytes()
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(raw, 1) if packed else raw)


def write_mnist(folder, ending="", train=5010, test=3):
    for prefix, count in (("train", train), ("t10k", test)):
        images = np.arange(count).reshape(-1, 1, 1) % 256 * np.ones((1, 28, 28))
        write_idx(folder / f"{prefix}-images-idx3-ubyte{ending}", images, ending == ".gz")
        write_idx(
            folder / f"{prefix}-labels-idx1-ubyte{ending}", np.arange(count) % 10, ending == ".gz"
        )


def write_cifar(folder, per_file=1002):
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(
        [
            "data_batch_1",
            "data_batch_2",
            "data_batch_3",
            "data_batch_4",
            "data_batch_5",
            "test_batch",
        ]
    ):
        records = np.full((per_file, 3073), number, np.uint8)
        records[:, 0] = np.arange(per_file) % 10
        records[:, -1] = 255
        records.tofile(folder / f"{name}.bin")


@pytest.mark.parametrize(("subfolder", "ending"), [("", ""), ("MNIST/raw", ".gz")])
def test_mnist_is_read_packed_or_not_and_from_the_usual_folder(tmp_path, subfolder, ending):
    write_mnist(tmp_path / subfolder, ending)
    train, val, test = (MNIST(tmp_path, split) for split in ("train", "val", "test"))
    assert [len(train), len(val), len(test)] == [10, 5000, 3]
    image, target = val[1]
    assert image.shape == (1, 28, 28)
    assert image[0, 0, 0] == pytest.approx(11 / 255)
    assert target == 11 % 10
    assert describe(train).num_classes == 10


def test_cifar10_is_read_in_the_order_of_its_files(tmp_path):
    write_cifar(tmp_path / "cifar-10-batches-bin")
    train, val, test = (CIFAR10(tmp_path, split) for split in ("train", "val", "test"))
    assert [len(train), len(val), len(test)] == [10, 5000, 1002]
    assert train[9][0].shape == (3, 32, 32)
    assert train[9][1] == 9
    assert test[0][0][0, 0, 0] == pytest.approx(5 / 255)
    assert (
        test[0][0][2, 31, 31] == 1
    )  # the last byte of a record is the last pixel of the last channel
    assert train.targets.dtype == torch.int64
    assert describe(train).class_names[3] == "cat"


def test_missing_files_are_listed_with_the_folders_they_belong_into(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    with raises_problem(component="MNIST") as error:
        MNIST(tmp_path)
    (problem,) = error.value.problems
    assert "train-labels-idx1-ubyte" in problem.message
    assert "images" not in problem.message
    assert str(tmp_path / "MNIST" / "raw") in problem.suggestion.advice


def test_for_the_python_version_of_cifar10_the_binary_version_is_suggested(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / "data_batch_1").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with raises_problem(component="CIFAR10") as error:
        CIFAR10(tmp_path)
    assert "binary version" in error.value.suggestion.advice


def test_a_damaged_file_is_named(tmp_path):
    write_mnist(tmp_path)
    path = tmp_path / "t10k-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="t10k-images-idx3-ubyte"):
        MNIST(tmp_path, "test")
    path.write_bytes(b"<html>")
    with pytest.raises(ValueError, match="t10k-images-idx3-ubyte"):
        MNIST(tmp_path, "test")
    write_cifar(tmp_path, 2)
    (tmp_path / "test_batch.bin").write_bytes(b"\0" * 3000)
    with pytest.raises(ValueError, match=r"test_batch\.bin"):
        CIFAR10(tmp_path, "test")


def test_training_files_too_small_to_split_are_rejected(tmp_path):
    write_mnist(tmp_path, train=20)
    with raises_problem(component="MNIST"):
        MNIST(tmp_path)


def test_an_unknown_split_is_rejected(tmp_path):
    with raises_problem(component="MNIST", parameter="split", value="all"):
        MNIST(tmp_path, "all")
