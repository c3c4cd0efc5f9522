"""Every built-in hook does the same in every loop that it can run in."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import hookline
from hookline.hooks import CheckpointHook, RollbackHook
from tests.contracts.conftest import (  # noqa: F401
    _offline_trackers,
    _without_logs_below_errors,
    _without_waiting_for_the_disk,
)
from tests.helpers import batches, small_model
from tests.parity.checking import hooks_to_compare, unexpected_differences
from tests.parity.hosts import HOSTS, Host
from tests.parity.observation import Observation, observe

# The metric of these hosts sums losses in double precision: the last bits depend on the processor.
TOLERANCES = {"mmengine epochs": 1e-6, "mmengine iterations": 1e-6}

Reference = Callable[[Host], Callable[[str], Observation]]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Return a function that trains with a hook in a Runner, once for all tests."""
    known: dict[tuple[Host, str], Observation] = {}

    def of_host(host: Host) -> Callable[[str], Observation]:
        def train(hook: str) -> Observation:
            if (host, hook) not in known:
                folder = tmp_path_factory.mktemp(hook) / "run"
                known[host, hook] = observe(host, hook, folder)
            return known[host, hook]

        return train

    return of_host


@pytest.mark.parametrize("name", HOSTS)
def test_every_hook_does_the_same_as_in_a_runner(
    name: str, reference: Reference, tmp_path: Path
) -> None:
    host, same_as = HOSTS[name]
    hooks = hooks_to_compare()
    tolerance = TOLERANCES.get(name, 0.0)
    found = unexpected_differences(name, host, reference(same_as), tmp_path, hooks, tolerance)
    assert found == {}


def test_the_sites_of_a_driven_loop_come_in_the_order_of_a_runner(
    reference: Reference, tmp_path: Path
) -> None:
    expected = reference(HOSTS["push"][1])("LambdaHook").sites
    different = []
    for name in ("pull", "push", "dl_framework", "mmcv epochs", "mmengine epochs"):
        if observe(HOSTS[name][0], "LambdaHook", tmp_path / name).sites != expected:
            different.append(name)
    assert different == []


def test_a_rollback_in_a_pushed_loop_restores_the_weights(tmp_path: Path) -> None:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rollback = RollbackHook()
    data = batches(8)
    inputs, targets = data[4]
    data[4] = inputs * math.nan, targets
    saving = CheckpointHook(by_epoch=False, interval=2)
    with hookline.drive(
        [saving, rollback], model, optimizer, max_epochs=1, epoch_length=8, work_dir=tmp_path
    ) as run:
        run.begin_epoch()
        for batch in data:
            run.begin_batch(batch)
            loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
            run.loss(loss).backward()
            optimizer.step()
            optimizer.zero_grad()
            assert run.end_batch()
        run.end_epoch()
    assert [(each["iter"], each["back_to"]) for each in rollback.history] == [(5, 4)]
    assert run.runner.iter == 8
    for name, value in model.state_dict().items():
        assert torch.isfinite(value).all(), name


def test_a_pushed_loop_can_roll_back_to_its_start(tmp_path: Path) -> None:
    model = small_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rollback = RollbackHook()
    with hookline.drive(
        [CheckpointHook(), rollback], model, optimizer, max_epochs=1, work_dir=tmp_path
    ) as run:
        run.begin_epoch()
        run.begin_batch()
        run.loss(model(torch.full((2, 6), math.nan)).sum()).backward()
        optimizer.step()
        run.end_batch()
        run.end_epoch()
    assert [each["checkpoint"] for each in rollback.history] == ["start.pth"]
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_hook_costs_are_sampled_in_a_pushed_loop(tmp_path: Path) -> None:
    host, _ = HOSTS["push"]
    runner = host(tmp_path, "LambdaHook", [])
    samples, phases = runner.sites.costs.phase_totals()
    assert samples > 0
    assert phases["data"] > 0
    assert runner.loop.data_time > 0
