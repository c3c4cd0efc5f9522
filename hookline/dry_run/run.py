"""The dry run: a run of three batches with every phase, hook and file of the real one."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hookline.checkpoint import CheckpointStore
from hookline.data.position import find_position
from hookline.dry_run import directories, estimates
from hookline.dry_run.contexts import collect_warnings, time_limit
from hookline.dry_run.findings import DryRunResult, DryRunTimeout, Finding, finding_from_error
from hookline.dry_run.hooks import ProbeHook, ResumeCheckHook, StepTimerHook
from hookline.dry_run.loaders import FIRST_BATCHES, count_batches, shorten_loader
from hookline.dry_run.samples import read_samples
from hookline.engine import BaseHook, BaseRunner
from hookline.errors import Interrupted
from hookline.hooks import CheckpointHook, EMAHook, EvalHook
from hookline.visual.painter import SERVICE as PAINTER_SERVICE
from hookline.visual.painter import Painter

# Builds the runner with another work directory, another `resume`, and a budget of hooks.
RunnerFactory = Callable[[Mapping[str, Any]], BaseRunner]

INTERVAL_FIELDS = ("interval", "frequency", "period")
START_FIELDS: tuple[tuple[type[BaseHook], tuple[str, ...]], ...] = (
    (EvalHook, ("start",)),
    (CheckpointHook, ("save_begin",)),
    (EMAHook, ("begin_iter", "begin_epoch")),
)
TIMED_BATCHES = 8
MAX_DIFFERENCES = 3
# Hooks act more often than in the real run, so their share of the time is not checked.
NO_BUDGET = "100%"


def dry_run(
    make_runner: RunnerFactory, work_dir: Path, *, resume: str | Path | None, limit: float
) -> DryRunResult:
    """Try a run on a few batches. All files go to a temporary directory, which is removed.

    Raises nothing but ConfigError; every other exception becomes a finding.

    Args:
        make_runner: Builds a runner with other values of `work_dir`, `resume` and `hook_budget`.
        work_dir: The work directory of the real run.
        resume: The `resume` of the real run.
        limit: The time limit in seconds.
    """
    result = DryRunResult()
    result.add(directories.check_writable(work_dir, "work_dir"))
    if not result.errors:
        result.add(directories.check_unused(work_dir, resumes=resume is not None))
    # On the same disk as the real run, if that is possible.
    parent = None if result.errors else directories.nearest_existing(work_dir)
    temporary = Path(tempfile.mkdtemp(prefix=directories.TEMPORARY_PREFIX, dir=parent))
    try:
        with (
            collect_warnings(result),
            time_limit(limit),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            _DryRun(make_runner, temporary, work_dir, result).run(resume)
    except DryRunTimeout:
        pass  # The phase that exceeded the limit has reported it.
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return result


class _DryRun:
    """The phases of a dry run, in order; they add their findings to the result."""

    def __init__(
        self, make_runner: RunnerFactory, temporary: Path, work_dir: Path, result: DryRunResult
    ) -> None:
        self._make_runner = make_runner
        self._temporary = temporary
        self._work_dir = work_dir
        self._result = result
        self._probe = ProbeHook()
        self._timer = StepTimerHook()

    def run(self, resume: str | Path | None) -> None:
        runner = self._build()
        workload = estimates.Workload.from_runner(runner, self._work_dir)
        loaders = {
            "training": runner.train_loader,
            "validation": runner.val_loader,
            "test": runner.test_loader,
        }
        self._check_resumable(runner.train_loader)
        self._activate_hooks(runner)
        self._shorten(runner, FIRST_BATCHES)
        runner.register_hook(self._probe)
        self._train_and_evaluate(runner)
        if self._probe.saved:
            self._run_phase("resume", lambda: self._check_resume(runner))
        if resume is not None and resume != "auto":
            load = runner.checkpointer.load
            self._run_phase("resume", lambda: runner.checkpointer.load_weights(load(resume)))
        for split, loader in loaders.items():
            if loader is not None:
                self._read_samples(split, loader)
        self._estimate(runner, workload)

    def _build(self, resume: str | None = None) -> BaseRunner:
        changes = {"work_dir": str(self._temporary), "resume": resume, "hook_budget": NO_BUDGET}
        runner = self._make_runner(changes)
        # A queue without a limit: pictures are drawn more often here than in the real run.
        runner.register_service(PAINTER_SERVICE, Painter(runner.logger, size=0))
        return runner

    def _check_resumable(self, loader: Any) -> None:
        reason = find_position(loader).announcement
        if reason is not None:
            text = f"{type(loader).__name__} keeps no position: {reason}"
            advice = "use a data set with indices, or accept that batches are repeated"
            self._result.add([Finding("warning", "resume", text, advice)])

    def _activate_hooks(self, runner: BaseRunner) -> None:
        """Let every hook act in the first iteration or epoch."""
        for hook in list(runner.hooks):
            # Registered again, in the same order: registration fixes when a hook acts.
            runner.unregister_hook(hook.name)
            _activate(hook)
            runner.register_hook(hook)
            out_dir = getattr(hook, "out_dir", None)
            if isinstance(out_dir, str):
                where = f"{hook.name}.out_dir"
                self._result.add(directories.check_writable(Path(out_dir), where))

    def _shorten(self, runner: BaseRunner, first: int) -> None:
        """Shorten all loaders, and redirect the files of hooks to the temporary directory."""
        for name in ("train_loader", "val_loader", "test_loader"):
            setattr(runner, name, shorten_loader(getattr(runner, name), first))
        runner.epoch_length = count_batches(runner.train_loader)
        for hook in runner.hooks:
            settings: Any = hook
            if isinstance(getattr(hook, "out_dir", None), str):
                settings.out_dir = str(self._temporary / "out" / hook.name)
            if getattr(hook, "mirror", None) is not None:
                settings.mirror = None
            if getattr(hook, "dataloader", None) is not None:
                settings.dataloader = shorten_loader(settings.dataloader, first)

    def _train_and_evaluate(self, runner: BaseRunner) -> None:
        probe = self._probe
        self._run_phase("training", runner.train)
        self._result.add(probe.findings)
        if probe.validated:
            self._result.done.append("validation")
        if probe.saved:
            self._result.done.append("saving")
        failed = self._result.has_error_in("validation")
        if runner.val_loader is not None and not probe.validated and not failed:
            self._run_phase("validation", runner.validate)
        if runner.test_loader is not None:
            self._run_phase("test", runner.test)

    def _run_phase(self, name: str, act: Callable[[], object]) -> None:
        """Run a phase; turn its exception into a finding, except the end of the time limit."""
        probe = self._probe
        probe.phase = name
        try:
            act()
            self._result.done.append(name)
        except DryRunTimeout:
            batches = f"{probe.train_batches} training and {probe.val_batches} validation batches"
            text = f"not finished within the time limit, after {batches}"
            advice = (
                "check for a data worker, lock or server that does not answer, or raise --limit"
            )
            self._result.add([Finding("error", probe.phase, text, advice)])
            raise
        except Interrupted:
            raise
        except Exception as error:
            finding = finding_from_error(error, probe.phase, model_finished=probe.model_finished)
            self._result.add([finding])

    def _check_resume(self, runner: BaseRunner) -> None:
        """Resume a second run from the checkpoint, compare it, and time its steps."""
        store = CheckpointStore(runner.checkpointer.store.directory)
        entry = store.latest()
        if entry is None:
            text = "no checkpoint was saved that a run could resume from"
            self._result.add([Finding("error", "saving", text, "see the other findings")])
            return
        resumed = self._build(resume=str(store.directory / entry.name))
        # Its hooks keep their intervals, so that the times are those of the real run.
        self._shorten(resumed, TIMED_BATCHES)
        check = ResumeCheckHook(store.load(entry), self._probe.states_after_save)
        resumed.register_hook(check)
        resumed.register_hook(self._timer)
        resumed.train()
        if check.differences:
            listed = "; ".join(check.differences[:MAX_DIFFERENCES])
            rest = len(check.differences) - MAX_DIFFERENCES
            more = f" and {rest} more" if rest > 0 else ""
            text = f"saved state is not restored: {listed}{more}"
            advice = "use state(...) fields, or write load_state_dict to match state_dict"
            self._result.add([Finding("error", "resume", text, advice)])

    def _read_samples(self, split: str, loader: Any) -> None:
        def read() -> None:
            findings, amount = read_samples(split, loader)
            # The phase has failed on the same data, and has reported it.
            if not self._result.has_error_in(split):
                self._result.add(findings)
            if amount:
                self._result.read[split] = amount

        self._run_phase(f"{split} data", read)

    def _estimate(self, runner: BaseRunner, workload: estimates.Workload) -> None:
        result = self._result
        timer = self._timer
        entries = CheckpointStore(runner.checkpointer.store.directory).entries()
        checkpoint_size = max((entry.size for entry in entries), default=0)
        # The first batch warms up, and the last one may be smaller.
        steps = timer.steps[1:-1] or timer.steps
        evaluations = timer.evaluations[1:] or timer.evaluations
        result.seconds = estimates.estimate_time(
            workload, steps, evaluations, _seconds_per_save(runner)
        )
        result.add(estimates.check_time(workload, sum(result.seconds.values())))
        if checkpoint_size and not result.has_error_in("work_dir"):
            result.disk = estimates.estimate_disk(workload, checkpoint_size)
            result.add(estimates.check_disk(workload, result.disk))
        result.memory = estimates.measure_memory(runner, checkpoint_size)
        result.add(estimates.check_memory(result.memory, workload.workers))
        waiting_share = 0.0
        if len(timer.steps) > 2:
            waiting_share = sum(timer.waits[1:]) / sum(timer.steps[1:])
        result.add(estimates.check_workers(workload, waiting_share))


def _activate(hook: BaseHook) -> None:
    for name in INTERVAL_FIELDS:
        value = getattr(hook, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value > 1:
            setattr(hook, name, 1)
    for kind, names in START_FIELDS:
        if isinstance(hook, kind):
            for name in names:
                setattr(hook, name, 0)


def _seconds_per_save(runner: BaseRunner) -> float:
    timing = runner.sites.costs.seams.get("save")
    if timing is None or not timing.count:
        return 0.0
    return timing.total / timing.count
