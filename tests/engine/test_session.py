"""What happens when something fails, and when someone presses Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from hookline.engine import SITE_NAMES, BaseHook, Interrupted
from hookline.errors import HooklineError
from hookline.hooks import EvalHook, LambdaHook, LoggerHook
from tests.helpers import Tracer, batches, make_runner, small_model
from tests.waiting import LIMIT_S


class Boom(Exception):
    pass


def failing_at(site: str, error: type[BaseException] = Boom) -> BaseHook:
    def method(self, runner):
        raise error("boom")

    method.__name__ = method.__qualname__ = site
    method.__code__ = method.__code__.replace(co_name=site)
    return type("Failing", (BaseHook,), {site: method})()


TRAINING_SITES = [
    site for site in SITE_NAMES if "test" not in site and "predict" not in site and site not in ("optimize", "after_load_checkpoint", "on_exception", "cleanup")
    and "checkpoint" not in site
]  # fmt: skip
# Of the sites that lie outside of iterations, in a run of two epochs of four iterations.
MOMENTS = {
    **dict.fromkeys(["before_run", "before_train", "before_epoch", "before_train_epoch"], ""),
    **dict.fromkeys(
        [
            site
            for site in SITE_NAMES
            if "_val" in site or site in ("after_train_epoch", "after_epoch")
        ],
        " (epoch 1, after iteration 4)",
    ),
    **dict.fromkeys(["after_train", "after_run"], " (after iteration 8)"),
}


@pytest.mark.parametrize("site", TRAINING_SITES)
def test_an_error_at_any_site_is_raised_unchanged_with_a_note_and_all_hooks_clean_up(
    tmp_path, site
):
    tracers = [Tracer(), Tracer(), Tracer()]
    runner = make_runner(tmp_path, *tracers, failing_at(site), EvalHook(), val_loader=batches(1))
    with pytest.raises(Boom, match="boom") as caught:
        runner.train()
    (note,) = (note for note in caught.value.__notes__ if "Failing" in note)
    assert note.endswith(f"Failing at {site}{MOMENTS.get(site, ' (epoch 1, iteration 1)')}")
    for tracer in tracers:
        assert tracer.log[-2:] == ["on_exception", "cleanup"]
        if site != "after_run":
            assert "after_run" not in tracer.log
    assert not runner.loop.is_running


def test_a_type_error_inside_a_hook_keeps_its_own_line(tmp_path):
    class Sum(BaseHook):
        def after_train_iter(self, runner):
            return 1 + "one"  # the line to be seen

    with pytest.raises(TypeError) as caught:
        make_runner(tmp_path, Sum()).train()
    text = "".join(traceback.format_exception(caught.value))
    assert "the line to be seen" in text
    assert "Sum at after_train_iter (epoch 1, iteration 1)" in text


def test_an_error_of_the_model_is_not_blamed_on_a_hook(tmp_path):
    with pytest.raises(RuntimeError) as caught:
        make_runner(
            tmp_path, Tracer(), train_loader=[(batches(1)[0][0][:, :2], batches(1)[0][1])]
        ).train()
    notes = caught.value.__notes__
    assert not any("Tracer" in note for note in notes)
    assert any("epoch 1, iteration 1" in note for note in notes)


def test_an_iteration_is_named_only_where_one_is_under_way(tmp_path):
    def loader(count):
        yield from batches(count)
        raise Boom("no such file")

    class Loader:
        def __iter__(self):
            return loader(2)

    class Broken:
        def __iter__(self):
            raise Boom("no such file")

    def notes(**parts):
        with pytest.raises((Boom, HooklineError, OSError)) as caught:
            make_runner(tmp_path, EvalHook(), **parts).train()
        return getattr(caught.value, "__notes__", [])

    assert notes(resume=tmp_path / "none.pth") == []
    (note,) = notes(train_loader=Loader())
    assert note.endswith("epoch 1, iteration 3")
    assert notes(train_loader=Broken()) == []
    (note,) = notes(val_loader=Loader())
    assert note.endswith("epoch 1, after iteration 4")
    with pytest.raises(Boom) as caught:
        make_runner(tmp_path, failing_at("after_val_epoch"), val_loader=batches(1)).validate()
    (note,) = caught.value.__notes__
    assert note.endswith("Failing at after_val_epoch")


@pytest.mark.parametrize("site", ["on_exception", "cleanup"])
def test_a_failing_handler_neither_hides_the_error_nor_stops_the_others(tmp_path, site):
    tracers = [Tracer(), Tracer()]
    runner = make_runner(
        tmp_path, tracers[0], failing_at(site, KeyError), tracers[1], failing_at("after_train_iter")
    )
    with pytest.raises(Boom) as caught:
        runner.train()
    assert any(site in note and "KeyError" in note for note in caught.value.__notes__)
    assert all(tracer.log[-2:] == ["on_exception", "cleanup"] for tracer in tracers)


def test_a_failing_cleanup_after_a_good_run_surfaces_once_all_have_run(tmp_path):
    tracers = [Tracer(), Tracer()]
    with pytest.raises(KeyError):
        make_runner(tmp_path, tracers[0], failing_at("cleanup", KeyError), tracers[1]).train()
    assert all(tracer.log[-2:] == ["after_run", "cleanup"] for tracer in tracers)


def test_the_exception_is_an_argument_of_on_exception(tmp_path):
    seen = []

    class Look(BaseHook):
        def on_exception(self, exception):
            seen.append(exception)

    with pytest.raises(Boom) as caught:
        make_runner(tmp_path, Look(), failing_at("after_forward")).train()
    assert seen == [caught.value]


class Send(BaseHook):
    def __init__(self, signum: int, times: int = 1, at: int = 1) -> None:
        self.signum, self.times, self.at = signum, times, at

    def before_train_iter(self, runner):
        if runner.iter == self.at:
            for _ in range(self.times):
                os.kill(os.getpid(), self.signum)


@pytest.mark.parametrize("signum, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_finishes_the_iteration_saves_and_stops_cleanly(tmp_path, signum, code):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    tracer = Tracer()
    runner = make_runner(tmp_path, tracer, Send(signum), {"type": "CheckpointHook"})
    with pytest.raises(Interrupted) as caught:
        runner.train()
    assert caught.value.code == code
    assert runner.stop_reason.details == {"signal": signal.Signals(signum).name}
    assert (runner.iter, runner.optimizer_steps) == (2, 2)
    assert tracer.log[-5:] == [
        "before_save_checkpoint",
        "after_save_checkpoint",
        "after_train",
        "after_run",
        "cleanup",
    ]
    assert [entry.name for entry in runner.checkpointer.store.entries()] == ["last.pth"]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


@pytest.mark.parametrize("signum, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "site", [*TRAINING_SITES[1:], "before_save_checkpoint", "after_save_checkpoint"]
)  # before_run is no part of it
def test_a_signal_at_any_site_loses_no_finished_step_and_no_row(tmp_path, site, signum, code):
    sent = []

    def method(self, runner):
        if not sent and (runner.iter >= 2 or site == "before_train"):
            sent.append(runner.iter)
            os.kill(os.getpid(), signum)

    hook = type("Sender", (BaseHook,), {site: method})()
    logger = LoggerHook(interval=1)
    runner = make_runner(
        tmp_path,
        hook,
        EvalHook(),
        logger,
        {"type": "CheckpointHook"},
        val_loader=batches(1),
        max_epochs=3,
    )
    with pytest.raises(Interrupted) as caught:
        runner.train()
    assert caught.value.code == code
    assert sent
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["iter"] for row in rows if row["mode"] == "train"] == list(
        range(1, runner.iter + 1)
    )
    assert runner.checkpointer.store.latest().step == runner.iter
    open_files = {os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")}
    assert (
        not {str(path) for path in tmp_path.iterdir()} & open_files
    )  # loggers are closed, the lock is released


def test_a_second_signal_stops_at_once(tmp_path):
    tracer = Tracer()
    runner = make_runner(tmp_path, tracer, Send(signal.SIGTERM, times=2))
    with pytest.raises(Interrupted) as caught:
        runner.train()
    assert caught.value.code == 143
    assert runner.optimizer_steps == 1
    assert tracer.log[-2:] == ["on_exception", "cleanup"]


def test_a_run_outside_the_main_thread_leaves_signals_alone(tmp_path):
    runner = make_runner(tmp_path, max_iters=2)
    thread = threading.Thread(target=runner.train, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    assert runner.iter == 2


def test_a_runner_cannot_run_twice_at_the_same_time(tmp_path):
    class Again(BaseHook):
        def after_train_iter(self, runner):
            runner.validate()

    with pytest.raises(RuntimeError, match="running"):
        make_runner(tmp_path, Again(), val_loader=batches(1)).train()


class Interrupting(BaseHook):
    """Interrupts the process in one iteration, as Ctrl-C or a notebook's stop button does."""

    at: int | None = None

    def after_train_iter(self, runner):
        if runner.iter + 1 == self.at:
            self.at = None
            os.kill(os.getpid(), signal.SIGINT)


def shuffled() -> DataLoader:
    inputs = torch.randn(40, 6, generator=torch.Generator().manual_seed(1))
    targets = torch.arange(40) % 3
    return DataLoader(TensorDataset(inputs, targets), 4, shuffle=True)


def weights_after(runner) -> list[torch.Tensor]:
    return [each.detach().clone() for each in runner.model.parameters()]


@pytest.mark.parametrize("at", [1, 7, 10, 13, 19])
def test_an_interrupt_in_an_interactive_session_ends_the_call_and_train_continues_exactly(
    tmp_path, monkeypatch, at
):
    def run(interrupted_at: int | None):
        hook = Interrupting()
        hook.at = interrupted_at
        parts = {"train_loader": shuffled(), "model": small_model(), "seed": 3}
        return make_runner(tmp_path / str(interrupted_at), hook, max_epochs=2, **parts)

    expected = weights_after(run(None).train())
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    runner = run(at).train()
    assert runner.stop_reason.details == {"signal": "SIGINT"}
    assert runner.iter == at
    torch.rand(3)  # Something else draws random numbers between two cells.
    runner.train()
    assert runner.iter == 20
    assert all(map(torch.equal, weights_after(runner), expected))


@pytest.mark.parametrize("site", ["before_val_iter", "after_train_iter"])
def test_an_interrupt_of_an_evaluation_and_a_second_one_end_only_the_interactive_call(
    tmp_path, monkeypatch, site
):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)

    def interrupt(runner):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    runner = make_runner(tmp_path, LambdaHook(**{site: interrupt}), val_loader=batches(1))
    with pytest.raises(KeyboardInterrupt):
        runner.train() if site == "after_train_iter" else runner.validate()
    assert not runner.loop.is_running


def test_a_termination_ends_an_interactive_session(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    hook = LambdaHook(after_train_iter=lambda runner: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Interrupted):
        make_runner(tmp_path, hook).train()
