"""A run that is interrupted and resumed ends bit-identical to one that was not."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hookline import Runner, make_loader
from hookline.engine import BaseHook, state
from hookline.errors import HooklineError
from tests.helpers import batches

ITERS = 17


class Jitter(TensorDataset):
    """Data that draws random numbers when it is read."""

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x + torch.randn(()) * 0.1, y


@dataclass
class Memory(BaseHook):
    """State that is written at many sites, also at those that run again when a run resumes in the middle of an epoch."""

    seen: list[float] = state([])
    begun: int = state(0)

    def before_epoch(self, runner):
        self.begun += 1
        torch.rand(1)  # a draw at a site that a resumed run passes twice

    def after_train_iter(self, runner):
        self.seen.append(runner.outputs["loss"].item())


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    return Jitter(
        torch.randn(26, 6, generator=generator), torch.randint(3, (26,), generator=generator)
    )


def run(folder, *hooks, loader="ours", **parts) -> Runner:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    train = {
        "ours": lambda: make_loader(data(), batch_size=4, shuffle=True, seed=5),
        "workers": lambda: make_loader(data(), batch_size=4, shuffle=True, seed=5, num_workers=2),
        "torch": lambda: DataLoader(data(), batch_size=4, shuffle=True),
        "list": lambda: batches(7),
    }[loader]()
    runner = Runner(
        model, train_loader=train, val_loader=batches(2), optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), metrics=["accuracy"],
        max_iters=parts.pop("max_iters", ITERS), work_dir=folder, seed=3,
        hooks=[Memory(), {"type": "CheckpointHook", "by_epoch": False, "interval": 5, "max_keep_ckpts": 1}, *hooks], **parts,
    )  # fmt: skip
    runner.train()
    runner.final_rng = torch.get_rng_state()
    return runner


class StopAt(BaseHook):
    def __init__(self, at: int) -> None:
        self.at = at

    def after_train_iter(self, runner):
        if runner.iter + 1 == self.at:
            runner.request_save()
            runner.request_stop("test")


def assert_same(a: Runner, b: Runner) -> None:
    for (name, one), two in zip(
        a.model.state_dict().items(), b.model.state_dict().values(), strict=True
    ):
        assert torch.equal(one, two), name
    for one, two in zip(
        a.optimizer.state_dict()["state"].values(),
        b.optimizer.state_dict()["state"].values(),
        strict=True,
    ):
        assert all(torch.equal(torch.as_tensor(one[key]), torch.as_tensor(two[key])) for key in one)
    assert a.hook("Memory").state_dict() == b.hook("Memory").state_dict()
    assert (a.iter, a.epoch, a.inner_iter, a.optimizer_steps) == (
        b.iter,
        b.epoch,
        b.inner_iter,
        b.optimizer_steps,
    )
    assert torch.equal(a.final_rng, b.final_rng)


@pytest.mark.parametrize("loader", ["ours", "workers", "torch", "list"])
@pytest.mark.parametrize("stop", [3, 7, 10, 14])
def test_stopped_anywhere_and_resumed_it_ends_bit_identical(tmp_path, stop, loader):
    straight = run(tmp_path / "straight", loader=loader)
    run(tmp_path / "cut", StopAt(stop), loader=loader)
    resumed = run(tmp_path / "cut", resume="auto", loader=loader)
    assert resumed.iter == ITERS
    assert_same(straight, resumed)


def test_a_longer_run_continues_in_the_middle_of_the_epoch_that_max_iters_cut(tmp_path):
    straight = run(tmp_path / "straight")
    run(tmp_path / "short", max_iters=9)
    assert_same(straight, run(tmp_path / "short", resume="auto"))


def test_resuming_a_finished_run_trains_no_further(tmp_path):
    done = run(tmp_path)
    again = run(tmp_path, resume="auto")
    assert again.iter == ITERS
    assert_same(done, again)
    assert again.stop_reason.details == {"max_iters": ITERS}


def test_auto_starts_afresh_where_there_is_nothing_to_resume(tmp_path):
    assert run(tmp_path, resume="auto").iter == ITERS


def test_resuming_from_a_path_and_starting_from_weights(tmp_path):
    done = run(tmp_path / "one")
    resumed = run(tmp_path / "two", resume=tmp_path / "one" / "iter_15.pth")
    assert_same(done, resumed)
    seen = []

    class Look(BaseHook):
        def before_train(self, runner):
            seen.append((runner.iter, runner.model.state_dict()["0.weight"].clone()))

    run(tmp_path / "three", Look(), load_from=tmp_path / "one" / "last.pth", max_iters=1)
    assert seen[0][0] == 0
    assert torch.equal(seen[0][1], done.model.state_dict()["0.weight"])


def test_a_checkpoint_of_another_model_is_refused_with_what_does_not_fit(tmp_path):
    run(tmp_path)
    model = nn.Linear(6, 3)
    runner = Runner(
        model, train_loader=batches(2), optimizer=torch.optim.SGD(model.parameters()), loss_fn=nn.CrossEntropyLoss(), max_epochs=1,
        work_dir=tmp_path / "other", resume=tmp_path / "last.pth",
    )  # fmt: skip
    with pytest.raises(HooklineError, match=r"weight, bias.*0\.weight"):
        runner.train()


def test_the_checkpoint_loads_with_weights_only_and_holds_what_it_should(tmp_path):
    run(tmp_path)
    checkpoint = torch.load(tmp_path / "last.pth", weights_only=True)
    assert {"meta", "state_dict", "optimizer", "hooks", "rng", "loader", "events"} <= set(
        checkpoint
    )
    assert checkpoint["meta"]["iter"] == ITERS
    assert {"epoch", "time", "versions", "config", "world_size"} <= set(checkpoint["meta"])


@pytest.mark.parametrize("stop", [3, 7, 9])
def test_a_stateful_loader_of_torchdata_is_used_as_it_is(tmp_path, stop):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def train(folder, *hooks, **parts):
        torch.manual_seed(3)
        model = nn.Linear(6, 3)
        loader = stateful.StatefulDataLoader(
            TensorDataset(*(t[:26] for t in data().tensors)), batch_size=4, shuffle=False
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        parts = {"loss_fn": nn.CrossEntropyLoss(), "max_iters": 12, "work_dir": folder, **parts}
        runner = Runner(model, train_loader=loader, optimizer=optimizer, hooks=hooks, **parts)
        runner.train()
        return runner

    straight = train(tmp_path / "straight")
    train(tmp_path / "cut", StopAt(stop))
    resumed = train(tmp_path / "cut", resume="auto")
    assert resumed.iter == 12
    assert torch.equal(straight.model.weight, resumed.model.weight)


def test_changes_of_a_hooks_state_before_a_resumed_training_are_undone(tmp_path):
    @dataclass
    class Early(BaseHook):
        seen: list[int] = state([])

        def before_epoch(self, runner):
            self.seen.append(runner.epoch)

    straight = run(tmp_path / "straight", Early())
    run(tmp_path / "cut", Early(), StopAt(10))
    resumed = run(tmp_path / "cut", Early(), resume="auto")
    assert resumed.hook("Early").seen == straight.hook("Early").seen == [0, 1, 2]


@pytest.mark.parametrize("stop", [5, 12, 14])
def test_retention_continues_as_without_a_stop(tmp_path, stop):
    straight = run(tmp_path / "straight")
    run(tmp_path / "cut", StopAt(stop))
    run(tmp_path / "cut", resume="auto")
    kept = [
        torch.load(tmp_path / name / "last.pth", weights_only=True)["hooks"]["CheckpointHook"]
        for name in ("straight", "cut")
    ]
    assert kept[0] == kept[1]
    assert straight.iter == ITERS


class Values(BaseHook):
    """Records values at sites before, at and after the capture of a checkpoint."""

    def after_train_iter(self, runner):
        runner.events.put_scalar("trained", runner.iter + 1)

    def after_val_epoch(self, runner):
        runner.events.put_scalar("validated", runner.iter)

    def after_epoch(self, runner):
        runner.events.put_scalar("epoch_over", runner.iter)

    def before_save_checkpoint(self, runner):
        runner.events.put_scalar("captured", runner.iter)

    def after_save_checkpoint(self, runner):
        runner.events.put_scalar("saved", runner.iter)


@pytest.mark.parametrize("stop", [5, 7, 10])
def test_recorded_values_survive_a_resume_except_those_of_the_save_itself(tmp_path, stop):
    def history(runner: Runner, name: str) -> list[float]:
        return [scalar.value for scalar in runner.events.history(name)]

    straight = run(tmp_path / "straight", Values())
    run(tmp_path / "cut", Values(), StopAt(stop))
    resumed = run(tmp_path / "cut", Values(), resume="auto")
    for name in ("trained", "validated", "epoch_over"):
        assert history(resumed, name) == history(straight, name)
    for name in ("captured", "saved"):
        assert stop not in history(resumed, name)
        assert (stop, stop) in resumed.history.curves()[f"train/{name}"]
