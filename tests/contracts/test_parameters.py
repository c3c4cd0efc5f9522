"""Every parameter of every registered hook changes something that can be observed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hookline import HOOKS
from hookline.engine import BaseHook
from hookline.hooks import LambdaHook
from tests.contracts.hooks import cases, hook_classes
from tests.contracts.parameters.rows import Row, problems_of, rows
from tests.contracts.parameters.table import TABLE, UNOBSERVED
from tests.contracts.training import train


def signature_of(hook: type[BaseHook]) -> dict[str, Any]:
    """Return the parameters of a hook's config with their defaults."""
    own = HOOKS.own_parameters(hook).known
    return {name: parameter.default for name, parameter in own.items()}


def missing_rows(hook: type[BaseHook], table: list[Row]) -> list[str]:
    """List the parameters of a hook that have neither a row nor a reason for not having one."""
    observed = {row.parameter for row in table}
    missing = []
    for parameter in signature_of(hook):
        if parameter not in observed and (hook.__name__, parameter) not in UNOBSERVED:
            missing.append(f"{hook.__name__}.{parameter}")
    return missing


def test_every_parameter_has_a_row() -> None:
    missing = []
    for hook in hook_classes():
        missing += missing_rows(hook, TABLE.get(hook.__name__, []))
    assert missing == []


def test_every_row_is_of_a_parameter() -> None:
    signatures = {hook.__name__: signature_of(hook) for hook in hook_classes()}
    named = [(hook, row.parameter) for hook, table in TABLE.items() for row in table]
    unknown = []
    for hook, parameter in [*named, *UNOBSERVED]:
        if parameter not in signatures.get(hook, {}):
            unknown.append(f"{hook}.{parameter}")
    assert unknown == []
    assert not set(named) & set(UNOBSERVED), "observed, and on the list of the unobserved"


@pytest.mark.parametrize("hook", cases(sorted(TABLE)))
def test_each_parameter_changes_something_observable(hook: str, tmp_path: Path) -> None:
    defaults = signature_of(HOOKS.get(hook))
    assert problems_of(hook, TABLE[hook], tmp_path, defaults) == []


# The tests above can fail: a hook that does less than it takes is found.


@dataclass
class HalfDeafHook(BaseHook):
    """A hook that uses one of its parameters, ignores one, and is short of rows for another."""

    used: int = 1
    ignored: int = 1
    forgotten: int = 1

    def after_train_iter(self, runner: Any) -> None:
        runner.events.put_scalar("used", self.used)


def recorded(config: dict[str, Any], folder: Path) -> float:
    return train(folder, config).events.latest()["used"]


def own_folder(config: dict[str, Any], folder: Path) -> str:
    """Return something that differs between equal trainings."""
    return str(train(folder, config).work_dir)


def test_a_parameter_that_changes_nothing_is_found(tmp_path: Path) -> None:
    HOOKS.register()(HalfDeafHook)
    table = rows(recorded, used=(1, 2), ignored=(1, 2))
    (problem,) = problems_of("HalfDeafHook", table, tmp_path)
    assert problem.startswith("ignored: ")


def test_a_parameter_without_a_row_is_found() -> None:
    table = rows(recorded, used=(1, 2), ignored=(1, 2))
    assert missing_rows(HalfDeafHook, table) == ["HalfDeafHook.forgotten"]


def test_an_observation_that_differs_by_itself_proves_nothing(tmp_path: Path) -> None:
    HOOKS.register()(HalfDeafHook)
    (problem,) = problems_of("HalfDeafHook", rows(own_folder, ignored=(1, 2)), tmp_path)
    assert problem.startswith("ignored: equal trainings differ")


# What every hook takes besides its own parameters.


def calls_of(config: dict[str, Any], folder: Path) -> list[int]:
    """Return the iterations in which the hook is called."""
    runner = train(folder, config)
    return [scalar.iter for scalar in runner.events.history("used")]


def comes_first(config: dict[str, Any], folder: Path) -> bool:
    """Return whether the hook is called before one of normal priority."""
    seen: list[bool] = []
    look = LambdaHook(after_train_iter=lambda events: seen.append("used" in events.latest()))
    train(folder, config, look)
    return seen[0]


def names_of(config: dict[str, Any], folder: Path) -> list[str]:
    """Return the names of the hooks in a run."""
    return [hook.name for hook in train(folder, config).hooks]


COMMON = [
    *rows(calls_of, frequency=(1, 2)),
    *rows(comes_first, priority=("HIGHEST", "LOWEST")),
    *rows(names_of, name=("one", "other")),
]


def test_the_parameters_common_to_all_hooks_change_something_observable(tmp_path: Path) -> None:
    HOOKS.register()(HalfDeafHook)
    assert problems_of("HalfDeafHook", COMMON, tmp_path) == []
    assert {row.parameter for row in COMMON} == set(HOOKS.COMMON)
