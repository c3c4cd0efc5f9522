"""The keys of a config and the types of their values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from hookline.data.options import OWN, PASSED_ON
from hookline.errors import KeyPath, Suggestion, dotted, suggest
from hookline.foreign_names import suggest_config_key

# A registered name or a dotted path, or a mapping with one as its `type`.
COMPONENT: Any = str | dict
SPLITS = ("train", "val", "test")
REQUIRED = {
    "model": "model: {type: cnn}",
    "dataset": "dataset: {type: digits}",
    "training": "training: {epochs: 10}",
}
DEFAULT_OPTIMIZER = {"type": "AdamW", "lr": 1e-3}
DEFAULT_LOSS = {"type": "CrossEntropyLoss"}
DEFAULT_METRICS = ("accuracy",)

TOP_LEVEL: dict[str, Any] = {
    "work_dir": str,
    "experiment_dir": str,
    "seed": int,
    "device": str,
    "resume": str | None,
    "load_from": str | None,
    "load_strict": bool,
    "custom_imports": list[str],
    "model": COMPONENT,
    "dataset": COMPONENT,
    "loader": dict,
    "optimizer": COMPONENT,
    "lr_config": dict,
    "momentum_config": dict,
    "scheduler": COMPONENT | list,
    "training": dict,
    "strategy": str | dict,
    "sync_bn": bool,
    "compile": bool | dict,
    "deterministic": bool,
    "checkpoint": dict,
    "hook_order": Literal["nested", "flat"],
    "hook_budget": str | float,
    "hooks": list,
    "drop_hooks": list[str],
}
TRAINING: dict[str, Any] = {
    "epochs": int,
    "iters": int,
    "max_train_batches": int,
    "max_val_batches": int,
    "overfit_batches": int,
    "sanity_val_batches": int,
    "loss": COMPONENT,
    "metrics": list[COMPONENT],
}
# The seed is that of the run; a worker_init_fn can only be passed in Python.
LOADER = {*OWN, *PASSED_ON} - {"seed", "worker_init_fn"}
COMPONENTS: tuple[KeyPath, ...] = (
    ("model",),
    ("dataset",),
    ("optimizer",),
    ("scheduler",),
    ("training", "loss"),
)


def known_keys(path: KeyPath) -> set[str] | None:
    """Return the keys that are allowed below a path, or None if they depend on a class."""
    if path == ():
        return set(TOP_LEVEL)
    if path == ("training",):
        return set(TRAINING)
    if path == ("loader",):
        return {*LOADER, *SPLITS}
    if path in [("loader", split) for split in SPLITS]:
        return set(LOADER)
    return None


def suggest_key(key: str, path: KeyPath, known: Iterable[str]) -> Suggestion:
    """Suggest the counterpart of another framework's name, or the nearest known key.

    At the top level, suggest the section that has the key.
    """
    options = list(known)
    if path == () and key not in options:
        for section, keys in _SECTION_KEYS.items():
            if key in keys:
                return Suggestion(f"{section}.{key}")
    counterpart = suggest_config_key(key)
    if counterpart.nearest is not None:
        return Suggestion(counterpart.nearest.removeprefix(f"{dotted(path)}."))
    return counterpart or suggest(key, options)


_SECTION_KEYS = {
    "training": TRAINING,
    "loader": LOADER,
    "optimizer": ("lr", "momentum", "weight_decay"),
}
