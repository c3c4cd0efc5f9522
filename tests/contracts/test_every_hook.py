"""What holds for every registered hook, whoever wrote it."""

from __future__ import annotations

import inspect
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline import HOOKS, Runner, make_loader
from hookline.engine import SITE_NAMES, BaseHook
from hookline.engine.registration import HookHost
from hookline.errors import ConfigError
from hookline.signature import parameters
from tests.contracts.minimal import MINIMAL, NEEDS_MORE, OBSERVERS, OF_FUNCTIONS

HOOK_NAMES = [name for name, cls in HOOKS.items() if cls.__module__.startswith("hookline.hooks") and name not in OF_FUNCTIONS]
TRAINABLE = [name for name in HOOK_NAMES if name not in NEEDS_MORE]
DOCS = Path(__file__).parents[2] / "docs"


def minimal(name: str) -> dict[str, Any]:
    return {"type": name, **MINIMAL.get(name, {})}


@pytest.mark.parametrize("name", HOOK_NAMES)
def test_it_builds_from_its_minimal_config_and_registers(name):
    host = HookHost()
    hook = host.register_hook(minimal(name))
    assert hook.name == type(hook).__name__


@pytest.mark.parametrize("name", HOOK_NAMES)
def test_an_unknown_parameter_is_refused_with_a_suggestion(name):
    with pytest.raises(ConfigError, match=r"unknown parameter 'priorityy'; did you mean 'priority'\?"):
        HOOKS.build({**minimal(name), "priorityy": 1})


@pytest.mark.parametrize("name", HOOK_NAMES)
def test_it_has_a_docstring_and_an_entry_in_the_documents(name):
    cls = HOOKS.get(name)
    assert cls.__doc__
    first = inspect.getdoc(cls).splitlines()[0]
    assert first.endswith((".", ":")), first
    assert any(name in page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")), f"no page in docs/ names {name}"


@pytest.mark.parametrize("name", HOOK_NAMES)
def test_it_overrides_no_site_with_a_signature_that_hides_the_runner(name):
    for site in SITE_NAMES:
        method = HOOKS.build(minimal(name)).site_method(site)
        assert method is None or "self" not in inspect.signature(method).parameters


def data(seed: int = 0) -> torch.utils.data.TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(3, (42,), generator=generator)
    return torch.utils.data.TensorDataset(torch.randn(42, 1, 8, 8, generator=generator), y)


def run(folder: Path, *hooks: Any, **parts: Any) -> Runner:
    torch.manual_seed(1)
    body = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(144, 3)
    model = nn.Sequential(*body)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    parts = {"max_iters": 16, **parts}
    runner = Runner(
        model,
        train_loader=make_loader(data(), batch_size=6, shuffle=True, seed=2),
        val_loader=make_loader(data(1), batch_size=21),
        optimizer=optimizer,
        loss_fn=nn.CrossEntropyLoss(),
        metrics=["accuracy"],
        work_dir=folder,
        seed=1,
        hooks=hooks,
        **parts,
    )
    runner.train()
    return runner


class StopAt(BaseHook):
    def after_train_iter(self, runner):
        if runner.iter + 1 == 9:
            runner.request_save()
            runner.request_stop("cut")


@pytest.mark.parametrize("name", TRAINABLE)
def test_stopped_and_resumed_it_ends_as_if_it_had_not_been(name, tmp_path):
    logging.getLogger("hookline").setLevel(logging.ERROR)
    straight = run(tmp_path / "straight", minimal(name))
    run(tmp_path / "cut", minimal(name), StopAt())
    resumed = run(tmp_path / "cut", minimal(name), resume="auto")
    assert resumed.iter == straight.iter
    for (key, one), two in zip(straight.model.state_dict().items(), resumed.model.state_dict().values(), strict=True):
        assert torch.equal(one, two), key


@pytest.mark.parametrize("name", [name for name in TRAINABLE if name in OBSERVERS])
def test_a_hook_that_only_observes_leaves_the_weights_as_they_would_be(name, tmp_path):
    logging.getLogger("hookline").setLevel(logging.ERROR)
    without = run(tmp_path / "without")
    watched = run(tmp_path / "with", minimal(name))
    for (key, one), two in zip(without.model.state_dict().items(), watched.model.state_dict().values(), strict=True):
        assert torch.equal(one, two), key


@pytest.mark.parametrize("name", HOOK_NAMES)
def test_two_instances_share_no_state_and_state_goes_round(name):
    one, two = HOOKS.build(minimal(name)), HOOKS.build(minimal(name))
    state = one.state_dict()
    for key, value in state.items():
        if isinstance(value, (list, dict)):
            assert value is not two.state_dict()[key]
    two.load_state_dict(state)
    assert repr(two.state_dict()) == repr(state)


@pytest.mark.parametrize("name", HOOK_NAMES)
def test_every_parameter_has_a_type_so_that_a_config_can_be_checked(name):
    cls = HOOKS.get(name)
    known, open_ended, hints = parameters(HOOKS.signature_of(cls))
    assert not open_ended
    assert set(known) <= set(hints), set(known) - set(hints)
