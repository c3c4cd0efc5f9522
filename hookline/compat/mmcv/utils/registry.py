"""MMCV's `Registry` and `build_from_cfg`, where MMCV is not installed."""

from hookline.compat.registry import Registry, build_from_cfg

__all__ = ["Registry", "build_from_cfg"]
