"""SystemMonitorHook: what is sampled, when it is recorded, and that its thread ends."""

from __future__ import annotations

import logging
import sys
import threading
import time
from types import ModuleType, SimpleNamespace

import psutil
import pytest

from hookline.engine import BaseHook
from hookline.hooks import SystemMonitorHook
from tests.helpers import batches, make_runner

NO_GPU = {"track_gpu": False, "track_gpu_memory": False}


class Slow(BaseHook):
    """Makes each iteration take 20 ms, so that there is something to sample."""

    def before_train_iter(self):
        time.sleep(0.02)


def run(tmp_path, hook, *others, iterations=10):
    runner = make_runner(tmp_path, hook, Slow(), *others, train_loader=batches(iterations), max_epochs=1)
    runner.train()
    return runner


def threads():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("hookline-SystemMonitor")]


def test_the_use_of_the_machine_is_recorded(tmp_path):
    latest = run(tmp_path, SystemMonitorHook(frequency=1, interval=0.02)).events.latest()
    assert 0 <= latest["system/cpu_percent"] <= 100
    assert latest["system/process_cpu_percent"] >= 0
    assert 0 < latest["system/memory_percent"] <= 100
    assert latest["system/process_memory_gb"] == pytest.approx(psutil.Process().memory_info().rss / 1e9, rel=0.5)
    assert latest["system/network_sent_mb_s"] >= 0
    assert latest["system/network_received_mb_s"] >= 0


def test_it_is_recorded_every_so_many_iterations(tmp_path):
    counts = []

    class Count(BaseHook):
        priority = "HIGHEST"  # after the others

        def after_train_iter(self, events):
            counts.append(len(events.state_dict().get("system/cpu_percent", {"window": []})["window"]))

    run(tmp_path, SystemMonitorHook(frequency=5, interval=0.01), Count(), iterations=20)
    grew = [step for step, (before, after) in enumerate(zip([0, *counts], counts)) if after > before]  # noqa: B905
    assert grew
    assert all(step % 5 == 0 for step in grew)
    assert grew[-1] == 15


def test_samples_are_taken_at_the_interval(tmp_path):
    values = []

    class Collect(BaseHook):
        priority = "HIGHEST"

        def after_train_iter(self, events):
            values.append(events.latest().get("system/process_memory_gb"))
            self.kept = bytearray(10_000_000 * len(values))  # so that each sample differs

    run(tmp_path, SystemMonitorHook(frequency=1, interval=60.0, **NO_GPU), Collect(), iterations=20)
    assert len(set(values) - {None}) == 1  # the first sample, and none after it within a minute


@pytest.mark.parametrize(
    ("switch", "name"),
    [("track_cpu", "cpu"), ("track_memory", "memory"), ("track_network", "network"), ("track_disk", "disk")],
)
def test_each_part_can_be_left_out(tmp_path, switch, name):
    latest = run(tmp_path, SystemMonitorHook(frequency=1, interval=0.02, **{switch: False}, **NO_GPU)).events.latest()
    assert latest
    assert not [key for key in latest if name in key]


def test_the_thread_ends_with_the_run(tmp_path):
    seen = []

    class Look(BaseHook):
        def after_train_iter(self):
            seen.append(threads())

    run(tmp_path, SystemMonitorHook(interval=0.01), Look(), iterations=2)
    assert seen[0] == ["hookline-SystemMonitorHook"]
    assert threads() == []


def test_the_thread_ends_after_a_failure_too(tmp_path):
    class Fail(BaseHook):
        def after_train_iter(self):
            raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        run(tmp_path, SystemMonitorHook(interval=60), Fail())
    assert threads() == []


def test_without_a_gpu_it_says_so_once_and_goes_on(tmp_path, caplog):
    pynvml = pytest.importorskip("pynvml")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        pass
    else:
        pynvml.nvmlShutdown()
        pytest.skip("this machine has a GPU")
    caplog.set_level(logging.INFO, "hookline")
    latest = run(tmp_path, SystemMonitorHook(frequency=1, interval=0.02)).events.latest()
    assert len([message for message in caplog.messages if "no GPU is monitored" in message]) == 1
    assert "system/cpu_percent" in latest
    assert not [key for key in latest if "gpu" in key]


def test_without_nvml_bindings_it_names_the_package(tmp_path, caplog, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    caplog.set_level(logging.INFO, "hookline")
    run(tmp_path, SystemMonitorHook(frequency=1, interval=0.02))
    assert "needs the package nvidia-ml-py" in caplog.text


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
    nvml.nvmlDeviceGetMemoryInfo = lambda device: SimpleNamespace(used=(1 + device) * 10**9, total=4 * 10**9)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return nvml


def test_each_gpu_is_recorded(tmp_path, monkeypatch):
    nvml = two_gpus(monkeypatch)
    latest = run(tmp_path, SystemMonitorHook(frequency=1, interval=0.02)).events.latest()
    assert {key: value for key, value in latest.items() if "gpu" in key} == {
        "system/gpu0_percent": 40, "system/gpu0_memory_percent": 25, "system/gpu0_memory_gb": 1,
        "system/gpu1_percent": 41, "system/gpu1_memory_percent": 50, "system/gpu1_memory_gb": 2,
    }  # fmt: skip
    assert nvml.closed == 1


@pytest.mark.parametrize(("switch", "left"), [("track_gpu", "gpu0_memory_gb"), ("track_gpu_memory", "gpu0_percent")])
def test_use_and_memory_of_gpus_are_chosen_apart(tmp_path, monkeypatch, switch, left):
    two_gpus(monkeypatch)
    latest = run(tmp_path, SystemMonitorHook(frequency=1, interval=0.02, **{switch: False})).events.latest()
    assert f"system/{left}" in latest
    assert len([key for key in latest if "gpu0" in key]) == (2 if switch == "track_gpu" else 1)


def test_monitoring_that_fails_is_told_and_training_goes_on(tmp_path, caplog, monkeypatch):
    def broken():
        raise OSError("no /proc")

    monkeypatch.setattr(psutil, "virtual_memory", broken)
    runner = run(tmp_path, SystemMonitorHook(frequency=1, interval=0.02, **NO_GPU))
    assert runner.iter == 10
    assert "monitoring ends here" in caplog.text
    assert "no /proc" in caplog.text


def test_a_machine_without_disk_counters_is_fine(tmp_path, monkeypatch):
    monkeypatch.setattr(psutil, "disk_io_counters", lambda: None)
    latest = run(tmp_path, SystemMonitorHook(frequency=1, interval=0.02, **NO_GPU)).events.latest()
    assert "system/memory_percent" in latest
    assert "system/disk_read_mb_s" not in latest


@pytest.mark.parametrize("wrong", [{"frequency": 0}, {"interval": 0}, {"interval": float("nan")}])
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SystemMonitorHook(**wrong)
