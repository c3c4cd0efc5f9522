"""TimeLimitHook: a run that has only so much time."""

from __future__ import annotations

import pytest
import torch

from hookline.engine import BaseHook
from hookline.errors import ConfigError
from hookline.hooks import CheckpointHook, TimeLimitHook, build_hook
from tests.clock import FakeClock
from tests.helpers import make_runner


class Slow(BaseHook):
    """A hook that takes 20 s in each iteration."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock

    def before_train_iter(self, runner):
        self.clock.advance(20.0)


def test_it_saves_and_stops_when_the_time_is_over(tmp_path, clock):
    limit = clock.drive(TimeLimitHook("1min"))
    runner = make_runner(tmp_path, limit, Slow(clock), CheckpointHook(), max_iters=1000)
    runner.train()
    assert runner.iter == 3
    assert runner.stop_reason.hook == "TimeLimitHook"
    assert runner.stop_reason.details == {"limit": 60.0}
    assert torch.load(tmp_path / "last.pth", weights_only=True)["meta"]["iter"] == 3


def test_a_run_within_its_limit_comes_to_its_end(tmp_path, clock):
    limit = clock.drive(build_hook({"type": "TimeLimitHook", "limit": "30min"}))
    runner = make_runner(tmp_path, limit, Slow(clock))
    runner.train()
    assert (runner.iter, runner.stop_reason.hook) == (8, "")


def test_a_run_that_cannot_save_stops_all_the_same(tmp_path, clock):
    limit = clock.drive(TimeLimitHook(50))
    runner = make_runner(tmp_path, limit, Slow(clock), max_iters=1000)
    runner.train()
    assert runner.iter == 3
    assert not (tmp_path / "last.pth").exists()


def test_a_duration_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="soon"):
        build_hook({"type": "TimeLimitHook", "limit": "soon"})
