"""MemoryProfilerHook: what is recorded, and which growth is a leak."""

from __future__ import annotations

import psutil
import pytest
import torch

from hookline.engine import BaseHook
from hookline.hooks import MemoryProfilerHook
from tests.helpers import batches, make_runner
from tests.problems import logged, raises_problem


class Leak(BaseHook):
    """Keeps 1 MB of every iteration."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    def after_train_iter(self):
        self.kept.append(b"x" * 1_000_000)


def test_memory_and_its_peak_are_recorded_at_the_interval(tmp_path):
    class Count(BaseHook):
        priority = "HIGHEST"

        def after_train_iter(self, events):
            counts.append(len(events.state_dict().get("memory/rss_gb", {"window": []})["window"]))

    counts: list[int] = []
    runner = make_runner(
        tmp_path, MemoryProfilerHook(interval=3), Count(), train_loader=batches(7), max_epochs=1
    )
    runner.train()
    latest = runner.events.latest()
    assert counts == [0, 0, 1, 1, 1, 2, 2]
    assert latest["memory/rss_gb"] == pytest.approx(
        psutil.Process().memory_info().rss / 1e9, rel=0.3
    )
    assert latest["memory/rss_peak_gb"] >= latest["memory/rss_gb"]
    assert not [name for name in latest if "gpu" in name]


def test_a_leaking_hook_is_reported_once_with_its_slope(tmp_path, caplog):
    make_runner(
        tmp_path, MemoryProfilerHook(interval=5), Leak(), train_loader=batches(100), max_epochs=1
    ).train()
    (message,) = [message for message in caplog.messages if "keeps growing" in message]
    slope = float(message.split("by ")[1].split(" MB")[0])
    assert slope == pytest.approx(1.0, rel=0.15)


def test_a_sound_run_is_not_reported(tmp_path, caplog):
    class Churn(BaseHook):
        """Takes much memory and gives it back."""

        def after_train_iter(self, runner):
            self.kept = torch.ones(1_000_000 + 200_000 * (runner.iter % 3))

    make_runner(
        tmp_path, MemoryProfilerHook(interval=2), Churn(), train_loader=batches(100), max_epochs=1
    ).train()
    assert not [message for message in caplog.messages if "growing" in message]


def test_passing_the_threshold_is_reported_once(tmp_path, caplog):
    make_runner(tmp_path, MemoryProfilerHook(interval=1, warn_threshold=0.001)).train()
    assert len(logged(caplog, "warn_threshold")) == 1
    caplog.clear()
    make_runner(tmp_path, MemoryProfilerHook(interval=1, warn_threshold=10_000.0)).train()
    assert not logged(caplog, "warn_threshold")


def test_the_memory_of_the_process_can_be_left_out(tmp_path):
    runner = make_runner(tmp_path, MemoryProfilerHook(interval=1, log_cpu=False))
    runner.train()
    assert not [name for name in runner.events.latest() if name.startswith("memory/")]


@pytest.mark.parametrize("log_gpu", [True, False])
def test_the_memory_of_a_gpu_is_recorded_if_wanted(tmp_path, monkeypatch, log_gpu):
    """With a stand-in for the GPU, for a test's machine need not have one."""

    for name, value in {
        "memory_allocated": 2e9,
        "memory_reserved": 3e9,
        "max_memory_allocated": 4e9,
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    hook = MemoryProfilerHook(interval=1, log_gpu=log_gpu)
    runner = make_runner(tmp_path)
    runner.device = torch.device("cuda")
    hook.before_train(runner)
    hook.after_train_iter(runner)
    latest = runner.events.latest()
    found = {name: value for name, value in latest.items() if "gpu" in name}
    assert found == (
        {"memory/gpu_gb": 2.0, "memory/gpu_reserved_gb": 3.0, "memory/gpu_peak_gb": 4.0}
        if log_gpu
        else {}
    )


@pytest.mark.parametrize("parameter", ["interval", "warn_threshold"])
def test_wrong_parameters_are_rejected(parameter):
    with raises_problem(component="MemoryProfilerHook", parameter=parameter, value=0):
        MemoryProfilerHook(**{parameter: 0})
