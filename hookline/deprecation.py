"""Old names that still work, with a warning, for one release."""

from __future__ import annotations

import warnings
from operator import attrgetter
from typing import TYPE_CHECKING, Any

# Attributes of a runner in version 0.1, and where they are today.
RUNNER_ATTRIBUTES = {
    "accumulating": "loop.accumulating",
    "call_site": "loop.call_site",
    "continue_from": "checkpointer.resume_from",
    "costs": "sites.costs",
    "data_time": "loop.data_time",
    "hook_order": "sites.order",
    "is_finished": "loop.is_finished",
    "iter_limit": "loop.iter_limit",
    "load_from": "checkpointer.load_from",
    "load_weights": "checkpointer.load_weights",
    "locate_error": "sites.locate_error",
    "metric_objects": "evaluation.metrics",
    "passed_over": "loop.skipped_batches",
    "requests": "loop.requests",
    "resume": "checkpointer.resume",
    "resuming": "loop.resuming",
    "running": "loop.is_running",
    "seam": "loop.requests",
    "store": "checkpointer.store",
    "used_rates": "events.step_learning_rates",
    "wait_for_saves": "checkpointer.wait",
}


class RenamedAttributes:
    """Finds attributes of a runner by their names in an earlier release, with a warning."""

    if not TYPE_CHECKING:  # a type checker must not accept every name

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            if name not in RUNNER_ATTRIBUTES:
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            path = RUNNER_ATTRIBUTES[name]
            warnings.warn(f"{kind}.{name} is now {path}", DeprecationWarning, stacklevel=2)
            return attrgetter(path)(self)
