"""`BaseRunner`: owns the model, data, optimizer and counters. It knows no particular hook."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from hookline import preflight
from hookline.batches import pick_device
from hookline.counters import counting_from
from hookline.data.position import length_of
from hookline.deprecation import RenamedAttributes
from hookline.dist import connect
from hookline.dist.gather import order_seed
from hookline.dist.wrapping import Parallel
from hookline.engine.checkpointing import Checkpointer
from hookline.engine.evaluation import Evaluation
from hookline.engine.loop import Loop
from hookline.engine.manager import HookManager, HookOrConfig, LocateError, Order
from hookline.engine.run_state import capture
from hookline.engine.session import RunSession
from hookline.events.storage import EventStorage
from hookline.metrics.base import Metric, move_metrics
from hookline.metrics.best import BestTracker
from hookline.metrics.results import Metrics
from hookline.optim import saved_parts
from hookline.profiling import cost_report
from hookline.progress import current_position
from hookline.remote import locate_work_dir
from hookline.rng import deterministic_algorithms, seed_everything
from hookline.step import LossFunction, build_step
from hookline.stop_reason import StopReason

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
Optimizers = torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer]
Loaders = Iterable[Any] | Mapping[str, Iterable[Any]]


class BaseRunner(HookManager, RenamedAttributes):
    """The engine's runner. `hookline.Runner` adds default hooks and building from a config.

    See `Runner` for the arguments and attributes.
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
        hook_budget: float | str = cost_report.DEFAULT_BUDGET,
        config: Mapping[str, Any] | None = None,
        strategy: str | Mapping[str, Any] = "auto",
        sync_bn: bool = False,
        compile: bool | Mapping[str, Any] = False,
        deterministic: bool = False,
        locate_error: LocateError | None = None,
    ) -> None:
        preflight.check_length(max_epochs, max_iters)
        self.world = connect()
        self.is_main = self.world.is_main
        self.seed = seed
        self._is_deterministic = deterministic
        if seed is not None:
            seed_everything(seed + self.world.rank)  # Dropout must differ between ranks.
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
        self.work_dir, self.work_url = locate_work_dir(work_dir, self.world.broadcast_str)
        self.config: Mapping[str, Any] = config if config is not None else {}
        self.logger = logging.getLogger("hookline")
        self.max_epochs = max_epochs
        self.max_iters = max_iters
        self._init_progress()

        self.events = EventStorage(self, current_position)
        self.evaluation = Evaluation(move_metrics(metrics or {}, self.device))
        self.best = BestTracker(self.evaluation.metrics, self.logger)
        self.checkpointer = Checkpointer(
            self, resume=resume, load_from=load_from, load_strict=load_strict
        )
        self.loop = Loop(self, iter_limit=max_iters)
        self.loop.update_length()
        super().__init__(hook_order, locate_error)
        self.sites.costs.budget = cost_report.parse_percentage(hook_budget)
        self.sites.costs.after_sample = cost_report.check_budget
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
        self.mode: str | None = "train"

    def train(self) -> Self:
        """Train until the run reaches its length or a hook requests a stop."""
        deterministic = deterministic_algorithms(self._is_deterministic)
        with deterministic, RunSession(self, is_training=True):
            self._begin_training()
            step = build_step(self, "train_step")
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
        """Evaluate on the validation data. Hooks call `request_validate` instead."""
        return self._run_apart("val", lambda: self.evaluation.run(self, "val"))

    def test(self) -> Metrics:
        """Evaluate on the test data."""
        return self._run_apart("test", lambda: self.evaluation.run(self, "test"))

    # `collective`: all ranks make this request in the same iteration, see `Requests`.

    def request_validate(self, *, collective: bool = False) -> None:
        """Request a validation at the next seam."""
        if self.loop.requests.accepting:
            self.loop.requests.validate(collective)

    def request_save(
        self,
        name: str | None = None,
        *,
        write: Callable[[dict[str, Any]], object] | None = None,
        collective: bool = False,
    ) -> None:
        """Request a file (`last` by default), or a call of `write`, at the next seam."""
        if not self.loop.requests.accepting:
            return
        if write is not None:
            self.checkpointer.pass_next_to(write)
            self.checkpointer.request_snapshot(collective)
        else:
            self.checkpointer.request(name or "last", collective)

    def request_stop(self, reason: str | StopReason, *, collective: bool = False) -> None:
        """Request the end of training at the next seam; the first reason is `stop_reason`."""
        if self.loop.requests.accepting:
            reason = StopReason(reason) if isinstance(reason, str) else reason
            self.loop.requests.stop(reason, collective)

    @property
    def loss(self) -> Any:
        """The loss of the current iteration, a tensor."""
        return self.outputs.get("loss")

    def _begin_training(self) -> None:
        self.mode = "train"
        self.stop_reason = None
        preflight.check_trainable(self)
        self.checkpointer.remember_hyperparameters()
        self.model.train()
        self.sites.costs.start(self)
        self.best.reset()
        self.call_hook("before_run")
        preflight.check_parts(self)
        self.checkpointer.load_or_resume()
        preflight.warn_about_resume(self)
        self.parallel.begin_training(self.epoch_length, order_seed(self.train_loader))
        self.call_hook("before_train")
        saved_parts.check_savable(self, capture)
        self.loop.begin()

    def _end_training(self) -> None:
        self.loop.end()
        self.stop_reason = self.stop_reason or self.loop.natural_end()
        self.call_hook("after_train")
        cost_report.report_costs(self)
        self.call_hook("after_run")

    def _run_apart(self, mode: str, evaluate: Callable[[], T]) -> T:
        """Run an evaluation outside training, with the weights of `load_from` if nothing ran."""
        with deterministic_algorithms(self._is_deterministic), RunSession(self):
            self.mode = mode
            preflight.check_is_loader(f"{mode}_loader", getattr(self, f"{mode}_loader", None))
            self.best.reset()
            self.call_hook("before_run")
            source = self.checkpointer.load_from if self.iter == 0 else None
            checkpoint = {} if source is None else self.checkpointer.load(source)
            best = self.best.state_dict()
            try:
                with counting_from(self, checkpoint.get("meta")):
                    if source is not None:
                        self.checkpointer.load_weights(checkpoint)
                        saved_parts.restore_objects(self, checkpoint)
                    result = evaluate()
                    self.call_hook("after_run")
            finally:
                if source is not None:  # The best result of other weights is not this run's.
                    self.best.load_state_dict(best)
        return result
