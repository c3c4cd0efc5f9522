"""ProfilerHook: when it profiles, and what it leaves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from torch import nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.hooks import IterTimerHook, ProfilerHook
from tests.helpers import batches, make_runner
from tests.problems import logged, raises_problem

SCHEDULE = {"wait": 1, "warmup": 1, "active": 3, "repeat": 1}


def run(tmp_path, hook, *others, **parts):
    parts = {"model": nn.Linear(6, 3), "train_loader": batches(12), "max_epochs": 1, **parts}
    runner = make_runner(tmp_path, hook, *others, **parts)
    runner.train()
    return runner


def events(path):
    return json.loads(path.read_text())["traceEvents"]


def named(path):
    return Counter(
        event["name"] for event in events(path) if event.get("cat") in ("user_annotation", "cpu_op")
    )


class Idle(BaseHook):
    def after_train_iter(self): ...


def test_a_profile_leaves_traces_a_table_and_a_summary_with_all_phases(tmp_path, caplog):
    caplog.set_level("INFO", "hookline")
    run(tmp_path, ProfilerHook(schedule=SCHEDULE), Idle())
    names = named(tmp_path / "profile/trace_1.json")
    for phase in ("data", "forward", "backward", "hooks"):
        assert names[f"hookline/{phase}"] >= 3, phase
    assert names["hookline/optimizer"] >= 3
    assert names["hookline/hook Idle.after_train_iter"] == 3
    assert [name for name in names if name.startswith("ProfilerStep")] == [
        "ProfilerStep#2",
        "ProfilerStep#3",
        "ProfilerStep#4",
    ]
    (board,) = (tmp_path / "profile/tensorboard").glob("*.pt.trace.json")
    assert events(board) == events(tmp_path / "profile/trace_1.json")
    assert "aten::addmm" in (tmp_path / "profile/operators_1.txt").read_text()
    summary = (tmp_path / "profile/summary_1.txt").read_text()
    assert summary.startswith("Profiled 3 iterations")
    assert all(
        f"{phase} " in summary for phase in ("data", "forward", "backward", "optimizer", "hooks")
    )
    assert "Most expensive operators: " in summary
    assert any(summary.strip() in message for message in caplog.messages)


def test_the_demo_can_be_profiled(tmp_path):
    demo = Path(__file__).parents[2] / "hookline/configs/digits.yaml"
    profile = (
        "+hooks.profiler={type: ProfilerHook, schedule: {wait: 1, warmup: 1, active: 2, repeat: 1}}"
    )
    overrides = ["training={iters: 6}", f"work_dir={tmp_path}", "model.width=4", profile]
    Runner.from_config(demo, overrides).train()
    names = named(tmp_path / "profile/trace_1.json")
    assert all(
        names[f"hookline/{phase}"] >= 2
        for phase in ("data", "forward", "backward", "optimizer", "hooks")
    )
    assert names["aten::conv2d"]
    assert "Profiled 2 iterations" in (tmp_path / "profile/summary_1.txt").read_text()


def test_operations_of_a_linear_model_are_right(tmp_path):
    run(tmp_path, ProfilerHook(schedule=SCHEDULE))
    operations = 2 * (2 * 8 * 6 * 3)  # forward and the weights' gradients
    assert (
        f"An iteration has {operations} FLOP, forward and backward"
        in (tmp_path / "profile/summary_1.txt").read_text()
    )


def test_without_flops_none_are_counted(tmp_path):
    run(tmp_path, ProfilerHook(schedule=SCHEDULE, with_flops=False))
    assert "FLOP" not in (tmp_path / "profile/summary_1.txt").read_text()
    assert "FLOP" not in (tmp_path / "profile/operators_1.txt").read_text()


@pytest.mark.parametrize("chrome, board", [(True, False), (False, True), (False, False)])
def test_each_trace_can_be_left_out(tmp_path, chrome, board):
    run(
        tmp_path,
        ProfilerHook(schedule=SCHEDULE, export_chrome_trace=chrome, export_tensorboard=board),
    )
    assert (tmp_path / "profile/trace_1.json").exists() is chrome
    assert bool(list(tmp_path.glob("profile/tensorboard/*.json"))) is board


def test_a_schedule_that_repeats_leaves_a_profile_each_time(tmp_path):
    run(tmp_path, ProfilerHook(schedule={"wait": 1, "warmup": 1, "active": 2, "repeat": 2}))
    assert [named(tmp_path / f"profile/trace_{n}.json")["hookline/forward"] for n in (1, 2)] == [
        2,
        2,
    ]
    assert not (tmp_path / "profile/trace_3.json").exists()


def test_by_default_a_tenth_is_waited_a_tenth_warmed_up_and_the_rest_profiled(tmp_path):
    run(tmp_path, ProfilerHook(profile_iters=10))
    assert named(tmp_path / "profile/trace_1.json")["hookline/forward"] == 8


def test_profile_iters_cuts_the_profile_and_then_nothing_is_timed_but_samples(tmp_path):
    runner = run(
        tmp_path, ProfilerHook(profile_iters=8, schedule={"wait": 1, "warmup": 1, "active": 100})
    )
    assert named(tmp_path / "profile/trace_1.json")["hookline/forward"] == 6
    assert runner.sites.costs.samples == 8


def test_by_epoch_profile_iters_counts_epochs(tmp_path):
    schedule = {"wait": 1, "warmup": 1, "active": 100}
    run(
        tmp_path,
        ProfilerHook(by_epoch=True, profile_iters=2, schedule=schedule),
        train_loader=batches(4),
        max_epochs=3,
    )
    assert named(tmp_path / "profile/trace_1.json")["hookline/forward"] == 6


def test_a_run_that_ends_amid_the_profile_leaves_what_there_is(tmp_path):
    run(
        tmp_path,
        ProfilerHook(schedule={"wait": 1, "warmup": 1, "active": 50}),
        max_iters=6,
        max_epochs=None,
    )
    assert named(tmp_path / "profile/trace_1.json")["hookline/forward"] == 4


def test_a_run_too_short_to_profile_is_reported(tmp_path, caplog):
    run(tmp_path, ProfilerHook(profile_iters=100))
    assert logged(caplog, "ProfilerHook", "20 iterations")
    assert not (tmp_path / "profile").exists()


def test_the_function_for_traces_gets_the_profiler(tmp_path):
    seen = []
    run(
        tmp_path,
        ProfilerHook(
            schedule=SCHEDULE, on_trace_ready=lambda profiler: seen.append(len(profiler.events()))
        ),
    )
    assert len(seen) == 1
    assert seen[0] > 10


def test_shapes_memory_and_stacks_are_recorded_as_chosen(tmp_path):
    run(tmp_path / "much", ProfilerHook(schedule=SCHEDULE, with_stack=True))
    run(
        tmp_path / "little",
        ProfilerHook(
            schedule=SCHEDULE, record_shapes=False, profile_memory=False, with_flops=False
        ),
    )
    much, little = (
        (tmp_path / name / "profile/trace_1.json").read_text() for name in ("much", "little")
    )
    for sign in ('"Input Dims"', '"[memory]"', '"python_function"'):
        assert sign in much, sign
        assert sign not in little, sign


def test_a_failing_run_ends_the_profile(tmp_path):
    class Fail(BaseHook):
        def after_forward(self, runner):
            if runner.iter == 3:
                raise RuntimeError("no")

    hook = ProfilerHook(schedule=SCHEDULE)
    with pytest.raises(RuntimeError, match="no"):
        run(tmp_path, hook, Fail())
    assert hook._profiler is None
    assert (tmp_path / "profile/summary_1.txt").exists()


@pytest.mark.parametrize(
    "wrong, parameter, nearest",
    [
        ({"profile_iters": 0}, "profile_iters", None),
        ({"schedule": {"warmpu": 1}}, "schedule", "warmup"),
        ({"schedule": {"active": 0}}, "schedule", None),
        ({"schedule": {"wait": -1}}, "schedule", None),
        ({"schedule": {"warmup": -1}}, "schedule", None),
        ({"schedule": {"repeat": -1}}, "schedule", None),
        ({"schedule": {"wait": 90, "warmup": 10, "active": 1}}, "profile_iters", None),
        ({"on_trace_ready": "print"}, "on_trace_ready", None),
    ],
)
def test_wrong_parameters_are_rejected(wrong, parameter, nearest):
    with raises_problem(component="ProfilerHook", parameter=parameter, nearest=nearest):
        ProfilerHook(**wrong)


def test_writing_a_profile_is_no_part_of_an_iteration(tmp_path, clock, monkeypatch):
    monkeypatch.setattr("hookline.hooks.profiler_hook.perf_counter", clock)

    class Work(BaseHook):
        def after_forward(self, runner):
            clock.advance(1.0)

    schedule = {"wait": 1, "warmup": 1, "active": 2, "repeat": 1}
    profiler = ProfilerHook(
        profile_iters=6, schedule=schedule, on_trace_ready=lambda profiler: clock.advance(100.0)
    )
    timer = IterTimerHook(interval=1, warmup_iter=0)
    timer.clock = clock
    runner = make_runner(tmp_path, profiler, timer, Work(), max_iters=8)
    runner.train()
    assert runner.sites.costs.excluded_seconds == 100.0
    assert [scalar.value for scalar in runner.events.history("time")] == [1.0] * 8


def test_a_schedule_may_begin_at_once_and_repeat_until_the_end():
    schedule = {"wait": 0, "warmup": 0, "active": 1, "repeat": 0}
    assert ProfilerHook(schedule=schedule).schedule == schedule
