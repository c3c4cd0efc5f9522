"""A config with a data set, a model and hooks that can be made to fail."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hookline.config import load_config
from hookline.dry_run import DryRunResult, dry_run
from hookline.runner import Runner

PARTS = """
import signal
import torch
from torch import nn
from torch.utils.data import Dataset, IterableDataset
from hookline import BaseHook

class Data(Dataset):
    def __init__(self, split, fault="", count=22):
        self.split, self.fault, self.count = split, fault, count
        self.transform = (lambda x: x) if fault == "unpicklable" else None
    def __len__(self):
        return self.count
    def __getitem__(self, index):
        if self.fault == "missing_last" and index == self.count - 1:
            open(f"/no/such/folder/{index}.png")
        if self.fault == "missing_amid" and index == 13:
            open(f"/no/such/folder/{index}.png")
        if self.fault == "hangs" and index == self.count - 1:
            signal.raise_signal(signal.SIGALRM)  # As if the time limit were over.
        size = 5 if self.fault == "shape" else 4
        x = torch.full((size,), float(index) / 10)
        if self.fault == "nan":
            x = x * float("nan")
        if self.fault == "numbers":
            return x, torch.ones(3)
        if self.fault == "lengths":
            return torch.ones(index + 1), 0
        label = 7 if self.fault == "label" and index == self.count - 1 else index % 3
        return x, label

class Stream(IterableDataset):
    def __init__(self, split):
        self.data = Data(split)
    def __iter__(self):
        return iter([self.data[index] for index in range(len(self.data))])

class Net(nn.Module):
    def __init__(self, unused=False, outputs=3):
        super().__init__()
        self.body = nn.Linear(4, outputs)
        self.unused = nn.Linear(2, 2) if unused else None
    def forward(self, x):
        return self.body(x)

class FailsAt(BaseHook):
    def __init__(self, site: str = "after_val_epoch"):
        self.site = site
    def after_val_epoch(self, runner):
        if self.site == "after_val_epoch":
            raise KeyError("val_accuracy_top7")
    def after_test_epoch(self, runner):
        if self.site == "after_test_epoch":
            raise KeyError("only in the test")
    def before_save_checkpoint(self, runner):
        if self.site == "before_save_checkpoint":
            runner.checkpoint["mine"] = object()

class Rare(BaseHook):
    def __init__(self, interval: int = 1000):
        self.interval = interval
    def after_train_iter(self, runner):
        if self.every_n_iters(runner, self.interval):
            runner.no_such_attribute

class Forgets(BaseHook):
    seen = 0
    def after_train_iter(self, runner):
        self.seen += 1
    def state_dict(self):
        return {"seen": self.seen}

class Talks(BaseHook):
    def before_train(self, runner):
        runner.logger.warning("the first warning")
        runner.logger.info("an information")
"""

CONFIG = """\
work_dir: {folder}/run
device: cpu
model: {{type: {parts}.Net}}
dataset:
  train: {{type: {parts}.Data, split: train}}
  val: {{type: {parts}.Data, split: val}}
  test: {{type: {parts}.Data, split: test}}
loader: {{batch_size: 4}}
training: {{epochs: 2}}
"""

Try = Callable[..., DryRunResult]


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module with data, a model and hooks."""
    name = f"planted_{re.sub('[^a-z0-9]', '_', tmp_path.name.lower())}"
    (tmp_path / f"{name}.py").write_text(PARTS)
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


@pytest.fixture
def config(tmp_path: Path, parts: str) -> Path:
    """A config whose run has no errors."""
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG.format(folder=tmp_path, parts=parts))
    return path


@pytest.fixture
def try_run(config: Path) -> Try:
    """A function that makes a dry run of the config with overrides."""

    def run(*overrides: str, limit: float = 300.0) -> DryRunResult:
        resolved = load_config(config, overrides)

        def make(changes: Mapping[str, Any]) -> Runner:
            more = [f"{name}={json.dumps(value)}" for name, value in changes.items()]
            return Runner.from_config(load_config(config, [*overrides, *more]))

        work_dir = Path(resolved["work_dir"])
        return dry_run(make, work_dir, resume=resolved.get("resume"), limit=limit)

    return run
