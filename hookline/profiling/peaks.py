"""Peak FLOP/s of devices."""

from __future__ import annotations

import torch

# FLOP/s of dense bfloat16, or float16 without it, from the data sheets. The longest match counts.
PEAKS = {
    "V100": 125e12,
    "T4": 65e12,
    "A10": 125e12,
    "A30": 165e12,
    "A40": 150e12,
    "A100": 312e12,
    "A800": 312e12,
    "L4": 121e12,
    "L40": 181e12,
    "L40S": 362e12,
    "H100 PCIe": 756e12,
    "H100": 989e12,
    "H200": 989e12,
    "H800": 989e12,
    "H20": 148e12,
    "B200": 2250e12,
    "RTX 3090": 71e12,
    "RTX 4090": 165e12,
}


def peak_flops(device: torch.device) -> float | None:
    """Return the peak FLOP/s of a device, or None if it is not known."""
    if device.type != "cuda":
        return None
    words = torch.cuda.get_device_name(device).replace("-", " ")
    fitting = [name for name in PEAKS if f" {name} " in f" {words} "]
    return PEAKS[max(fitting, key=len)] if fitting else None
