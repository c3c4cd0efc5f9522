"""Runs under `hookline verify-resume`, which chooses their work directory.

The command sets an environment variable for the script that it checks. Runner and `drive` then use
that directory instead of the script's own, resume from it, and record the training data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

VARIABLE = "HOOKLINE_VERIFY_DIR"
TRIAL_HOOK = {"type": "hookline.verify.TrialHook", "name": "BatchTraceHook"}


class RunParts(NamedTuple):
    """The parts of a run that `hookline verify-resume` replaces."""

    work_dir: str | Path | None
    resume: str | Path | None
    hooks: Iterable[Any]


def apply_trial(
    work_dir: str | Path | None, resume: str | Path | None, hooks: Iterable[Any]
) -> RunParts:
    """Return the given parts of a run, or those of a trial if `hookline verify-resume` runs."""
    directory = os.environ.get(VARIABLE)
    if not directory:
        return RunParts(work_dir, resume, hooks)
    return RunParts(directory, "auto", [*hooks, TRIAL_HOOK])
