"""The public `Runner`: the engine's runner with default hooks, built from objects or a config."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from hookline.config import build, load_config
from hookline.data import prepare_training_data, share_loaders
from hookline.data.protocols import length_of, set_default_seed
from hookline.dist import World, connect
from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.engine.manager import HookOrConfig, LocateError, Order
from hookline.engine.runner import Loaders, Optimizers
from hookline.errors import HooklineError, Suggestion
from hookline.events.read import RunLog
from hookline.events.visualizer import Visualizer
from hookline.hooks.builder import (
    check_copied,
    get_default_hooks,
    given_hooks,
    stream_options,
    warn_about_endless_epochs,
    warn_about_idle_hooks,
    warn_about_unwritten_records,
)
from hookline.hooks.logger_hook import LOG
from hookline.metrics import Metric, Metrics, build_metrics
from hookline.optim.modes import switchable
from hookline.prediction import predict_all
from hookline.preflight import check_is_loader, check_length
from hookline.profiling.cost_report import DEFAULT_BUDGET
from hookline.runner_arguments import (
    RULES,
    check_arguments,
    refuse_in_train,
    refuse_unknown,
)
from hookline.sanity import check_val_end, check_validation
from hookline.step import LossFunction, takes_optimizer, unused_steps
from hookline.trial import apply_trial

if TYPE_CHECKING:
    from typing_extensions import Self

    from hookline.dry_run import DryRunResult
    from hookline.report.inline import RunReport

MetricOrConfig = Metric | str | Mapping[str, Any] | Callable[[Any, Any], Any] | type[Any]


class Runner(BaseRunner):
    """A runner that trains, validates and tests a model, with hooks.

    A runner has these default hooks: OptimizerHook, IterTimerHook, LoggerHook, EvalHook,
    CheckpointHook, CheckInvalidLossHook and ReportHook; UnevenBatchHook with several ranks;
    ParamSchedulerHook with a `scheduler`, unless another hook steps it; OptimizerModeHook with an
    optimizer that has `train()` and `eval()`.

    Args:
        model: The model. Its methods `train_step(batch)`, `val_step(batch)` and `test_step(batch)`
            replace the call of the model and of `loss_fn`.
        train_loader: An iterable of training batches. Several by name become a CombinedLoader. With
            several ranks, a sequential or shuffled DataLoader is replaced by one with the same data
            and workers that divides every batch among them.
        val_loader: An iterable of validation batches, or several by name.
        test_loader: An iterable of test batches, or several by name.
        optimizer: The optimizer, or several by name. They are stepped together, unless the model's
            `train_step(batch, optimizers)` takes them to step them itself.
        loss_fn: A function of predictions and targets, such as `nn.CrossEntropyLoss()`.
        metrics: Metrics of the validation and test: names such as `["accuracy"]`, configs, or
            objects with `update`, `compute` and `reset`, as in torchmetrics, or functions of
            predictions and targets; also as a mapping by name.
        hooks: Hooks, their configs, or callbacks of other frameworks. A hook replaces a default
            hook of the same class, or one that owns the same site.
        drop_hooks: Names of default hooks that the run does not have.
        max_epochs: The length of the run in epochs. Either this or `max_iters` is required to
            train.
        max_iters: The length of the run in iterations.
        max_train_batches: Batches of an epoch; None reads all.
        max_val_batches: Batches of each validation loader that a validation reads; None reads all.
            A stream without an end needs it.
        overfit_batches: Train only on this many batches, the first ones in the order of the
            dataset, to see that a model can learn them by heart. Replaces `max_train_batches`.
        sanity_val_batches: Batches of each validation loader that are tried before the first epoch,
            so that errors in validation code surface at once. They change nothing. 0 turns it off.
        work_dir: The directory for checkpoints, logs and reports; `runs/` and the current time by
            default. A URL such as `s3://bucket/run` means a local directory that CheckpointHook
            copies there, `runs/s3/bucket/run`.
        scheduler: One learning rate scheduler, a list, or a mapping of either by the optimizers'
            names.
        seed: Seeds random numbers, and loaders of `make_loader` that have no seed. Without it,
            random numbers are not seeded.
        device: A device such as `cuda:0`; `auto` is the GPU if there is one, else the CPU.
        resume: A checkpoint to resume from. With `auto`, the newest one in `work_dir`, if there is
            one.
        load_from: A checkpoint of which only the weights are loaded. `resume` comes first.
        load_strict: Raise if these weights do not fit the model exactly; otherwise load those that
            fit.
        hook_order: With `nested`, hooks of `before_*` sites run by ascending priority and all
            others in the opposite order; with `flat`, all run by ascending priority.
        hook_budget: The share of an iteration above which hooks are reported as slow, as a
            percentage or a fraction.
        config: The config that the run comes from; saved in checkpoints, without secrets.
        strategy: How several ranks share the model: `auto`, `single`, `ddp` or `fsdp`; or a
            mapping with that as `type`, and its options.
        sync_bn: Compute batch norm statistics over all ranks (GPUs only).
        compile: Compile the model with `torch.compile`; a mapping has its options.
        deterministic: Use only torch's deterministic algorithms while the run trains, validates or
            tests, so that a run on a GPU is repeatable bit by bit. An operation without such an
            algorithm raises.
        locate_error: Adds the location in a config to an error of a hook or metric; `from_config`
            sets it.
        **unknown: Refused with the nearest argument, such as `max_epochs` for `epochs`.

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
        mode: `train`, or `val`, `test` or `predict` while that method runs alone.
        best: A record (`value`, `epoch`, `iter`, `rule`) of the best result by metric.
        events: The store of recorded values.
        model: The model on its device.
        optimizer: The optimizer, or several by name.
        scheduler: The schedulers, as they were given.
        loss_fn: The loss function.
        train_loader: The training batches.
        val_loader: The validation batches, or several by name.
        test_loader: The test batches, or several by name.
        hooks: The registered hooks, by priority.
        device: The device of the model.
        work_dir: The local directory of the run's files.
        work_url: The URL that it is copied to, if it was given as one.
        config: The config that the run comes from; empty without one.
        seed: The seed.
        logger: The logger of the package, `hookline`.
        is_main: Whether this is rank 0.
        world: The rank, the number of ranks, and their collectives.
        loop: Counts iterations and epochs and settles requests; `loop.requests` has these.
        checkpointer: Saves checkpoints, and loads the one that the run resumes from.
        evaluation: Evaluates the model; `evaluation.set_name` is the current validation set.
        parallel: The model as the ranks share it: DDP, FSDP, compiled.
        sites: The calls of each site, and their costs.
    """

    _is_built = False

    def __init__(
        self,
        model: torch.nn.Module,
        *,
        train_loader: Loaders | None = None,
        val_loader: Loaders | None = None,
        test_loader: Loaders | None = None,
        optimizer: Optimizers | None = None,
        loss_fn: LossFunction | None = None,
        metrics: Mapping[str, MetricOrConfig] | Sequence[MetricOrConfig] | None = None,
        hooks: Iterable[HookOrConfig] = (),
        drop_hooks: Iterable[str] = (),
        max_epochs: int | None = None,
        max_iters: int | None = None,
        max_train_batches: int | None = None,
        max_val_batches: int | None = None,
        overfit_batches: int | None = None,
        sanity_val_batches: int = 2,
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
        **unknown: NoReturn,  # Type checkers reject any; at run time the error has a suggestion.
    ) -> None:
        # At this point the local variables are the arguments.
        arguments = {name: value for name, value in locals().items() if name in RULES}
        refuse_unknown(unknown)
        check_arguments(arguments)
        world = connect()
        work_dir, resume, hooks = apply_trial(work_dir, resume, hooks)
        own_hooks = given_hooks(hooks)
        drop_hooks = list(drop_hooks)
        self._arguments = {**arguments, "hooks": own_hooks, "drop_hooks": drop_hooks}
        steps_itself = isinstance(optimizer, Mapping) and takes_optimizer(model)
        dropped = set(drop_hooks)
        if optimizer is None or steps_itself:
            dropped.add("OptimizerHook")
        self._prepare_training_data = partial(
            prepare_training_data,
            seed=seed or 0,
            rank=world.rank,
            world_size=world.size,
            max_batches=max_train_batches,
            overfit_batches=overfit_batches,
        )
        train_loader = self._prepare_training_data(train_loader)
        options: dict[str, dict[str, Any]] = {}
        is_stream = train_loader is not None and length_of(train_loader) is None
        if is_stream and max_iters is not None:
            options = stream_options(max_iters)
        defaults = _default_hooks(own_hooks, dropped, steps_itself, scheduler, world, options)
        if switchable(optimizer):
            _add_missing(defaults, own_hooks, "OptimizerModeHook")
        val_loader = share_loaders(val_loader, world.rank, world.size)
        test_loader = share_loaders(test_loader, world.rank, world.size)
        for loaders in (train_loader, val_loader, test_loader):
            set_default_seed(loaders, seed)
        super().__init__(
            model,
            train_loader=train_loader,
            val_loader=val_loader,
            test_loader=test_loader,
            optimizer=optimizer,
            loss_fn=loss_fn,
            metrics=build_metrics(metrics or {}),
            hooks=[*defaults, *own_hooks],
            max_epochs=max_epochs,
            max_iters=max_iters,
            work_dir=work_dir,
            scheduler=scheduler,
            seed=seed,
            device=device,
            resume=resume,
            load_from=load_from,
            load_strict=load_strict,
            hook_order=hook_order,
            hook_budget=hook_budget,
            config=config,
            strategy=strategy,
            sync_bn=sync_bn,
            compile=compile,
            deterministic=deterministic,
            locate_error=locate_error,
        )
        check_copied(self)
        self.evaluation.max_val_batches = max_val_batches
        self._sanity_val_batches = sanity_val_batches
        self._is_built = True

    def register_hooks(self, hooks: Iterable[HookOrConfig]) -> None:
        """Register hooks, after the services that their methods may name as arguments."""
        if self.get_service("visualizer") is None:
            self.register_service("checkpoints_dir", self.work_dir)
            self.register_service("logs_dir", self.work_dir)
            self.register_service("visualization_dir", self.work_dir / "visualizations")
            self.register_service("visualizer", Visualizer(self.events))
        super().register_hooks(hooks)

    @property
    def train_loader(self) -> Any:
        """The training batches. Assigning others means the same as `set_train_loader`."""
        return self._train_loader

    @train_loader.setter
    def train_loader(self, loader: Loaders | None) -> None:
        if loader is None or not self._is_built:
            self._train_loader = loader
        else:
            self.set_train_loader(loader)

    def set_train_loader(self, loader: Loaders) -> None:
        """Replace the training data; call it in `before_epoch` or `before_train_epoch`.

        A hook that chooses the loader by `runner.epoch` resumes exactly at any iteration: its
        choice is made again before the position is restored.

        Args:
            loader: An iterable of training batches, or several by name, also of another length.
                `max_train_batches` and `overfit_batches` hold for it, too.

        Raises:
            HooklineError: Inside an epoch, or at its end: a resumed run would not repeat the call.
        """
        if self._is_inside_epoch():
            raise HooklineError(
                "the training data can be replaced only between epochs, in before_epoch or "
                "before_train_epoch",
                parameter="loader",
            )
        check_arguments({"train_loader": loader})
        loader = self._prepare_training_data(loader)
        set_default_seed(loader, self.seed)
        self._train_loader = loader
        self.epoch_length = length_of(loader)
        self.loop.update_length()

    def _is_inside_epoch(self) -> bool:
        """Return whether the batches of an epoch are read, or its end is in progress."""
        loop = self.loop
        if not loop.is_running or loop.phase == "before_epoch":
            return False
        return loop.phase != "" or (self.inner_iter > 0 and not loop.resuming)

    def train(
        self,
        *extra: NoReturn,
        max_epochs: int | None = None,
        max_iters: int | None = None,
        **unknown: NoReturn,  # Type checkers reject any; at run time the error has advice.
    ) -> Self:
        """Train until the run reaches its length or a hook requests a stop.

        A second call continues the run, also after an interrupt in a notebook.

        Args:
            max_epochs: A new length of the whole run in epochs, as an earlier length counts.
            max_iters: A new length in iterations.

        Raises:
            ConfigError: If both are given.
        """
        refuse_in_train(extra, unknown)
        if max_epochs is not None or max_iters is not None:
            check_length(max_epochs, max_iters)
            self.max_epochs = max_epochs
            self.max_iters = self.loop.iter_limit = max_iters
        self.loop.update_length()  # `max_epochs` may have been set, too.
        return super().train()

    fit = train

    def test(self, loader: Loaders | None = None) -> Metrics:
        """Evaluate on the test data, or on other data.

        Args:
            loader: An iterable of batches, or several by name; the test data by default.
        """
        if loader is None:
            return super().test()
        check_arguments({"test_loader": loader})
        own, self.test_loader = self.test_loader, self._prepare_evaluation_data(loader)
        try:
            return super().test()
        finally:
            self.test_loader = own

    def predict(self, loader: Loaders | None = None) -> Any:
        """Return the model's predictions in the order of the data.

        A batch is passed to the model's `predict_step(batch)`, which returns predictions. Without
        one, predictions are those of its `test_step` or `val_step`. Without these, the model is
        called with the inputs of the batch, which needs no targets then. With several ranks, each
        predicts a part, and all get the whole result.

        Args:
            loader: An iterable of batches, or several by name; the test data by default.

        Returns:
            A tensor with a row for each sample. A list with an item for each sample, if the
            predictions are not tensors of one shape. Several loaders give a dict of these.

        Raises:
            HooklineError: If there is no loader, or predictions have no item for each sample.
        """
        loader = self.test_loader if loader is None else loader
        if loader is None:
            advice = Suggestion(advice="pass a loader to predict(), or test_loader=… to the runner")
            raise HooklineError("no data to predict", parameter="loader", suggestion=advice)
        check_is_loader("loader", loader)
        loader = self._prepare_evaluation_data(loader)
        return self._run_apart("predict", lambda: predict_all(self, loader))

    def _prepare_evaluation_data(self, loader: Loaders) -> Any:
        """Return loaders of which each rank reads its part, with the seed of the run."""
        loader = share_loaders(loader, self.world.rank, self.world.size)
        set_default_seed(loader, self.seed)
        return loader

    def dry_run(self, limit: float = 300.0) -> DryRunResult:
        """Try this run on a few batches, as `hookline dry-run` does, and return the findings.

        The dry run works on copies and in a temporary directory: this runner, its loaders and the
        random numbers are unchanged.

        Args:
            limit: The time limit in seconds.
        """
        from hookline.dry_run.copies import dry_run_of_parts

        if self.world.size > 1:
            raise HooklineError("a dry run in Python needs a single rank; use `hookline dry-run`")
        return dry_run_of_parts(self, self._arguments, limit)

    def _begin_training(self) -> None:
        super()._begin_training()
        if self.is_main:
            warn_about_endless_epochs(self)
            warn_about_idle_hooks(self)
            for name, own in unused_steps(self.model).items():
                self.logger.warning("the model's %s is never called; name it %s(batch)", name, own)
        check_val_end(self)
        if self._sanity_val_batches:
            check_validation(self, self._sanity_val_batches)

    def _end_training(self) -> None:
        super()._end_training()
        warn_about_unwritten_records(self)

    @property
    def history(self) -> RunLog:
        """The logged scalars of the run so far, resumed parts included, read from its log.

        Raises:
            HooklineError: Before the first training, or without a LoggerHook.
        """
        if not (self.work_dir / LOG).is_file():
            advice = Suggestion(advice="call train() first, and keep LoggerHook")
            raise HooklineError("the run has no log yet", suggestion=advice)
        return RunLog(self.work_dir)

    @property
    def report(self) -> RunReport:
        """The report of the run; a notebook displays it."""
        from hookline.report.inline import RunReport

        return RunReport(self.work_dir)

    def _repr_html_(self) -> str:
        from hookline.runner_html import runner_as_html

        return runner_as_html(self)

    @classmethod
    def from_config(
        cls, config: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()
    ) -> Self:
        """Build a runner from a config.

        Args:
            config: A config, or its file.
            overrides: Changes of the config, such as `training.epochs=3`.

        Raises:
            ConfigError: With all problems of the config.
        """
        return cls(**build(load_config(config, overrides)))


def _default_hooks(
    own_hooks: Sequence[BaseHook],
    dropped: set[str],
    steps_itself: bool,
    scheduler: Any,
    world: World,
    options: Mapping[str, Mapping[str, Any]],
) -> list[BaseHook]:
    """Build the default hooks that the user's own hooks do not replace."""
    hooks = get_default_hooks(own_hooks, dropped, options)
    is_owned = any(hook.site_method("optimize") is not None for hook in own_hooks)
    if steps_itself and not is_owned:
        hooks.append(HOOKS.build("ManualOptimizationHook"))
    if world.size > 1 and "UnevenBatchHook" not in dropped:
        _add_missing(hooks, own_hooks, "UnevenBatchHook")
    if scheduler is not None and not any(hook.steps_schedulers for hook in own_hooks):
        hooks.append(HOOKS.build("ParamSchedulerHook"))
    return hooks


def _add_missing(hooks: list[BaseHook], own_hooks: Sequence[BaseHook], name: str) -> None:
    """Add a hook by its name, unless the user has one of this class."""
    cls = HOOKS.get(name)
    if not any(isinstance(hook, cls) for hook in own_hooks):
        hooks.append(cls())
