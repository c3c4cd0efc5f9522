"""Hookline's priorities, with MMEngine's errors."""

from mmengine.runner.original_priority import get_priority

from hookline.priority import Priority

__all__ = ["Priority", "get_priority"]
