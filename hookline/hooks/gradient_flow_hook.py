"""How gradients get through the layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from hookline.engine import HOOKS, BaseHook, BaseRunner

VANISHING, EXPLODING = 1e-7, 1e3
MAX_NAMED = 8  # layers named in one warning

Flow = dict[str, tuple[float, float]]


@HOOKS.register()
@dataclass
class GradientFlowHook(BaseHook):
    """Draw the mean and the largest |gradient| of each layer every `frequency` iterations; name layers where it vanishes or explodes.

    A gradient vanishes where its largest element is below 1e-7 and explodes where that is above 1e3 or not finite; it is
    looked at before clipping. The warning is repeated only when other layers are concerned.
    """

    frequency: int = 100

    ranks = "main"

    def __post_init__(self) -> None:
        if self.frequency < 1:
            raise ValueError(f"GradientFlowHook: frequency must be at least 1, got {self.frequency}")
        self._warned_of: set[str] = set()

    def after_backward(self, runner: BaseRunner) -> None:
        flow = measure_flow(runner.model)
        if not flow:
            return
        vanishing = [name for name, (_, largest) in flow.items() if largest < VANISHING]
        exploding = [name for name, (_, largest) in flow.items() if not largest <= EXPLODING]  # so that NaN counts
        self._warn(runner, vanishing, exploding)
        self._draw(runner, flow, {*vanishing, *exploding})

    def _warn(self, runner: BaseRunner, vanishing: list[str], exploding: list[str]) -> None:
        concerned = {*vanishing, *exploding}
        if concerned and concerned != self._warned_of:
            found = [
                f"{kind} in {_listed(names)}"
                for kind, names in ((f"vanishing (< {VANISHING:g})", vanishing), (f"exploding (> {EXPLODING:g})", exploding))
                if names
            ]
            runner.logger.warning("%s: at iteration %d gradients are %s", self.name, runner.iter + 1, "; ".join(found))
        self._warned_of = concerned

    def _draw(self, runner: BaseRunner, flow: Flow, marked: set[str]) -> None:
        from hookline.visual import gradient_figure, publish  # matplotlib takes half a second to import

        publish(runner, self, gradient_figure(flow, f"gradient flow, step {runner.iter}", marked))


def measure_flow(model: nn.Module) -> Flow:
    """Mean and largest |gradient| of each module's own parameters, in the model's order; those without gradients are left out."""
    layers: dict[str, list[torch.Tensor]] = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and parameter.numel():
            layers.setdefault(name.rpartition(".")[0] or name, []).append(parameter.grad)
    if not layers:
        return {}
    sizes = {name: _mean_and_largest(gradients) for name, gradients in layers.items()}
    device = next(iter(sizes.values())).device
    numbers = torch.stack([size.to(device) for size in sizes.values()]).tolist()  # one transfer for all
    return {name: (mean, largest) for name, (mean, largest) in zip(sizes, numbers, strict=True)}


def _mean_and_largest(gradients: list[torch.Tensor]) -> torch.Tensor:
    values = [(g.coalesce().values() if g.is_sparse else g).detach().abs().double() for g in gradients]
    total = torch.stack([value.sum() for value in values]).sum()
    count = sum(gradient.numel() for gradient in gradients)
    largest = torch.stack([value.max() if value.numel() else value.new_zeros(()) for value in values]).max()
    return torch.stack([total / count, largest])


def _listed(names: list[str]) -> str:
    rest = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")
