"""Every Python block of Pet's document on hooks runs: in a loop as Pet's scripts have it, and in a Hookline run."""

from __future__ import annotations

import collections
import datetime
import itertools
import logging
import textwrap
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from hookline.compat import pet
from hookline.compat.pet import EventStorage, EventWriter, PetHooks
from tests.clock import FakeClock
from tests.compat.document_blocks import execute, read_blocks
from tests.helpers import make_runner

BLOCKS = read_blocks("pet")
CASES: dict[str, Any] = {}

# The imports of the file that the blocks are from, without its clock.
IMPORTS = {
    "datetime": datetime, "itertools": itertools, "torch": torch, "Counter": collections.Counter,
    "OrderedDict": collections.OrderedDict, "EventStorage": EventStorage, "EventWriter": EventWriter,
    "logging_rank": pet.logging_rank, "get_bn_modules": pet.get_bn_modules, "update_bn_stats": pet.update_bn_stats,
}  # fmt: skip


def case(*names):
    def register(function):
        CASES.update(dict.fromkeys(names, function))
        return function

    return register


@pytest.mark.parametrize("name", BLOCKS)
def test_the_block_under_the_heading_runs(name, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    CASES[name](SimpleNamespace(path=tmp_path, log=caplog, clock=FakeClock()))


def imports(clock: FakeClock) -> dict[str, Any]:
    time = SimpleNamespace(perf_counter=clock)
    return {**IMPORTS, "time": time, "Timer": partial(pet.Timer, clock)}


def hooks_of_the_document(clock: FakeClock) -> Any:
    """All training hooks of the document, unchanged."""
    names = [name for name in BLOCKS if not name.startswith("TestHook")]
    return execute("\n\n".join(BLOCKS[name] for name in names), "pet", imports(clock))


def test_hook_of_the_document(clock: FakeClock) -> Any:
    """TestHook, whose methods the document shows one after the other."""
    parts = [
        BLOCKS["TestHook / 初始化"],
        textwrap.indent(BLOCKS["TestHook / 日志输出"], "    "),
        BLOCKS["TestHook / 计时相关"],
    ]
    return execute("\n".join(parts), "pet", imports(clock)).TestHook


test_hook_of_the_document.__test__ = False


class Recorder(EventWriter):
    """Records its calls and the content of the storage."""

    def __init__(self):
        self.rows: list[Any] = []
        self.closed = False

    def write(self, **kwargs):
        storage = pet.get_event_storage()
        self.rows.append((storage.iter, kwargs, storage.latest()))

    def close(self):
        self.closed = True


def pet_loop(hooks, steps, work=lambda storage: None, start=0, epoch_length=None, max_epochs=None):
    """The loop of Pet's training scripts."""
    with EventStorage(start_iter=start) as storage:
        try:
            for hook in hooks:
                hook.before_train()
            for step in range(start, steps):
                for hook in hooks:
                    hook.before_step(storage=storage)
                work(storage)
                progress = (
                    {
                        "epoch": step // epoch_length + 1,
                        "max_epoch": max_epochs,
                        "max_epochs": max_epochs,
                    }
                    if epoch_length
                    else {}
                )
                for hook in hooks:
                    hook.after_step(storage=storage, **progress)
                if step + 1 < steps:
                    storage.step()
        finally:
            for hook in hooks:
                hook.after_train(storage=storage)
    return storage


def hookline_run(tmp_path, *hooks, **parts):
    runner = make_runner(tmp_path, PetHooks(hooks), **parts)
    runner.train()
    return runner


@case("Hook / TrainHook")
def the_base_class(at):
    calls = []
    base = hooks_of_the_document(at.clock).TrainHook

    class Mine(base):
        def before_train(self, *args, **kwargs):
            calls.append(("before_train", args, kwargs))

        def after_step(self, storage, epoch=None, **kwargs):
            calls.append((storage.iter, epoch, kwargs))

    assert {"before_train", "after_train", "before_step", "after_step"} <= set(vars(base))
    pet_loop([base(), Mine()], 2)
    assert calls == [("before_train", (), {}), (0, None, {}), (1, None, {})]
    calls.clear()
    hookline_run(at.path, base(), Mine())
    assert calls[:2] == [("before_train", (), {}), (0, 1, {"max_epoch": 2, "max_epochs": 2})]
    assert calls[-1] == (7, 2, {"max_epoch": 2, "max_epochs": 2})


@case("TrainHook / PeriodicWriter")
def writing_at_intervals(at):
    for cls in (hooks_of_the_document(at.clock).PeriodicWriter, pet.PeriodicWriter):
        writer = Recorder()
        pet_loop([cls([writer], max_iter=10, display_iter=4)], 10)
        assert [row[:2] for row in writer.rows] == [
            (at_iter, {"epoch": None, "max_epoch": None}) for at_iter in (3, 7, 9)
        ]
        assert writer.closed
        writer = Recorder()
        pet_loop([cls([writer], max_iter=5, display_iter=4)], 10, epoch_length=5, max_epochs=2)
        assert [(row[0], row[1]["epoch"], row[2]["epoch"]) for row in writer.rows] == [
            (3, 1, 1),
            (4, 1, 1),
            (8, 2, 2),
            (9, 2, 2),
        ]
        writer = Recorder()
        runner = hookline_run(at.path / str(id(cls)), cls([writer], max_iter=4, display_iter=3))
        assert [(row[0], row[1]) for row in writer.rows] == [
            (at_iter, {"epoch": at_iter // 4 + 1, "max_epoch": 2}) for at_iter in (2, 3, 6, 7)
        ]
        assert writer.rows[-1][2]["total_loss"] == pytest.approx(float(runner.outputs["loss"]))
        assert writer.closed
        with pytest.raises(AssertionError):
            cls(["not a writer"], 1, 1)


@case("TrainHook / IterationTimer")
def timing(at):
    ours = partial(pet.IterationTimer, clock=at.clock)
    for number, make in enumerate((hooks_of_the_document(at.clock).IterationTimer, ours)):
        at.log.clear()
        timer = make(10, 0, 3, ignore_warmup_time=False)
        storage = pet_loop([timer], 10, work=lambda storage: at.clock.advance(0.25))
        assert [value for value, _ in storage.history("time").values()] == [0.25] * 10
        speed, total = [text for text in at.log.messages if "training" in text]
        # The document divides the time of all iterations by those after the warm-up.
        assert speed == "Overall training speed: 7 iterations in 0:00:02 (0.357143 s / it)"
        assert total == "Total training time: 0:00:02 (0:00:00 on hooks)"
        storage = pet_loop([make(10, 0, 3, ignore_warmup_time=True)], 10)
        assert [at_iter for _, at_iter in storage.history("time").values()] == list(range(3, 10))
        runner = hookline_run(at.path / str(number), make(8, 0, 2, ignore_warmup_time=True))
        assert [scalar.iter for scalar in runner.events.history("time")] == list(range(2, 8))


@case("TrainHook / LRScheduler")
def scheduling(at):
    for cls in (hooks_of_the_document(at.clock).LRScheduler, pet.LRScheduler):
        layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2, bias=False)])
        for groups, expected in [
            (
                [
                    {"params": layers[1].parameters(), "lr": 1.0},
                    {"params": layers[0].parameters(), "lr": 2.0},
                ],
                2.0,
            ),  # the largest
            (
                [
                    {"params": [p], "lr": rate}
                    for p, rate in zip(layers.parameters(), (1.0, 3.0, 3.0), strict=True)
                ],
                3.0,
            ),  # the most common
        ]:
            optimizer = torch.optim.SGD(groups, lr=0.1)
            storage = pet_loop(
                [cls(optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.1))], 3
            )
            assert [value for value, _ in storage.history("lr").values()] == pytest.approx(
                [expected, expected, expected / 10]
            )
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        hook = cls(optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 4, gamma=0.1))
        runner = hookline_run(at.path / str(id(cls)), hook, model=model, optimizer=optimizer)
        assert [scalar.value for scalar in runner.events.history("lr")] == pytest.approx(
            [0.1] * 4 + [0.01] * 4
        )


@case("TrainHook / PreciseBN")
def precise_statistics(at):
    batches = [torch.randn(8, 3) * scale + scale for scale in (1.0, 2.0, 3.0, 4.0)]
    for cls in (hooks_of_the_document(at.clock).PreciseBN, pet.PreciseBN):
        model = nn.Sequential(nn.BatchNorm1d(3))
        hook = cls([batches, model, torch.device("cpu")], period=0, num_iter=4, max_iter=2)
        pet_loop([hook], 2, work=lambda storage, model=model: model(torch.randn(8, 3)))
        assert torch.allclose(
            model[0].running_mean,
            torch.stack([batch.mean(0) for batch in batches]).mean(0),
            atol=1e-5,
        )
        assert torch.allclose(
            model[0].running_var,
            torch.stack([batch.var(0) for batch in batches]).mean(0),
            atol=1e-4,
        )
        updates = []
        hook = cls([itertools.cycle(batches), model, "cpu"], period=2, num_iter=4, max_iter=3)
        hook.update_stats = lambda updates=updates: updates.append(1)
        pet_loop([hook], 6, epoch_length=3, max_epochs=2)
        assert (
            len(updates) == 3
        )  # after the second iteration of each epoch, and after the last of all
        without = nn.Sequential(nn.Linear(2, 2))
        cls([batches, without, "cpu"], 1, 1, 1).update_stats()
        assert "PreciseBN is disabled" in at.log.text
        model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
        data = [torch.randn(8, 6) for _ in range(3)]
        hookline_run(at.path / str(id(cls)), cls([data, model, "cpu"], 0, 3, 4), model=model)
        expected = torch.stack([model[0](batch).mean(0) for batch in data]).mean(0)
        assert torch.allclose(model[1].running_mean, expected, atol=1e-5)


def timed(hook, clock, batches=12):
    hook.clock = clock  # The document's own hook reads the clock of its Timer.
    for _ in range(batches):
        hook.tic("iter")
        hook.tic("data")
        hook.toc("data")
        hook.tic("infer")
        clock.advance(0.2)
        hook.toc("infer")
        hook.tic("post")
        clock.advance(0.1)
        hook.toc("post")
        hook.toc("iter")
    return hook


@case("TestHook / 初始化")
def a_test_hook(at):
    for cls in (test_hook_of_the_document(at.clock), pet.TestHook):
        hook = cls("model.yaml", logperiod=3)
        assert (hook.cfg_filename, hook.logperiod, hook.num_warmup, hook.iter) == (
            "model.yaml",
            3,
            5,
            0,
        )
        assert list(hook.timers) == list(hook.default_timers) == ["iter", "data", "infer", "post"]


@case("TestHook / 日志输出")
def the_log_of_a_test(at):
    for cls in (test_hook_of_the_document(at.clock), pet.TestHook):
        at.log.clear()
        hook = timed(cls("model.yaml", logperiod=5, num_warmup=2), at.clock)
        hook.add_timer("nms").tic()
        at.clock.advance(0.05)
        hook.toc("nms")
        for current in range(1, 13):
            last = current == 12
            hook.log_stats(current, 1, 12, 12, suffix="[done]" if last else "", log_all=last)
        begin, times = "[Testing][range:1-12 of 12]", "[0.300s = 0.000s + 0.200s + 0.100s]"
        assert at.log.messages == [
            f"{begin}[5/12]{times}[eta: 0:00:02]",
            f"{begin}[10/12]{times}[eta: 0:00:00]",
            f"{begin}[12/12]{times}[eta: 0:00:00]\n|nms: 0.050s|[done]",
        ]


@case("TestHook / 计时相关")
def the_timers_of_a_test(at):
    for cls in (test_hook_of_the_document(at.clock), pet.TestHook):
        hook = timed(cls("model.yaml"), at.clock)
        assert hook.iter == 12
        assert hook.timers["infer"].calls == 7  # the first five are the warm-up
        assert hook.timers["infer"].average_time == pytest.approx(0.2)
        assert hook.timers["iter"].average_time == pytest.approx(0.3)
        hook.tic("mine")
        at.clock.advance(0.5)
        assert hook.toc("mine") == pytest.approx(0.5)
        with pytest.raises(ValueError, match="mine"):
            hook.add_timer("mine")
        with pytest.raises(ValueError, match="yours"):
            hook.toc("yours")
    hook.reset_timer()  # the document's own fails here: it takes the names of its timers for pairs
    assert hook.timers["infer"].calls == 0
