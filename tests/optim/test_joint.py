"""Several optimizers that step as one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from hookline.errors import ConfigError
from hookline.hooks import AmpOptimizerHook, CosineAnnealingLrUpdaterHook, OptimizerHook
from hookline.optim.joint import as_one, needs_closure
from tests.helpers import batches, make_runner, small_model


def two(model: nn.Module) -> dict[str, torch.optim.Optimizer]:
    weights = [each for each in model.parameters() if each.ndim == 2]
    biases = [each for each in model.parameters() if each.ndim == 1]
    return {
        "weights": torch.optim.SGD(weights, lr=0.1, momentum=0.9),
        "biases": torch.optim.Adam(biases, lr=0.05),
    }


def test_two_optimizers_step_together_after_clipping_over_both(tmp_path: Path) -> None:
    model = small_model()
    hook = OptimizerHook(grad_clip={"max_norm": 0.05})
    runner = make_runner(tmp_path, hook, model=model, optimizer=two(model))
    runner.train()
    plain = small_model()
    optimizers = two(plain)
    for _ in range(2):
        for inputs, targets in batches():
            nn.functional.cross_entropy(plain(inputs), targets).backward()
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.05)
            for optimizer in optimizers.values():
                optimizer.step()
                optimizer.zero_grad()
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), plain.parameters(), strict=True)
    )
    assert runner.optimizer_steps == 8


def test_an_infinite_gradient_skips_the_step_of_both(tmp_path: Path) -> None:
    model = small_model()
    before = [each.detach().clone() for each in model.parameters()]
    optimizers = two(model)

    hook = AmpOptimizerHook(dtype="float16")
    handle = model[0].bias.register_hook(lambda grad: grad * float("inf"))
    runner = make_runner(tmp_path, hook, model=model, optimizer=optimizers, max_iters=1)
    runner.train()
    handle.remove()
    assert runner.optimizer_steps == 0
    assert hook.skipped_steps == 1
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))


def test_schedules_act_on_the_groups_of_both(tmp_path: Path) -> None:
    model = small_model()
    optimizers = two(model)
    schedule = CosineAnnealingLrUpdaterHook(min_lr=0.0, by_epoch=False)
    make_runner(tmp_path, schedule, model=model, optimizer=optimizers).train()
    rates = [optimizers[name].param_groups[0]["lr"] for name in ("weights", "biases")]
    assert rates[0] == pytest.approx(2 * rates[1])
    assert rates[0] < 0.01


def test_a_parameter_of_two_optimizers_is_an_error_before_training(tmp_path: Path) -> None:
    model = small_model()
    optimizers = {**two(model), "again": torch.optim.SGD(model[0].parameters(), lr=0.1)}
    with pytest.raises(ConfigError):
        make_runner(tmp_path, model=model, optimizer=optimizers).train()


def test_an_optimizer_that_needs_a_closure_is_recognized() -> None:
    model = small_model()
    assert needs_closure(torch.optim.LBFGS(model.parameters()))
    assert not needs_closure(torch.optim.SGD(model.parameters(), lr=0.1))
    assert not needs_closure(as_one(two(model)))
