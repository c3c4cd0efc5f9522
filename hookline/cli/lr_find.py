"""`hookline lr-find`: the loss over growing learning rates, and the rate that this suggests."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import torch

from hookline.cli.charts import text_chart
from hookline.cli.common import make_runner
from hookline.cli.output import print_json
from hookline.config import load_config
from hookline.engine import BaseRunner
from hookline.engine.step import make_step
from hookline.errors import HooklineError
from hookline.optim.range_test import RangeTest, range_test


def run(args: argparse.Namespace) -> int:
    runner = make_runner(load_config(args.config, [*args.overrides, "resume=null"]))
    result = find_lr(runner, args.start, args.end, args.iters)
    if args.plot:
        from hookline.visual.schedules import range_figure  # matplotlib is slow to import

        Path(args.plot).parent.mkdir(parents=True, exist_ok=True)
        range_figure(*result, result.smoothed(), result.suggestion()).savefig(args.plot)
    if args.json:
        print_json({**result._asdict(), "smoothed": result.smoothed(), "suggestion": result.suggestion()})
    else:
        _print(result, args.plot)
    return 0


def find_lr(runner: BaseRunner, start: float = 1e-7, end: float = 10.0, iters: int = 100) -> RangeTest:
    """A range test with the runner's model and training data, which leaves the runner as it was. Plain steps: no hook is called."""
    if runner.optimizer is None or isinstance(runner.optimizer, Mapping) or runner.train_loader is None:
        raise HooklineError("a range test needs a train_loader and exactly one optimizer")
    step = make_step(runner, "train_step")

    def loss_of(batch: object) -> torch.Tensor:
        loss: torch.Tensor = step(batch)["loss"]
        return loss

    try:
        return range_test(runner.model, runner.optimizer, loss_of, runner.on_device(runner.train_loader), start, end, iters)
    except ValueError as error:
        raise HooklineError(str(error)) from error


def _print(result: RangeTest, plot: str | None) -> None:
    if len(result.rates) > 1:
        first, last = (f"{rate:.1e}" for rate in (result.rates[0], result.rates[-1]))
        print("smoothed loss over the learning rate", *text_chart(result.smoothed(), first, last), "", sep="\n")
    suggestion = result.suggestion()
    if suggestion is None:
        print(f"no suggestion: the loss never fell with the {len(result.rates)} rates tried; try others, or more of them")
    else:
        print(f"suggested learning rate: {suggestion:.2e}, where the loss falls fastest (optimizer.lr={suggestion:.2e})")
    if plot:
        print(f"saved {plot}")
