"""How much framework stands in one quiet training step."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset

import hookline
from hookline import Runner, make_loader
from hookline.engine import BaseHook
from tests.helpers import batches

PACKAGE = str(Path(hookline.__file__).parent)
LOADING = ("loader.py", "fetch.py", "sampler.py")


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
                self.frames.append(
                    frame.f_code.co_qualname
                    if hasattr(frame.f_code, "co_qualname")
                    else frame.f_code.co_name
                )
            frame = frame.f_back
        return self.net(inputs)


class CountCalls(BaseHook):
    """Counts calls into the package from one iteration's first site to the next one's."""

    priority = "HIGHEST"

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def before_train_iter(self, runner):
        if runner.iter == 10:
            sys.setprofile(self.count)
        elif runner.iter == 11:
            sys.setprofile(None)

    def count(self, frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.calls[Path(frame.f_code.co_filename).name, frame.f_code.co_name] += 1


def test_a_quiet_step_makes_at_most_20_calls_in_8_files_below_the_frames_of_train(tmp_path):
    model, counter = Watched(), CountCalls()
    inputs = torch.randn(160, 6)
    targets = torch.randint(0, 3, (160,))
    runner = Runner(
        model,
        train_loader=make_loader(TensorDataset(inputs, targets), batch_size=8, shuffle=True),
        val_loader=batches(1),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=1,
        work_dir=tmp_path,
        hooks=[counter],
    )
    runner.train()
    calls = Counter(counter.calls)
    engine_files = {file for file, _ in calls if file not in LOADING}
    assert 5 < sum(calls.values()) <= 20, calls
    assert len(engine_files) <= 8, engine_files
    assert len(model.frames) == 3, model.frames  # step, BaseRunner.train, Runner.train
