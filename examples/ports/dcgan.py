"""A DCGAN that draws digits, with an average of its generator.

python examples/ports/dcgan.py

The port steps both optimizers in `train_step`. The average is a part of the model.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader

from hookline import BaseHook, Runner
from hookline.data.digits import Digits

EPOCHS = 8
NOISE = 16


class GAN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(
            nn.ConvTranspose2d(NOISE, 32, 2, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, 2, 1),
            nn.Sigmoid(),
        )
        self.critic = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(16, 32, 4, 2, 1, bias=False),
            nn.BatchNorm2d(32),
            nn.LeakyReLU(0.2),
            nn.Conv2d(32, 1, 2),
            nn.Flatten(0),
        )
        self.average = AveragedModel(self.generator, multi_avg_fn=get_ema_multi_avg_fn(0.99))


def make(kind: type[GAN]) -> tuple[GAN, dict[str, torch.optim.Optimizer], DataLoader]:
    torch.manual_seed(0)
    model = kind()
    optimizers: dict[str, torch.optim.Optimizer] = {
        name: torch.optim.Adam(getattr(model, name).parameters(), lr=1e-3, betas=(0.5, 0.99))
        for name in ("critic", "generator")
    }
    digits = Digits("train")
    return model, optimizers, DataLoader(digits, 64, shuffle=True)


def score(scores: Tensor, is_real: bool) -> Tensor:
    return binary_cross_entropy_with_logits(scores, torch.full_like(scores, float(is_real)))


def plain(
    epochs: int = EPOCHS,
) -> tuple[nn.Module, dict[str, torch.optim.Optimizer], list[float]]:
    model, optimizers, loader = make(GAN)
    losses = []
    for _ in range(epochs):
        for real, _ in loader:
            optimizers["critic"].zero_grad()
            score(model.critic(real), True).backward()
            fake = model.generator(torch.randn(len(real), NOISE, 1, 1))
            score(model.critic(fake.detach()), False).backward()
            optimizers["critic"].step()

            optimizers["generator"].zero_grad()
            loss = score(model.critic(fake), True)
            loss.backward()
            optimizers["generator"].step()
            model.average.update_parameters(model.generator)
            losses.append(loss.item())
    return model, optimizers, losses


class SteppingGAN(GAN):
    def train_step(self, batch, optimizer):
        real, _ = batch
        optimizer["critic"].zero_grad()
        real_loss = score(self.critic(real), True)
        real_loss.backward()
        fake = self.generator(torch.randn(len(real), NOISE, 1, 1, device=real.device))
        fake_loss = score(self.critic(fake.detach()), False)
        fake_loss.backward()
        optimizer["critic"].step()

        optimizer["generator"].zero_grad()
        loss = score(self.critic(fake), True)
        loss.backward()
        optimizer["generator"].step()
        self.average.update_parameters(self.generator)
        return {"loss": loss.detach(), "critic_loss": (real_loss + fake_loss).detach()}


class DrawHook(BaseHook):
    """Draw pictures from the same noise after each epoch."""

    def after_epoch(self, runner, model, events):
        generator = torch.Generator().manual_seed(0)  # leaves the random numbers of the training
        noise = torch.randn(8, NOISE, 1, 1, generator=generator).to(runner.device)
        model.average.eval()
        with torch.no_grad():
            events.put_image("generated", torch.cat(list(model.average(noise)), dim=2))
        model.average.train()


def ported(work_dir: str = "runs/dcgan", epochs: int = EPOCHS, hooks=()) -> Runner:
    model, optimizers, loader = make(SteppingGAN)
    runner = Runner(
        model,
        train_loader=loader,
        optimizer=optimizers,
        hooks=[DrawHook(), *hooks],
        max_epochs=epochs,
        work_dir=work_dir,
        resume="auto",
    )
    return runner.train()


if __name__ == "__main__":
    weights = plain()[0].state_dict()
    state = ported().model.state_dict()
    print("same weights:", all(torch.equal(state[name], each) for name, each in weights.items()))
