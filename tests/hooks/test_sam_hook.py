"""SAMHook, and closures of LBFGS: an iteration evaluates its batch several times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline.errors import ConfigError
from hookline.hooks import AmpOptimizerHook, GradientCumulativeOptimizerHook, SAMHook
from tests.helpers import batches, make_runner, small_model


def equal(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_sam_steps_with_the_gradient_of_the_perturbed_weights(tmp_path: Path) -> None:
    model = small_model()
    runner = make_runner(tmp_path, SAMHook(rho=0.1, grad_clip={"max_norm": 1.0}), model=model)
    runner.train()
    plain = small_model()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    parameters = list(plain.parameters())
    for _ in range(2):
        for inputs, targets in batches():
            nn.functional.cross_entropy(plain(inputs), targets).backward()
            norm = torch.nn.utils.get_total_norm([each.grad for each in parameters])
            old = [each.detach().clone() for each in parameters]
            with torch.no_grad():
                for each in parameters:
                    each += each.grad * (0.1 / (norm + 1e-12))
            optimizer.zero_grad()
            nn.functional.cross_entropy(plain(inputs), targets).backward()
            with torch.no_grad():
                for each, value in zip(parameters, old, strict=True):
                    each.copy_(value)
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad()
    assert equal(model, plain)
    assert runner.optimizer_steps == 8


def test_a_distance_of_zero_is_an_error() -> None:
    with pytest.raises(ConfigError):
        SAMHook(rho=0.0)


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_lbfgs_trains_as_by_hand(tmp_path: Path, line_search: str | None) -> None:
    model = small_model()
    options = {"max_iter": 4, "line_search_fn": line_search}
    optimizer = torch.optim.LBFGS(model.parameters(), **options)  # type: ignore[arg-type]
    runner = make_runner(tmp_path, model=model, optimizer=optimizer)
    runner.train()
    plain = small_model()
    by_hand = torch.optim.LBFGS(plain.parameters(), **options)  # type: ignore[arg-type]
    for _ in range(2):
        for inputs, targets in batches():

            def closure(inputs=inputs, targets=targets):
                by_hand.zero_grad()
                loss = nn.functional.cross_entropy(plain(inputs), targets)
                loss.backward()
                return loss

            by_hand.step(closure)
    assert equal(model, plain)
    assert runner.optimizer_steps == 8


class ClosureSAM(torch.optim.SGD):
    """SAM as an optimizer: it moves the weights, and calls the closure there."""

    def __init__(self, params: Any, rho: float, clears: bool) -> None:
        super().__init__(params, lr=0.1, momentum=0.9)
        self.rho = rho
        self.clears = clears  # whether it clears the gradients, or leaves that to the closure

    @torch.no_grad()
    def step(self, closure: Any) -> None:  # type: ignore[override]
        parameters = self.param_groups[0]["params"]
        norm = torch.nn.utils.get_total_norm([each.grad for each in parameters])
        old = [each.clone() for each in parameters]
        for each in parameters:
            each.add_(each.grad * (self.rho / norm))
        if self.clears:
            self.zero_grad()
        with torch.enable_grad():
            closure()
        for each, value in zip(parameters, old, strict=True):
            each.copy_(value)
        super().step()


@pytest.mark.parametrize("clears", [True, False])
def test_a_closure_that_is_called_at_other_weights_evaluates_the_batch_there(
    tmp_path: Path, clears: bool
) -> None:
    model = small_model()
    optimizer = ClosureSAM(model.parameters(), rho=0.1, clears=clears)
    make_runner(tmp_path, model=model, optimizer=optimizer).train()
    plain = small_model()
    by_hand = ClosureSAM(plain.parameters(), rho=0.1, clears=clears)
    for _ in range(2):
        for inputs, targets in batches():

            def closure(inputs=inputs, targets=targets):
                by_hand.zero_grad()
                loss = nn.functional.cross_entropy(plain(inputs), targets)
                loss.backward()
                return loss

            closure()
            by_hand.step(closure)
    assert equal(model, plain)


def test_a_closure_after_the_gradients_were_cleared_computes_them_again(tmp_path: Path) -> None:
    class Clearing(torch.optim.SGD):
        """Clears the gradients before the closure, as the closures of a plain loop do."""

        def step(self, closure: Any) -> None:  # type: ignore[override]
            self.zero_grad()
            with torch.enable_grad():
                closure()
            super().step()

    model, plain = small_model(), small_model()
    make_runner(tmp_path / "a", model=model, optimizer=Clearing(model.parameters(), lr=0.1)).train()
    by_hand = torch.optim.SGD(plain.parameters(), lr=0.1)
    make_runner(tmp_path / "b", model=plain, optimizer=by_hand).train()
    assert equal(model, plain)


@pytest.mark.parametrize(
    "hook", [GradientCumulativeOptimizerHook(cumulative_iters=2), AmpOptimizerHook(dtype="float16")]
)
def test_a_closure_cannot_be_accumulated_or_scaled(tmp_path: Path, hook: object) -> None:
    model = small_model()
    optimizer = torch.optim.LBFGS(model.parameters())
    with pytest.raises(ConfigError):
        make_runner(tmp_path, hook, model=model, optimizer=optimizer).train()  # type: ignore[arg-type]


def test_a_closure_runs_under_autocast_in_bfloat16(tmp_path: Path) -> None:
    model = small_model()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
    runner = make_runner(tmp_path, AmpOptimizerHook(), model=model, optimizer=optimizer)
    runner.train()
    assert runner.outputs["predictions"].dtype == torch.bfloat16
