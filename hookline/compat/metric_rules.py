"""The rules of MMEngine and MMCV for whether a higher or a lower metric is better."""

from __future__ import annotations

from collections.abc import Sequence

GREATER_KEYS = ("acc", "top", "AR@", "auc", "precision", "mAP", "mDice", "mIoU", "mAcc", "aAcc")
LESS_KEYS = ("loss",)


def infer_rule(
    key: str,
    rule: str | None,
    greater_keys: Sequence[str] | str | None = None,
    less_keys: Sequence[str] | str | None = None,
) -> str | None:
    """Return `greater` or `less`: the given rule, or else the one of the metric's name.

    Return None for the metric `auto`, whose name is not known yet.
    """
    if rule is not None:
        if rule not in ("greater", "less"):
            raise KeyError(f"rule must be greater, less or None, but got {rule}.")
        return rule
    if key == "auto":
        return None
    name = key.lower()
    greater = _lowercase(GREATER_KEYS if greater_keys is None else greater_keys)
    less = _lowercase(LESS_KEYS if less_keys is None else less_keys)
    if name in greater:
        return "greater"
    if name in less:
        return "less"
    if any(part in name for part in greater):
        return "greater"
    if any(part in name for part in less):
        return "less"
    raise ValueError(
        f"Cannot infer the rule for key {key}, thus a specific rule must be specified."
    )


def _lowercase(keys: Sequence[str] | str) -> list[str]:
    if isinstance(keys, str):
        keys = [keys]
    return [key.lower() for key in keys]
