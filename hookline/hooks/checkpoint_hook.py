"""Save checkpoints: when, under which names, and how many to keep."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hookline.checkpoint import INEXACT, check_name, is_reserved_name, publish, with_shards
from hookline.checkpoint.best_files import (
    BestFile,
    BestFiles,
    admit,
    drop_worst,
    name_best,
    write_list,
)
from hookline.checkpoint.mirror import Mirror
from hookline.checkpoint.names import is_number_template
from hookline.checkpoint.retention import retain
from hookline.duration import parse_duration
from hookline.engine import HOOKS, BaseHook, BaseRunner, Interrupted, Priority, state
from hookline.engine.run_state import capture
from hookline.errors import parameter_error, require_at_least
from hookline.metrics.best import DEFAULT_METRIC, TrackedMetric, TrackedResult
from hookline.metrics.direction import DEFAULT_RULE, given_rule
from hookline.optim.averaging import average_buffers
from hookline.remote import RemoteDirectory, is_url
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
        mirror: URL of a copy of the work directory in object storage, such as
            `s3://bucket/run`. A thread uploads checkpoints, logs and pictures beside the training.
            With `resume: auto`, a run without local checkpoints continues from there.

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
    mirror: str | None = None
    kept: list[str] = state([])
    best_files: dict[str, BestFiles] = state({})

    priority = Priority.BELOW_NORMAL
    ranks = "collective"

    def __post_init__(self) -> None:
        self._check_numbers()
        if self.mirror is not None and not is_url(self.mirror):
            raise parameter_error(self, "mirror", "must be a URL, such as s3://bucket/run")
        if not self.by_epoch and self.filename_tmpl == EPOCH_TEMPLATE:
            self.filename_tmpl = ITERATION_TEMPLATE
        self.filename_tmpl = mask_text(self.filename_tmpl).replace(MASK, "_")
        if not is_number_template(self.filename_tmpl):
            raise parameter_error(self, "filename_tmpl", "needs a {} or {:03d} for the number")
        check_name(self.filename_tmpl.format(1))
        if self.save_param_scheduler is not None:
            self.save_scheduler = self.save_param_scheduler
        self._seconds = None if self.every is None else parse_duration(self.every)
        self._saved_at = 0.0
        self._number: int | None = None  # epoch or iteration in the name of the requested file
        self._surplus: list[str] = []  # files to remove after a state was loaded
        if not self.by_epoch:
            self.disable_sites("after_train_epoch")
        elif self.every is None:
            self.disable_sites("after_train_iter")
        if not self.save_on_exception:
            self.disable_sites("on_exception")

    def _check_numbers(self) -> None:
        if self.interval < 1 and self.interval != -1:
            raise parameter_error(self, "interval", "must be at least 1, or -1 for never")
        require_at_least(self, 1, "keep_best")
        if self.keep_every_n_epochs is not None:
            require_at_least(self, 1, "keep_every_n_epochs")
            if not self.by_epoch:
                raise parameter_error(self, "keep_every_n_epochs", "needs by_epoch=True")

    def before_run(self, runner: BaseRunner) -> None:
        parts = {"optimizer": self.save_optimizer, "scheduler": self.save_scheduler}
        excluded = [key for key, is_wanted in parts.items() if not is_wanted]
        runner.checkpointer.open(self.out_dir or runner.work_dir, self.async_save, excluded)
        self._saved_at = time.monotonic()
        directory = Path(self.out_dir or runner.work_dir)
        if runner.get_service("checkpoints_dir") != directory:
            runner.register_service("checkpoints_dir", directory)
        self._open_mirror(runner)
        self._track_best(runner)
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
            runner.checkpointer.store.remove(*self._take_surplus())
        elif runner.iter == 0:
            self._warn_about_checkpoints(runner)
            runner.checkpointer.store.begin_new_run()
        runner.checkpointer.start_mirror()

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
                if self.keep_best > 1:
                    self._rank(runner, result)

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        if self.sync_buffer:
            average_buffers(runner.model)
        if self._number is not None:
            # The save may have waited for the optimizer step: use the iteration that it holds.
            self._add_number(runner, self._number if self.by_epoch else runner.iter)
            self._number = None
        # The checkpoint still lists the surplus, so that a run resumed from it can remove the rest.
        runner.checkpointer.surplus += self._drop_surplus() + self._take_surplus()
        if self.best_files:
            directory = runner.checkpointer.store.directory
            write = functools.partial(write_list, directory, self.best_files)
            runner.checkpointer.afterwards.append(write)

    def _open_mirror(self, runner: BaseRunner) -> None:
        """Open the mirror; if the run resumes, copy it to the local directory first."""
        if self.mirror is None or not runner.is_main or runner.mode != "train":
            return
        mirror = Mirror(RemoteDirectory(self.mirror), runner.work_dir)
        if runner.checkpointer.resume == "auto":
            mirror.restore(runner.checkpointer.store)
        runner.checkpointer.mirror = mirror

    def _add_number(self, runner: BaseRunner, number: int) -> None:
        """Write the checkpoint of this seam under its number, too."""
        name = self.filename_tmpl.format(number)
        if not self._is_permanent(number):
            self.kept.append(name)
        runner.checkpointer.names.insert(0, name)
        assert runner.checkpoint is not None
        # The state was captured before this file was added to `kept`.
        runner.checkpoint["hooks"][self.name] = self.state_dict()

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self._saved_at = time.monotonic()

    def after_train(self, runner: BaseRunner) -> None:
        runner.checkpointer.wait()
        if self.published_keys and runner.is_main:
            self._publish(runner)

    def on_exception(self, runner: BaseRunner) -> None:
        runner.checkpointer.wait()
        if runner.is_main and runner.iter and runner.parallel.mesh is None:
            # For inspection only: the error may have interrupted an iteration.
            checkpoint = capture(runner, all_ranks=False)
            checkpoint["meta"]["inexact"] = True
            runner.checkpointer.store.save(
                checkpoint,
                "exception.pth",
                step=runner.iter,
                epoch=runner.epoch,
                tags=[INEXACT],
            )

    def cleanup(self, runner: BaseRunner) -> None:
        runner.checkpointer.close(wait=not isinstance(runner.exception, Interrupted))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the lists of kept files."""
        discarded = self._best_names()  # by a rollback
        super().load_state_dict(state)
        self._surplus = [*discarded, *self._drop_surplus()]

    def _request(self, runner: BaseRunner, number: int | None, is_last: bool) -> None:
        """Request a numbered file, unless `number` is None, and `last.pth`."""
        if number is not None:
            self._number = number
            runner.checkpointer.request_snapshot(collective=True)
        if self.save_last and (number is not None or is_last):
            runner.request_save(collective=True)

    def _is_permanent(self, epoch: int) -> bool:
        return self.keep_every_n_epochs is not None and epoch % self.keep_every_n_epochs == 0

    def _rank(self, runner: BaseRunner, result: TrackedResult) -> None:
        """Request a file for a result that is among the best."""
        value = float(result.value)
        file = name_best(result.metric, value, runner.iter)
        new = BestFile(file=file, value=value, epoch=runner.epoch + 1, iter=runner.iter)
        empty = BestFiles(rule=result.direction, checkpoints=[])
        best = self.best_files.get(result.metric, empty)
        admitted = admit(best, new, self.keep_best)
        if admitted is not None:
            self.best_files = {**self.best_files, result.metric: admitted}
            runner.request_save(file)

    def _best_names(self) -> list[str]:
        return [each["file"] for best in self.best_files.values() for each in best["checkpoints"]]

    def _take_surplus(self) -> list[str]:
        """Return the files to remove after a state was loaded, once."""
        surplus, self._surplus = self._surplus, []
        return [name for name in surplus if name not in (*self.kept, *self._best_names())]

    def _drop_surplus(self) -> list[str]:
        """Remove the names beyond `max_keep_ckpts` and `keep_best` and return them."""
        self.kept, surplus = retain(self.kept, self.max_keep_ckpts)
        kept = {}
        for metric, best in self.best_files.items():
            kept[metric], dropped = drop_worst(best, self.keep_best)
            surplus += dropped
        self.best_files = kept
        return surplus

    def _track_best(self, runner: BaseRunner) -> None:
        """Ask the tracker for the best result of each metric in `save_best`."""
        runner.best.vote_on_saving("checkpoint", bool(self.save_best))
        parameter = "best_metric" if isinstance(self.save_best, bool) else "save_best"
        keys = self.greater_keys or (), self.less_keys or ()
        rule = given_rule(self.rule)
        if self.save_best is True and self.best_metric != DEFAULT_METRIC:
            runner.best.default_metric = runner.best.default_metric or self.best_metric
        for metric in self._metrics():
            runner.best.track(TrackedMetric(self.name, parameter, metric, rule, *keys))

    def _metrics(self) -> list[str]:
        if isinstance(self.save_best, bool):
            return [self.best_metric] if self.save_best else []
        return [self.save_best] if isinstance(self.save_best, str) else list(self.save_best)

    def _publish(self, runner: BaseRunner) -> None:
        """Write the last and the best checkpoints with `published_keys` only."""
        keys = self.published_keys
        wanted = [keys] if isinstance(keys, str) else list(keys or ())
        store = runner.checkpointer.store
        for entry in store.entries():
            for name in entry.names:
                if is_reserved_name(name):
                    content = with_shards(store.load(name), store.directory)
                    publish(content, store.directory / name.removesuffix(".pth"), "pth", wanted)

    def _warn_about_checkpoints(self, runner: BaseRunner) -> None:
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
