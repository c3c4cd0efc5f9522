"""How much framework stands in one quiet training step."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import torch
from torch import nn

import hookline
from hookline import Runner
from hookline.engine import BaseHook
from tests.helpers import batches

PACKAGE = str(Path(hookline.__file__).parent)


class Watched(nn.Module):
    """A model that notes which of our frames stand above its forward."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 3)
        self.frames: list[str] = []

    def forward(self, inputs):
        frame = sys._getframe()
        self.frames = [] if self.training else self.frames
        while frame is not None and self.training:
            if frame.f_code.co_filename.startswith(PACKAGE):
                self.frames.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)
            frame = frame.f_back
        return self.net(inputs)


class CountCalls(BaseHook):
    """Counts calls into the package from one iteration's first site to the next one's."""

    priority = "HIGHEST"

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def before_train_iter(self, iter):
        if iter == 10:
            sys.setprofile(self.count)
        elif iter == 11:
            sys.setprofile(None)

    def count(self, frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.calls[Path(frame.f_code.co_filename).name, frame.f_code.co_name] += 1


def test_a_quiet_step_with_the_default_hooks_makes_about_a_dozen_calls_with_2_frames_above_forward(tmp_path):
    model, counter = Watched(), CountCalls()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    runner = Runner(
        model, train_loader=batches(20), val_loader=batches(1), optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), max_epochs=1,
        work_dir=tmp_path, hooks=[counter],
    )  # fmt: skip
    runner.train()
    calls = Counter(counter.calls)
    assert 5 < sum(calls.values()) <= 14, calls
    assert len(model.frames) == 2, model.frames
