"""Real processes, really killed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset

from hookline import Runner, make_loader
from hookline.engine import BaseHook

ROOT = Path(__file__).parents[2]


@pytest.mark.exhaustive
def test_killed_again_and_again_every_run_ends_bit_identical(tmp_path):
    results = tmp_path / "results.json"
    command = [
        sys.executable,
        ROOT / "scripts" / "kill_chains.py",
        "--kills",
        "3",
        "--per-chain",
        "3",
        "--json",
        results,
    ]
    cases = ["everything, two workers"]
    done = subprocess.run(
        [*command, *(part for case in cases for part in ("--case", case))],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = json.loads(results.read_text())
    assert outcome["kills"] >= 3


CONFIG = """
model: {type: cnn, dropout: 0.2}
dataset: {type: digits, augment: true}
loader: {batch_size: 64}
training: {epochs: 4}
hooks:
  - {type: LoggerHook, interval: 5}
  - {type: CheckpointHook, interval: 5, by_epoch: false}
  - {type: stall.Stall}
"""
STALL = """
import signal
from hookline import BaseHook

class Stall(BaseHook):
    '''Stops the first piece of a run in iteration 30 until it is killed.'''

    def before_train(self, runner):
        marker = runner.work_dir / "first_piece"
        self.stalls = "killed" in runner.work_dir.name and not marker.exists()
        if self.stalls:
            marker.touch()

    def before_train_iter(self, runner):
        while self.stalls and runner.iter == 30:
            signal.pause()
"""


def verify(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run `hookline verify-resume` and return what it prints."""
    command = [sys.executable, "-m", "hookline", "verify-resume", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_verify_resume_kills_a_config_of_the_users_and_reports_that_it_survived(tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "stall.py").write_text(STALL)
    printed = verify(tmp_path, "config.yaml", "--kills", "1", "--work-dir", "runs")
    assert "run 1: 1 kill" in printed


@pytest.mark.slow
def test_verify_resume_kills_a_script_that_owns_its_loop_also_inside_a_save(tmp_path):
    shutil.copy(Path(__file__).with_name("training_script.py"), tmp_path / "train.py")
    printed = verify(tmp_path, "train.py", "--kills", "2", "--", "push")
    assert "killed 2 times" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["runner", "pull"])
def test_verify_resume_kills_a_script_of_every_kind(tmp_path, kind):
    shutil.copy(Path(__file__).with_name("training_script.py"), tmp_path / "train.py")
    verify(tmp_path, "train.py", "--kills", "1", "--", kind)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["unsaved", "undeclared"])
def test_verify_resume_reports_a_script_whose_state_is_not_saved(tmp_path, kind):
    shutil.copy(Path(__file__).with_name("training_script.py"), tmp_path / "train.py")
    printed = verify(tmp_path, "train.py", "--kills", "1", "--", kind, code=1)
    lines = {line.partition("  ")[0]: line for line in printed.splitlines()}
    assert "differ" in lines["weights"]
    assert lines["data order"].endswith("equal")


def test_resuming_in_the_middle_of_a_million_samples_reads_none_of_those_before(tmp_path):
    class Million(Dataset):
        read = 0
        num_classes = 2

        def __len__(self):
            return 1_000_000

        def __getitem__(self, index):
            Million.read += 1
            return torch.full((4,), float(index)), index % 2

    class StopAt(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter + 1 == 3:
                runner.inner_iter = 15_000  # as if half the epoch had been trained on
                runner.request_save()
                runner.request_stop("half")

    def train(*hooks, **parts):
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        loader = make_loader(Million(), batch_size=32, shuffle=True, seed=1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
        runner = Runner(
            model,
            train_loader=loader,
            optimizer=optimizer,
            loss_fn=nn.CrossEntropyLoss(),
            work_dir=tmp_path,
            hooks=hooks,
            **parts,
        )
        runner.train()
        return runner

    train(StopAt(), max_epochs=1)
    Million.read = 0
    resumed = train(resume="auto", max_iters=4)
    assert resumed.iter == 4
    assert Million.read == 32
