"""Whether more or less of a metric is better, as MMEngine tells by its name."""

from __future__ import annotations

from collections.abc import Sequence

GREATER = ("acc", "top", "AR@", "auc", "precision", "mAP", "mDice", "mIoU", "mAcc", "aAcc")
LESS = ("loss",)


def infer_rule(
    key: str, rule: str | None, greater_keys: Sequence[str] | str | None = None, less_keys: Sequence[str] | str | None = None
) -> str | None:
    """`greater` or `less`: what is given, or else what the name says; None only for `auto`, whose metric is not known yet."""
    if rule is not None:
        if rule not in ("greater", "less"):
            raise KeyError(f"rule must be greater, less or None, but got {rule}.")
        return rule
    if key == "auto":
        return None
    greater, less = (_lower(given, default) for given, default in ((greater_keys, GREATER), (less_keys, LESS)))
    name = key.lower()
    for found, answer in ((name in greater, "greater"), (name in less, "less")):
        if found:
            return answer
    if any(part in name for part in greater):
        return "greater"
    if any(part in name for part in less):
        return "less"
    raise ValueError(f"Cannot infer the rule for key {key}, thus a specific rule must be specified.")


def _lower(given: Sequence[str] | str | None, default: Sequence[str]) -> set[str]:
    keys = default if given is None else [given] if isinstance(given, str) else given
    return {key.lower() for key in keys}
