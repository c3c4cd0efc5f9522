"""Several optimizers, GANs and losses over tokens in two real processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.dist import jobs, optim_jobs
from tests.dist.processes import Job, run_job

pytestmark = pytest.mark.slow
CLIP = {
    "type": "GradientCumulativeOptimizerHook",
    "cumulative_iters": 2,
    "grad_clip": {"max_norm": 0.5},
}


def close(a: dict[str, Any], b: dict[str, Any], tolerance: float = 1e-5) -> bool:
    return all(torch.allclose(a[name], b[name], rtol=tolerance, atol=tolerance) for name in a)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_optimizers_step_as_in_one_process(tmp_path: Path, strategy: str) -> None:
    options = {"hooks": [CLIP], "max_epochs": 1}
    job = optim_jobs.train_with_two_optimizers
    (alone,) = run_job(1, job, tmp_path / "one", **options)
    both = run_job(2, job, tmp_path / strategy, strategy=strategy, **options)
    assert both[0]["steps"] == alone["steps"]
    # Muon computes in bfloat16, in which a different order of sums shows.
    assert close(both[0]["weights"], alone["weights"], 0.02)
    assert all(
        torch.equal(both[0]["weights"][name], both[1]["weights"][name]) for name in alone["weights"]
    )


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_clipping_over_two_optimizers_has_the_norm_of_one_process(
    tmp_path: Path, strategy: str
) -> None:
    clip = {"type": "OptimizerHook", "grad_clip": {"max_norm": 0.1}}
    options = {"hooks": [clip], "max_epochs": 1, "exact": True}
    job = optim_jobs.train_with_two_optimizers
    (alone,) = run_job(1, job, tmp_path / "one", **options)
    both = run_job(2, job, tmp_path / strategy, strategy=strategy, **options)
    (unclipped,) = run_job(1, job, tmp_path / "free", max_epochs=1, exact=True)
    assert not close(alone["weights"], unclipped["weights"], 1e-3)
    assert close(both[0]["weights"], alone["weights"])


def test_frozen_parameters_are_trained_later_on_all_ranks(tmp_path: Path) -> None:
    options = {"hooks": [{"type": "FreezeHook", "params": "0", "end": 1}], "max_epochs": 2}
    (alone,) = run_job(1, jobs.train, tmp_path / "one", **options)
    both = run_job(2, jobs.train, tmp_path / "two", **options)
    assert close(both[0]["weights"], alone["weights"])
    assert close(both[0]["weights"], both[1]["weights"], 0.0)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_modules_are_chosen_by_class_also_if_they_are_sharded(
    tmp_path: Path, strategy: str
) -> None:
    hooks = [
        {"type": "ActivationCheckpointHook", "modules": "Linear"},
        {"type": "FreezeHook", "params": "bias@Linear"},
    ]
    options = {"strategy": strategy, "max_epochs": 1}
    both = run_job(2, jobs.train, tmp_path / "both", hooks=hooks, **options)
    frozen = run_job(2, jobs.train, tmp_path / "frozen", hooks=hooks[1:], **options)
    initial = jobs.network().state_dict()
    assert close(both[0]["weights"], frozen[0]["weights"], 0.0)
    assert torch.equal(both[0]["weights"]["0.bias"], initial["0.bias"])
    assert not torch.equal(both[0]["weights"]["0.weight"], initial["0.weight"])


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_optimizers_resume_as_if_never_interrupted(tmp_path: Path, strategy: str) -> None:
    job = optim_jobs.train_with_two_optimizers
    options = {"strategy": strategy, "max_epochs": 2}
    straight = run_job(2, job, tmp_path / "straight", **options)
    stop = [{"type": "StopAtHook", "iter": 9}]
    run_job(2, job, tmp_path / "cut", hooks=stop, **options)
    resumed = run_job(2, job, tmp_path / "cut", resume="auto", **options)
    assert close(resumed[0]["weights"], straight[0]["weights"], 0.0)
    assert resumed[0]["steps"] == straight[0]["steps"]


def test_a_gan_that_steps_by_itself_trains_as_in_one_process(tmp_path: Path) -> None:
    # Even shares: a model that steps by itself does not weight an uneven last batch.
    options = {"batch_size": 2, "max_iters": 20, "max_epochs": None}
    (alone,) = run_job(1, optim_jobs.train_gan, tmp_path / "one", **options)
    both = run_job(2, optim_jobs.train_gan, tmp_path / "two", **options)
    assert close(both[0]["weights"], alone["weights"])
    assert close(both[0]["weights"], both[1]["weights"], 0.0)
    assert both[0]["steps"] == alone["steps"] == 20


def test_a_closure_evaluates_the_shares_of_all_ranks(tmp_path: Path) -> None:
    job = optim_jobs.train_with_lbfgs
    (alone,) = run_job(1, job, tmp_path / "one")
    both = run_job(2, job, tmp_path / "two")
    assert close(both[0]["weights"], alone["weights"], 1e-9)
    assert close(both[0]["weights"], both[1]["weights"], 0.0)
    assert both[0]["steps"] == alone["steps"]


@pytest.mark.parametrize("accumulate", [1, 4])
def test_every_token_counts_equally_over_accumulation_and_ranks(
    tmp_path: Path, accumulate: int
) -> None:
    first, second = run_job(2, optim_jobs.train_on_tokens, tmp_path, accumulate=accumulate)
    model = optim_jobs.TokenModel()
    batches = optim_jobs.token_batches(2 * accumulate)
    inputs = torch.cat([each for each, _ in batches])
    targets = torch.cat([each for _, each in batches])
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    logits = model.layer(inputs)
    nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    optimizer.step()
    assert close(first, model.state_dict(), 1e-12)
    assert close(first, second, 0.0)


NO_LIMIT = {"limit": 10**6}


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("limit", [{"limit": 7}, {"backward_limit": 7}])
def test_all_ranks_repeat_an_iteration_in_which_one_runs_out_of_memory(
    tmp_path: Path, limit: dict[str, int], accumulate: int
) -> None:
    job = optim_jobs.train_with_little_memory
    undisturbed = run_job(2, job, tmp_path / "plain", limits=None, accumulate=accumulate)
    limits = [NO_LIMIT, limit]
    both = run_job(2, job, tmp_path / "limited", limits=limits, accumulate=accumulate)
    assert [each["size"] for each in both] == [6, 6]  # 24, 12, 6
    assert both[0]["steps"] == undisturbed[0]["steps"]
    assert close(both[0]["weights"], undisturbed[0]["weights"], 1e-12)
    assert close(both[0]["weights"], both[1]["weights"], 0.0)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (optim_jobs.train_with_little_memory, {"limits": [NO_LIMIT] * 2}),
        (optim_jobs.train_with_lbfgs, {}),
    ],
)
def test_what_a_sharded_model_cannot_do_is_an_error(
    tmp_path: Path, function: Callable[..., Any], options: dict[str, Any]
) -> None:
    job = Job(2, function, tmp_path, strategy="fsdp", **options).wait()
    assert len(job.errors()) == 2
    assert all("ConfigError" in error for error in job.errors())
