"""Runners, hooks and their helpers, with the names of `mmcv.runner`."""

from hookline.compat.missing import not_covered
from hookline.compat.mmcv.errors import ADVICE
from hookline.compat.mmcv.runner import hooks as _hooks
from hookline.compat.mmcv.runner.base_runner import BaseRunner
from hookline.compat.mmcv.runner.builder import (
    RUNNER_BUILDERS,
    RUNNERS,
    build_runner,
)
from hookline.compat.mmcv.runner.checkpoint import (
    CheckpointLoader,
    _load_checkpoint,
    _load_checkpoint_with_prefix,
    load_checkpoint,
    load_state_dict,
    save_checkpoint,
    weights_to_cpu,
)
from hookline.compat.mmcv.runner.default_constructor import DefaultRunnerConstructor
from hookline.compat.mmcv.runner.dist_utils import (
    allreduce_grads,
    allreduce_params,
    get_dist_info,
    init_dist,
    master_only,
)
from hookline.compat.mmcv.runner.epoch_based_runner import EpochBasedRunner, Runner
from hookline.compat.mmcv.runner.fp16_utils import auto_fp16, force_fp32, wrap_fp16_model
from hookline.compat.mmcv.runner.hooks import *  # noqa: F403
from hookline.compat.mmcv.runner.hooks import CheckPointHook as CheckPointHook
from hookline.compat.mmcv.runner.iter_based_runner import IterBasedRunner, IterLoader
from hookline.compat.mmcv.runner.log_buffer import LogBuffer
from hookline.compat.mmcv.runner.optimizer import OPTIMIZERS, build_optimizer
from hookline.compat.mmcv.runner.priority import Priority, get_priority
from hookline.compat.mmcv.runner.utils import get_host_info, get_time_str, set_random_seed

__all__ = [
    "OPTIMIZERS",
    "RUNNERS",
    "RUNNER_BUILDERS",
    "BaseRunner",
    "CheckpointLoader",
    "DefaultRunnerConstructor",
    "EpochBasedRunner",
    "IterBasedRunner",
    "IterLoader",
    "LogBuffer",
    "Priority",
    "Runner",
    "_load_checkpoint",
    "_load_checkpoint_with_prefix",
    "allreduce_grads",
    "allreduce_params",
    "auto_fp16",
    "build_optimizer",
    "build_runner",
    "force_fp32",
    "get_dist_info",
    "get_host_info",
    "get_priority",
    "get_time_str",
    "init_dist",
    "load_checkpoint",
    "load_state_dict",
    "master_only",
    "save_checkpoint",
    "set_random_seed",
    "weights_to_cpu",
    "wrap_fp16_model",
]
__all__ += _hooks.__all__

__getattr__ = not_covered(
    __name__,
    __all__,
    advice=ADVICE,
    instead={
        "BaseModule": "derive from torch.nn.Module and initialize the weights in its constructor",
        "DefaultOptimizerConstructor": "pass parameter groups to torch's optimizer",
    },
)
