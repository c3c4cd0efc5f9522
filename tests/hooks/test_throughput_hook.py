"""ThroughputHook: samples, tokens and operations a second."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.engine import BaseHook
from hookline.hooks import CheckpointHook, EvalHook, ThroughputHook
from tests.clock import FakeClock
from tests.helpers import batches, make_runner

FORWARD = (
    2 * 8 * 6 * 3
)  # a linear model 6-3 on 8 samples: a multiplication and an addition for each weight and sample
BACKWARD = FORWARD  # for its weights; inputs need no gradient


class Slow(BaseHook):
    """A hook that takes 10 ms in each iteration."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock

    def before_train_iter(self):
        self.clock.advance(0.01)


def run(tmp_path, *hooks, **parts):
    parts = {"model": nn.Linear(6, 3), "train_loader": batches(20), "max_epochs": 1, **parts}
    runner = make_runner(tmp_path, *hooks, **parts)
    runner.train()
    return runner.events.latest()


def test_operations_of_a_linear_model_are_counted_right(tmp_path, clock):
    hook = clock.drive(ThroughputHook(interval=10, peak_flops=1e6))
    latest = run(tmp_path, hook, Slow(clock))
    assert latest["throughput/flops_per_s"] == pytest.approx((FORWARD + BACKWARD) / 0.01)
    assert latest["throughput/mfu"] == pytest.approx((FORWARD + BACKWARD) / 0.01 / 1e6)


def test_samples_a_second_are_those_of_training_alone(tmp_path, clock):
    class SlowOutside(BaseHook):
        def before_val_epoch(self):
            clock.advance(0.2)

        def before_save_checkpoint(self):
            clock.advance(0.3)

    hooks = [
        clock.drive(ThroughputHook(interval=20)),
        EvalHook(by_epoch=False, interval=5),
        CheckpointHook(by_epoch=False, interval=5),
        SlowOutside(),
        Slow(clock),
    ]
    latest = run(tmp_path, *hooks, val_loader=batches(1))
    assert latest["throughput/samples_per_s"] == pytest.approx(8 / 0.01)


def test_tokens_are_counted_where_inputs_are_ids(tmp_path, clock):
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(10, 6), nn.Linear(6, 3)

        def forward(self, ids):
            return self.out(self.table(ids).mean(1))

    data = [(torch.randint(10, (8, 7)), torch.randint(3, (8,))) for _ in range(12)]
    hooks = [clock.drive(ThroughputHook(interval=6)), Slow(clock)]
    latest = run(tmp_path, *hooks, model=Words(), train_loader=data)
    assert latest["throughput/tokens_per_s"] == pytest.approx(7 * 8 / 0.01)


def test_without_a_known_peak_there_is_no_mfu_and_that_is_logged(tmp_path, caplog):
    caplog.set_level("INFO", "hookline")
    latest = run(tmp_path, ThroughputHook(interval=5))
    assert "throughput/flops_per_s" in latest
    assert "throughput/mfu" not in latest
    assert "throughput/tokens_per_s" not in latest
    (message,) = [text for text in caplog.messages if text.startswith("ThroughputHook: ")]
    assert "peak_flops" in message


def test_a_model_that_steps_by_itself_is_counted_too(tmp_path):
    class Own(nn.Linear):
        def train_step(self, batch, optimizers):
            loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
            loss.backward()
            optimizers["only"].step()
            optimizers["only"].zero_grad()
            return {"loss": loss.detach()}

    from hookline.engine import BaseRunner

    model = Own(6, 3)
    optimizers = {"only": torch.optim.SGD(model.parameters(), lr=0.1)}
    hook = ThroughputHook(interval=10)
    runner = BaseRunner(
        model,
        train_loader=batches(10),
        optimizer=optimizers,
        hooks=[hook],
        max_epochs=1,
        work_dir=tmp_path,
    )
    runner.train()
    latest = runner.events.latest()
    assert latest["throughput/flops_per_s"] / latest["throughput/samples_per_s"] == pytest.approx(
        (FORWARD + BACKWARD) / 8
    )


def test_after_a_failing_forward_nothing_is_counted_any_more(tmp_path):
    class Broken(nn.Linear):
        def forward(self, x):
            if self.calls == 1:
                raise RuntimeError("broken")
            self.calls += 1
            return super().forward(x)

    model = Broken(6, 3)
    model.calls = 0
    with pytest.raises(RuntimeError, match="broken"):
        run(tmp_path, ThroughputHook(), model=model)
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


@pytest.mark.parametrize("wrong", [{"interval": 0}, {"peak_flops": 0.0}])
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ThroughputHook(**wrong)
