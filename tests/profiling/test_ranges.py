from __future__ import annotations

import torch
from torch.profiler import ProfilerActivity, profile

from hookline.profiling.ranges import Ranges


def names_of(profiler: profile) -> list[str]:
    return [event.name for event in profiler.events() if event.name.startswith("hookline/")]


def test_spans_are_named_while_recording() -> None:
    ranges = Ranges(lambda runner: None)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        ranges.begin("phase", "data")  # not recorded: nothing records yet
        ranges.recording = True
        ranges.begin("iteration", "1")
        ranges.begin("phase", "forward")
        torch.ones(1)
        ranges.end()
        ranges.begin("hook", "EMAHook.after_train_iter")
        ranges.close()
        ranges.end()  # nothing is open
    assert names_of(profiler) == ["hookline/forward", "hookline/hook EMAHook.after_train_iter"]
