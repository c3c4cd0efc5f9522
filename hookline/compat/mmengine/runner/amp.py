"""Mixed precision for evaluation loops."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def autocast(
    device_type: str | None = None, dtype: torch.dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
) -> Generator[None, None, None]:
    """`torch.autocast` on the device that there is; on a CPU in bfloat16, whatever was asked for."""
    kind = device_type or ("cuda" if torch.cuda.is_available() else "cpu")
    options: dict[str, Any] = {"dtype": dtype if kind != "cpu" else torch.bfloat16, "enabled": enabled, "cache_enabled": cache_enabled}
    with torch.autocast(kind, **options):
        yield
