"""The hooks that a dry run adds, in small runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from hookline import BaseHook, Runner, make_loader, state
from hookline.checkpoint import load_checkpoint
from hookline.dry_run.hooks import ProbeHook, ResumeCheckHook, StepTimerHook
from hookline.hooks import CheckpointHook


@dataclass
class Counter(BaseHook):
    count: int = state(0)

    def after_train_iter(self, runner: Runner) -> None:
        self.count += 1


def make_runner(directory: Path, *hooks: BaseHook, model: nn.Module | None = None, **options):
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(12, 4), torch.randint(3, (12,)))
    model = nn.Linear(4, 3) if model is None else model
    settings = {
        "train_loader": make_loader(data, batch_size=4),
        "val_loader": make_loader(data, batch_size=6),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "loss_fn": nn.CrossEntropyLoss(),
        "max_epochs": 5,
        **options,
    }
    return Runner(model, work_dir=directory, hooks=list(hooks), **settings)


def test_a_probe_validates_saves_and_stops_after_one_epoch(tmp_path: Path) -> None:
    probe = ProbeHook()
    counter = Counter()
    runner = make_runner(tmp_path, probe, counter)
    runner.train()
    assert runner.epoch == 1
    assert (probe.train_batches, probe.val_batches) == (3, 2)
    assert probe.validated
    assert probe.saved
    assert probe.findings == []
    assert probe.states_after_save["Counter"] == {"count": 3}


def test_a_probe_finds_weights_that_do_not_change(tmp_path: Path) -> None:
    probe = ProbeHook()
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    make_runner(tmp_path, probe, model=model, optimizer=optimizer).train()
    assert [(finding.level, finding.where) for finding in probe.findings] == [("error", "training")]


def test_a_probe_lists_parameters_without_a_gradient(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = nn.Linear(4, 3)
            self.unused = nn.ModuleList([nn.Linear(1, 1) for _ in range(4)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.used(x)

    probe = ProbeHook()
    make_runner(tmp_path, probe, model=Net()).train()
    (finding,) = probe.findings
    assert finding.level == "warning"
    assert "unused.0.bias" in finding.text
    assert "and 3 more" in finding.text


@pytest.mark.parametrize("fails_in", ["model", "loss"])
def test_a_probe_records_whether_the_model_has_finished(fails_in: str, tmp_path: Path) -> None:
    class Failing(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if fails_in == "model":
                raise RuntimeError("in the model")
            return super().forward(x)

    def loss_fn(predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("in the loss")

    probe = ProbeHook()
    with pytest.raises(RuntimeError):
        make_runner(tmp_path, probe, model=Failing(4, 3), loss_fn=loss_fn).train()
    assert probe.model_finished == (fails_in == "loss")


def test_a_probe_leaves_no_hook_on_the_model(tmp_path: Path) -> None:
    runner = make_runner(tmp_path, ProbeHook())
    runner.train()
    assert not runner.model._forward_hooks
    assert runner.validate()


def test_a_timer_times_one_epoch_and_its_validation(tmp_path: Path) -> None:
    timer = StepTimerHook()
    runner = make_runner(tmp_path, timer)
    runner.train()
    assert runner.epoch == 1
    assert (len(timer.steps), len(timer.waits), len(timer.evaluations)) == (3, 3, 2)
    assert all(0 <= wait <= step for wait, step in zip(timer.waits, timer.steps, strict=True))


def saved_run(directory: Path) -> dict:
    make_runner(directory, Counter(), max_epochs=1).train()
    return load_checkpoint(directory / "last.pth")


def test_a_restored_run_has_no_differences(tmp_path: Path) -> None:
    checkpoint = saved_run(tmp_path)
    check = ResumeCheckHook(checkpoint, {})
    make_runner(tmp_path, Counter(), check, max_epochs=2, resume="auto").train()
    assert check.differences == []


@pytest.mark.parametrize("added", [0.0, 1.0])
def test_a_checkpoint_of_the_trained_part_is_compared_with_that_part(
    added: float, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    model[0].requires_grad_(False)
    hook = CheckpointHook(trainable_only=True)
    make_runner(tmp_path, hook, model=model, max_epochs=1).train()
    checkpoint = load_checkpoint(tmp_path / "last.pth")
    checkpoint["state_dict"]["1.bias"] += added
    check = ResumeCheckHook(checkpoint, {})
    make_runner(tmp_path, check, model=model, max_epochs=1, resume="auto").train()
    assert len(check.differences) == added


def test_a_finished_run_is_compared(tmp_path: Path) -> None:
    checkpoint = saved_run(tmp_path)
    checkpoint["state_dict"]["bias"] += 1
    check = ResumeCheckHook(checkpoint, {})
    make_runner(tmp_path, Counter(), check, max_epochs=1, resume="auto").train()
    assert len(check.differences) == 1


def test_differences_of_weights_and_hooks_are_listed(tmp_path: Path) -> None:
    checkpoint = saved_run(tmp_path)
    checkpoint["state_dict"]["weight"] = checkpoint["state_dict"]["weight"] + 1
    checkpoint["hooks"]["Counter"] = {"count": 99}
    check = ResumeCheckHook(checkpoint, {})
    make_runner(tmp_path, Counter(), check, max_epochs=2, resume="auto").train()
    assert [text.split()[0].rstrip(":") for text in check.differences] == [
        "weights",
        "Counter.count",
    ]


def test_a_hook_may_restore_its_state_after_the_save(tmp_path: Path) -> None:
    checkpoint = saved_run(tmp_path)
    checkpoint["hooks"]["Counter"] = {"count": 99}
    check = ResumeCheckHook(checkpoint, {"Counter": {"count": 3}})
    make_runner(tmp_path, Counter(), check, max_epochs=2, resume="auto").train()
    assert check.differences == []
