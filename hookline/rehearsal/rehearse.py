"""The rehearsal itself: a run of three batches with everything that the real one has."""

from __future__ import annotations

import contextlib
import io
import logging
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hookline.checkpoint import CheckpointStore, load_checkpoint
from hookline.engine import BaseHook
from hookline.engine.run import Interrupted
from hookline.rehearsal import needs, places, samples
from hookline.rehearsal.few import FIRST, length, shortened
from hookline.rehearsal.findings import Finding, TooLong, from_error
from hookline.rehearsal.probe import Comparer, Probe, Timer
from hookline.runner import Runner

Make = Callable[[list[str]], Runner]  # a runner of the config with these overrides

ACTED_ON = ("interval", "frequency", "period")  # fields of hooks that are set to 1, so that each hook acts
TIMED = 8  # batches
BEGINNINGS = ("start", "save_begin", "begin")
NOISE = ("hook_budget", "pictures were dropped", "could not be resumed exactly")


@dataclass
class Rehearsal:
    """What was found, and what the run will need."""

    findings: list[Finding] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    disk: dict[str, int] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level == "error"]

    def add(self, findings: list[Finding]) -> None:
        """Each once, whichever phase it turns up in."""
        known = {finding.text for finding in self.findings}
        for finding in findings:
            if finding.text not in known:
                known.add(finding.text)
                self.findings.append(finding)


def rehearse(make: Make, work_dir: Path, *, resume: str | None, limit: float) -> Rehearsal:
    """Go through the run of a config in small. ConfigError, and nothing else, comes out of it."""
    result = Rehearsal()
    result.add(places.check_folder(work_dir, "work_dir") or places.check_occupied(work_dir, resume is not None))
    parent = None if result.errors else places.existing(work_dir)
    folder = Path(tempfile.mkdtemp(prefix=places.PREFIX, dir=parent))
    try:
        with _told(result), _limited(limit), contextlib.redirect_stdout(io.StringIO()):
            _Rehearser(make, folder, work_dir, result).run(resume)
    except TooLong:
        pass  # told already, by the phase that it came in
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result


class _Rehearser:
    def __init__(self, make: Make, folder: Path, work_dir: Path, result: Rehearsal) -> None:
        self._folder, self._result, self._real = folder, result, work_dir
        self._timer = Timer()
        self._build = make

    def _make(self, resume: str = "null") -> Runner:
        return self._build([f"work_dir={self._folder}", f"resume={resume}"])

    def run(self, resume: str | None) -> None:
        runner = self._make()
        plan = needs.Plan.of(runner)
        if plan.checkpoint_folder == runner.work_dir:
            plan.checkpoint_folder = self._real
        loaders = {"training": runner.train_loader, "validation": runner.val_loader, "test": runner.test_loader}
        self._prepare(runner)
        probe = Probe()
        runner.register_hook(probe)
        self._phase(probe, "training", runner.train)
        self._result.add(probe.findings)
        self._result.done += [name for name, reached in (("validation", probe.validated), ("saving", probe.saved)) if reached]
        if not probe.validated and runner.val_loader is not None and not any(f.where == "validation" for f in self._result.errors):
            self._phase(probe, "validation", runner.validate)
        if runner.test_loader is not None:
            self._phase(probe, "test", runner.test)
        if probe.saved:
            self._phase(probe, "resume", lambda: self._reload(runner, probe.after_saving))
        if resume not in (None, "auto"):
            self._phase(probe, "resume", lambda: runner.load_weights(load_checkpoint(str(resume))))
        for split, loader in loaders.items():
            if loader is not None:
                self._phase(probe, f"{split} data", lambda split=split, loader=loader: self._read(split, loader))  # type: ignore[misc]
        self._estimate(runner, plan, probe)

    def _prepare(self, runner: Runner) -> None:
        """Few batches, every hook in action, all files in the temporary folder."""
        for hook in list(runner.hooks):  # all of them again, in their order, for what they do is fixed at registration
            runner.unregister_hook(hook.name)
            self._bring_into_action(hook)
            runner.register_hook(hook)
        self._shorten(runner)

    def _shorten(self, runner: Runner, first: int = FIRST) -> None:
        for name in ("train_loader", "val_loader", "test_loader"):
            setattr(runner, name, shortened(getattr(runner, name), first))
        runner.epoch_length = length(runner.train_loader)
        for hook in runner.hooks:
            if isinstance(getattr(hook, "out_dir", None), str):
                hook.out_dir = str(self._folder / "out" / hook.name)  # type: ignore[attr-defined]
            if getattr(hook, "dataloader", None) is not None:
                hook.dataloader = shortened(hook.dataloader, first)  # type: ignore[attr-defined]

    def _bring_into_action(self, hook: BaseHook) -> None:
        for name in ACTED_ON:
            value = getattr(hook, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 1:
                setattr(hook, name, 1)
        if type(hook).__module__.startswith("hookline."):
            for name in BEGINNINGS:
                if isinstance(getattr(hook, name, None), int):
                    setattr(hook, name, 0)
        out_dir = getattr(hook, "out_dir", None)
        if isinstance(out_dir, str):
            self._result.add(places.check_folder(Path(out_dir), f"{hook.name}.out_dir"))

    def _phase(self, probe: Probe, name: str, act: Callable[[], object]) -> None:
        probe.phase = name
        try:
            act()
            self._result.done.append(name)
        except TooLong:
            text = f"it did not come to an end in time ({_last_hook(probe)})"
            self._result.add(
                [Finding("error", probe.phase, text, "look for what waits: a data worker, a lock, the network; or a longer --limit")]
            )
            raise
        except Interrupted:
            raise
        except Exception as error:
            self._result.add([from_error(error, probe.phase)])

    def _reload(self, runner: Runner, after_saving: Mapping[str, Mapping[str, Any]]) -> None:
        store = CheckpointStore(runner.store.directory)
        entry = store.latest()
        if entry is None:
            self._result.add([Finding("error", "saving", "no checkpoint that a run could resume from was saved", "see the other findings")])
            return
        checkpoint = store.load(entry)
        again = self._make(str(runner.store.directory / entry.name))
        self._shorten(again, TIMED)  # hooks act as rarely as they will, so that this run can be timed
        comparer = Comparer(checkpoint, after_saving)
        again.register_hook(comparer)
        again.register_hook(self._timer)
        again.train()
        if comparer.differences:
            more = f" and {len(comparer.differences) - 3} more" if len(comparer.differences) > 3 else ""
            text = f"what was saved does not come back: {'; '.join(comparer.differences[:3])}{more}"
            self._result.add(
                [Finding("error", "resume", text, "state(...) fields come back by themselves; a state_dict needs its load_state_dict")]
            )

    def _read(self, split: str, loader: Any) -> None:
        findings, amount = samples.read_samples(split, loader)
        if not any(finding.where == split for finding in self._result.errors):
            self._result.add(findings)
        if amount:
            self._result.read[split] = amount

    def _estimate(self, runner: Runner, plan: needs.Plan, probe: Probe) -> None:
        result, entries = self._result, CheckpointStore(runner.store.directory).entries()
        size = max((entry.size for entry in entries), default=0)
        costs = runner.costs.seams.get("save")
        saving = costs.total / costs.count if costs is not None and costs.count else 0.0
        timer = self._timer
        result.seconds = needs.time_needed(plan, timer.steps[1:-1] or timer.steps, timer.evaluations[1:] or timer.evaluations, saving)
        result.add(needs.check_time(plan, sum(result.seconds.values())))
        if size and not any(finding.where == "work_dir" for finding in result.errors):
            findings, result.disk = needs.check_disk(plan, size, plan.checkpoint_folder)
            result.add(findings)
        result.memory = needs.memory_needed(runner, size)
        result.add(needs.check_memory(result.memory, plan.workers))
        result.add(needs.check_workers(plan, sum(timer.waits[1:]) / sum(timer.steps[1:]) if len(timer.steps) > 2 else 0.0))


def _last_hook(probe: Probe) -> str:
    return f"after {probe.steps} training and {probe.evaluations} validation batches"


@contextlib.contextmanager
def _told(result: Rehearsal) -> Iterator[None]:
    """What the run warns of is found too; the rest of its lines are not for now."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if not any(part in text for part in NOISE):
                result.add([Finding("warning", "log", text, "the run will say the same: heed it, or leave out the hook that says it")])

    logger, listener = logging.getLogger("hookline"), Listener(logging.WARNING)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.propagate = propagate


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """TooLong after so many seconds, wherever the main thread is; nothing of the kind in another thread."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def give_up(signum: int, frame: Any) -> None:
        raise TooLong(f"not done after {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
