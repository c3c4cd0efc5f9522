"""The data position of a resumed run with custom samplers, other batch sizes and devices."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from hookline import Runner, make_loader
from hookline.engine import BaseHook
from hookline.errors import ConfigError, HooklineError
from hookline.hooks import LambdaHook, StopAtHook
from hookline.rng import restore_rng, rng_state

SAMPLES = 26


class Seen(BaseHook):
    """Notes which samples are trained on, and in which iteration the run ends."""

    def __init__(self) -> None:
        self.samples: list[int] = []
        self.last: list[int] = []

    def after_train_iter(self, runner):
        self.samples += runner.batch[1].tolist()
        if self.is_last_iter(runner):
            self.last.append(runner.iter + 1)


def data() -> TensorDataset:
    return TensorDataset(torch.randn(SAMPLES, 4), torch.arange(SAMPLES))


def ours(batch_size: int):
    return make_loader(data(), batch_size, shuffle=True, seed=5)


def run(folder, loader, *hooks, **parts) -> tuple[Runner, Seen]:
    model, seen = nn.Linear(4, SAMPLES), Seen()
    if "max_iters" not in parts:
        parts.setdefault("max_epochs", 2)
    runner = Runner(
        model, train_loader=loader, optimizer=torch.optim.SGD(model.parameters(), 0.1), loss_fn=nn.CrossEntropyLoss(), work_dir=folder,
        hooks=[seen, {"type": "CheckpointHook", "save_best": False}, *hooks], drop_hooks=["ReportHook", "EvalHook"], **parts,
    )  # fmt: skip
    return runner.train(), seen


def test_starting_persistent_workers_for_a_validation_takes_no_random_numbers(tmp_path):
    def train(folder, epochs, resume=None):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(), nn.Linear(8, SAMPLES))
        return Runner(
            model,
            train_loader=ours(8),
            val_loader=DataLoader(data(), 8, num_workers=1, persistent_workers=True),
            optimizer=torch.optim.SGD(model.parameters(), 0.1),
            loss_fn=nn.CrossEntropyLoss(),
            drop_hooks=["ReportHook"],
            work_dir=tmp_path / folder,
            max_epochs=epochs,
            resume=resume,
        ).train()

    straight = train("straight", 3)
    train("cut", 1)
    resumed = train("cut", 3, resume="auto")
    for name, weight in straight.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], weight), name


def dealt() -> DataLoader:
    return DataLoader(data(), 4, sampler=DistributedSampler(data(), num_replicas=2, rank=0, seed=3))


@pytest.mark.parametrize("stop", [2, 4, 6])
def test_a_distributed_sampler_continues_in_the_order_of_the_epoch_that_was_interrupted(
    tmp_path, stop
):
    _, straight = run(tmp_path / "straight", dealt())
    _, first = run(tmp_path / "cut", dealt(), StopAtHook(iter=stop))
    _, second = run(tmp_path / "cut", dealt(), resume="auto")
    assert first.samples + second.samples == straight.samples


@pytest.mark.parametrize(
    ("before", "stop", "after"), [(4, 3, 8), (8, 2, 4), (8, 5, 3), (1, 2, 8), (4, 7, 8), (4, 14, 8)]
)
def test_with_batches_of_another_size_each_sample_comes_once_and_the_run_knows_its_length(
    tmp_path, before, stop, after
):
    _, first = run(tmp_path, ours(before), StopAtHook(iter=stop))
    runner, second = run(tmp_path, ours(after), resume="auto")
    assert sorted((first.samples + second.samples)[:SAMPLES]) == list(range(SAMPLES))
    assert sorted((first.samples + second.samples)[SAMPLES:]) == list(range(SAMPLES))
    assert runner.max_iters == runner.iter
    assert second.last == ([runner.iter] if second.samples else [])


def test_a_run_measured_in_iterations_knows_its_epochs_with_batches_of_another_size(tmp_path):
    run(tmp_path, ours(4), StopAtHook(iter=3), max_iters=12)
    runner, _ = run(tmp_path, ours(8), resume="auto", max_iters=12)
    assert (runner.max_iters, runner.max_epochs) == (
        12,
        3,
    )  # 3 and 2 of the first, 4 of the second, 3 of the third
    assert (runner.iter, runner.epoch, runner.inner_iter) == (12, 2, 3)


@pytest.mark.parametrize("devices", [1, 3])
def test_random_numbers_are_restored_on_all_devices_present(monkeypatch, devices):
    restored = {}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    monkeypatch.setattr(
        torch.cuda, "set_rng_state", lambda state, device: restored.update({device: state})
    )
    restore_rng({**rng_state(), "cuda": ["first", "second"]})
    assert restored == dict(list({0: "first", 1: "second"}.items())[:devices])


class StatefulStream:
    """Batches without a length, and with the state of torchdata's StatefulDataLoader.

    After `load_state_dict`, the first iteration yields the rest of the saved epoch.
    """

    def __init__(self) -> None:
        self.position = 0
        self._is_restored = False

    def __len__(self) -> int:
        raise TypeError("a stream has no length")  # as a DataLoader over an IterableDataset does

    def __iter__(self):
        if self.position >= SAMPLES and not self._is_restored:
            self.position = 0
        self._is_restored = False
        while self.position < SAMPLES:
            indices = torch.arange(self.position, self.position + 2)
            self.position += 2
            yield torch.ones(2, 4), indices

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = state["position"]
        self._is_restored = True


def test_a_stateful_loader_without_a_length_resumes_inside_an_epoch(tmp_path):
    _, straight = run(tmp_path / "straight", StatefulStream())
    _, first = run(tmp_path / "cut", StatefulStream(), StopAtHook(iter=5))
    _, second = run(tmp_path / "cut", StatefulStream(), resume="auto")
    assert first.samples + second.samples == straight.samples


def test_a_stateful_loader_without_a_length_resumes_at_the_end_of_an_epoch(tmp_path):
    run(tmp_path, StatefulStream(), max_epochs=1)
    _, second = run(tmp_path, StatefulStream(), resume="auto")
    assert second.samples == list(range(SAMPLES))


def fixed_data() -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    return TensorDataset(torch.randn(SAMPLES, 4, generator=generator), torch.arange(SAMPLES))


class Curriculum(BaseHook):
    """Trains on more samples in each epoch, and on the first loader again in the last one."""

    def __init__(self, kind: str = "ours") -> None:
        self.kind = kind
        self.lengths: list[tuple[int, int]] = []
        self.first = None

    def before_train_epoch(self, runner):
        if self.first is None:
            self.first = runner.train_loader
        runner.set_train_loader(self.choose(runner.epoch))
        self.lengths.append((runner.epoch_length, runner.max_iters))

    def choose(self, epoch: int):
        if epoch == 4:
            return self.first
        part = torch.utils.data.Subset(fixed_data(), range(4 * (epoch + 2)))
        if self.kind == "ours":
            return make_loader(part, 2, shuffle=True, seed=epoch)
        return DataLoader(part, 2, shuffle=True)


@pytest.mark.parametrize("kind", ["ours", "torch"])
@pytest.mark.parametrize("stop", [3, 4, 9, 20, 29])
def test_a_loader_that_a_hook_chooses_by_epoch_resumes_exactly(tmp_path, kind, stop):
    def start():
        torch.manual_seed(0)
        return make_loader(fixed_data(), 2, shuffle=True, seed=7)

    lengths = [4, 6, 8, 10, 13]
    hook = Curriculum(kind)
    whole, straight = run(tmp_path / "whole", start(), hook, max_epochs=5, seed=1)
    assert whole.iter == sum(lengths)
    assert [length for length, _ in hook.lengths] == lengths
    assert hook.lengths[-1][1] == sum(lengths)
    cut = tmp_path / "cut"
    parts = {"max_epochs": 5, "seed": 1}
    _, first = run(cut, start(), Curriculum(kind), StopAtHook(iter=stop), **parts)
    resumed, second = run(cut, start(), Curriculum(kind), resume="auto", **parts)
    assert resumed.iter == sum(lengths)
    assert first.samples + second.samples == straight.samples
    assert torch.equal(resumed.model.weight, whole.model.weight)


@pytest.mark.parametrize("site", ["before_train_iter", "after_train_epoch", "after_epoch"])
def test_the_training_data_cannot_be_replaced_inside_an_epoch_or_at_its_end(tmp_path, site):
    def late(runner):
        runner.set_train_loader(ours(2))

    with pytest.raises(HooklineError, match="between epochs"):
        run(tmp_path, ours(2), LambdaHook(**{site: late}))


class AssigningCurriculum(Curriculum):
    """Assigns the loader of an epoch to the attribute of the runner."""

    def before_train_epoch(self, runner):
        runner.train_loader = self.choose(runner.epoch)
        self.lengths.append((runner.epoch_length, runner.max_iters))


@pytest.mark.parametrize("stop", [3, 9, 20])
def test_a_loader_that_a_hook_assigns_by_epoch_resumes_exactly(tmp_path, stop):
    lengths = [4, 6, 8, 10]
    hook = AssigningCurriculum()
    parts = {"max_epochs": 4, "seed": 1}
    _, straight = run(tmp_path / "whole", ours(2), hook, **parts)
    assert [length for length, _ in hook.lengths] == lengths
    cut = tmp_path / "cut"
    _, first = run(cut, ours(2), AssigningCurriculum(), StopAtHook(iter=stop), **parts)
    resumed, second = run(cut, ours(2), AssigningCurriculum(), resume="auto", **parts)
    assert resumed.iter == sum(lengths)
    assert first.samples + second.samples == straight.samples


def test_data_assigned_before_a_training_decides_its_length(tmp_path):
    model = nn.Linear(4, SAMPLES)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loss_fn = nn.CrossEntropyLoss()
    runner = Runner(
        model, train_loader=ours(13), optimizer=optimizer, loss_fn=loss_fn, max_epochs=1,
        work_dir=tmp_path,
    )  # fmt: skip
    runner.train_loader = ours(2)
    assert runner.max_iters == runner.train().iter == SAMPLES // 2


def test_a_position_that_does_not_fit_is_still_an_error_before_the_first_batch(tmp_path):
    run(tmp_path, ours(4), StopAtHook(iter=2))
    seen = Seen()
    other = make_loader(TensorDataset(torch.randn(10, 4), torch.arange(10)), 4, shuffle=True)
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, other, seen, resume="auto")
    assert (caught.value.component, caught.value.parameter) == ("train_loader", "length")
    assert seen.samples == []
