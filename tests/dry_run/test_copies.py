"""Dry runs of runners that are built in Python."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hookline import BaseHook, Runner, make_loader
from hookline.errors import HooklineError
from tests.helpers import batches, small_model


class Seen(BaseHook):
    """Counts iterations, and fails in the validation if asked to."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.iters = 0

    def after_train_iter(self, runner):
        self.iters += 1

    def after_val_epoch(self, runner):
        if self.fails:
            raise KeyError("no such metric")


def samples() -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    return TensorDataset(torch.randn(24, 6, generator=generator), torch.arange(24) % 3)


def make_runner(work_dir, *hooks, **parts) -> Runner:
    torch.manual_seed(0)
    model = small_model()
    given = {
        "train_loader": make_loader(samples(), 4, shuffle=True),
        "val_loader": make_loader(samples(), 8),
        "optimizer": torch.optim.Adam(model.parameters(), lr=0.01),
        "loss_fn": nn.CrossEntropyLoss(),
        "metrics": ["accuracy"],
        "max_epochs": 2,
    }
    return Runner(model, work_dir=work_dir, hooks=hooks, **{**given, **parts})


def test_a_good_run_has_no_errors_and_estimates(tmp_path):
    result = make_runner(tmp_path / "run").dry_run()
    assert result.errors == []
    assert {"training", "validation", "saving", "resume"} <= set(result.done)
    assert result.seconds
    assert result.memory
    assert "no errors" in str(result)


def test_an_error_of_a_hook_is_found_and_printed(tmp_path):
    result = make_runner(tmp_path / "run", Seen(fails=True)).dry_run()
    assert [finding.where for finding in result.errors] == ["validation"]
    assert "no such metric" in str(result)


def test_the_runner_and_its_files_are_untouched(tmp_path):
    seen = Seen()
    runner = make_runner(tmp_path / "run", seen)
    weights = [parameter.clone() for parameter in runner.model.parameters()]
    state = torch.get_rng_state()
    runner.dry_run()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(map(torch.equal, weights, runner.model.parameters()))
    assert (seen.iters, runner.iter, runner.optimizer.state_dict()["state"]) == (0, 0, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["ours", "torch"])
def test_a_run_after_a_dry_run_is_bit_identical(tmp_path, kind):
    def final_weights(work_dir, tries: bool) -> list[torch.Tensor]:
        parts = {}
        if kind == "torch":
            generator = torch.Generator().manual_seed(1)
            parts["train_loader"] = DataLoader(samples(), 4, shuffle=True, generator=generator)
        runner = make_runner(work_dir, **parts)
        if tries:
            assert runner.dry_run().errors == []
        return list(runner.train().model.parameters())

    tried = final_weights(tmp_path / "tried", tries=True)
    plain = final_weights(tmp_path / "plain", tries=False)
    assert all(map(torch.equal, tried, plain))


def test_parts_that_cannot_be_copied_are_reported(tmp_path):
    hook = Seen()
    hook.lock = threading.Lock()
    with pytest.raises(HooklineError, match="cannot be copied"):
        make_runner(tmp_path, hook).dry_run()


def test_batches_that_can_be_read_only_once_are_not_used_up(tmp_path):
    once = map(tuple, batches(3))
    runner = make_runner(tmp_path, train_loader=once, max_epochs=1)
    with pytest.raises(HooklineError, match="only once"):
        runner.dry_run()
    assert len(list(once)) == 3
