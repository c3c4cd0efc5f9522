"""`hookline lr-find`: try growing learning rates, and suggest one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch

from hookline.batches import move_each
from hookline.cli.common import make_runner
from hookline.cli.output import chart_columns, only_json, print_json
from hookline.cli.printing import show
from hookline.config import load_config
from hookline.engine import BaseRunner
from hookline.errors import HooklineError
from hookline.events.chart import text_chart
from hookline.optim.joint import needs_closure
from hookline.optim.range_test import COUNT, RangeTest, range_test
from hookline.step import make_step


def run(
    config: str,
    overrides: Sequence[str],
    start: float,
    end: float,
    iters: int,
    plot: str | None,
    as_json: bool,
) -> int:
    """Print the result of a range test, and draw it if `plot` is given."""
    with only_json(as_json):
        runner = make_runner(load_config(config, [*overrides, "resume=null"]))
        result = find_lr(runner, start, end, iters)
    smoothed = result.smoothed()
    suggestion = result.suggestion()
    if plot is not None:
        from hookline.visual.schedules import range_figure  # imports matplotlib

        Path(plot).parent.mkdir(parents=True, exist_ok=True)
        range_figure(*result, smoothed, suggestion).savefig(plot)
    if as_json:
        print_json({**result._asdict(), "smoothed": smoothed, "suggestion": suggestion})
        return 0
    _print_result(result)
    if plot is not None:
        show(f"saved {plot}")
    return 0


def find_lr(
    runner: BaseRunner, start: float = 1e-7, end: float = 10.0, iters: int = COUNT
) -> RangeTest:
    """Run a learning rate range test with a runner's model and training data.

    Takes plain steps without hooks, and restores the runner at the end.
    """
    if not isinstance(runner.optimizer, torch.optim.Optimizer) or runner.train_loader is None:
        raise HooklineError("a range test needs a train_loader and exactly one optimizer")
    if needs_closure(runner.optimizer):
        kind = type(runner.optimizer).__name__
        message = f"a range test takes plain steps, but {kind} needs a closure"
        raise HooklineError(message, parameter="optimizer")
    step = make_step(runner.model, "train_step", runner.loss_fn, runner.optimizer)

    def compute_loss(batch: object) -> torch.Tensor:
        loss: torch.Tensor = step(batch)["loss"]
        return loss

    batches = move_each(runner.train_loader, runner.device)
    try:
        return range_test(runner.model, runner.optimizer, compute_loss, batches, start, end, iters)
    except ValueError as error:
        raise HooklineError(str(error)) from error


def _print_result(result: RangeTest) -> None:
    if len(result.rates) > 1:
        points = []
        for rate, loss in zip(result.rates, result.smoothed(), strict=True):
            points.append((math.log10(rate), loss))
        curve = {"smoothed loss over log10 of the learning rate": points}
        show(text_chart(curve, width=chart_columns()))
        show()
    suggestion = result.suggestion()
    if suggestion is None:
        count = len(result.rates)
        show(f"no suggestion: the loss did not fall with any of {count} rates; try other rates")
    else:
        show(f"suggested learning rate: {suggestion:.2e}, where most of the fall is over")
        show(f"use it with optimizer.lr={suggestion:.2e}")
