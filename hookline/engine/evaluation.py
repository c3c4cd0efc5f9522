"""Evaluation: one pass over the validation or test data, or over several named sets of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch

from hookline.dist import World
from hookline.engine.judging import Judging
from hookline.engine.metrics import MeanLoss, Metric, Metrics, as_numbers, batch_size
from hookline.engine.shares import gather_in_order, mean_over, shared, syncs_itself
from hookline.engine.step import compared
from hookline.errors import HooklineError, add_note
from hookline.signature import parameters

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

Mode = Literal["val", "test"]
TestFunction = Callable[[torch.nn.Module, Any], Any]


@dataclass
class Evaluation(Judging):
    """How a runner evaluates; hooks may set it."""

    test_fn: TestFunction | None = None  # takes the model and a loader, instead of our own pass over the batches
    efficient_test: bool = False  # keep no predictions, even for a data set that judges them itself (`evaluate`)
    sync_buffers: bool = True  # of several processes: all evaluate with the main one's batch norm statistics
    set_name: str = ""  # of several sets, the one that is being evaluated
    _undo: ExitStack = field(default_factory=ExitStack, repr=False)

    def undo_with(self, function: Callable[[], object]) -> None:
        """Have a function called when the evaluation that runs now is over, also by an error, before anyone else is told."""
        self._undo.callback(function)

    def names(self, runner: BaseRunner) -> list[str] | None:
        """The names that a validation will give; None where only the validation can tell, or there is none."""
        loaders = named_loaders(runner.val_loader)
        judged = not self.efficient_test and any(_judge(loader) for loader in loaders.values())
        if not loaders or judged or self.test_fn is not None or any(isinstance(each, Mapping) for each in runner.metric_objects.values()):
            return None
        return [_full_name(name, key, "val") for name in loaders for key in (*runner.metric_objects, "val_loss")]


def evaluate(runner: BaseRunner, mode: Mode) -> Metrics:
    """One pass over the validation or test data; training mode, batch and outputs are as before when it is over."""
    sites = runner.sites
    with ExitStack() as runner.evaluation._undo, runner.events.evaluating():
        runner.evaluation.undo_with(_keeping(runner))
        for call in sites.before_val if mode == "val" else sites.before_test:
            call(runner)
        runner.model.eval()
        with torch.no_grad():
            metrics = _epoch(runner, mode)
    for call in sites.after_val if mode == "val" else sites.after_test:
        call(runner)
    return metrics


def named_loaders(loader: Any) -> dict[str, Any]:
    """Loaders by name; a single one has the name ""."""
    if loader is None:
        return {}
    return dict(loader) if isinstance(loader, Mapping) else {"": loader}


def _keeping(runner: BaseRunner) -> Callable[[], None]:
    """A function that puts back what an evaluation changes in the runner."""
    before = runner.batch, runner.outputs, runner.batch_idx
    modes = [(module, module.training) for module in runner.model.modules()]

    def put_back() -> None:
        for module, training in modes:
            module.training = training
        runner.batch, runner.outputs, runner.batch_idx = before

    return put_back


def _epoch(runner: BaseRunner, mode: Mode) -> Metrics:
    sites, loaders = runner.sites, named_loaders(runner.val_loader if mode == "val" else runner.test_loader)
    if not loaders:
        raise HooklineError(f"there is no {mode}_loader to evaluate on")
    for call in sites.before_val_epoch if mode == "val" else sites.before_test_epoch:
        call(runner)
    results: dict[str, float] = {}
    if runner.evaluation.sync_buffers:
        runner.world.broadcast_buffers(runner.model.buffers())
    for name, loader in loaders.items():
        runner.evaluation.set_name = name
        measured = as_numbers(_measure(runner, mode, loader))
        results.update({_full_name(name, key, mode): value for key, value in measured.items()})
    runner.metrics = Metrics(results)
    for call in sites.after_val_epoch if mode == "val" else sites.after_test_epoch:
        call(runner)
    if mode == "val":
        runner.evaluation.tell_missing(runner)
    return runner.metrics


def _measure(runner: BaseRunner, mode: Mode, loader: Iterable[Any]) -> dict[str, Any]:
    """Everything that is measured on one loader."""
    options, judge = runner.evaluation, _judge(loader)
    if options.test_fn is not None:
        results = options.test_fn(runner.model, loader)
        if not isinstance(results, Mapping) and shared(loader):
            results = gather_in_order([list(results)], loader, runner.world)
        return _judged(results, judge, runner)
    metrics, mean_loss, samples = list(runner.metric_objects.values()), MeanLoss(), 0
    kept: list[Any] | None = None if judge is None or options.efficient_test else []
    for metric in metrics:
        metric.reset()
    sites, step, is_val = runner.sites, runner.evaluation_step(mode), mode == "val"
    for index, batch in enumerate(runner.on_device(loader)):
        runner.batch_idx, runner.batch = index, batch
        for call in sites.before_val_iter if is_val else sites.before_test_iter:
            call(runner)
        runner.outputs = outputs = step(runner.batch)
        mean_loss.update(outputs)
        samples += batch_size(outputs.get("targets"))
        try:
            for metric in metrics:
                metric.update(outputs["predictions"], outputs["targets"])
        except Exception as error:
            _explain(error, runner, mode, metric)
            raise
        if kept is not None:
            predictions = outputs["predictions"]
            kept.append(list(predictions.detach().cpu() if isinstance(predictions, torch.Tensor) else predictions))
        for call in sites.after_val_iter if is_val else sites.after_test_iter:
            call(runner)
    shares = runner.world if shared(loader) else World()
    results = {name: _compute(metric, samples, shares) for name, metric in runner.metric_objects.items()}
    own = {} if kept is None else _judged(gather_in_order(kept, loader, shares), judge, runner)
    return {**results, **own, **mean_loss.compute(f"{mode}_loss", shares)}


def _explain(error: Exception, runner: BaseRunner, mode: Mode, metric: Metric) -> None:
    """Tell what a metric that failed was to measure."""
    name = next(name for name, other in runner.metric_objects.items() if other is metric)
    predictions, targets = runner.outputs["predictions"], runner.outputs["targets"]
    missing = [key for key, value in (("predictions", predictions), ("targets", targets)) if value is None]
    if not missing:
        add_note(error, f"hookline: the metric {name!r} got {compared(predictions, targets)}")
        return
    own = next((step for step in (f"{mode}_step", "val_step") if hasattr(runner.model, step)), None)
    both = "'predictions' and 'targets'"
    raise HooklineError(
        f"{own or 'the model'} gave no {' and no '.join(map(repr, missing))} to measure {name!r} with: "
        f"{f'return {both}' if own else f'give the model a val_step that returns {both}'}, or set metrics to []"
    ) from error


def _compute(metric: Metric, samples: int, world: World) -> Any:
    value = metric.compute()
    return value if syncs_itself(metric) else mean_over(world, value, samples)


def _full_name(loader: str, key: str, mode: Mode) -> str:
    """`accuracy`, or `clean/accuracy` of the loader `clean`; its `val_loss` is `clean/loss`."""
    return f"{loader}/{key.removeprefix(f'{mode}_')}" if loader else key


def _judge(loader: Any) -> Callable[..., Any] | None:
    """The `evaluate(predictions)` of a loader's data set, if it has one."""
    judge = getattr(getattr(loader, "dataset", None), "evaluate", None)
    return judge if callable(judge) else None


def _judged(results: Any, judge: Callable[..., Any] | None, runner: BaseRunner) -> dict[str, Any]:
    """Metrics from what a test function returned, or from the predictions that the data set itself is to judge."""
    if not isinstance(results, Mapping) and judge is not None:
        results = judge(results, **({"logger": runner.logger} if "logger" in parameters(judge).known else {}))
    if not isinstance(results, Mapping):
        raise HooklineError(
            f"an evaluation must give metrics by name, got {type(results).__name__}: let test_fn return a dict, "
            f"or give the data set an evaluate(predictions) that does"
        )
    return dict(results)
