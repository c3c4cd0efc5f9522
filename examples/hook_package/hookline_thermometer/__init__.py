"""A hook that monitors the temperature of the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psutil

from hookline import BaseHook, state

__all__ = ["ThermometerHook"]


@dataclass
class ThermometerHook(BaseHook):
    """Record the temperature, and save and stop when it is too high.

    Machines without a sensor are skipped.

    Args:
        interval: The number of iterations between two measurements.
        limit: The highest temperature in degrees Celsius.
    """

    interval: int = 50
    limit: float = 95.0
    highest: float = state(0.0)

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"ThermometerHook: interval must be at least 1, got {self.interval}")

    def after_train_iter(self, runner, events) -> None:
        if not self.every_n_iters(runner, self.interval):
            return
        temperature = self.measure()
        if temperature is None:
            return
        self.highest = max(self.highest, temperature)
        events.put_scalar("temperature", temperature, smoothing_hint=False)
        if temperature > self.limit:
            runner.request_save()
            runner.request_stop(f"{temperature:.0f} degrees, more than {self.limit:.0f}")

    def measure(self) -> float | None:
        """Return the highest temperature, or None if the machine has no sensor."""
        sensors: dict[str, list[Any]] = getattr(psutil, "sensors_temperatures", dict)()
        temperatures = [sensor.current for group in sensors.values() for sensor in group]
        return max(temperatures, default=None)
