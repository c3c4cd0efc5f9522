"""A run that has only so much time."""

from __future__ import annotations

import time

import pytest
import torch

from hookline.engine import BaseHook
from hookline.errors import ConfigError
from hookline.hooks import CheckpointHook, TimeLimitHook, build_hook
from tests.helpers import make_runner


class Sleep(BaseHook):
    def before_train_iter(self, runner):
        time.sleep(0.02)


def test_it_saves_and_stops_when_the_time_is_over(tmp_path):
    runner = make_runner(tmp_path, TimeLimitHook("0.1s"), Sleep(), CheckpointHook(), max_iters=1000)
    runner.train()
    assert 1 < runner.iter <= 6
    assert runner.stop_reason == "TimeLimitHook: the limit of 0.1s is over"
    assert torch.load(tmp_path / "last.pth", weights_only=True)["meta"]["iter"] == runner.iter


def test_time_enough_is_no_limit_and_without_a_saver_it_stops_all_the_same(tmp_path):
    runner = make_runner(tmp_path / "a", build_hook({"type": "TimeLimitHook", "limit": "30min"}))
    assert runner.train().stop_reason == "reached max_epochs=2"
    assert make_runner(tmp_path / "b", TimeLimitHook(0.05), Sleep(), max_iters=1000).train().iter < 10


def test_a_duration_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="cannot read 'soon' as a duration"):
        build_hook({"type": "TimeLimitHook", "limit": "soon"})
