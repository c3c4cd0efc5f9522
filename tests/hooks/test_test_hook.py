"""TestHook: how long a test takes, in the lines of the document."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.engine import BaseHook
from hookline.errors import ConfigError
from hookline.hooks import TestHook, build_hook
from tests.helpers import batches, make_runner


def test_a_test_is_timed_part_by_part_and_the_eta_is_logged(tmp_path, caplog, clock):
    class SlowModel(nn.Linear):
        def forward(self, inputs):
            clock.advance(0.2)
            return super().forward(inputs)

    class SlowData(list):
        def __iter__(self):
            for batch in super().__iter__():
                clock.advance(0.1)
                yield batch

    class SlowPost(BaseHook):
        def after_test_iter(self, runner):
            clock.advance(0.05)

    caplog.set_level("INFO", "hookline")
    hook = clock.drive(TestHook("mask_rcnn.yaml", logperiod=5, num_warmup=2))
    data = SlowData(batches(12))
    runner = make_runner(tmp_path, hook, SlowPost(), model=SlowModel(6, 3), test_loader=data)
    runner.test()
    assert [text for text in caplog.messages if text.startswith("[Testing]")] == [
        "[Testing] mask_rcnn.yaml",
        "[Testing][range:1-12 of 12][5/12][0.350s = 0.100s + 0.200s + 0.050s][eta: 0:00:02]",
        "[Testing][range:1-12 of 12][10/12][0.350s = 0.100s + 0.200s + 0.050s][eta: 0:00:00]",
        "[Testing][range:1-12 of 12][12/12][0.350s = 0.100s + 0.200s + 0.050s][eta: 0:00:00]",
    ]
    assert hook.timers["iter"].calls == 10
    assert not runner.model._forward_hooks


def test_a_second_test_starts_over(tmp_path):
    hook = TestHook(num_warmup=0)
    runner = make_runner(tmp_path, hook, test_loader=batches(3))
    runner.test()
    runner.test()
    assert hook.timers["iter"].calls == 3


def test_a_model_with_a_step_of_its_own_is_timed_too(tmp_path):
    class Own(nn.Linear):
        def test_step(self, batch):
            return {"loss": torch.zeros(()), "predictions": self.weight, "targets": batch[1]}

    hook = TestHook(num_warmup=0)
    make_runner(tmp_path, hook, model=Own(6, 3), test_loader=batches(3)).test()
    assert hook.timers["infer"].calls == 3


def test_timers_by_hand(caplog, clock):
    caplog.set_level("INFO", "hookline")
    hook = clock.drive(TestHook("cfg", logperiod=2, num_warmup=1))
    for cur in range(1, 4):
        hook.tic("iter")
        hook.tic("draw")
        clock.advance(0.2)
        drawn = hook.toc("draw")
        assert drawn == (None if cur == 1 else pytest.approx(0.2))
        hook.toc("iter")
        hook.log_stats(cur, 1, 101, 200, ims_per_gpu=1, suffix=" end", log_all=True)
    assert caplog.messages == [
        "[Testing][range:1-101 of 200][2/101][0.200s = 0.000s + 0.000s + 0.000s][eta: 0:00:19]"
        "\n|draw: 0.200s| end"
    ]
    hook.reset_timer()
    assert hook.timers["draw"].average_time == 0
    assert hook.iter == 0


def test_wrong_timers_are_refused():
    hook = TestHook()
    with pytest.raises(ValueError, match="'iter'"):
        hook.add_timer("iter")
    with pytest.raises(ValueError, match=r"'nms'.*iter, data, infer, post"):
        hook.toc("nms")
    with pytest.raises(ConfigError, match="logperiod"):
        build_hook({"type": "TestHook", "logperiod": 0})
