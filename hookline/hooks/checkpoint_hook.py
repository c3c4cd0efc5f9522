"""Save checkpoints: when, under which names, and how many to keep."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from hookline.checkpoint import INEXACT, check_name
from hookline.checkpoint.best_files import (
    BestFile,
    BestFiles,
    admit,
    drop_worst_of_each,
    name_best,
    names_of,
    write_list,
)
from hookline.checkpoint.names import is_number_template
from hookline.checkpoint.publish import publish_recommended
from hookline.checkpoint.retention import retain
from hookline.duration import parse_duration
from hookline.engine import HOOKS, BaseHook, BaseRunner, Interrupted, Priority, state
from hookline.engine.run_state import capture
from hookline.errors import ConfigError, Suggestion, parameter_error, require_at_least
from hookline.metrics.best import DEFAULT_METRIC, TrackedMetric, TrackedResult
from hookline.metrics.direction import DEFAULT_RULE, given_rule
from hookline.optim.averaging import average_buffers
from hookline.optim.stepped import call_before_steps, stepped_tensors
from hookline.remote import find_url_problem, is_url
from hookline.secrets import MASK, mask_text

EPOCH_TEMPLATE = "epoch_{}.pth"
ITERATION_TEMPLATE = "iter_{}.pth"


@HOOKS.register()
@dataclass
class CheckpointHook(BaseHook):
    """Save checkpoints at an interval, and keep the newest, the last and the best.

    A seam writes one file. `last.pth` and `best_<metric>.pth` are additional names of it.

    Args:
        interval: Number of epochs (or iterations) between two saves. -1 never saves by count.
        by_epoch: Count `interval` and `save_begin` in epochs. Otherwise count iterations.
        save_optimizer: Save the state of the optimizer. An exact resume needs it.
        save_scheduler: Save the state of the scheduler.
        max_keep_ckpts: Number of numbered checkpoints to keep. -1 keeps all.
        save_last: Keep `last.pth`, from which a run resumes.
        save_best: Keep the best checkpoint: true for the best in `best_metric`, a metric, a list of
            metrics, or `auto` for the first measured metric. False disables it. False in EvalHook
            disables it, too, unless metrics are named here.
        best_metric: Metric of the best checkpoint, if `save_best` is true. The default stands for
            the metric of EvalHook.
        rule: `greater` or `less`. Without it, the direction comes from `greater_keys`, `less_keys`,
            `higher_is_better` of the metric, or whole words of its name.
        out_dir: Directory of the files. None uses the work directory.
        filename_tmpl: File name, with `{}` for the number. If iterations are counted, the default
            is `iter_{}.pth`.
        save_begin: First epoch (or iteration) to save. `interval` counts from it.
        greater_keys: Parts of the names of metrics for which higher is better.
        less_keys: Parts of the names of metrics for which lower is better.
        published_keys: Parts of a checkpoint, such as `state_dict`. At the end of training, the
            last and the best checkpoints are also written with these parts only.
        sync_buffer: Average the buffers of the model over all ranks before a save.
        keep_best: Number of best checkpoints to keep for each metric. More than one are kept under
            names with their score, such as `best_accuracy_0.9812_iter_350.pth`, and `best.json`
            lists them. `best_<metric>.pth` is always the best one.
        keep_every_n_epochs: Never remove the checkpoints of every n-th epoch.
        every: Also save `last.pth` by the clock, such as `"15min"`.
        save_on_exception: Write `exception.pth` after an exception. It is for inspection: a run
            does not resume from it.
        save_param_scheduler: Another name of `save_scheduler`.
        async_save: Write in a background thread. Otherwise training waits for the disk.
        overlap_copy: Copy the trained weights and the state of the optimizer during the next
            forward and backward pass, and not before it. Then only the optimizer's step may change
            them. Tensors on accelerators are copied before.
        mirror: URL of a copy of the work directory in object storage, such as
            `s3://bucket/run`. A thread uploads checkpoints, logs and pictures beside the training.
            With `resume: auto`, a run without local checkpoints continues from there. None means
            the work directory if that is a URL, and otherwise no copy.
        trainable_only: Save only the trained part of the model, such as an adapter, and a hash of
            the frozen base. A resume needs the same base, and `load_from` provides it if it is set.

    Attributes:
        kept: Names of the numbered files that `max_keep_ckpts` counts, oldest first.
        best_files: The best checkpoints of each metric, if `keep_best` is more than one.

    Example:
        ```yaml
        hooks:
          - {type: CheckpointHook, max_keep_ckpts: 3, save_best: accuracy, every: 15min}
        ```
    """

    interval: int = 1
    by_epoch: bool = True
    save_optimizer: bool = True
    save_scheduler: bool = True
    max_keep_ckpts: int = 5
    save_last: bool = True
    save_best: bool | str | list[str] = True
    best_metric: str = DEFAULT_METRIC
    rule: Literal["greater", "less"] = DEFAULT_RULE
    out_dir: str | None = None
    filename_tmpl: str = EPOCH_TEMPLATE
    save_begin: int = 0
    greater_keys: list[str] | None = None
    less_keys: list[str] | None = None
    published_keys: str | list[str] | None = None
    sync_buffer: bool = False
    keep_best: int = 1
    keep_every_n_epochs: int | None = None
    every: str | float | None = None
    save_on_exception: bool = False
    save_param_scheduler: bool | None = None
    async_save: bool = True
    overlap_copy: bool = False
    mirror: str | None = None
    trainable_only: bool = False
    kept: list[str] = state([])
    best_files: dict[str, BestFiles] = state({})

    priority = Priority.BELOW_NORMAL
    ranks = "collective"

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_places()
        self.filename_tmpl = self._find_template()
        if self.save_param_scheduler is not None:
            self.save_scheduler = self.save_param_scheduler
        self._seconds = None if self.every is None else parse_duration(self.every)
        self._saved_at = 0.0
        self._number: int | None = None  # epoch or iteration in the name of the requested file
        self._discarded: list[str] = []  # files to remove after a state was loaded
        self._before_steps = ExitStack()  # of the optimizer
        if not self.by_epoch:
            self.disable_sites("after_train_epoch")
        elif self.every is None:
            self.disable_sites("after_train_iter")
        if not self.save_on_exception:
            self.disable_sites("on_exception")

    def before_run(self, runner: BaseRunner) -> None:
        self._open_store(runner)
        self._open_mirror(runner)
        self._track_best(runner)
        if runner.parallel.mesh is not None:
            for parameter in ("trainable_only", "overlap_copy"):
                if getattr(self, parameter):
                    raise parameter_error(self, parameter, "does not work with sharded models")
        if self.trainable_only:
            base = runner.checkpointer.frozen_base
            runner.checkpointer.reduce = functools.partial(base.reduce, runner.model)
        if self.save_on_exception and runner.is_main and runner.parallel.mesh is not None:
            runner.logger.warning(
                "%s: save_on_exception is ignored for sharded models: saving one needs every rank",
                self.name,
            )

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        # A rollback discards the requests of the iterations that it repeats.
        self._number = None
        runner.checkpointer.names.clear()

    def before_train(self, runner: BaseRunner) -> None:
        if not runner.is_main:
            return
        if runner.loop.resuming:
            # The earlier process may have been killed before it removed them.
            runner.checkpointer.store.remove(*self._take_discarded())
        elif runner.iter == 0:
            _warn_about_earlier_run(runner)
            runner.checkpointer.store.begin_new_run()
        runner.checkpointer.start_mirror()
        if self.trainable_only:
            runner.checkpointer.frozen_base.start_hashing(runner.model)
        if self.overlap_copy:
            runner.checkpointer.postponed = functools.partial(_tensors_to_postpone, runner)
            wait = functools.partial(self.wait_for_copy, runner)
            self._before_steps = call_before_steps(runner.optimizer, wait)

    def after_train_epoch(self, runner: BaseRunner) -> None:
        is_due = self.every_n_epochs(runner, self.interval, self.save_begin)
        self._request(runner, runner.epoch + 1 if is_due else None, self.is_last_epoch(runner))

    def after_train_iter(self, runner: BaseRunner) -> None:
        if not self.by_epoch:
            is_due = self.every_n_iters(runner, self.interval, self.save_begin)
            self._request(runner, runner.iter + 1 if is_due else None, self.is_last_iter(runner))
        if self._seconds is not None and time.monotonic() - self._saved_at >= self._seconds:
            self._saved_at = time.monotonic()
            runner.request_save()

    def after_val(self, runner: BaseRunner) -> None:
        is_named = not isinstance(self.save_best, bool)
        if (is_named or runner.best.should_save) and runner.checkpointer.is_open:
            for result in runner.best.results(self.name):
                if result.is_best:
                    runner.request_save(f"best_{result.metric}")
                # A resumed run may have kept more of them, and its list continues.
                if self.keep_best > 1 or result.metric in self.best_files:
                    self._request_ranked(runner, result)

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        if self.sync_buffer:
            average_buffers(runner.model)
        if self._number is not None:
            # The save may have waited for the optimizer step: use the iteration that it holds.
            self._add_number(runner, self._number if self.by_epoch else runner.iter)
            self._number = None
        # The checkpoint still lists the surplus, so that a run resumed from it can remove the rest.
        runner.checkpointer.surplus += self._drop_surplus() + self._take_discarded()
        if self.best_files:
            directory = runner.checkpointer.store.directory
            write = functools.partial(write_list, directory, self.best_files)
            runner.checkpointer.afterwards.append(write)

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self._saved_at = time.monotonic()

    def after_train(self, runner: BaseRunner) -> None:
        runner.checkpointer.wait()
        if self.published_keys and runner.is_main:
            keys = self.published_keys
            if isinstance(keys, str):
                keys = [keys]
            publish_recommended(runner.checkpointer.store, keys)

    def on_exception(self, runner: BaseRunner) -> None:
        runner.checkpointer.wait()
        if runner.is_main and runner.iter and runner.parallel.mesh is None:
            _save_for_inspection(runner)

    def wait_for_copy(self, runner: BaseRunner) -> None:
        """Return when the last save has copied everything that the optimizer's step changes."""
        runner.checkpointer.wait_for_copy()

    def cleanup(self, runner: BaseRunner) -> None:
        self._before_steps.close()
        runner.checkpointer.close(wait=not isinstance(runner.exception, Interrupted))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the lists of kept files."""
        rolled_back = names_of(self.best_files)
        super().load_state_dict(state)
        self._discarded = [*rolled_back, *self._drop_surplus()]

    def _check_numbers(self) -> None:
        if self.interval < 1 and self.interval != -1:
            raise parameter_error(self, "interval", "must be at least 1, or -1 for never")
        require_at_least(self, 1, "keep_best")
        if self.keep_every_n_epochs is not None:
            require_at_least(self, 1, "keep_every_n_epochs")
            if not self.by_epoch:
                raise parameter_error(self, "keep_every_n_epochs", "needs by_epoch=True")
        if self.overlap_copy and not self.async_save:
            raise parameter_error(self, "overlap_copy", "needs async_save=True")

    def _check_places(self) -> None:
        if is_url(self.out_dir):
            advice = Suggestion(advice="set `mirror` or the work directory to the URL")
            raise parameter_error(self, "out_dir", "must be a local directory", suggestion=advice)
        if self.mirror is None:
            return
        if not is_url(self.mirror):
            raise parameter_error(self, "mirror", "must be a URL, such as s3://bucket/run")
        problem = find_url_problem(self.mirror, "mirror")
        if problem is not None:
            raise ConfigError(replace(problem, component=type(self).__name__))

    def _find_template(self) -> str:
        """Return the template of the names of numbered files, with secrets masked."""
        template = self.filename_tmpl
        if not self.by_epoch and template == EPOCH_TEMPLATE:
            template = ITERATION_TEMPLATE
        template = mask_text(template).replace(MASK, "_")
        if not is_number_template(template):
            raise parameter_error(self, "filename_tmpl", "needs a {} or {:03d} for the number")
        check_name(template.format(1))
        return template

    def _open_store(self, runner: BaseRunner) -> None:
        directory = Path(self.out_dir or runner.work_dir)
        parts = {"optimizer": self.save_optimizer, "scheduler": self.save_scheduler}
        excluded = [key for key, is_wanted in parts.items() if not is_wanted]
        runner.checkpointer.open(directory, self.async_save, excluded)
        self._saved_at = time.monotonic()
        if runner.get_service("checkpoints_dir") != directory:
            runner.register_service("checkpoints_dir", directory)

    def _open_mirror(self, runner: BaseRunner) -> None:
        url = self.mirror or runner.work_url
        if url is not None and runner.is_main and runner.mode == "train":
            is_resuming = runner.checkpointer.resume == "auto"
            runner.checkpointer.open_mirror(url, runner.work_dir, restore=is_resuming)

    def _track_best(self, runner: BaseRunner) -> None:
        """Ask the tracker for the best result of each metric in `save_best`."""
        runner.best.vote_on_saving("checkpoint", bool(self.save_best))
        if self.save_best is True and self.best_metric != DEFAULT_METRIC:
            runner.best.default_metric = runner.best.default_metric or self.best_metric
        parameter = "best_metric" if isinstance(self.save_best, bool) else "save_best"
        rule = given_rule(self.rule)
        keys = self.greater_keys or (), self.less_keys or ()
        for metric in self._metrics():
            runner.best.track(TrackedMetric(self.name, parameter, metric, rule, *keys))

    def _metrics(self) -> list[str]:
        """Return the metrics whose best checkpoints are kept."""
        if isinstance(self.save_best, bool):
            return [self.best_metric] if self.save_best else []
        return [self.save_best] if isinstance(self.save_best, str) else list(self.save_best)

    def _request(self, runner: BaseRunner, number: int | None, is_last: bool) -> None:
        """Request a numbered file, unless `number` is None, and `last.pth`."""
        if number is not None:
            self._number = number
            runner.checkpointer.request_snapshot(collective=True)
        if self.save_last and (number is not None or is_last):
            runner.request_save(collective=True)

    def _request_ranked(self, runner: BaseRunner, result: TrackedResult) -> None:
        """Request a file with its score in the name, if a result is among the best ones."""
        value = float(result.value)
        file = name_best(result.metric, value, runner.iter)
        new = BestFile(file=file, value=value, epoch=runner.epoch + 1, iter=runner.iter)
        known = self.best_files.get(result.metric)
        checkpoints = [] if known is None else known["checkpoints"]
        best = BestFiles(rule=result.direction, checkpoints=checkpoints)
        admitted = admit(best, new, self.keep_best)
        if admitted is not None:
            self.best_files = {**self.best_files, result.metric: admitted}
            runner.request_save(file)

    def _add_number(self, runner: BaseRunner, number: int) -> None:
        """Write the checkpoint of this seam under its number, too."""
        name = self.filename_tmpl.format(number)
        is_permanent = self.keep_every_n_epochs and number % self.keep_every_n_epochs == 0
        if not is_permanent:
            self.kept.append(name)
        runner.checkpointer.names.insert(0, name)
        assert runner.checkpoint is not None
        # The state was captured before this file was added to `kept`.
        runner.checkpoint["hooks"][self.name] = self.state_dict()

    def _drop_surplus(self) -> list[str]:
        """Forget the files beyond `max_keep_ckpts` and `keep_best`, and return their names."""
        self.kept, surplus = retain(self.kept, self.max_keep_ckpts)
        self.best_files, worst = drop_worst_of_each(self.best_files, self.keep_best)
        return surplus + worst

    def _take_discarded(self) -> list[str]:
        """Return the files to remove after a state was loaded, once."""
        if not self._discarded:
            return []
        discarded, self._discarded = self._discarded, []
        kept = {*self.kept, *names_of(self.best_files)}
        return [name for name in discarded if name not in kept]


def _tensors_to_postpone(runner: BaseRunner) -> list[Tensor]:
    """Return the tensors that may be copied during the next iteration, if there is one."""
    return [] if runner.loop.is_finished() else stepped_tensors(runner.optimizer)


def _save_for_inspection(runner: BaseRunner) -> None:
    """Write `exception.pth`. An error may interrupt an iteration, so no run resumes from it."""
    checkpoint = capture(runner, all_ranks=False)
    checkpoint["meta"]["inexact"] = True
    if runner.checkpointer.reduce is not None:
        checkpoint = runner.checkpointer.reduce(checkpoint)
    runner.checkpointer.store.save(
        checkpoint, "exception.pth", step=runner.iter, epoch=runner.epoch, tags=[INEXACT]
    )


def _warn_about_earlier_run(runner: BaseRunner) -> None:
    """Warn if a new run overwrites checkpoints of an earlier one."""
    store = runner.checkpointer.store
    entries = store.entries()
    if entries and runner.checkpointer.resume == "auto":
        runner.logger.warning("no intact checkpoint in %s: starting over", store.directory)
    elif entries:
        runner.logger.warning(
            "%s has checkpoints of an earlier run (the newest is %s, iteration %d), and this "
            'run overwrites them: pass --resume (resume="auto") to continue that run, or '
            "another work_dir to keep both",
            store.directory, entries[-1].name, entries[-1].step,
        )  # fmt: skip
