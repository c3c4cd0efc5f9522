"""MMEngine's loops, with training loops that resume exactly."""

# ruff: noqa: F401

from mmengine.runner.original_loops import TestLoop, ValLoop, _parse_losses, _update_losses

from hookline.compat.mmengine.runner.train_loops import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    _InfiniteDataloaderIterator,
)
