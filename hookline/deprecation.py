"""Old names that still work, with a warning, for one release."""

from __future__ import annotations

import warnings
from operator import attrgetter
from typing import Any

# Attributes of a runner in version 0.1, and where they are today.
RUNNER_ATTRIBUTES = {
    "continue_from": "checkpointer.resume_from",
    "data_time": "loop.data_time",
    "hook_order": "sites.order",
    "is_finished": "loop.is_finished",
    "iter_limit": "loop.iter_limit",
    "load_from": "checkpointer.load_from",
    "load_weights": "checkpointer.load_weights",
    "metric_objects": "evaluation.metrics",
    "passed_over": "loop.skipped_batches",
    "resume": "checkpointer.resume",
    "resuming": "loop.resuming",
    "seam": "requests",
    "store": "checkpointer.store",
    "used_rates": "events.step_learning_rates",
    "wait_for_saves": "checkpointer.wait",
}


def renamed_attribute(owner: object, name: str, renamed: dict[str, str]) -> Any:
    """Return an attribute by its old name and warn; raise AttributeError if there is none."""
    kind = type(owner).__name__
    if name not in renamed:
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
    path = renamed[name]
    warnings.warn(f"{kind}.{name} is now {path}", DeprecationWarning, stacklevel=3)
    return attrgetter(path)(owner)
