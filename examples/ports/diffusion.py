"""A diffusion model of points on a spiral, sampled with averaged weights.

python examples/ports/diffusion.py

The port draws times and noise in `train_step`, and leaves the average to EMAHook.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from hookline import Runner
from hookline.hooks import EMAHook

EPOCHS = 20
TIMES = 100
SHARES = torch.cumprod(1 - torch.linspace(1e-4, 0.08, TIMES), 0)  # of the point, by time


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(4, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2)
        )

    def forward(self, points: Tensor, times: Tensor) -> Tensor:
        angle = times[:, None] * (math.pi / 2 / TIMES)
        return self.layers(torch.cat([points, angle.sin(), angle.cos()], 1))

    def loss(self, points: Tensor) -> Tensor:
        """Return the error of the predicted noise, at random times."""
        times = torch.randint(TIMES, (len(points),), device=points.device)
        noise = torch.randn_like(points)
        share = SHARES.to(points.device)[times, None]
        noisy = share.sqrt() * points + (1 - share).sqrt() * noise
        return nn.functional.mse_loss(self(noisy, times), noise)

    @torch.no_grad()
    def sample(self, count: int) -> Tensor:
        points = torch.randn(count, 2, generator=torch.Generator().manual_seed(0))
        for time in reversed(range(1, TIMES)):
            noise = self(points, torch.full((count,), time))
            clean = (points - (1 - SHARES[time]).sqrt() * noise) / SHARES[time].sqrt()
            points = SHARES[time - 1].sqrt() * clean + (1 - SHARES[time - 1]).sqrt() * noise
        return points


def make(kind: type[Denoiser]) -> tuple[Denoiser, torch.optim.Optimizer, DataLoader]:
    torch.manual_seed(0)
    model = kind()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    turn = 3 * torch.rand(1000, 1).sqrt() * math.pi
    points = TensorDataset(torch.cat([turn * turn.sin(), turn * turn.cos()], 1) / 5)
    return model, optimizer, DataLoader(points, 100, shuffle=True)


def plain(epochs: int = EPOCHS) -> tuple[nn.Module, torch.optim.Optimizer, list[float]]:
    model, optimizer, loader = make(Denoiser)
    average = copy.deepcopy(model)
    losses = []
    for _ in range(epochs):
        for (points,) in loader:
            loss = model.loss(points)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for mean, weight in zip(average.parameters(), model.parameters(), strict=True):
                    mean.lerp_(weight, 1 - 0.99)
            losses.append(loss.item())
    print("points of the average:", average.sample(3).tolist())
    return model, optimizer, losses


class SteppingDenoiser(Denoiser):
    def train_step(self, batch):
        (points,) = batch
        return {"loss": self.loss(points)}


def ported(work_dir: str = "runs/diffusion", epochs: int = EPOCHS, hooks=()) -> Runner:
    model, optimizer, loader = make(SteppingDenoiser)
    ema = EMAHook(momentum=0.99, warm_up=0)
    runner = Runner(
        model,
        train_loader=loader,
        optimizer=optimizer,
        hooks=[ema, *hooks],
        max_epochs=epochs,
        work_dir=work_dir,
        resume="auto",
    )
    runner.train()
    with ema.averaged():
        print("points of the average:", model.sample(3).tolist())
    return runner


if __name__ == "__main__":
    weights = plain()[0].state_dict()
    state = ported().model.state_dict()
    print("same weights:", all(torch.equal(state[name], each) for name, each in weights.items()))
