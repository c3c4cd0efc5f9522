"""Parameters of hooks that change or average weights: observed are weights, steps and rates."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline import HOOKS
from hookline.checkpoint import load_checkpoint
from hookline.hooks import CheckpointHook, EvalHook, LambdaHook
from tests.contracts.parameters.rows import Below, Config, Made, Row, rows
from tests.contracts.training import Scripted, messages_of, numbers, train, weights_of
from tests.helpers import batches, small_model


def final_weights(config: Config, folder: Path) -> dict[str, Any]:
    """Return the weights after eight iterations."""
    return weights_of(train(folder, config).model)


def steps_taken(config: Config, folder: Path) -> int:
    """Return how many steps the optimizer takes in eight iterations."""
    return train(folder, config).optimizer_steps


def saved_scale(config: Config, folder: Path) -> dict[str, Any]:
    """Return the state of the loss scaling in the last checkpoint."""
    train(folder, config, CheckpointHook(save_best=False))
    scale: dict[str, Any] = load_checkpoint(folder / "last.pth")["scaler"]
    return scale


def precision(config: Config, folder: Path) -> set[str]:
    """Return the types of the predictions in training."""
    types: set[str] = set()
    note = LambdaHook(after_forward=lambda outputs: types.add(str(outputs["predictions"].dtype)))
    train(folder, config, note)
    return types


class WithUnusedLayer(nn.Sequential):
    """A model with a layer that its forward pass does not use."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(6, 3))
        self.unused = nn.Linear(2, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        predictions: torch.Tensor = self[0](inputs)
        return predictions


def evaluation_precision(config: Config, folder: Path) -> set[str]:
    """Return the types of the predictions in validations."""
    types: set[str] = set()
    note = LambdaHook(after_val_iter=lambda outputs: types.add(str(outputs["predictions"].dtype)))
    train(folder, config, EvalHook(), note)
    return types


def recomputed_modules(config: Config, folder: Path) -> list[str]:
    """Return the classes of the modules of the model after training."""
    return [type(module).__name__ for module in train(folder, config).model.children()]


def reported_parameters(config: Config, folder: Path) -> list[str]:
    """Return the errors that are logged about a model with an unused layer."""
    with messages_of("iteration", logging.ERROR) as messages:
        train(folder, config, model=WithUnusedLayer())
    return messages


STEP = [
    *rows(final_weights, grad_clip=(None, {"max_norm": 0.01})),
    *rows(reported_parameters, detect_anomalous_params=(False, True)),
]
CUMULATIVE = rows(steps_taken, cumulative_iters=(1, 2))
SCALE = rows(saved_scale, loss_scale=(512.0, 64.0))


def normed_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))


def average(config: Config, folder: Path) -> dict[str, Any]:
    """Return the average after eight iterations; `other.pth` is a checkpoint with another one."""
    earlier = {"type": "EMAHook", "momentum": 0.5}
    train(folder / "earlier", earlier, CheckpointHook(save_best=False), model=normed_model())
    (folder / "earlier" / "last.pth").rename(folder / "other.pth")
    hook: Any = HOOKS.build(config)
    train(folder, hook, model=normed_model())
    return numbers(hook.average.state_dict())


def device_of_average(config: Config, folder: Path) -> set[str]:
    """Return where the average lies."""
    hook: Any = HOOKS.build(config)
    train(folder, hook)
    return {tensor.device.type for tensor in hook.average.state_dict().values()}


def statistics(config: Config, folder: Path) -> list[list[float]]:
    """Return the means of a batch norm layer before each validation."""
    seen: list[list[float]] = []
    note = LambdaHook(before_val=lambda model: seen.append(model[1].running_mean.tolist()))
    evaluate = EvalHook(by_epoch=False, interval=1)
    train(folder, config, note, evaluate, model=normed_model(), seed=0)
    return seen


def rates_of_scheduler(config: Config, folder: Path) -> list[float]:
    """Return the learning rates of a run with a scheduler that halves the rate at each step."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    return _rates(config, folder, model=model, optimizer=optimizer, scheduler=scheduler)


def rates_of_plateau(config: Config, folder: Path) -> list[float]:
    """Return the learning rates of a run that lowers them when a metric stops falling."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    metrics = {"quux": Scripted(3.0, 2.0, 1.0), "corge": Scripted(1.0, 2.0, 3.0)}
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "metrics": metrics}
    return _rates(config, folder, **parts, train_loader=batches(2), max_epochs=4)


def recorded_rates(config: Config, folder: Path) -> list[float]:
    """Return the learning rates that the hook records."""
    runner = train(folder, config)
    return [scalar.value for scalar in runner.events.history("lr")]


def _rates(config: Config, folder: Path, **parts: Any) -> list[float]:
    used: list[float] = []
    note = LambdaHook(after_forward=lambda optimizer: used.append(optimizer.param_groups[0]["lr"]))
    train(folder, config, EvalHook(), note, **parts)
    return used


def other_optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD([nn.Parameter(torch.zeros(2))], lr=0.7)


HALVING = {"type": "StepLR", "step_size": 1, "gamma": 0.5}


def samples_at_a_time(config: Config, folder: Path) -> int:
    """Return the largest number of samples that a forward pass of the last epoch gets."""
    sizes: list[int] = []
    model = small_model()
    model.register_forward_pre_hook(lambda module, inputs: sizes.append(len(inputs[0])))
    train(folder, config, model=model)
    return max(sizes[-4:])


ROWS: dict[str, list[Row]] = {
    "OptimizerHook": STEP,
    "GradientCumulativeOptimizerHook": [*STEP, *CUMULATIVE],
    "Fp16OptimizerHook": [*STEP, *SCALE],
    "GradientCumulativeFp16OptimizerHook": [*STEP, *CUMULATIVE, *SCALE],
    "AmpOptimizerHook": [
        *STEP,
        *CUMULATIVE,
        *rows(saved_scale, {"dtype": "float16"}, loss_scale=("dynamic", 64.0)),
        *rows(precision, dtype=("bfloat16", "float16")),
        *rows(evaluation_precision, evaluate=(True, False)),
    ],
    "SAMHook": [*STEP, *rows(final_weights, rho=(0.05, 0.5))],
    "MicroBatchHook": rows(samples_at_a_time, activation_limit_mb=(None, 0.0005)),
    "ActivationCheckpointHook": rows(recomputed_modules, modules=("Linear", "ReLU")),
    "FreezeHook": [
        *rows(final_weights, params=("0", "2")),
        *rows(final_weights, {"params": "0"}, begin=(0, 1), end=(None, 1)),
    ],
    "EMAHook": [
        *rows(average, {"momentum": 0.9}, warm_up=(100, 5)),
        *rows(
            average,
            {"warm_up": 0, "momentum": 0.9},
            momentum=(0.9, 0.5),
            interval=(1, 2),
            resume_from=(None, Below("other.pth")),
            update_buffers=(False, True),
            ema_type=("ExponentialMovingAverage", "StochasticWeightAverage"),
            begin_iter=(0, 5),
            begin_epoch=(0, 2),
        ),
        *rows(average, {"ema_type": "MomentumAnnealingEMA"}, gamma=(100, 10)),
        *rows(device_of_average, device=(None, "meta")),
    ],
    "PreciseBNHook": rows(
        statistics,
        {"num_iter": 2},
        num_iter=(2, 3),
        period=(0, 2),
        dataloader=(None, batches(2, seed=9)),
    ),
    "ParamSchedulerHook": [
        *rows(rates_of_scheduler, by_epoch=(True, False)),
        *rows(rates_of_plateau, monitor=("quux", "corge")),
    ],
    "LRSchedulerHook": [
        *rows(recorded_rates, scheduler=(HALVING, {**HALVING, "gamma": 0.1})),
        *rows(recorded_rates, {"scheduler": HALVING}, optimizer=(None, Made(other_optimizer))),
    ],
}
