"""A GAN that learns to write digits: a plain PyTorch loop, and the same with Hookline.

python examples/gan.py            both, and the losses of their critics
python examples/gan.py --quick    two epochs
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import softplus
from torch.utils.data import DataLoader

from hookline import BaseHook, Runner
from hookline.data import DATASETS

EPOCHS = 30
NOISE = 16


class GAN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(
            nn.Linear(NOISE, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.Sigmoid(),
            nn.Unflatten(1, (1, 8, 8)),
        )
        self.critic = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1)
        )

    def losses(self, real: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss of the critic, and the generated pictures."""
        fake = self.generator(torch.randn(len(real), NOISE, device=real.device))
        real_loss = softplus(-self.critic(real)).mean()
        fake_loss = softplus(self.critic(fake.detach())).mean()
        return real_loss + fake_loss, fake

    def train_step(self, batch, optimizer):
        """Step both optimizers. Hookline calls this method in place of `forward`."""
        critic_loss, fake = self.losses(batch[0])
        step(optimizer["critic"], critic_loss)
        loss = softplus(-self.critic(fake)).mean()
        step(optimizer["generator"], loss)
        return {"loss": loss.detach(), "critic_loss": critic_loss.detach()}


def step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def make() -> tuple[GAN, dict[str, torch.optim.Optimizer], DataLoader]:
    torch.manual_seed(0)
    model = GAN()
    optimizers: dict[str, torch.optim.Optimizer] = {
        name: torch.optim.Adam(getattr(model, name).parameters(), lr=1e-3, betas=(0.5, 0.99))
        for name in ("generator", "critic")
    }
    digits = DATASETS.build({"type": "digits", "split": "train"})
    return model, optimizers, DataLoader(digits, 64, shuffle=True)


def plain(epochs: int) -> float:
    model, optimizers, loader = make()
    for epoch in range(epochs):
        for real, _ in loader:
            critic_loss, fake = model.losses(real)
            step(optimizers["critic"], critic_loss)
            step(optimizers["generator"], softplus(-model.critic(fake)).mean())
        print(f"epoch {epoch + 1}: loss of the critic {critic_loss.item():.3f}")
    return critic_loss.item()


@dataclass
class SamplesHook(BaseHook):
    """Draw pictures from the same noise every `interval` epochs."""

    interval: int = 5

    def before_train(self, runner):
        generator = torch.Generator().manual_seed(0)
        self.noise = torch.randn(16, NOISE, generator=generator).to(runner.device)

    def after_epoch(self, runner, model, events):
        if self.every_n_epochs(runner, self.interval):
            with torch.no_grad():
                pictures = model.generator(self.noise)
            events.put_image("generated", torch.cat(list(pictures), dim=2))


def hookline(epochs: int) -> float:
    """Train with both optimizers in the checkpoints, so that a killed run resumes exactly."""
    model, optimizers, loader = make()
    runner = Runner(
        model,
        train_loader=loader,
        optimizer=optimizers,
        hooks=[SamplesHook()],
        max_epochs=epochs,
        work_dir="runs/gan",
    )
    runner.train()
    return float(runner.outputs["critic_loss"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two epochs, to see that it runs")
    epochs = 2 if parser.parse_args().quick else EPOCHS
    print(f"plain {plain(epochs):.3f}, hookline {hookline(epochs):.3f}")
