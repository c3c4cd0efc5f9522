"""Results of evaluation: one look-up for all the names a metric goes by, and the mean loss."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol, TypeVar

import torch

from hookline.dist import World
from hookline.errors import ConfigError, suggest

D = TypeVar("D")
Rule = Literal["greater", "less"]


class Unasked(str):
    """The default of a name: unlike one that was asked for, no one misses it where it is not measured."""

    __slots__ = ()


DEFAULT_METRIC = Unasked("accuracy")
DEFAULT_RULE: Any = Unasked("greater")


class Metric(Protocol):
    """What evaluation needs of a metric; torchmetrics' objects have it."""

    def update(self, preds: Any, targets: Any) -> None: ...
    def compute(self) -> Any: ...
    def reset(self) -> None: ...


class Metrics(dict[str, float]):
    """Metrics by name, where `accuracy`, `val_accuracy` and `val/accuracy` are the same."""

    def __missing__(self, name: str) -> float:
        found = find_name(name, self)
        if found is None:
            raise KeyError(f"no metric {name!r}{suggest(name, self)}")
        return self[found]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and find_name(name, self.keys()) is not None

    def get(self, name: str, default: D = None) -> float | D:  # type: ignore[override, assignment]
        found = find_name(name, self.keys())
        return default if found is None else self[found]


def find_name(name: str, known: Iterable[str]) -> str | None:
    """The name under which a metric is kept, whichever of its names is given."""
    names = list(known)
    if name in names:
        return name
    return next((other for other in names if _plain(other) == _plain(name)), None)


def _plain(name: str) -> str:
    bare = name.replace("/", "_").removeprefix("val_")
    return "accuracy" if bare == "acc" else bare


def choose_metric(wanted: str, measured: Iterable[str], default: str | None = None) -> str | None:
    """The metric to go by: the wanted one; the first one for `auto` and for a default that is not measured. None: there is none."""
    names = list(measured)
    if wanted in ("auto", default) and find_name(wanted, names) is None:
        return names[0] if names else None
    return None if find_name(wanted, names) is None else wanted


def check_metric_name(
    who: str, wanted: str, measured: Iterable[str] | None, default: str | None = None, others: bool = False
) -> str | None:
    """ConfigError, with what there is, if a metric will not be measured; the one chosen instead, where that is to be told.

    Where hooks may add `others`, only a name that looks like a misspelt one is refused.
    """
    names = list(measured or ())
    chosen = choose_metric(wanted, names, default)
    if measured is None or chosen == wanted or any(wanted.startswith(f"{name}_") for name in names):
        return None  # known only after the validation, or right, or one of the elements of a metric that has several
    if chosen is None:
        hint = suggest(wanted, names)
        near = "mean" in hint
        if others and not near:
            return None
        raise ConfigError(f"{who}: no metric {wanted!r} is measured; there is {', '.join(names)}{hint if near else ''}")
    return chosen


def rule_for(name: str, rule: Rule, greater_keys: Iterable[str] = (), less_keys: Iterable[str] = ()) -> Rule:
    """Which way a metric gets better: `less` if that is said, else as its name tells, else as is said."""
    return "less" if rule == "less" else better_when(name, greater_keys, less_keys) or rule


# Parts of metric names that tell whether more or less of it is better.
GREATER = (
    "acc",
    "top",
    "auc",
    "auroc",
    "map",
    "ap",
    "f1",
    "precision",
    "recall",
    "iou",
    "dice",
    "bleu",
    "score",
    "psnr",
    "ssim",
    "reward",
    "r2",
)
LESS = ("loss", "error", "err", "mae", "mse", "rmse", "perplexity", "ppl", "wer", "cer", "fid", "nll")


def better_when(name: str, greater_keys: Iterable[str] = (), less_keys: Iterable[str] = ()) -> Rule | None:
    """Whether a metric is better when it is greater or less, judged by its name; given keys come first. None: unknown."""
    for key, rule in [(key, "greater") for key in greater_keys] + [(key, "less") for key in less_keys]:
        if key in name:
            return rule  # type: ignore[return-value]
    words = re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    if any(word.startswith(LESS) for word in words):
        return "less"
    return "greater" if any(word.startswith(GREATER) for word in words) else None


class MeanLoss:
    """The mean of the losses of all batches, weighted by samples; it stays on the device until the end."""

    def __init__(self) -> None:
        self._total: Any = 0.0
        self._samples = 0  # of batches that have a loss

    def update(self, outputs: Mapping[str, Any]) -> None:
        loss = outputs.get("loss")
        if loss is not None:
            count = batch_size(outputs.get("targets"))
            self._total = self._total + loss * count
            self._samples += count

    def compute(self, name: str, world: World) -> dict[str, Any]:
        if world.size == 1:
            return {name: self._total / self._samples} if self._samples else {}
        total, samples = world.sum([float(self._total), float(self._samples)])
        return {name: total / samples} if samples else {}


def batch_size(targets: Any) -> int:
    try:
        return len(targets)
    except TypeError:
        return 1


def as_numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Results as numbers; tensors come over from the device in one transfer, one with several elements as `name_0`, ….."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat.update({str(key): item for key, item in value.items()})
        elif isinstance(value, torch.Tensor) and value.numel() > 1:
            flat.update({f"{name}_{index}": item for index, item in enumerate(value.flatten())})
        else:
            flat[name] = value
    tensors = {name: value for name, value in flat.items() if isinstance(value, torch.Tensor)}
    if tensors:
        numbers = torch.stack([value.detach().reshape(()).double() for value in tensors.values()]).tolist()
        flat.update(zip(tensors, numbers, strict=True))
    return {name: float(value) for name, value in flat.items()}
