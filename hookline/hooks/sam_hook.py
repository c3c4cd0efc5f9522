"""Sharpness-aware minimization."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseRunner
from hookline.errors import parameter_error
from hookline.hooks.bases.optimizing import OptimizingHook
from hookline.optim.perturbation import perturbed
from hookline.optim.weighing import rank_weight


@HOOKS.register()
@dataclass
class SAMHook(OptimizingHook):
    """Step with the gradients at the worst weights nearby (sharpness-aware minimization).

    Each iteration evaluates its batch twice: at the weights, and where the gradient leads at the
    distance `rho`. Batch norm statistics are updated twice, too. The recorded loss is the first.

    Args:
        rho: Distance from the weights.
        grad_clip: Arguments of `torch.nn.utils.clip_grad_norm_` (`max_norm`, `norm_type`), or
            `{clip_value: …}`. The norm is recorded as `grad_norm`.
        detect_anomalous_params: Log parameters that the loss does not depend on, and parameters
            without a gradient. Slow: for debugging only.

    Example:
        ```yaml
        hooks:
          - {type: SAMHook, rho: 0.05}
        ```
    """

    rho: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rho > 0:
            raise parameter_error(self, "rho", "must be above 0")

    def optimize(self, runner: BaseRunner) -> None:
        outputs = runner.outputs
        self._differentiate(runner, rank_weight(outputs, runner.world))
        self._collect_parameters(runner)
        runner.checkpointer.wait_for_copy()  # The weights change before the optimizer's step.
        with perturbed(self._params, self.rho):
            self._repeat(runner)
        runner.outputs = outputs
        self._finish(runner)
