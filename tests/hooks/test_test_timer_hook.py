"""How long a test takes, in the lines of the document."""

from __future__ import annotations

import re
import time

import pytest
import torch
from torch import nn

from hookline.engine import BaseHook
from hookline.errors import ConfigError
from hookline.hooks import TestHook, build_hook
from tests.helpers import batches, make_runner

LINE = re.compile(r"\[Testing\]\[range:1-12 of 12\]\[(\d+)/12\]\[(\S+)s = (\S+)s \+ (\S+)s \+ (\S+)s\]\[eta: (\S+)\]")


class Slow(nn.Linear):
    def forward(self, inputs):
        time.sleep(0.02)
        return super().forward(inputs)


class SlowData(list):
    def __iter__(self):
        for batch in super().__iter__():
            time.sleep(0.01)
            yield batch


class SlowPost(BaseHook):
    def after_test_iter(self, runner):
        time.sleep(0.005)


def test_a_test_is_timed_part_by_part_and_the_eta_is_told(tmp_path, caplog):
    caplog.set_level("INFO", "hookline")
    hook = TestHook("mask_rcnn.yaml", logperiod=5, num_warmup=2)
    runner = make_runner(tmp_path, hook, SlowPost(), model=Slow(6, 3), test_loader=SlowData(batches(12)))
    runner.test()
    assert "[Testing] mask_rcnn.yaml" in caplog.text
    lines = LINE.findall(caplog.text)
    assert [line[0] for line in lines] == ["5", "10", "12"]
    whole, data, infer, post = (float(value) for value in lines[-1][1:5])
    assert data >= 0.01
    assert infer >= 0.02
    assert post >= 0.005
    assert whole == pytest.approx(data + infer + post, abs=0.004)
    assert lines[-1][5] == "0:00:00"
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


def test_timers_by_hand(caplog):
    caplog.set_level("INFO", "hookline")
    hook = TestHook("cfg", logperiod=2, num_warmup=1)
    for cur in range(1, 4):
        hook.tic("iter")
        hook.tic("draw")
        time.sleep(0.002)
        drawn = hook.toc("draw")
        assert (drawn is None) == (cur == 1)
        hook.toc("iter")
        hook.log_stats(cur, 1, 101, 200, ims_per_gpu=1, suffix=" end", log_all=True)
    assert len(caplog.records) == 1
    text = caplog.records[0].getMessage()
    assert text.startswith("[Testing][range:1-101 of 200][2/101][0.00")
    assert re.search(r"\n\|draw: 0\.0\d\ds\| end$", text)
    hook.reset_timer()
    assert hook.timers["draw"].average_time == 0
    assert hook.iter == 0


def test_wrong_timers_are_told():
    hook = TestHook()
    with pytest.raises(ValueError, match="there is a timer 'iter' already"):
        hook.add_timer("iter")
    with pytest.raises(ValueError, match=r"no timer 'nms' to stop; known: iter, data, infer, post"):
        hook.toc("nms")
    with pytest.raises(ConfigError, match="logperiod"):
        build_hook({"type": "TestHook", "logperiod": 0})
