"""What hooks and phases cost: which iterations are timed, and that the times are right."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.engine import BaseHook
from hookline.engine.run_state import capture
from hookline.hooks import CheckpointHook, EvalHook, GradientCumulativeOptimizerHook
from hookline.profiling.hook_costs import FIRST_SAMPLES, PHASES, SAMPLE_STRIDE
from tests.clock import FakeClock
from tests.helpers import batches, make_runner, small_model


class Slow(BaseHook):
    """A hook that takes time at one site."""

    def __init__(self, clock: FakeClock, seconds: float = 0.005) -> None:
        self.clock = clock
        self.seconds = seconds

    def after_train_iter(self):
        self.clock.advance(self.seconds)


class Follow:
    """A watcher that records its calls."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.depth = 0

    def before_iteration(self, runner):
        self.log.append("before_iteration")

    def begin(self, kind, name):
        self.depth += 1
        self.log.append(f"{kind} {name}")

    def end(self):
        self.depth -= 1


def sampled(count: int) -> list[int]:
    return [
        n
        for n in range(count)
        if n in FIRST_SAMPLES or (n >= SAMPLE_STRIDE and n % SAMPLE_STRIDE == 0)
    ]


def test_a_slow_hook_is_named_with_its_site_and_its_cost(tmp_path, caplog, clock):
    runner = make_runner(tmp_path, Slow(clock), train_loader=batches(20), max_epochs=2)
    runner.train()
    cell = runner.sites.costs.timings["Slow", "after_train_iter"]
    assert cell.count == len(sampled(40))
    assert cell.total == pytest.approx(0.005 * cell.count)
    (message,) = [message for message in caplog.messages if "hook_budget" in message]
    assert "Slow at after_train_iter" in message
    assert "more than hook_budget (5%)" in message


def test_a_run_within_its_budget_is_not_warned(tmp_path, caplog, clock):
    make_runner(tmp_path, Slow(clock), train_loader=batches(20), hook_budget="100%").train()
    assert not [message for message in caplog.messages if "hook_budget" in message]


def test_only_some_iterations_get_the_timed_tuples(tmp_path):
    class Look(BaseHook):
        def before_train_iter(self, runner):
            plain = runner.sites.after_train_iter == (self.after_train_iter,)
            seen.append(not plain)

        def after_train_iter(self, runner): ...

    seen: list[bool] = []
    make_runner(tmp_path, Look(), train_loader=batches(70), max_epochs=1).train()
    assert [n for n, timed in enumerate(seen) if timed] == sampled(70)


def test_a_hook_that_acts_now_and_then_is_met_as_often_as_that(tmp_path, clock):
    class Often(BaseHook):
        def after_train_iter(self, runner):
            if (runner.iter + 1) % 10 == 0:
                clock.advance(0.002)

    runner = make_runner(tmp_path, Often(), train_loader=batches(400), max_epochs=1)
    runner.train()
    cell = runner.sites.costs.timings["Often", "after_train_iter"]
    regular = [n for n in sampled(400) if n >= SAMPLE_STRIDE]
    expected = 0.002 * sum((n + 1) % 10 == 0 for n in regular)
    assert cell.total == pytest.approx(expected)
    assert expected > 0


def test_the_phases_add_up_to_the_iteration(tmp_path, clock):
    batch_times: list[float] = []

    class Loader:
        def __len__(self):
            return 40

        def __iter__(self):
            for batch in batches(40):
                batch_times.append(clock())
                clock.advance(0.0005)
                yield batch

    class Model(nn.Linear):
        def forward(self, x):
            clock.advance(0.001)
            return super().forward(x)

    class Step(torch.optim.SGD):
        def step(self, closure=None):
            clock.advance(0.0007)
            return super().step(closure)

    model = Model(6, 3)
    runner = make_runner(
        tmp_path,
        Slow(clock, 0.0003),
        model=model,
        optimizer=Step(model.parameters(), lr=0.1),
        train_loader=Loader(),
        max_epochs=1,
    )
    runner.sites.costs.add_observer(Follow())
    runner.train()
    count, phases = runner.sites.costs.phase_totals()
    assert count == 40
    wall = (batch_times[-1] - batch_times[0]) / 39  # from batch to batch
    assert sum(phases.values()) / 40 == pytest.approx(wall)
    spent = {
        "data": 0.0005,
        "forward": 0.001,
        "backward": 0.0,
        "optimizer": 0.0007,
        "hooks": 0.0003,
    }
    assert {name: seconds / 40 for name, seconds in phases.items()} == pytest.approx(spent)
    assert set(phases) == set(PHASES)


def test_the_work_of_the_owner_is_no_hook_and_costs_no_budget(tmp_path, caplog, clock):
    class Slowly(torch.optim.SGD):
        def step(self, closure=None):
            clock.advance(0.003)
            return super().step(closure)

    model = small_model()
    runner = make_runner(
        tmp_path,
        model=model,
        optimizer=Slowly(model.parameters(), lr=0.1),
        train_loader=batches(12),
    )
    runner.train()
    assert runner.sites.costs.phases["optimizer"] / runner.sites.costs.samples == pytest.approx(
        0.003
    )
    assert runner.sites.costs.timings["OptimizerHook", "optimize"].total == pytest.approx(
        0.003 * runner.sites.costs.samples
    )
    assert not [message for message in caplog.messages if "hook_budget" in message]


def test_a_watcher_sees_every_iteration_in_order_and_all_ends(tmp_path):
    follow = Follow()
    runner = make_runner(tmp_path, Slow(FakeClock()), train_loader=batches(3), max_epochs=2)
    runner.sites.costs.add_observer(follow)
    runner.train()
    assert follow.log.count("before_iteration") == 6
    assert [entry for entry in follow.log if entry.startswith("iteration")] == [
        f"iteration {n}" for n in range(1, 7)
    ]
    first = follow.log.index("iteration 1")
    assert follow.log[first : first + 6] == [
        "iteration 1",
        "phase data",
        "phase hooks",
        "phase forward",
        "phase hooks",
        "phase backward",
    ]
    assert "hook Slow.after_train_iter" in follow.log
    assert follow.depth == 0


def test_after_the_last_watcher_has_gone_only_samples_are_timed(tmp_path):
    class Leave(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 9:
                runner.sites.costs.remove_observer(follow)

    follow = Follow()
    runner = make_runner(tmp_path, Leave(), train_loader=batches(30), max_epochs=1)
    runner.sites.costs.add_observer(follow)
    runner.train()
    assert runner.sites.costs.samples == 10


def test_validations_and_saves_are_always_timed(tmp_path):
    runner = make_runner(
        tmp_path, EvalHook(), CheckpointHook(), val_loader=batches(2), max_epochs=3
    )
    runner.train()
    assert [runner.sites.costs.seams[name].count for name in ("validate", "save")] == [3, 3]
    assert runner.sites.costs.timings["EvalHook", "after_train_epoch"].count == 3


def test_a_hook_registered_while_an_iteration_is_timed_does_no_harm(tmp_path):
    class Late(BaseHook):
        def after_train_iter(self): ...

    class Register(BaseHook):
        def after_forward(self, runner):
            if runner.iter == FIRST_SAMPLES.start:
                runner.register_hook(Late())

    runner = make_runner(tmp_path, Register(), train_loader=batches(12), max_epochs=1)
    runner.train()
    assert runner.sites.costs.samples == len(FIRST_SAMPLES) - 1
    assert runner.sites.costs.timings["Late", "after_train_iter"].count == len(FIRST_SAMPLES) - 1


def test_an_iteration_that_fails_leaves_a_runner_that_can_train_again(tmp_path):
    class Fail(BaseHook):
        def after_forward(self, runner):
            if runner.iter == FIRST_SAMPLES.start and not failed:
                failed.append(True)
                raise RuntimeError("once")

    failed: list[bool] = []
    follow = Follow()
    runner = make_runner(tmp_path, Fail(), train_loader=batches(12), max_epochs=1)
    runner.sites.costs.add_observer(follow)
    with pytest.raises(RuntimeError, match="once"):
        runner.train()
    assert follow.depth == 0
    runner.sites.costs.remove_observer(follow)
    runner.train()
    assert runner.sites.costs.samples == len(FIRST_SAMPLES)


def test_accumulated_gradients_have_fewer_optimizer_phases(tmp_path):
    class AtStep(BaseHook):
        def after_optimizer_step(self): ...

    runner = make_runner(
        tmp_path,
        GradientCumulativeOptimizerHook(cumulative_iters=4),
        AtStep(),
        train_loader=batches(8),
        max_epochs=1,
    )
    runner.sites.costs.add_observer(Follow())
    runner.train()
    assert runner.sites.costs.samples == 8
    assert runner.sites.costs.timings["AtStep", "after_optimizer_step"].count == 2


def test_a_loader_without_a_length_times_no_iteration_that_never_came(tmp_path):
    class Stream:
        def __iter__(self):
            return iter(batches(5))

    runner = make_runner(tmp_path, train_loader=Stream(), max_epochs=3)
    runner.sites.costs.add_observer(Follow())
    runner.train()
    assert runner.sites.costs.samples == runner.iter == 15


def test_waiting_for_a_batch_is_known_in_every_iteration(tmp_path, clock):
    class Loader:
        def __iter__(self):
            for number, batch in enumerate(data):
                clock.advance(0.002 * number)
                yield batch

    class Look(BaseHook):
        def before_train_iter(self, runner):
            waited.append(runner.loop.data_time)

    data, waited = batches(6), []
    make_runner(tmp_path, Look(), train_loader=Loader(), max_epochs=1).train()
    assert waited == pytest.approx([0.002 * number for number in range(6)])


def test_costs_are_no_part_of_a_checkpoint(tmp_path):
    runner = make_runner(tmp_path)
    runner.train()
    assert "cost" not in str(capture(runner))
