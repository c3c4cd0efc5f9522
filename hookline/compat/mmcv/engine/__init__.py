"""Run a model over a test set, without MMCV."""

from hookline.compat.missing import not_covered
from hookline.compat.mmcv.engine.test import (
    collect_results_cpu,
    collect_results_gpu,
    multi_gpu_test,
    single_gpu_test,
)

__all__ = ["collect_results_cpu", "collect_results_gpu", "multi_gpu_test", "single_gpu_test"]

__getattr__ = not_covered(__name__, __all__)
