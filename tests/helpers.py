"""Small real parts that many tests use."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from hookline.engine import SITE_NAMES, BaseHook, BaseRunner
from hookline.hooks import OptimizerHook


def batches(
    count: int = 4, size: int = 8, features: int = 6, classes: int = 3, seed: int = 0
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(size, features, generator=generator),
            torch.randint(classes, (size,), generator=generator),
        )
        for _ in range(count)
    ]


def small_model(seed: int = 0, features: int = 6, classes: int = 3) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(features, 8), nn.ReLU(), nn.Linear(8, classes))


def make_runner(tmp_path: Any, *hooks: BaseHook | dict[str, Any], **parts: Any) -> BaseRunner:
    """A bare runner: no default hooks but the one that makes weights change."""
    model = parts.pop("model", None) or small_model()
    optimizer = parts.pop("optimizer", None) or torch.optim.SGD(model.parameters(), lr=0.1)
    parts.setdefault("train_loader", batches())
    parts.setdefault("loss_fn", nn.CrossEntropyLoss())
    if "max_iters" not in parts:
        parts.setdefault("max_epochs", 2)
    owners = [hook for hook in hooks if isinstance(hook, BaseHook) and hook.site_method("optimize")]
    return BaseRunner(
        model,
        optimizer=optimizer,
        work_dir=tmp_path,
        hooks=[*([] if owners else [OptimizerHook()]), *hooks],
        **parts,
    )


class Tracer(BaseHook):
    """Writes down every site it is called at."""

    def __init__(self, log: list[Any] | None = None, label: str | None = None) -> None:
        self.log: list[Any] = [] if log is None else log
        self.label = label


def _record(site: str) -> Any:
    def method(self: Tracer, runner: BaseRunner) -> None:
        self.log.append(site if self.label is None else (self.label, site))

    method.__name__ = site
    return method


for _site in SITE_NAMES:
    if _site != "optimize":
        setattr(Tracer, _site, _record(_site))
