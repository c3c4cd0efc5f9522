"""`hookline lr`: show every scheduled value of every iteration, without training."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from hookline.cli.common import make_runner
from hookline.cli.output import chart_columns, only_json, print_json, print_table
from hookline.cli.printing import show
from hookline.config import load_config
from hookline.engine import BaseHook, BaseRunner
from hookline.errors import ConfigError, HooklineError
from hookline.events.chart import text_chart
from hookline.hooks import LRSchedulerHook, ParamSchedulerHook, ValueUpdaterHook
from hookline.hooks.bases.scheduled import ScheduleHook
from hookline.optim.groups import by_name, momentum_of
from hookline.optim.value_policies import read_value

SCHEDULE_HOOKS = (ScheduleHook, ParamSchedulerHook, LRSchedulerHook)
Curves = dict[str, dict[str, list[float]]]


def run(config: str, overrides: Sequence[str], plot: str | None, as_json: bool) -> int:
    """Print the schedule of a config, and draw it if `plot` is given."""
    with only_json(as_json):
        runner = make_runner(load_config(config, [*overrides, "resume=null"]))
        curves = schedule_of(runner)
    if plot is not None:
        from hookline.visual.schedules import schedule_figure  # imports matplotlib

        Path(plot).parent.mkdir(parents=True, exist_ok=True)
        schedule_figure(curves, config).savefig(plot)
    if as_json:
        print_json(curves)
        return 0
    _print_charts(curves)
    _print_summary(curves)
    if not any(isinstance(hook, SCHEDULE_HOOKS) for hook in runner.hooks):
        example = "lr_config: {policy: CosineAnnealing, min_lr: 0.0}"
        show(f"\nthe config has no schedule; an example of one is {example}")
    if plot is not None:
        show(f"\nsaved {plot}")
    return 0


def schedule_of(runner: BaseRunner) -> Curves:
    """Return learning rate, momentum and scheduled values of each group in each iteration.

    The result is `{"lr": {group: values}, "momentum": {group: values}, …}`. Only hooks that
    schedule are called. ReduceLROnPlateau, which needs a metric, keeps its initial rate.
    """
    if runner.max_iters is None or runner.epoch_length is None:
        raise HooklineError("the length of the schedule is unknown: train_loader has no length")
    curves: Curves = {"lr": {}, "momentum": {}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Torch's schedulers expect steps of the optimizer.
        _call_schedules(runner, "before_run", "before_train")
        while runner.iter < runner.max_iters:
            if runner.inner_iter == 0:
                _call_schedules(runner, "before_epoch", "before_train_epoch")
            _call_schedules(runner, "before_train_iter", "after_forward")
            _record(runner, curves)
            runner.loop.accumulating = not _has_optimizer_step(runner)
            if not runner.loop.accumulating:
                _call_schedules(runner, "after_optimizer_step")
            _call_schedules(runner, "after_train_iter")
            runner.iter += 1
            runner.inner_iter += 1
            if runner.inner_iter == runner.epoch_length:
                _call_schedules(runner, "after_train_epoch", "after_epoch")
                runner.epoch += 1
                runner.inner_iter = 0
    return {quantity: groups for quantity, groups in curves.items() if groups}


def _has_optimizer_step(runner: BaseRunner) -> bool:
    """Return whether the optimizer steps in this iteration, or only accumulates gradients."""
    done = runner.inner_iter + 1
    period = 1
    for hook in runner.sites.hooks["optimize"]:
        period = getattr(hook, "cumulative_iters", 1)
    return done % period == 0 or done == runner.epoch_length or runner.iter + 1 == runner.max_iters


def _call_schedules(runner: BaseRunner, *sites: str) -> None:
    for site in sites:
        for hook in runner.sites.hooks[site]:
            if isinstance(hook, SCHEDULE_HOOKS):
                _call_schedule(runner, hook, site)


def _call_schedule(runner: BaseRunner, hook: BaseHook, site: str) -> None:
    """Call a hook; raise its ConfigError with its location in the config, if it has one."""
    try:
        # `sites.hooks` lists only hooks that implement the site.
        hook.site_method(site)(runner)  # type: ignore[misc]
    except ConfigError as error:
        located = runner.sites.locate_error(hook, error)
        if located is error:
            raise
        raise located from error


def _record(runner: BaseRunner, curves: Curves) -> None:
    others = [hook for hook in runner.hooks if isinstance(hook, ValueUpdaterHook)]
    for hook in others:
        if hook.is_attribute:
            values = curves.setdefault(hook.value, {}).setdefault("", [])
            values.append(hook.attribute)
    for name, optimizer in by_name(runner.optimizer).items():
        for index, group in enumerate(optimizer.param_groups):
            labels = [name] if name else []
            if len(optimizer.param_groups) > 1:
                labels.append(str(group.get("name", f"group {index}")))
            label = " ".join(labels)
            curves["lr"].setdefault(label, []).append(float(group["lr"]))
            momentum = momentum_of(group)
            if momentum is not None:
                curves["momentum"].setdefault(label, []).append(momentum)
            for path in {hook.value for hook in others} - {"lr"}:
                value = read_value(group, path)
                if value is not None:
                    curves.setdefault(path, {}).setdefault(label, []).append(value)


def _print_charts(curves: Curves) -> None:
    """Draw each curve that changes; equal curves are drawn once."""
    drawn: list[list[float]] = []
    for quantity, groups in curves.items():
        for label, values in groups.items():
            if len(set(values)) == 1 or values in drawn:
                continue
            drawn.append(values)
            points = [(float(iteration), value) for iteration, value in enumerate(values, start=1)]
            show(text_chart({f"{quantity} {label}".strip(): points}, width=chart_columns()))
            show()


def _print_summary(curves: Curves) -> None:
    rows = []
    for quantity, groups in curves.items():
        for label, values in groups.items():
            rows.append(
                (
                    f"{quantity} {label}".strip(),
                    f"{values[0]:.6g}",
                    _format_extreme(values, max(values)),
                    _format_extreme(values, min(values)),
                    f"{values[-1]:.6g}",
                )
            )
    print_table(rows, ("", "first", "highest", "lowest", "last"))


def _format_extreme(values: list[float], extreme: float) -> str:
    return f"{extreme:.6g} (iteration {values.index(extreme) + 1})"
