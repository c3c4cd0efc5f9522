"""The peaks of devices."""

from __future__ import annotations

import pytest
import torch

from hookline.profiling.peaks import peak_flops


@pytest.mark.parametrize(
    "name, peak",
    [
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA A10", 125e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA GeForce RTX 4090", 165e12),
        ("Some other GPU", None),
    ],
)
def test_a_gpu_is_known_by_its_name(name, peak, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
    assert peak_flops(torch.device("cuda")) == peak


def test_the_peak_of_a_cpu_is_not_known():
    assert peak_flops(torch.device("cpu")) is None
