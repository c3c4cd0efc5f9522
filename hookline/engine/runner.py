"""The runner: owns the model, the data, the optimizer and the counters, and calls the hooks. It knows none of them."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import torch

from hookline.checkpoint import CheckpointStore, load_checkpoint
from hookline.dist import connect
from hookline.engine.agreement import SharedSeam
from hookline.engine.capture import load_weights, moment_of, of_this_process, restore, restore_hooks, restore_rng, tell_epoch
from hookline.engine.changes import configured
from hookline.engine.checks import check_batches, check_parts, check_trainable
from hookline.engine.cost_report import DEFAULT_BUDGET, as_share, check_budget, report
from hookline.engine.dispatch import Order
from hookline.engine.environment import pick_device, seed_everything
from hookline.engine.evaluation import Evaluation, evaluate
from hookline.engine.length import both_lengths, check_length, length_of
from hookline.engine.loops import training_batches
from hookline.engine.metrics import Metric, Metrics
from hookline.engine.parallel import Parallel
from hookline.engine.registration import HookHost, HookOrConfig
from hookline.engine.run import Run
from hookline.engine.seams import Seam, Write
from hookline.engine.shares import order_seed
from hookline.engine.step import Step, make_step, move
from hookline.errors import HooklineError
from hookline.events.storage import EventStorage


class BaseRunner(HookHost):
    """A run from objects: `hookline.Runner` adds the default hooks and building from a config."""

    iter: int
    epoch: int
    inner_iter: int
    running: bool
    mode: str | None  # train, or val or test while `validate` or `test` evaluates alone; a validation in training is a part of it

    def __init__(
        self,
        model: torch.nn.Module,
        train_loader: Iterable[Any] | None = None,
        val_loader: Iterable[Any] | None = None,
        test_loader: Iterable[Any] | None = None,
        optimizer: torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer] | None = None,
        loss_fn: Callable[[Any, Any], torch.Tensor] | None = None,
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
    ) -> None:
        check_length(max_epochs, max_iters)
        self.hook_budget = as_share(hook_budget)
        self.world = connect()
        self.is_main = self.world.is_main
        if seed is not None:
            seed_everything(seed + self.world.rank)  # else all processes would drop the same units
        self.seed = seed
        self.device = pick_device(device)
        self.parallel = Parallel(model.to(self.device), optimizer, self.world, strategy, sync_bn, compile)
        self.model = self.parallel.model
        self.train_loader, self.val_loader, self.test_loader = train_loader, val_loader, test_loader
        self.optimizer, self.scheduler, self.loss_fn = optimizer, scheduler, loss_fn
        self.metric_objects = {
            name: metric.to(self.device) if hasattr(metric, "to") else metric for name, metric in (metrics or {}).items()
        }
        self.work_dir = Path(work_dir or self.world.main_says(time.strftime("runs/%Y%m%d-%H%M%S")))
        self.resume, self.load_from, self.load_strict = resume, load_from, load_strict
        self.config: Mapping[str, Any] = config if config is not None else {}
        self.logger = logging.getLogger("hookline")
        self.events = EventStorage(self)

        self.iter = self.epoch = self.inner_iter = self.batch_idx = self.optimizer_steps = 0
        self.epoch_length = length_of(train_loader)
        self.iter_limit = max_iters  # None when the run is measured in epochs
        self.max_epochs, self.max_iters = both_lengths(max_epochs, max_iters, self.epoch_length)
        self.batch: Any = None
        self.data_time = 0.0  # seconds that the current batch was waited for
        self.outputs: dict[str, Any] = {}
        self.metrics = Metrics()
        self.best: dict[str, dict[str, Any]] = {}
        self.checkpoint: dict[str, Any] | None = None
        self.exception: BaseException | None = None
        self.stop_reason: str | None = None
        self.accumulating = False  # gradients of several iterations are being added up
        self.used_rates: dict[str, float] | None = None  # the step's learning rates, if a hook has changed them since
        self.running, self.mode = False, "train"
        self.passed_over: set[tuple[int, int]] = set()  # batches not to be trained on, as (epoch, index)

        self.evaluation = Evaluation()
        self.seam: Seam = Seam() if self.world.size == 1 else SharedSeam(self)
        self.store = CheckpointStore(self.work_dir)
        self.saver: Callable[[str | None], Write] | None = None  # who writes checkpoints; set by the hook that does
        self.wait_for_saves: Callable[[], object] = lambda: None  # returns when what was saved is on disk; set by the same
        self.configured: Any = None  # the optimizer's hyperparameters as the user gave them
        self.skip_batches = 0  # to be read and thrown away after a resume, where the loader keeps no position
        self.in_epoch = False  # whether a resume has put the loader into the epoch, maybe by less than one of today's batches
        self._resumed_from: dict[str, Any] | None = None
        super().__init__(hook_order)
        self.costs = self.sites.costs
        self.costs.after_sample = check_budget
        self.register_hooks(hooks)

    def train(self) -> BaseRunner:
        """Train to the end, or until a hook asks to stop. The `for` body below is one iteration."""
        sites = self.sites
        with Run(self, graceful=True):
            self.mode = "train"
            check_trainable(self)
            if self.configured is None:
                self.configured = configured(self.optimizer)
            self.stop_reason = None
            self.model.train()
            self.costs.start(self)
            for call in sites.before_run:
                call(self)
            check_parts(self)
            self._load()
            self._tell_what_cannot_resume()
            self.parallel.begin_training(self.epoch_length, order_seed(self.train_loader))
            for call in sites.before_train:
                call(self)
            step = make_step(self, "train_step")
            for batch in training_batches(self):
                self.batch = batch
                for call in sites.before_train_iter:
                    call(self)
                self.outputs = step(self.batch)
                for call in sites.after_forward:
                    call(self)
                for call in sites.optimize:
                    call(self)
                for call in sites.after_train_iter:
                    call(self)
            self.stop_reason = self.stop_reason or self._natural_end()
            for call in sites.after_train:
                call(self)
            report(self)
            for call in sites.after_run:
                call(self)
        return self

    def validate(self) -> Metrics:
        """Evaluate on the validation data, outside of training (a hook asks with `request_validate`)."""
        return self._evaluate("val")

    def test(self) -> Metrics:
        """Evaluate on the test data."""
        return self._evaluate("test")

    def request_validate(self) -> None:
        """Ask for a validation at the next seam."""
        if self.seam.hears():
            self.seam.request_validate()

    def request_save(self, name: str | None = None, *, write: Write | None = None, local: bool = False) -> None:
        """Ask for a checkpoint at the next seam: of a name, or the last one, or for a function of your own to write.

        `local` says that this process alone asks, by its clock for example, even if the hook runs on all of them alike.
        """
        if not self.seam.hears():
            return
        if write is None:
            if self.saver is None:
                raise HooklineError("request_save: nobody writes checkpoints here; register a CheckpointHook, or pass write=…")
            if self.seam.request_save_as(name, local):
                return
            write = self.saver(name)
        self.seam.request_save(write)

    def request_stop(self, reason: str) -> None:
        """Ask to stop at the next seam; the first reason is kept as `stop_reason`."""
        if self.seam.hears():
            self.seam.request_stop(reason)

    def improved(self, metric: str, rule: Literal["greater", "less"]) -> bool:
        """Whether the metrics just measured are the best so far in one of them; `best` is brought up to date."""
        value = self.metrics.get(metric)
        if value is None or not math.isfinite(value):
            return False
        key = metric if self.best.get(metric, {}).get("rule", rule) == rule else f"{metric} ({rule})"
        best = self.best.get(key)
        if best is not None and best["iter"] != self.iter and not (value > best["value"] if rule == "greater" else value < best["value"]):
            return False
        self.best[key] = {"value": value, "epoch": self.epoch, "iter": self.iter, "rule": rule}
        return True

    def continue_from(self, checkpoint: dict[str, Any]) -> None:
        """Put the run where a checkpoint was taken; training goes on from there with its next epoch, or rest of one."""
        checkpoint = of_this_process(self, checkpoint)
        restore(self, checkpoint)
        self._resumed_from = checkpoint
        self._call_after_load(checkpoint)

    def load_weights(self, checkpoint: dict[str, Any]) -> None:
        """Take the weights alone from a checkpoint; hooks take what is theirs of it (`after_load_checkpoint`)."""
        load_weights(self, checkpoint, self.load_strict)
        self._call_after_load(checkpoint)

    @property
    def resuming(self) -> bool:
        """Whether the run was just put where a checkpoint was taken, and no iteration has followed yet."""
        return self._resumed_from is not None

    @property
    def loss(self) -> Any:
        """The loss of the current iteration, still a tensor."""
        return self.outputs.get("loss")

    def is_finished(self) -> bool:
        """Whether the run has reached its length, or was asked to stop."""
        if self.stop_reason is not None:
            return True
        if self.iter_limit is not None:
            return self.iter >= self.iter_limit
        return self.max_epochs is not None and self.epoch >= self.max_epochs

    # What the loops need of the runner.

    def begin_epoch(self) -> Iterable[Any]:
        """The training batches that this epoch still has."""
        assert self.train_loader is not None
        loader = self.train_loader
        if self.inner_iter == 0 and not self.in_epoch:
            tell_epoch(loader, self.epoch)
        self.in_epoch = False
        skip, self.skip_batches = self.skip_batches, 0
        return self.on_device(itertools.islice(loader, skip, None) if skip else loader)

    def on_device(self, batches: Iterable[Any]) -> Iterable[Any]:
        """The batches, moved to the runner's device."""
        if self.device.type == "cpu":
            return batches
        return (move(batch, self.device) for batch in batches)

    def evaluation_step(self, mode: Literal["val", "test"]) -> Step:
        return make_step(self, f"{mode}_step")

    def finish_resume(self) -> None:
        """The last act of resuming: random numbers and hooks' state as they were, whatever the sites before here did."""
        if self._resumed_from is not None:
            checkpoint, self._resumed_from = self._resumed_from, None
            restore_hooks(self, checkpoint)
            restore_rng(checkpoint["rng"])

    def _evaluate(self, mode: Literal["val", "test"]) -> Metrics:
        with Run(self):
            self.mode = mode
            check_batches(f"{mode}_loader", self.val_loader if mode == "val" else self.test_loader)
            for call in self.sites.before_run:
                call(self)
            checkpoint = self._read(self.load_from) if self.load_from is not None and self.iter == 0 else None
            with moment_of(self, checkpoint or {}):
                if checkpoint is not None:
                    self.load_weights(checkpoint)
                metrics = evaluate(self, mode)
                for call in self.sites.after_run:
                    call(self)
        return metrics

    def _load(self) -> None:
        """Resume, or start from given weights."""
        checkpoint = None
        if self.resume == "auto":
            checkpoint = self._newest()
        elif self.resume is not None:
            checkpoint = self._read(self.resume)
        if checkpoint is None:
            if self.load_from is not None:
                self.load_weights(self._read(self.load_from))
            return
        self.continue_from(checkpoint)
        if self.is_finished():
            self.logger.info("this run is finished already: it has %s", self._natural_end())
        else:
            self.logger.info("resumed at epoch %d, iteration %d", self.epoch + 1, self.iter)

    def _newest(self) -> dict[str, Any] | None:
        """The newest good checkpoint; the main process chooses for all."""
        found = self.store.latest() if self.is_main else None
        name = self.world.main_says("" if found is None else found.name)
        return self.parallel.whole(self.store.load(found or name), self.store.directory) if name else None

    def _read(self, path: str | Path) -> dict[str, Any]:
        return self.parallel.whole(load_checkpoint(path), Path(path).parent)

    def _call_after_load(self, checkpoint: dict[str, Any]) -> None:
        self.checkpoint = checkpoint
        for call in self.sites.after_load_checkpoint:
            call(self)
        self.checkpoint = None

    def _tell_what_cannot_resume(self) -> None:
        reason = getattr(self.train_loader, "not_resumable", None)
        if reason is None and hasattr(self.train_loader, "__next__"):
            reason = "it can be read only once"
        if reason is not None and self.saver is not None:
            self.logger.warning("this run could not be resumed exactly: train_loader (%s): %s", type(self.train_loader).__name__, reason)

    def _natural_end(self) -> str:
        return f"reached max_iters={self.iter_limit}" if self.iter_limit is not None else f"reached max_epochs={self.max_epochs}"
