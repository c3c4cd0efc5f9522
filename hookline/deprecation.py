"""Deprecated names, which work with a warning for one release."""

from __future__ import annotations

import warnings
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from hookline.foreign_names import RefusedAttribute, missing_attribute

# Attributes of a runner in version 0.1, and where they are today.
RUNNER_ATTRIBUTES = {
    "accumulating": "loop.accumulating",
    "begin_epoch": "loop.begin_epoch",
    "call_site": "loop.call_site",
    "configured": "checkpointer.initial_hyperparameters",
    "continue_from": "checkpointer.resume_from",
    "costs": "sites.costs",
    "data_time": "loop.data_time",
    "finish_resume": "loop.reapply_state",
    "hook_budget": "sites.costs.budget",
    "hook_order": "sites.order",
    "is_finished": "loop.is_finished",
    "iter_limit": "loop.iter_limit",
    "load_from": "checkpointer.load_from",
    "load_strict": "checkpointer.load_strict",
    "load_weights": "checkpointer.load_weights",
    "locate_error": "sites.locate_error",
    "metric_objects": "evaluation.metrics",
    "passed_over": "loop.skipped_batches",
    "requests": "loop.requests",
    "resume": "checkpointer.resume",
    "resuming": "loop.resuming",
    "running": "loop.is_running",
    "seam": "loop.requests",
    "services": "sites.services",
    "skip_batches": "loop.data.batches_to_reread",
    "store": "checkpointer.store",
    "used_rates": "events.step_learning_rates",
    "wait_for_saves": "checkpointer.wait",
}


class RenamedHookMethods:
    """Methods of a hook under their names in version 0.1, with a DeprecationWarning."""

    def leave_alone(self, *sites: str) -> None:
        """Call `disable_sites`."""
        message = "BaseHook.leave_alone is deprecated; use BaseHook.disable_sites"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        self.disable_sites(*sites)  # type: ignore[attr-defined]


class RenamedAttributes:
    """Attributes of a runner under their names in version 0.1, with a DeprecationWarning.

    Attributes of other trainers are errors that name the attribute here.
    """

    if not TYPE_CHECKING:  # a type checker must not accept every name
        should_stop = RefusedAttribute()

        def __getattr__(self, name: str) -> Any:
            if name not in RUNNER_ATTRIBUTES:
                raise missing_attribute(self, name)
            kind = type(self).__name__
            path = RUNNER_ATTRIBUTES[name]
            warnings.warn(
                f"{kind}.{name} is deprecated; use {kind}.{path}", DeprecationWarning, stacklevel=2
            )
            return attrgetter(path)(self)
