"""SystemMonitorHook: what is sampled, when it is recorded, and that its thread ends."""

from __future__ import annotations

import logging
import sys
import threading
from types import ModuleType, SimpleNamespace

import psutil
import pytest

from hookline.engine import BaseHook
from hookline.hooks import SystemMonitorHook
from tests.helpers import batches, make_runner
from tests.problems import logged
from tests.waiting import wait_until

NO_GPU = {"track_gpu": False, "track_gpu_memory": False}


class WaitForSample(BaseHook):
    """Lets the first iteration begin when the monitor has taken a sample."""

    def __init__(self, monitor: SystemMonitorHook) -> None:
        self.monitor = monitor

    def before_train_iter(self, iter):
        if iter == 0:
            wait_until(lambda: self.monitor.samples_taken, "a sample of the monitor")


def run(tmp_path, hook, *others, iterations=3):
    loader = batches(iterations)
    runner = make_runner(tmp_path, hook, *others, train_loader=loader, max_epochs=1)
    runner.train()
    return runner


def sampled(tmp_path, hook, *others, iterations=3):
    """What a run records that has a sample from its first iteration on."""
    runner = run(tmp_path, hook, WaitForSample(hook), *others, iterations=iterations)
    return runner.events.latest()


def threads():
    return [
        thread.name
        for thread in threading.enumerate()
        if thread.name.startswith("hookline-SystemMonitor")
    ]


def test_the_use_of_the_machine_is_recorded(tmp_path):
    latest = sampled(tmp_path, SystemMonitorHook(frequency=1, interval=0.01))
    assert 0 <= latest["system/cpu_percent"] <= 100
    assert latest["system/process_cpu_percent"] >= 0
    assert 0 < latest["system/memory_percent"] <= 100
    assert 0 < latest["system/process_memory_gb"] < psutil.virtual_memory().total / 1e9
    assert latest["system/network_sent_mb_s"] >= 0
    assert latest["system/network_received_mb_s"] >= 0


def test_it_is_recorded_every_so_many_iterations(tmp_path):
    counts = []

    class Count(BaseHook):
        priority = "HIGHEST"  # Runs after the other hooks.

        def after_train_iter(self, events):
            series = events.state_dict().get("system/cpu_percent", {"window": []})
            counts.append(len(series["window"]))

    sampled(tmp_path, SystemMonitorHook(frequency=5, interval=0.01), Count(), iterations=12)
    assert counts == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3]


def test_the_first_sample_comes_early_and_the_next_after_the_interval(tmp_path):
    hook = SystemMonitorHook(frequency=1, interval=1e6, **NO_GPU)  # Seconds: longer than any test.
    assert sampled(tmp_path, hook, iterations=20)
    assert hook.samples_taken == 1


@pytest.mark.parametrize(
    ("switch", "name"),
    [
        ("track_cpu", "cpu"),
        ("track_memory", "memory"),
        ("track_network", "network"),
        ("track_disk", "disk"),
    ],
)
def test_each_part_can_be_left_out(tmp_path, switch, name):
    hook = SystemMonitorHook(frequency=1, interval=0.01, **{switch: False}, **NO_GPU)
    latest = sampled(tmp_path, hook)
    assert latest
    assert not [key for key in latest if name in key]


def test_the_thread_ends_with_the_run(tmp_path):
    seen = []

    class Look(BaseHook):
        def after_train_iter(self):
            seen.append(threads())

    run(tmp_path, SystemMonitorHook(interval=0.01), Look(), iterations=2)
    assert seen[0] == ["hookline-SystemMonitorHook"]
    wait_until(lambda: not threads(), "the end of the thread")


def test_the_thread_ends_after_a_failure_too(tmp_path):
    class Fail(BaseHook):
        def after_train_iter(self):
            raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        run(tmp_path, SystemMonitorHook(interval=1e6), Fail())
    wait_until(lambda: not threads(), "the end of the thread")


def test_without_a_gpu_it_logs_this_once_and_monitors_the_rest(tmp_path, caplog):
    pynvml = pytest.importorskip("pynvml")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        pass
    else:
        pynvml.nvmlShutdown()
        pytest.skip("this machine has a GPU")
    caplog.set_level(logging.INFO, "hookline")
    latest = sampled(tmp_path, SystemMonitorHook(frequency=1, interval=0.01))
    assert len(logged(caplog, "GPU", level="INFO")) == 1
    assert "system/cpu_percent" in latest
    assert not [key for key in latest if "gpu" in key]


def test_without_nvml_bindings_it_names_the_package(tmp_path, caplog, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    caplog.set_level(logging.INFO, "hookline")
    sampled(tmp_path, SystemMonitorHook(frequency=1, interval=0.01))
    assert "nvidia-ml-py" in caplog.text


def two_gpus(monkeypatch):
    """A stand-in for NVML: this test's machine need not have two GPUs."""
    nvml = ModuleType("pynvml")
    nvml.NVMLError = RuntimeError
    nvml.closed = 0
    nvml.nvmlInit = lambda: None
    nvml.nvmlShutdown = lambda: setattr(nvml, "closed", nvml.closed + 1)
    nvml.nvmlDeviceGetCount = lambda: 2
    nvml.nvmlDeviceGetHandleByIndex = lambda index: index
    nvml.nvmlDeviceGetUtilizationRates = lambda device: SimpleNamespace(gpu=40 + device)
    nvml.nvmlDeviceGetMemoryInfo = lambda device: SimpleNamespace(
        used=(1 + device) * 10**9, total=4 * 10**9
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return nvml


def test_each_gpu_is_recorded(tmp_path, monkeypatch):
    nvml = two_gpus(monkeypatch)
    latest = sampled(tmp_path, SystemMonitorHook(frequency=1, interval=0.01))
    assert {key: value for key, value in latest.items() if "gpu" in key} == {
        "system/gpu0_percent": 40, "system/gpu0_memory_percent": 25, "system/gpu0_memory_gb": 1,
        "system/gpu1_percent": 41, "system/gpu1_memory_percent": 50, "system/gpu1_memory_gb": 2,
    }  # fmt: skip
    assert nvml.closed == 1


@pytest.mark.parametrize(
    ("switch", "left"), [("track_gpu", "gpu0_memory_gb"), ("track_gpu_memory", "gpu0_percent")]
)
def test_use_and_memory_of_gpus_are_chosen_apart(tmp_path, monkeypatch, switch, left):
    two_gpus(monkeypatch)
    hook = SystemMonitorHook(frequency=1, interval=0.01, **{switch: False})
    latest = sampled(tmp_path, hook)
    assert f"system/{left}" in latest
    assert len([key for key in latest if "gpu0" in key]) == (2 if switch == "track_gpu" else 1)


def test_a_monitor_that_fails_is_logged_and_training_continues(tmp_path, caplog, monkeypatch):
    def broken():
        raise OSError("no /proc")

    class WaitForTheEnd(BaseHook):
        def before_train_iter(self):
            wait_until(lambda: not threads(), "the end of the monitor's thread")

    monkeypatch.setattr(psutil, "virtual_memory", broken)
    hook = SystemMonitorHook(frequency=1, interval=0.01, **NO_GPU)
    assert run(tmp_path, hook, WaitForTheEnd()).iter == 3
    (record,) = [record for record in caplog.records if "SystemMonitorHook" in record.getMessage()]
    assert record.levelno == logging.WARNING
    assert record.exc_info[0] is OSError


def test_a_machine_without_disk_counters_is_fine(tmp_path, monkeypatch):
    monkeypatch.setattr(psutil, "disk_io_counters", lambda: None)
    latest = sampled(tmp_path, SystemMonitorHook(frequency=1, interval=0.01, **NO_GPU))
    assert "system/memory_percent" in latest
    assert "system/disk_read_mb_s" not in latest


@pytest.mark.parametrize("wrong", [{"frequency": 0}, {"interval": 0}, {"interval": float("nan")}])
def test_wrong_parameters_are_rejected(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SystemMonitorHook(**wrong)
