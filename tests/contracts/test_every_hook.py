"""Contracts that hold for every registered hook."""

from __future__ import annotations

import copy
import inspect
import math
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from hookline import HOOKS, Runner, make_loader, state
from hookline.checkpoint import diff
from hookline.engine import BaseHook, Interrupted
from hookline.errors import ConfigError
from hookline.hooks import LambdaHook
from scripts.docs.site import read_site
from tests.contracts.hooks import (
    ACTIVE,
    ALTERS_TRAINING,
    active_config,
    cases,
    hook_classes,
    minimal_config,
    registered,
)
from tests.contracts.parameters.rows import place_below
from tests.helpers import make_runner
from tests.text_parts import LetterModel, NextLetter
from tests.visual.picture_parts import Transformer

DOCS = Path(__file__).parents[2] / "docs"
LENGTH, CUT = 10, 6  # iterations of a run, and after how many it is stopped
CLASSES = {cls.__name__ for cls in hook_classes()}


# Contracts of the class, checked without a run.


def test_it_builds_from_its_minimal_config() -> None:
    wrong = []
    for name, cls in registered().items():
        if type(HOOKS.build(minimal_config(name))) is not cls:
            wrong.append(name)
    assert wrong == []


def test_an_unknown_parameter_is_refused_with_a_suggestion() -> None:
    wrong = {}
    for name, cls in registered().items():
        with pytest.raises(ConfigError) as caught:
            HOOKS.build({**minimal_config(name), "priorityy": 1})
        error = caught.value
        found = (error.component, error.parameter, error.suggestion.nearest)
        if found != (cls.__name__, "priorityy", "priority"):
            wrong[name] = found
    assert wrong == {}


def test_its_docstring_begins_with_one_line_that_stands_alone() -> None:
    wrong = []
    for cls in hook_classes():
        first, *rest = (inspect.getdoc(cls) or "").splitlines() or [""]
        if not first.endswith((".", ":")) or (rest and rest[0]):
            wrong.append(f"{cls.__name__}: {first}")
    assert wrong == []


def test_a_page_of_the_documentation_names_it() -> None:
    pages = [page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")]
    pages += read_site().hook_pages.values()
    words = set(re.findall(r"\w+", "\n".join(pages)))
    assert [name for name in registered() if name not in words] == []


def test_every_parameter_has_a_type_so_that_a_config_can_be_checked() -> None:
    wrong = []
    for cls in hook_classes():
        known, open_ended, hints = HOOKS.own_parameters(cls)
        wrong += [f"{cls.__name__}.{name}" for name in known if name not in hints]
        if open_ended and cls is not LambdaHook:  # it takes a function for each site
            wrong.append(f"{cls.__name__}.**")
    assert wrong == []


def test_its_state_has_a_name_of_its_own_in_a_run(tmp_path: Path) -> None:
    wrong = []
    for cls in hook_classes():
        hook = HOOKS.build(minimal_config(cls.__name__))
        is_owner = hook.site_method("optimize") is not None  # a run has one owner
        if hook.state_dict() and not is_owner:
            runner = make_runner(tmp_path)
            names = [runner.register_hook(minimal_config(cls.__name__)).name for _ in range(2)]
            if len(set(names)) < 2:
                wrong.append(names)
    assert wrong == []


def test_the_set_ups_of_this_folder_are_of_hooks_that_exist() -> None:
    assert sorted({*ACTIVE, *ALTERS_TRAINING} - CLASSES) == []


# Contracts of a run. Each hook trains through once, and once with a stop and a resume.


@dataclass
class Trained:
    """A hook that has trained, and a second instance that has not.

    Args:
        config: The config of both.
        hook: The hook.
        bystander: An instance with the same config, made before the training.
        initial: The state of both before the training.
        runner: The runner of the training.
        losses: The loss of each iteration.
    """

    config: dict[str, Any]
    hook: BaseHook
    bystander: BaseHook
    initial: dict[str, Any]
    runner: Runner
    losses: dict[int, float]


def data(seed: int = 0) -> torch.utils.data.TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(3, (30,), generator=generator)
    return torch.utils.data.TensorDataset(torch.rand(30, 1, 8, 8, generator=generator), targets)


def small_network() -> nn.Module:
    torch.manual_seed(1)
    body = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2)]
    return nn.Sequential(*body, nn.Linear(144, 3))


def model_for(name: str) -> nn.Module:
    """Return the model that a hook is trained with: one with attention if it draws that."""
    torch.manual_seed(1)
    if name == "GenerationHook":
        return LetterModel()
    return Transformer() if name == "AttentionMapHook" else small_network()


def data_for(name: str) -> dict[str, Any]:
    """Return the data that a hook is trained with, and its loss: text if it generates that."""
    if name == "GenerationHook":
        train, val = NextLetter(30), NextLetter(30)
        return {
            "train_loader": make_loader(train, batch_size=6, shuffle=True, seed=2),
            "val_loader": make_loader(val, batch_size=15),
        }
    return {
        "train_loader": make_loader(data(), batch_size=6, shuffle=True, seed=2),
        "val_loader": make_loader(data(1), batch_size=15),
        "loss_fn": nn.CrossEntropyLoss(),
        "metrics": ["accuracy"],
    }


def spoil_loss_once() -> LambdaHook:
    """Return a hook that makes the loss of one batch NaN."""

    def spoil(runner: Any) -> None:
        if (runner.epoch, runner.batch_idx) == (0, 3):
            runner.outputs["loss"] = runner.outputs["loss"] * math.nan

    return LambdaHook(after_forward=spoil)


def limit_memory() -> LambdaHook:
    """Return a hook with which the model runs out of memory for more than four samples."""

    def check(module: nn.Module, inputs: Any) -> None:
        if len(inputs[0]) > 4:
            raise torch.OutOfMemoryError

    return LambdaHook(before_run=lambda model: model.register_forward_pre_hook(check))


def run(
    folder: Path, name: str, *others: Any, without: bool = False, resume: str | None = None
) -> Trained:
    """Train for two epochs of five iterations with the default hooks, a tested one and others.

    Args:
        folder: The work directory.
        name: The tested hook's name.
        others: Further hooks.
        without: Whether to leave out the tested hook.
        resume: Where to continue.
    """
    losses: dict[int, float] = {}

    def note(runner: Any) -> None:
        losses[runner.iter] = runner.outputs["loss"].item()

    hooks: list[Any] = [LambdaHook(after_train_iter=note), *others]
    config = place_below(folder, active_config(name))
    tested, bystander = HOOKS.build(config), HOOKS.build(config)
    initial = copy.deepcopy(bystander.state_dict())
    if not without:
        hooks.append(tested)
    if name == "RollbackHook":
        hooks.append(spoil_loss_once())
    if name == "MicroBatchHook" and not without:
        hooks.append(limit_memory())
    model = model_for(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    scheduler = None
    if name == "ParamSchedulerHook":
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    runner = Runner(
        model,
        **data_for(name),
        optimizer=optimizer,
        scheduler=scheduler,
        max_iters=LENGTH,
        work_dir=folder,
        seed=1,
        resume=resume,
        hooks=hooks,
        drop_hooks=[] if name == "ReportHook" else ["ReportHook"],
    )
    try:
        runner.train()
    except Interrupted:
        torch.rand(3)  # Something else draws random numbers in between.
        runner.train()
    return Trained(config, tested, bystander, initial, runner, losses)


def cut() -> LambdaHook:
    """Return a hook that saves and stops a run before its end."""

    def stop(runner: Any) -> None:
        if runner.iter + 1 == CUT:
            runner.request_save()
            runner.request_stop("cut")

    return LambdaHook(after_train_iter=stop)


def interrupt() -> LambdaHook:
    """Return a hook that interrupts a run once, as Ctrl-C does."""
    sent: list[int] = []

    def send(runner: Any) -> None:
        if runner.iter + 1 == CUT and not sent:
            sent.append(CUT)
            signal.raise_signal(signal.SIGINT)

    return LambdaHook(after_train_iter=send)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Trained]:
    """Return a function that trains with a hook, once for all tests of this module."""
    known: dict[str, Trained] = {}

    def train(name: str) -> Trained:
        if name not in known:
            known[name] = run(tmp_path_factory.mktemp(name), name)
        return known[name]

    return train


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Trained]:
    """Return a function that trains as with a hook, but without it, once for each model."""
    known: dict[type[nn.Module], Trained] = {}

    def train(name: str) -> Trained:
        kind = type(model_for(name))
        if kind not in known:
            known[kind] = run(tmp_path_factory.mktemp("plain"), name, without=True)
        return known[kind]

    return train


@pytest.mark.parametrize("name", cases(sorted(CLASSES)))
def test_training_with_a_stop_and_a_resume_equals_training_through(
    name: str, trained: Callable[[str], Trained], tmp_path: Path
) -> None:
    straight = trained(name)
    first = run(tmp_path, name, cut())
    resumed = run(tmp_path, name, resume="auto")
    assert first.runner.iter < straight.runner.iter == resumed.runner.iter
    assert diff(straight.runner.model.state_dict(), resumed.runner.model.state_dict()) == []
    assert {**first.losses, **resumed.losses} == straight.losses


@pytest.mark.parametrize("name", cases(sorted(CLASSES)))
def test_training_that_is_interrupted_and_continued_equals_training_through(
    name: str, trained: Callable[[str], Trained], tmp_path: Path
) -> None:
    straight = trained(name)
    continued = run(tmp_path, name, interrupt())
    assert diff(straight.runner.model.state_dict(), continued.runner.model.state_dict()) == []
    assert continued.losses == straight.losses


@pytest.mark.parametrize("name", cases(sorted(CLASSES)))
def test_all_of_its_state_changes_in_training_and_comes_back(
    name: str, trained: Callable[[str], Trained]
) -> None:
    result = trained(name)
    check_state_comes_back(result.hook, partial(HOOKS.build, result.config))


@pytest.mark.parametrize("name", cases(sorted(CLASSES)))
def test_another_instance_keeps_its_own_state(name: str, trained: Callable[[str], Trained]) -> None:
    result = trained(name)
    assert diff(result.bystander.state_dict(), result.initial) == []


@pytest.mark.parametrize("name", cases(sorted(CLASSES - ALTERS_TRAINING)))
def test_a_hook_that_only_observes_leaves_every_loss_and_weight_identical(
    name: str, trained: Callable[[str], Trained], plain: Callable[[str], Trained]
) -> None:
    watched, without = trained(name), plain(name)
    assert watched.losses == without.losses
    assert diff(watched.runner.model.state_dict(), without.runner.model.state_dict()) == []


@pytest.mark.parametrize("name", sorted(ALTERS_TRAINING))
def test_a_hook_that_alters_training_changes_a_loss_or_weight(
    name: str, trained: Callable[[str], Trained], plain: Callable[[str], Trained]
) -> None:
    altered, without = trained(name), plain(name)
    weights = diff(altered.runner.model.state_dict(), without.runner.model.state_dict())
    assert weights or altered.losses != without.losses


def check_state_comes_back(trained: BaseHook, build: Callable[[], BaseHook]) -> None:
    """Fail unless a new instance takes over all of a trained hook's state, as a copy."""
    saved = copy.deepcopy(trained.state_dict())
    fresh = build()
    unchanged = [key for key, value in saved.items() if not diff(value, fresh.state_dict()[key])]
    assert unchanged == [], "training has left these as they were, so nothing can be seen of them"
    fresh.load_state_dict(saved)
    assert diff(fresh.state_dict(), saved) == []
    shared = []
    for key, value in fresh.state_dict().items():
        if isinstance(value, (list, dict, set)) and value is saved[key]:
            shared.append(key)
    assert shared == [], "the hook would change the checkpoint that it was loaded from"


# The tests of state can fail.


@dataclass
class CountingHook(BaseHook):
    """A hook with a state."""

    counted: int = state(0)
    places: list[int] = state([])

    def after_train_iter(self, runner: Any) -> None:
        self.counted += 1
        self.places.append(runner.iter)


class ForgetfulHook(CountingHook):
    """A hook whose state is saved and never loaded."""

    def load_state_dict(self, state: Any) -> None: ...


class HalfForgetfulHook(CountingHook):
    """A hook that loads a part of its state."""

    def load_state_dict(self, state: Any) -> None:
        self.counted = state["counted"]


class SharingHook(CountingHook):
    """A hook that works on the lists of the checkpoint."""

    def load_state_dict(self, state: Any) -> None:
        self.__dict__.update(state)


class CommonListHook(BaseHook):
    """A hook whose instances have one list together."""

    places: ClassVar[list[int]] = []

    def after_train_iter(self, runner: Any) -> None:
        self.places.append(runner.iter)

    def state_dict(self) -> dict[str, Any]:
        return {"places": self.places}


class IdleHook(CountingHook):
    """A hook whose state no training changes."""

    def after_train_iter(self, runner: Any) -> None: ...


def test_a_state_that_comes_back_passes(tmp_path: Path) -> None:
    hook = CountingHook()
    make_runner(tmp_path, hook).train()
    check_state_comes_back(hook, CountingHook)


@pytest.mark.parametrize("cls", [ForgetfulHook, HalfForgetfulHook, SharingHook, IdleHook])
def test_a_state_that_does_not_come_back_is_found(cls: type[BaseHook], tmp_path: Path) -> None:
    hook = cls()
    make_runner(tmp_path, hook).train()
    with pytest.raises(AssertionError):
        check_state_comes_back(hook, cls)


def test_state_that_instances_share_is_found(tmp_path: Path) -> None:
    bystander = CommonListHook()
    initial = copy.deepcopy(bystander.state_dict())
    make_runner(tmp_path, CommonListHook()).train()
    assert diff(bystander.state_dict(), initial) != []
