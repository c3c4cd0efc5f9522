"""Every built-in hook does the same in Lightning's and Hugging Face's Trainer as in a Runner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contracts.conftest import (  # noqa: F401
    _offline_trackers,
    _without_logs_below_errors,
    _without_waiting_for_the_disk,
)
from tests.parity.checking import hooks_to_compare, unexpected_differences
from tests.parity.foreign_hosts import FOREIGN_HOSTS
from tests.parity.hosts import runner
from tests.parity.observation import Observation, observe

TOLERANCE = 1e-4  # the Trainers compute the loss with other operations


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Observation]:
    """Return a function that trains with a hook in a Runner, once for all tests."""
    known: dict[str, Observation] = {}

    def train(hook: str) -> Observation:
        if hook not in known:
            known[hook] = observe(runner, hook, tmp_path_factory.mktemp(hook) / "run")
        return known[hook]

    return train


@pytest.mark.timeout(1800)  # some sixty trainings
@pytest.mark.parametrize("name", FOREIGN_HOSTS)
def test_every_hook_does_the_same_as_in_a_runner(
    name: str, reference: Callable[[str], Observation], tmp_path: Path
) -> None:
    hooks = hooks_to_compare()
    found = unexpected_differences(name, FOREIGN_HOSTS[name], reference, tmp_path, hooks, TOLERANCE)
    assert found == {}
