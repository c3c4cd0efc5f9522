"""Jobs of several processes with several optimizers, GANs, and losses over tokens."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import TensorDataset

from hookline import Runner, make_loader
from hookline.hooks import GradientCumulativeOptimizerHook, MicroBatchHook
from tests.dist.jobs import data, network, weights
from tests.dist.jobs import runner as make_runner
from tests.optim.small_memory import Small, small_batches


def two_optimizers(model: nn.Module) -> dict[str, torch.optim.Optimizer]:
    """Return Muon for the matrices and AdamW for the rest."""
    matrices = [each for each in model.parameters() if each.ndim == 2]
    rest = [each for each in model.parameters() if each.ndim != 2]
    return {
        "matrices": torch.optim.Muon(matrices, lr=0.02),
        "rest": torch.optim.AdamW(rest, lr=0.01),
    }


def two_exact_optimizers(model: nn.Module) -> dict[str, torch.optim.Optimizer]:
    """Return two optimizers that compute in float32."""
    first, *rest = model.parameters()
    return {
        "first": torch.optim.SGD([first], lr=0.1, momentum=0.9),
        "rest": torch.optim.SGD(rest, lr=0.02),
    }


def train_with_two_optimizers(folder: Path, exact: bool = False, **options: Any) -> dict[str, Any]:
    model = network()
    optimizers = two_exact_optimizers(model) if exact else two_optimizers(model)
    run = make_runner(folder, model=model, optimizer=optimizers, **options)
    run.train()
    return {"weights": weights(run), "steps": run.optimizer_steps}


def train_with_lbfgs(folder: Path, **options: Any) -> dict[str, Any]:
    """Train in float64: the steps amplify differences."""
    model = network().double()
    inputs, targets = data().tensors
    samples = TensorDataset(inputs.double(), targets)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    run = make_runner(
        folder,
        model=model,
        optimizer=torch.optim.LBFGS(model.parameters(), max_iter=3),
        train_loader=make_loader(samples, batch_size=16 // world, shuffle=True, seed=3),
        val_loader=None,
        metrics=None,
        max_epochs=2,
        **options,
    )
    run.train()
    return {"weights": weights(run), "steps": run.optimizer_steps}


class Gan(nn.Module):
    """Steps two optimizers in turn, each with its own backward pass."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.generator = nn.Linear(8, 8)
        self.critic = nn.Linear(8, 1)

    def train_step(self, batch: Any, optimizers: Any) -> dict[str, Any]:
        real = batch[0]
        fake = self.generator(real)
        critic_loss = self.critic(fake.detach()).mean() - self.critic(real).mean()
        optimizers["critic"].zero_grad()
        critic_loss.backward()
        optimizers["critic"].step()
        loss = -self.critic(fake).mean()
        optimizers["generator"].zero_grad()
        loss.backward()
        optimizers["generator"].step()
        return {"loss": loss.detach(), "num_samples": len(real)}


def train_gan(folder: Path, **options: Any) -> dict[str, Any]:
    model = Gan()
    optimizers = {
        "generator": torch.optim.SGD(model.generator.parameters(), lr=0.1),
        "critic": torch.optim.SGD(model.critic.parameters(), lr=0.1),
    }
    parts = {"val_loader": None, "metrics": None, "drop_hooks": ["EvalHook"], **options}
    run = make_runner(folder, model=model, optimizer=optimizers, **parts)
    run.train()
    return {"weights": weights(run), "steps": run.optimizer_steps}


def train_with_little_memory(
    folder: Path, limits: list[dict[str, int]] | None, accumulate: int = 1, **options: Any
) -> dict[str, Any]:
    """Train in float64; each rank runs out of memory above its own limits."""
    rank = int(os.environ.get("RANK", "0"))
    model = Small() if limits is None else Small(**limits[rank])
    owner = GradientCumulativeOptimizerHook(cumulative_iters=accumulate)
    hook = MicroBatchHook()
    samples = TensorDataset(*(torch.cat(parts) for parts in zip(*small_batches(5), strict=True)))
    run = Runner(
        model,
        train_loader=make_loader(samples, batch_size=24, shuffle=True, seed=3),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=2,
        work_dir=folder / "run",
        seed=1,
        hooks=[owner] if limits is None else [owner, hook],
        drop_hooks=["CheckpointHook", "ReportHook", "LoggerHook"],
        **options,
    )
    run.train()
    return {"weights": weights(run), "steps": run.optimizer_steps, "size": hook.size}


class TokenModel(nn.Module):
    """A model whose loss is the mean over the tokens that are not padding."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 3).double()

    def train_step(self, batch: Any) -> dict[str, Any]:
        inputs, targets = batch
        logits = self.layer(inputs)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return {"loss": loss, "num_tokens": (targets != -100).sum()}


def token_batches(count: int = 8) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return batches with 2 to 12 tokens each."""
    generator = torch.Generator().manual_seed(5)
    made = []
    for index in range(count):
        inputs = torch.randn(2, 6, 4, dtype=torch.float64, generator=generator)
        targets = torch.randint(3, (2, 6), generator=generator)
        targets.view(-1)[2 + (7 * index) % 11 :] = -100
        made.append((inputs, targets))
    return made


def train_on_tokens(folder: Path, accumulate: int = 4, **options: Any) -> dict[str, torch.Tensor]:
    """Train for one step on all batches together, spread over ranks and accumulation."""
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    model = TokenModel()
    hook = {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": accumulate}
    Runner(
        model,
        train_loader=token_batches(accumulate * world)[rank::world],
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        max_epochs=1,
        work_dir=folder / "run",
        hooks=[hook if accumulate > 1 else {"type": "OptimizerHook"}],
        drop_hooks=["CheckpointHook", "ReportHook", "LoggerHook"],
    ).train()
    return {name: value.clone() for name, value in model.state_dict().items()}
