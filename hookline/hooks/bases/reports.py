"""The values of an iteration that several hooks record, and the content of a report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from statistics import fmean

from hookline.dist import World
from hookline.dist.gather import batch_share
from hookline.engine import BaseRunner
from hookline.events.format import MEMORY
from hookline.events.memory import memory_mb
from hookline.events.outbox import Row
from hookline.metrics.mean_loss import STANDARD_OUTPUTS, is_number
from hookline.optim.groups import learning_rates


def record_losses(runner: BaseRunner) -> None:
    """Record the loss and other scalar outputs of the iteration, once for all hooks.

    Values are weighted by this rank's share of the batch, so that their mean over all ranks is the
    mean over samples. The loss is weighted already.
    """
    events = runner.events
    outputs = runner.outputs
    if events.losses_of == runner.iter:
        return
    events.losses_of = runner.iter
    events.put_iteration_scalar("loss", outputs["loss"])
    share = None  # Most steps return nothing that needs it.
    for name, value in outputs.items():
        if name not in STANDARD_OUTPUTS and is_number(value):
            share = batch_share(runner) if share is None else share
            events.put_iteration_scalar(name, value if share == 1.0 else value * share)


def record_lr_and_memory(runner: BaseRunner) -> None:
    """Record the learning rates of the last step and the memory in use."""
    events = runner.events
    rates = events.step_learning_rates
    if rates is None:
        rates = learning_rates(runner.optimizer)
    if len(rates) > 1:
        rates = _distinct_rates(rates, events.latest())
    events.put_iteration_scalars(rates, smoothed=False)
    if events.recorded_at(MEMORY) != runner.iter:
        events.put_iteration_scalar(MEMORY, memory_mb(runner.device), smoothed=False)


def combine_ranks(world: World, scalars: Mapping[str, float]) -> Mapping[str, float]:
    """Combine the scalars of all ranks.

    Most are means; times are those of the slowest rank, memory is the largest, and rates per second
    are sums.
    """
    if world.size == 1:
        return scalars
    answers = [json.loads(text) for text in world.gather_text(json.dumps(scalars))]
    combined = {}
    for name in answers[0]:
        values = [each[name] for each in answers if name in each]
        combined[name] = _combination(name)(values)
    return combined


def evaluation_row(runner: BaseRunner, mode: str) -> Row:
    """Return the results of an evaluation, with the epoch or the iteration as their step."""
    epoch = report_epoch(runner)
    by_epoch = runner.events.metrics_by_epoch and runner.evaluation.by_epoch
    step = epoch if by_epoch else runner.iter
    return Row(mode, evaluation_results(runner), runner.iter, epoch, step, time.time())


def evaluation_results(runner: BaseRunner) -> dict[str, float]:
    """Return the metrics of an evaluation and the scalars that hooks recorded in it."""
    return {**runner.events.evaluation_scalars(), **runner.metrics}


def report_epoch(runner: BaseRunner, done: int = 0) -> int:
    """Return the epoch of a report, counted from 1; between two epochs, the finished one."""
    has_begun = bool(done or runner.inner_iter)
    return runner.epoch + has_begun


def is_fresh_run(runner: BaseRunner) -> bool:
    """Return whether this run starts from the beginning, without `resume`."""
    return runner.iter == 0 and runner.checkpointer.resume is None


def _distinct_rates(rates: Mapping[str, float], known: Mapping[str, float]) -> dict[str, float]:
    """Drop groups (`lr/1`) whose learning rate duplicates another's, unless that series exists.

    An existing series would go stale.
    """
    distinct: dict[str, float] = {}
    seen: set[tuple[str, float]] = set()
    for name, rate in rates.items():
        optimizer = name.partition("/")[0]
        is_group = name != optimizer and optimizer in rates
        is_duplicate = is_group and (optimizer, float(rate)) in seen
        if not is_duplicate or name in known:
            distinct[name] = rate
        seen.add((optimizer, float(rate)))
    return distinct


def _combination(name: str) -> Callable[[list[float]], float]:
    if name == "time/iters_per_s":
        return min
    if name.startswith(("time/", "throughput/")) and name.endswith("_per_s"):
        return sum
    if name in ("time", "data_time", "eta", MEMORY) or name.startswith(("time/", "memory/")):
        return max
    return fmean
