"""When to save, under which names, and what to keep; how files are kept safe is `hookline.checkpoint`'s business."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch

from hookline.checkpoint import INEXACT, CheckpointStore, Saver, check_name, is_finite, is_promise, publish, safe_name, with_shards
from hookline.checkpoint.shards import PREFIX, split
from hookline.duration import parse_duration
from hookline.engine import HOOKS, BaseHook, BaseRunner, Interrupted, Priority, state
from hookline.engine.capture import capture
from hookline.engine.metrics import DEFAULT_METRIC, DEFAULT_RULE, Rule, Unasked, choose_metric
from hookline.engine.seams import Write
from hookline.optim.averaging import average_buffers
from hookline.optim.groups import param_groups

EPOCH_TEMPLATE = "epoch_{}.pth"
# From a seam to the optimizer step that follows, or to the end of training.
BEFORE_STEP = ["after_save_checkpoint", "before_epoch", "before_train_epoch", "before_train_iter", "after_forward", "optimize"]
BEFORE_STEP += ["after_backward", "after_train"]


@HOOKS.register()
@dataclass
class CheckpointHook(BaseHook):
    """Save every `interval` epochs (or iterations); keep the newest `max_keep_ckpts`, and besides them the last and the best.

    One seam writes one file; `last.pth` and `best_<metric>.pth` are further names of it. `save_best` is true (the best in
    `best_metric`), a metric, several, or `auto` (the first one measured); named ones follow `greater_keys`, `less_keys`,
    their own name and then `rule`. `every` saves by the clock as well, `"15min"`. With `published_keys` the last and the best
    are also written with these parts only. An `interval` of -1 never saves by counting, `max_keep_ckpts` of -1 keeps all.
    """

    interval: int = 1
    by_epoch: bool = True
    save_optimizer: bool = True
    save_scheduler: bool = True
    max_keep_ckpts: int = 5
    save_last: bool = True
    save_best: bool | str | list[str] = True
    best_metric: str = DEFAULT_METRIC
    rule: Rule = DEFAULT_RULE
    out_dir: str | None = None
    filename_tmpl: str = EPOCH_TEMPLATE
    save_begin: int = 0
    greater_keys: list[str] | None = None
    less_keys: list[str] | None = None
    published_keys: str | list[str] | None = None
    sync_buffer: bool = False
    every: str | float | None = None
    save_on_exception: bool = False
    save_param_scheduler: bool | None = None  # another name of save_scheduler
    async_save: bool = True
    kept: list[str] = state([])

    priority = Priority.BELOW_NORMAL
    ranks = "collective"

    def __post_init__(self) -> None:
        if self.interval < 1 and self.interval != -1:
            raise ValueError(f"CheckpointHook: interval must be at least 1, or -1 for never, got {self.interval}")
        if not self.by_epoch and self.filename_tmpl == EPOCH_TEMPLATE:
            self.filename_tmpl = "iter_{}.pth"
        if self.filename_tmpl.format(1) == self.filename_tmpl.format(2):
            raise ValueError(f"CheckpointHook: filename_tmpl needs a {{}} for the number, got {self.filename_tmpl!r}")
        check_name(self.filename_tmpl.format(1))
        if self.save_param_scheduler is not None:
            self.save_scheduler = self.save_param_scheduler
        self._asked = isinstance(self.save_best, (str, list)) or not isinstance(self.best_metric, Unasked)
        self.best_metric = str(self.best_metric)
        self._seconds = None if self.every is None else parse_duration(self.every)
        self._due: list[str] = []
        self._number: int | None = None  # of the epoch or iteration whose own file is due
        self._surplus: list[str] = []
        self._copying = False  # whether a save may still read the weights
        self.leave_alone(*(["after_train_epoch"] if not self.by_epoch else ["after_train_iter"] if self.every is None else []))
        self.leave_alone(*([] if self.sync_buffer else ["before_save_checkpoint"]))
        self.leave_alone(*([] if self.async_save else ["after_backward"]), *([] if self.save_on_exception else ["on_exception"]))

    def before_run(self, runner: BaseRunner) -> None:
        runner.store = CheckpointStore(self.out_dir or runner.work_dir)
        runner.saver = self.wanted
        self._saver = Saver(runner.store, self.async_save, runner.seam.call_next)
        runner.wait_for_saves = self._saver.wait
        self._saved_at = time.monotonic()
        if runner.is_main:
            runner.store.prepare()
            if self.save_on_exception and runner.parallel.mesh is not None:
                runner.logger.warning(
                    "%s: save_on_exception: nothing is saved of a model that is sharded, for which all processes would be needed", self.name
                )

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        self._due, self._number = [], None  # asked for before the run went back to where the checkpoint was taken

    def before_train(self, runner: BaseRunner) -> None:
        if runner.is_main and runner.iter == 0 and not runner.resuming:
            self._tell_of_earlier_run(runner)
        for wanted in self._wanted_metrics(runner):
            chosen = runner.evaluation.check_name(runner, self.name, wanted, DEFAULT_METRIC)
            runner.evaluation.set_rule(runner, self.name, wanted, self.rule, self.greater_keys or (), self.less_keys or ())
            if chosen is not None and wanted != "auto" and self._asked:
                runner.logger.info("%s: %s is not measured, the best checkpoint is the one with the best %s", self.name, wanted, chosen)

    def wanted(self, name: str | None) -> Write:
        """Note that a checkpoint of a name is due (None: the last one); the runner calls the result at the seam."""
        file = f"{safe_name(name or 'last')}.pth"
        if file not in self._due:
            self._due.append(file)
        return self._write

    def after_train_epoch(self, runner: BaseRunner) -> None:
        due = self.every_n_epochs(runner, self.interval, self.save_begin)
        self._ask(runner, runner.epoch + 1 if due else None, last=self.is_last_epoch(runner))

    def after_train_iter(self, runner: BaseRunner) -> None:
        due = not self.by_epoch and self.every_n_iters(runner, self.interval, self.save_begin)
        self._ask(runner, runner.iter + 1 if due else None, last=not self.by_epoch and self.is_last_iter(runner))
        if self._seconds is not None and time.monotonic() - self._saved_at >= self._seconds:
            runner.request_save(local=True)

    def after_val_epoch(self, runner: BaseRunner) -> None:
        for metric, rule in self._best_metrics(runner):
            if runner.improved(metric, rule):
                runner.request_save(f"best_{metric}")

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        average_buffers(runner.model)

    def after_backward(self, runner: BaseRunner) -> None:
        if self._copying:
            self._saver.settle()  # the weights change next
            self._copying = False

    def after_train(self, runner: BaseRunner) -> None:
        self._saver.wait()
        if self.published_keys and runner.is_main:
            keys = [self.published_keys] if isinstance(self.published_keys, str) else self.published_keys
            for entry in runner.store.entries():
                for name in entry.names:
                    if is_promise(name):
                        content = with_shards(runner.store.load(name), runner.store.directory)
                        publish(content, runner.store.directory / name.removesuffix(".pth"), "pth", keys)

    def on_exception(self, runner: BaseRunner) -> None:
        self._saver.wait()
        if runner.is_main and runner.iter and runner.parallel.mesh is None:
            # For looking at only: it is not the state between two iterations.
            runner.store.save(capture(runner), "exception.pth", step=runner.iter, epoch=runner.epoch, tags=[INEXACT])

    def cleanup(self, runner: BaseRunner) -> None:
        runner.saver = None
        if hasattr(self, "_saver"):
            try:
                if not isinstance(runner.exception, Interrupted):
                    self._saver.wait()
            finally:
                runner.store.unlock()

    def _ask(self, runner: BaseRunner, number: int | None, last: bool) -> None:
        if number is not None:
            self._number = number
            runner.request_save(write=self._write)
        if self.save_last and (number is not None or last):
            runner.request_save()

    def _write(self, checkpoint: dict[str, Any]) -> None:
        if not self._due and self._number is None:
            return  # asked for by a signal in the middle of the last save, which had it
        names, self._due = self._due, []
        runner = self.runner
        if self._number is not None:  # a save that waited for the optimizer step holds a later iteration than it was asked for at
            self.kept.append(self.filename_tmpl.format(self._number if self.by_epoch else runner.iter))
            self._number = None
            names.insert(0, self.kept[-1])
            checkpoint["hooks"][self.name] = self.state_dict()
        without = {name for name, wanted in (("optimizer", self.save_optimizer), ("scheduler", self.save_scheduler)) if not wanted}
        content = {key: value for key, value in checkpoint.items() if key not in without}
        self._drop_surplus()
        surplus, self._surplus = self._surplus, []
        about: dict[str, Any] = {"step": runner.iter, "epoch": runner.epoch, "metrics": dict(runner.metrics), "surplus": surplus}
        if runner.parallel.mesh is not None:
            self._write_shards(content, names, about)
        elif runner.is_main:
            later = list(_changed_by_optimizer(runner)) if self._only_optimizer_changes_weights(runner) else []
            self._saver.save(content, names, later=later, **about)
            self._copying = True
        self._saved_at = time.monotonic()

    def _only_optimizer_changes_weights(self, runner: BaseRunner) -> bool:
        """Whether from this seam until `after_backward`, which waits for the copy, no code runs that may change them as well.

        That is code of the user's. Where gradients are accumulated a whole iteration and its seam may come before the step.
        """
        plan = runner.sites.plan
        if not plan["optimize"] or getattr(plan["optimize"][0], "cumulative_iters", 1) > 1 or hasattr(runner.model, "train_step"):
            return False
        return all(_is_ours(hook, site) for site in BEFORE_STEP for hook in takewhile(lambda hook: hook is not self, plan[site]))

    def _write_shards(self, content: dict[str, Any], names: list[str], about: dict[str, Any]) -> None:
        world, (plain, shards) = self.runner.world, split(content)
        told = world.gather_text(f"{is_finite([shard.to_local() for shard in shards.values()])} {secrets.token_hex(4)}")  # type: ignore[attr-defined]
        about |= {"finite": all(text.startswith("True") for text in told), "directory": f"{PREFIX}{self.runner.iter}_{told[0][-8:]}"}
        self._saver.save_shards(plain, shards, names, group=self.runner.parallel.save_group, main=world.is_main, **about)

    def _tell_of_earlier_run(self, runner: BaseRunner) -> None:
        entries, directory = runner.store.entries(), runner.store.directory
        if entries and runner.resume == "auto":
            runner.logger.warning("nothing good to resume from in %s: starting anew", directory)
        elif entries:
            runner.logger.warning(
                "%s has checkpoints of an earlier run, the newest is %s (iteration %d), and this run writes over them: "
                '--resume (resume="auto") goes on with that run, another work_dir keeps both',
                *(directory, entries[-1].name, entries[-1].step),
            )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._surplus = []
        self._drop_surplus()  # as the run that wrote it did right after

    def _drop_surplus(self) -> None:
        count = len(self.kept) - self.max_keep_ckpts if self.max_keep_ckpts > 0 else 0
        self._surplus += self.kept[: max(count, 0)]
        self.kept = self.kept[max(count, 0) :]

    def _best_metrics(self, runner: BaseRunner) -> list[tuple[str, Rule]]:
        names = [choose_metric(wanted, runner.metrics, DEFAULT_METRIC) for wanted in self._wanted_metrics(runner)]
        return [(name, runner.evaluation.rule_of(runner, name, self.rule)) for name in names if name is not None]

    def _wanted_metrics(self, runner: BaseRunner) -> list[str]:
        if isinstance(self.save_best, bool):
            named = self.best_metric if self._asked else runner.evaluation.best_metric or self.best_metric
            return [named] if self.save_best else []
        return [self.save_best] if isinstance(self.save_best, str) else self.save_best


def _is_ours(hook: BaseHook, site: str) -> bool:
    """Whether what a hook does at a site is Hookline's own: not a function that it was given, nor a callback that it wraps."""
    modules = type(hook).__module__, str(getattr(hook.site_method(site), "__module__", None))
    return all(module.startswith("hookline.") and not module.startswith("hookline.compat.") for module in modules)


def _changed_by_optimizer(runner: BaseRunner) -> Iterator[torch.Tensor]:
    """What only the optimizer changes, so that it can be copied while the next forward and backward run.

    A parameter that gets no gradient is not among it: a forward may change it, as one that follows another with momentum.
    """
    yield from (parameter for group in param_groups(runner.optimizer) for parameter in group["params"] if parameter.requires_grad)
    for values in runner.optimizer.state.values():  # type: ignore[union-attr]  # one, for an owner of `optimize` is ours
        yield from (value for value in values.values() if isinstance(value, torch.Tensor))
