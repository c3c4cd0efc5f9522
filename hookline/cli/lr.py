"""`hookline lr`: the learning rate and momentum of every iteration of a run, without training."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from hookline.cli.charts import text_chart
from hookline.cli.common import make_runner
from hookline.cli.output import print_json, print_table
from hookline.config import load_config
from hookline.engine import BaseRunner
from hookline.errors import HooklineError
from hookline.hooks import LRSchedulerHook, LrUpdaterHook, MomentumUpdaterHook, ParamSchedulerHook
from hookline.optim.groups import by_name, momentum_of

SCHEDULING = (LrUpdaterHook, MomentumUpdaterHook, ParamSchedulerHook, LRSchedulerHook)
Curves = dict[str, dict[str, list[float]]]


def run(args: argparse.Namespace) -> int:
    runner = make_runner(load_config(args.config, [*args.overrides, "resume=null"]))
    curves = schedule_of(runner)
    if args.plot:
        from hookline.visual.schedules import schedule_figure  # matplotlib is slow to import

        Path(args.plot).parent.mkdir(parents=True, exist_ok=True)
        schedule_figure(curves, args.config).savefig(args.plot)
    if args.json:
        print_json(curves)
    else:
        _print(curves, runner)
        if args.plot:
            print(f"\nsaved {args.plot}")
    return 0


def schedule_of(runner: BaseRunner) -> Curves:
    """The learning rate, and the momentum where there is one, of each parameter group in each iteration: `{lr: {group: …}}`.

    Only the hooks that schedule are called. A ReduceLROnPlateau, which waits for a metric, stays where it begins.
    """
    if runner.max_iters is None or runner.epoch_length is None:
        raise HooklineError("the train_loader has no length, so nobody can tell how long the schedule is")
    curves: Curves = {"lr": {}, "momentum": {}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's schedulers miss the steps of the optimizer
        _call(runner, "before_run", "before_train")
        while runner.iter < runner.max_iters:
            if runner.inner_iter == 0:
                _call(runner, "before_epoch", "before_train_epoch")
            _call(runner, "before_train_iter", "after_forward")
            _note(runner, curves)
            _call(runner, "after_train_iter")
            runner.iter += 1
            runner.inner_iter += 1
            if runner.inner_iter == runner.epoch_length:
                _call(runner, "after_train_epoch", "after_epoch")
                runner.epoch += 1
                runner.inner_iter = 0
    return {kind: lines for kind, lines in curves.items() if lines}


def _call(runner: BaseRunner, *sites: str) -> None:
    for site in sites:
        for hook in runner.sites.plan[site]:
            if isinstance(hook, SCHEDULING):
                hook.site_method(site)(runner)  # type: ignore[misc]  # the plan lists only those that have one


def _note(runner: BaseRunner, curves: Curves) -> None:
    for name, optimizer in by_name(runner.optimizer).items():
        several = len(optimizer.param_groups) > 1
        for index, group in enumerate(optimizer.param_groups):
            label = " ".join([*([name] if name else []), *([f"group {index}"] if several else [])])
            for kind, value in (("lr", float(group["lr"])), ("momentum", momentum_of(group))):
                if value is not None:
                    curves[kind].setdefault(label, []).append(value)


def _print(curves: Curves, runner: BaseRunner) -> None:
    rows = []
    for kind, lines in curves.items():
        shown: list[list[float]] = []
        for label, values in lines.items():
            title = f"{kind} {label}".strip()
            if values not in shown and len(set(values)) > 1:
                shown.append(values)
                print(title, *text_chart(values, "iteration 1", str(len(values))), "", sep="\n")
            top, bottom = values.index(max(values)), values.index(min(values))
            extremes = [f"{values[at]:.6g} (iteration {at + 1})" for at in (top, bottom)]
            rows.append((title, f"{values[0]:.6g}", *extremes, f"{values[-1]:.6g}"))
    print_table(rows, ("", "first", "highest", "lowest", "last"))
    if not any(isinstance(hook, SCHEDULING) for hook in runner.hooks):
        print("\nno schedule: give lr_config, for example {policy: CosineAnnealing, min_lr: 0.0}")
