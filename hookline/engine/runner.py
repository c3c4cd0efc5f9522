"""The runner: owns the model, data, optimizer and counters, and calls the hooks. It knows none."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from hookline.batches import pick_device
from hookline.checks import check_is_loader, check_length
from hookline.data.position import length_of
from hookline.deprecation import RUNNER_ATTRIBUTES, renamed_attribute
from hookline.dist import connect
from hookline.dist.gather import order_seed
from hookline.dist.wrapping import Parallel
from hookline.engine.checkpointing import Checkpointer
from hookline.engine.evaluation import Evaluation, evaluate
from hookline.engine.loop import Loop
from hookline.engine.manager import HookManager, HookOrConfig, LocateError, Order
from hookline.engine.preflight import check_parts, check_trainable, warn_about_resume
from hookline.engine.requests import Requests, StopReason
from hookline.engine.run_state import counters_from
from hookline.engine.session import RunSession
from hookline.events.storage import EventStorage
from hookline.metrics.base import Metric
from hookline.metrics.best import BestTracker
from hookline.metrics.results import Metrics
from hookline.profiling.cost_report import (
    DEFAULT_BUDGET,
    check_budget,
    parse_percentage,
    report_costs,
)
from hookline.rng import deterministic_algorithms, seed_everything
from hookline.step import LossFunction, make_step

if TYPE_CHECKING:
    from typing_extensions import Self

Optimizers = torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer]
Loaders = Iterable[Any] | Mapping[str, Iterable[Any]]


class BaseRunner(HookManager):
    """A run from objects. `hookline.Runner` adds the default hooks and building from a config.

    The arguments are those of `Runner`, which describes them.

    Attributes:
        iter: Finished iterations; grows after the `after_train_iter` hooks.
        epoch: Finished epochs; grows after the `after_epoch` hooks.
        inner_iter: Finished iterations of the current epoch.
        batch_idx: The index of the current batch, in training or evaluation.
        optimizer_steps: Finished steps of the optimizer.
        epoch_length: Batches of an epoch; None if that is unknown.
        max_epochs: The length of the run in epochs, if it is known.
        max_iters: The length of the run in iterations, if it is known.
        batch: The current batch.
        outputs: The model's results for it: `loss`, `predictions`, `targets`.
        metrics: The results of the last evaluation.
        checkpoint: The checkpoint that is being saved or was just loaded.
        exception: The error that ended the run, during `on_exception` and `cleanup`.
        stop_reason: Why the run is over; None while it is not.
        accumulating: Whether gradients of several iterations are being added up.
        is_deterministic: Whether the run uses torch's deterministic algorithms alone.
        running: Whether `train`, `validate` or `test` is in progress.
        mode: `train`, or `val` or `test` while `validate()` or `test()` evaluates alone.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        train_loader: Iterable[Any] | None = None,
        val_loader: Loaders | None = None,
        test_loader: Loaders | None = None,
        optimizer: Optimizers | None = None,
        loss_fn: LossFunction | None = None,
        metrics: Mapping[str, Metric] | None = None,
        hooks: Iterable[HookOrConfig] = (),
        max_epochs: int | None = None,
        max_iters: int | None = None,
        work_dir: str | Path | None = None,
        scheduler: Any = None,
        seed: int | None = None,
        device: str | torch.device = "auto",
        resume: str | Path | None = None,
        load_from: str | Path | None = None,
        load_strict: bool = True,
        hook_order: Order = "nested",
        hook_budget: float | str = DEFAULT_BUDGET,
        config: Mapping[str, Any] | None = None,
        strategy: str | Mapping[str, Any] = "auto",
        sync_bn: bool = False,
        compile: bool | Mapping[str, Any] = False,
        deterministic: bool = False,
        locate_error: LocateError | None = None,
    ) -> None:
        check_length(max_epochs, max_iters)
        self.world = connect()
        self.is_main = self.world.is_main
        self.seed = seed
        self.is_deterministic = deterministic
        if seed is not None:
            seed_everything(seed + self.world.rank)  # ranks must not drop the same units
        self.device = pick_device(device)
        self.parallel = Parallel(
            model.to(self.device), optimizer, self.world, strategy, sync_bn, compile
        )
        self.model = self.parallel.model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.test_loader = test_loader
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.loss_fn = loss_fn
        default_dir = time.strftime("runs/%Y%m%d-%H%M%S")
        self.work_dir = Path(work_dir or self.world.broadcast_str(default_dir))
        self.config: Mapping[str, Any] = config if config is not None else {}
        self.logger = logging.getLogger("hookline")
        self.max_epochs = max_epochs
        self.max_iters = max_iters
        self._init_progress()

        self.events = EventStorage(self)
        self.evaluation = Evaluation(_move_metrics(metrics or {}, self.device))
        self.best = BestTracker(self.evaluation.metrics, self.logger)
        self.requests = Requests(self.world)
        self.checkpointer = Checkpointer(
            self, resume=resume, load_from=load_from, load_strict=load_strict
        )
        self.loop = Loop(self, iter_limit=max_iters)
        self.loop.update_length()
        self._locate_error = locate_error
        super().__init__(hook_order)
        self.costs = self.sites.costs
        self.costs.budget = parse_percentage(hook_budget)
        self.costs.after_sample = check_budget
        self.register_hooks(hooks)

    def _init_progress(self) -> None:
        self.iter = 0
        self.epoch = 0
        self.inner_iter = 0
        self.batch_idx = 0
        self.optimizer_steps = 0
        self.epoch_length = length_of(self.train_loader)
        self.batch: Any = None
        self.outputs: dict[str, Any] = {}
        self.metrics = Metrics()
        self.checkpoint: dict[str, Any] | None = None
        self.exception: BaseException | None = None
        self.stop_reason: StopReason | None = None
        self.accumulating = False
        self.running = False
        self.mode: str | None = "train"

    def train(self) -> Self:
        """Train to the end, or until a hook requests a stop."""
        deterministic = deterministic_algorithms(self.is_deterministic)
        with deterministic, RunSession(self, is_training=True):
            self._begin_training()
            step = self._train_step()
            sites = self.sites
            for batch in self.loop.iterations():
                self.outputs = step(batch)
                for call in sites.after_forward:
                    call(self)
                self.loop.phase = "optimize"
                for call in sites.optimize:
                    call(self)
            self._end_training()
        return self

    def validate(self) -> Metrics:
        """Evaluate on the validation data, outside training. A hook calls `request_validate`."""
        return self._evaluate("val")

    def test(self) -> Metrics:
        """Evaluate on the test data."""
        return self._evaluate("test")

    def request_validate(self, *, collective: bool = False) -> None:
        """Request a validation at the next seam.

        Args:
            collective: All ranks request this in the same iteration, so it need not be agreed on.
        """
        if self.requests.accepting:
            self.requests.validate(collective)

    def request_save(
        self,
        name: str | None = None,
        *,
        write: Callable[[dict[str, Any]], object] | None = None,
        collective: bool = False,
    ) -> None:
        """Request a checkpoint at the next seam.

        Args:
            name: The file's name without its ending; `last` by default.
            write: A function that gets the checkpoint, in place of a file.
            collective: All ranks request this in the same iteration, so it need not be agreed on.
        """
        if not self.requests.accepting:
            return
        if write is not None:
            self.checkpointer.pass_next_to(write)
            self.checkpointer.request_snapshot(collective)
        else:
            self.checkpointer.request(name or "last", collective)

    def request_stop(self, reason: str | StopReason, *, collective: bool = False) -> None:
        """Request the end of training at the next seam; the first reason is `stop_reason`.

        Args:
            reason: Why.
            collective: All ranks request this in the same iteration, so it need not be agreed on.
        """
        if self.requests.accepting:
            reason = StopReason(reason) if isinstance(reason, str) else reason
            self.requests.stop(reason, collective)

    if not TYPE_CHECKING:  # a type checker must not accept every name

        def __getattr__(self, name: str) -> Any:
            """Return an attribute by its name in an earlier release, with a warning."""
            return renamed_attribute(self, name, RUNNER_ATTRIBUTES)

    @property
    def loss(self) -> Any:
        """The loss of the current iteration, a tensor."""
        return self.outputs.get("loss")

    def _begin_training(self) -> None:
        self.mode = "train"
        self.stop_reason = None
        check_trainable(self)
        self.checkpointer.remember_hyperparameters()
        self.model.train()
        self.costs.start(self)
        self.best.reset()
        self.call_hook("before_run")
        check_parts(self)
        self.checkpointer.load_or_resume()
        warn_about_resume(self)
        self.parallel.begin_training(self.epoch_length, order_seed(self.train_loader))
        self.call_hook("before_train")
        self.loop.begin()

    def _end_training(self) -> None:
        self.loop.end()
        self.stop_reason = self.stop_reason or self.loop.natural_end()
        self.call_hook("after_train")
        report_costs(self)
        self.call_hook("after_run")

    def _train_step(self) -> Any:
        module = self.parallel.train_module
        wrapper = module if module is not self.model else None
        return make_step(self.model, "train_step", self.loss_fn, self.optimizer, wrapper)

    def _evaluate(self, mode: Literal["val", "test"]) -> Metrics:
        with deterministic_algorithms(self.is_deterministic), RunSession(self):
            self.mode = mode
            loader = self.val_loader if mode == "val" else self.test_loader
            check_is_loader(f"{mode}_loader", loader)
            self.best.reset()
            self.call_hook("before_run")
            checkpoint = None
            if self.checkpointer.load_from is not None and self.iter == 0:
                checkpoint = self.checkpointer.load(self.checkpointer.load_from)
            with counters_from(self, checkpoint):
                if checkpoint is not None:
                    self.checkpointer.load_weights(checkpoint)
                metrics = evaluate(self, mode)
                self.call_hook("after_run")
        return metrics


def _move_metrics(metrics: Mapping[str, Metric], device: torch.device) -> dict[str, Metric]:
    """Move metrics that are modules, as in torchmetrics, to a device."""
    moved: dict[str, Metric] = {}
    for name, metric in metrics.items():
        to: Callable[[torch.device], Metric] | None = getattr(metric, "to", None)
        moved[name] = metric if to is None else to(device)
    return moved
