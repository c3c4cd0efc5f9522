"""The keys that a config may have, and what stands under each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from hookline.data.options import OWN, PASSED_ON
from hookline.errors import Path, suggest

COMPONENT: Any = str | dict  # a registered name or dotted path, or a mapping with it as `type`
SPLITS = ("train", "val", "test")
REQUIRED = {"model": "model: {type: cnn}", "dataset": "dataset: {type: digits}", "training": "training: {epochs: 10}"}
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
    "hook_order": Literal["nested", "flat"],
    "hook_budget": str | float,
    "hooks": list,
    "drop_hooks": list[str],
}
TRAINING: dict[str, Any] = {"epochs": int, "iters": int, "loss": COMPONENT, "metrics": list[COMPONENT]}
LOADER = {*OWN, *PASSED_ON} - {"seed", "worker_init_fn"}  # the seed is the run's; what workers begin with is for code
COMPONENTS: tuple[Path, ...] = (("model",), ("dataset",), ("optimizer",), ("scheduler",), ("training", "loss"))


def known_keys(path: Path) -> set[str] | None:
    """The keys allowed below a path; None where a class decides, which is known only after loading."""
    if path == ():
        return set(TOP_LEVEL)
    if path == ("training",):
        return set(TRAINING)
    if path == ("loader",):
        return {*LOADER, *SPLITS}
    if path in [("loader", split) for split in SPLITS]:
        return set(LOADER)
    return None


def suggest_key(key: str, path: Path, known: Iterable[str]) -> str:
    """The end of an error message about an unknown key: the nearest known one, or at the top level the section that has it."""
    options = list(known)
    section = next((name for name, keys in _INSIDE.items() if key in keys), None)
    return f"; did you mean '{section}.{key}'?" if path == () and section and key not in options else suggest(key, options)


_INSIDE = {"training": TRAINING, "loader": LOADER, "optimizer": ("lr", "momentum", "weight_decay")}
