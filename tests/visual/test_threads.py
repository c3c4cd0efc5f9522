"""The drawing thread starts no threads of torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys, threading
import torch
from torch import nn
from hookline.engine import BaseHook
from hookline.hooks import AttentionMapHook, CAMHook, FeatureMapHook, GradientFlowHook, SaliencyHook, VisualizationHook
from hookline.visual.painter import get_painter
from tests.helpers import make_runner

class CountThreads(BaseHook):
    def after_train(self, runner):
        painter = get_painter(runner)
        painter.submit("count", self.count)  # runs in the drawing thread, after all pictures
        painter.finish()

    def count(self):
        self.of_torch = len(os.listdir("/proc/self/task")) - threading.active_count()

class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 16, stride=16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        return self.head(self.attention(tokens, tokens, tokens)[0].mean(1))

def threads_of_torch(*hooks):
    count = CountThreads()
    # Large enough for torch to use several threads.
    images = [(torch.rand(4, 3, 256, 256), torch.randint(3, (4,)))]
    make_runner(sys.argv[1], *hooks, count, model=Attends(), train_loader=images, max_epochs=2).train()
    return count.of_torch

torch.set_num_threads(2)
every = {"interval": 1, "max_samples": 2}
drawing = [FeatureMapHook(frequency=1), AttentionMapHook(frequency=1), GradientFlowHook(frequency=1)]
drawing += [VisualizationHook(**every), CAMHook(**every), SaliencyHook(**every)]
print(threads_of_torch(), threads_of_torch(*drawing))
"""


@pytest.mark.skipif(
    not Path("/proc/self/task").exists(),
    reason="needs /proc to count threads",
)
def test_drawing_starts_no_openmp_threads(tmp_path):
    """A second pool of OpenMP threads makes the threads of the training sleep instead of spin."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    without, drawing = done.stdout.split()[-2:]
    assert drawing == without
    assert len(list(tmp_path.rglob("*.png"))) > 10
