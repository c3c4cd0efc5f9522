"""When the GPU's unused memory is given back."""

from __future__ import annotations

import pytest
import torch

from hookline.hooks import EmptyCacheHook, EvalHook
from tests.helpers import batches, make_runner


@pytest.mark.parametrize(
    "options, calls",
    [
        ({}, 2),
        ({"before_epoch": True}, 4),
        ({"after_epoch": False}, 0),
        ({"after_epoch": False, "after_iter": True}, 2 * (4 + 3)),
    ],
)
def test_the_cache_is_emptied_when_that_is_wanted(tmp_path, monkeypatch, options, calls):
    made = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: made.append(1))
    make_runner(tmp_path, EmptyCacheHook(**options), EvalHook(), val_loader=batches(3)).train()
    assert len(made) == calls


def test_sites_without_work_are_left_alone():
    assert EmptyCacheHook().get_triggered_stages() == ["after_epoch"]
