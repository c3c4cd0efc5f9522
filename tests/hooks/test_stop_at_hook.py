"""Stop a run earlier than planned."""

from __future__ import annotations

import pytest
import torch

from hookline.hooks import CheckpointHook, StopAtHook, build_hook
from tests.helpers import make_runner
from tests.problems import raises_problem


@pytest.mark.parametrize("options, iters", [({"epoch": 2}, 8), ({"iter": 5}, 5)])
def test_it_saves_and_stops_there(tmp_path, options, iters):
    runner = make_runner(tmp_path, StopAtHook(**options), CheckpointHook(), max_epochs=5)
    runner.train()
    assert runner.iter == iters
    assert (runner.stop_reason.hook, runner.stop_reason.details) == ("StopAtHook", options)
    assert torch.load(tmp_path / "last.pth", weights_only=True)["meta"]["iter"] == iters
    assert runner.max_iters == 20


def test_it_stops_without_a_saver_too(tmp_path):
    assert make_runner(tmp_path, StopAtHook(iter=3)).train().iter == 3


@pytest.mark.parametrize("wrong", [{}, {"epoch": 1, "iter": 1}, {"iter": 0}])
def test_exactly_one_place_is_needed(wrong):
    with raises_problem(component="StopAtHook", value={"epoch": None, "iter": None, **wrong}):
        build_hook({"type": "StopAtHook", **wrong})
