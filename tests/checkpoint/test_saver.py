"""Saving beside training: one save at a time, one extra copy, and errors that come back."""

from __future__ import annotations

import threading

import pytest
import torch

from hookline.checkpoint import CheckpointError, CheckpointStore, FileSystem, Saver


class Gate(FileSystem):
    """A disk that waits until it is let through."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def write(self, descriptor, data):
        assert self.open.wait(10)
        return super().write(descriptor, data)


def saver(folder, fs=None, background=True):
    store, reports = CheckpointStore(folder, fs), []
    store.prepare()
    return store, Saver(store, background, reports.append), reports


def test_training_goes_on_while_the_disk_is_slow_and_the_copy_is_what_it_was(tmp_path):
    gate = Gate()
    gate.open.set()
    store, saves, _ = saver(tmp_path, gate)
    gate.open.clear()
    weight = torch.zeros(4)
    saves.save({"state_dict": {"w": weight}}, ["a.pth", "last.pth"], later=[weight], step=1, epoch=0)
    saves.settle()
    weight += 1  # the optimizer steps
    gate.open.set()
    saves.wait()
    assert store.load("last.pth")["state_dict"]["w"].tolist() == [0, 0, 0, 0]


def test_what_is_surplus_goes_after_the_new_one_is_safe(tmp_path):
    store, saves, _ = saver(tmp_path)
    for step, name in enumerate(["a.pth", "b.pth", "c.pth"]):
        saves.save({"state_dict": {}}, [name], surplus=["a.pth"] if name == "c.pth" else [], step=step, epoch=0)
    saves.wait()
    assert [entry.name for entry in store.entries()] == ["b.pth", "c.pth"]


def test_an_error_in_the_background_is_reported_and_raised_once_in_whoever_asks(tmp_path):
    class Broken(FileSystem):
        def sync(self, descriptor):
            raise OSError(5, "Input/output error")

    store, saves, reports = saver(tmp_path)
    store._fs = Broken()
    saves.save({"state_dict": {}}, ["a.pth"], step=1, epoch=0)
    with pytest.raises(CheckpointError, match=r"a\.pth.*Input/output error"):
        saves.wait()
    saves.wait()
    assert len(reports) == 1


def test_in_the_foreground_the_file_is_there_at_once(tmp_path):
    store, saves, _ = saver(tmp_path, background=False)
    saves.save({"state_dict": {"w": torch.ones(2)}}, ["a.pth"], step=1, epoch=0)
    assert store.load("a.pth")["state_dict"]["w"].tolist() == [1, 1]
