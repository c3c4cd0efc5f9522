"""Settings of runs that `hookline verify-resume` starts.

The command sets an environment variable for the script that it checks. Runner and `drive` then use
that directory instead of the script's own, resume from it, and record the training data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ENVIRONMENT_VARIABLE = "HOOKLINE_VERIFY_DIR"
TRIAL_HOOK = {"type": "hookline.verify.TrialHook", "name": "BatchTraceHook"}


class RunParts(NamedTuple):
    """The parts of a run that `hookline verify-resume` replaces."""

    work_dir: str | Path | None
    resume: str | Path | None
    hooks: Iterable[Any]


def apply_trial(
    work_dir: str | Path | None, resume: str | Path | None, hooks: Iterable[Any]
) -> RunParts:
    """Return the given parts, or those that `hookline verify-resume` sets for its runs."""
    directory = os.environ.get(ENVIRONMENT_VARIABLE)
    if not directory:
        return RunParts(work_dir, resume, hooks)
    return RunParts(directory, "auto", [*map(_without_mirror, hooks), TRIAL_HOOK])


def _without_mirror(hook: Any) -> Any:
    """Return a hook, or its config, that does not use object storage: all runs would share it."""
    if isinstance(hook, Mapping):
        return {key: value for key, value in hook.items() if key != "mirror"}
    if getattr(hook, "mirror", None) is not None:
        hook.mirror = None
    return hook
