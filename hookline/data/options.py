"""What a loader can be configured with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.errors import Problem, suggest
from hookline.signature import describe, fits

OWN: dict[str, Any] = {"batch_size": int, "shuffle": bool, "num_workers": int, "seed": int, "drop_last": bool}

# What is handed on to torch's DataLoader.
PASSED_ON: dict[str, Any] = {
    "collate_fn": Any,
    "pin_memory": bool,
    "timeout": float,
    "worker_init_fn": Any,
    "multiprocessing_context": Any,
    "prefetch_factor": int | None,
    "persistent_workers": bool,
}

REFUSED = {
    "sampler": "the order follows from seed and epoch, so that a run can resume anywhere; use shuffle",
    "batch_sampler": "the order follows from seed and epoch, so that a run can resume anywhere; use shuffle and batch_size",
    "generator": "the order follows from seed and epoch, so that a run can resume anywhere; use seed",
    "in_order": "batches come in their order, so that a run can resume anywhere",
}


def check_loader(options: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the options of a loader, without building anything."""
    known = {**OWN, **PASSED_ON}
    problems = []
    for name, value in options.items():
        if name in REFUSED:
            problems.append(Problem(f"loader: {name!r} cannot be set: {REFUSED[name]}", (name,)))
        elif name not in known:
            problems.append(Problem(f"loader: unknown parameter {name!r}{suggest(name, known)}", (name,)))
        elif not fits(value, known[name]):
            problems.append(Problem(f"loader: {name!r} must be {describe(known[name])}, got {value!r}", (name,)))
        elif name in ("batch_size", "num_workers") and value < (least := 1 if name == "batch_size" else 0):
            problems.append(Problem(f"loader: {name!r} must be at least {least}, got {value!r}", (name,)))
    if not options.get("num_workers", 0):
        needless = [name for name in ("persistent_workers", "prefetch_factor", "multiprocessing_context", "timeout") if options.get(name)]
        problems += [Problem(f"loader: {name!r} is for worker processes; set num_workers to 1 or more", (name,)) for name in needless]
    return problems
