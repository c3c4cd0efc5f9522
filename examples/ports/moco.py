"""Contrastive learning with a momentum encoder and a queue of keys, as in MoCo.

python examples/ports/moco.py

The port has the second encoder, the queue and its end in the model, so that checkpoints have them.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, Dataset

from hookline import Runner
from hookline.data.digits import Digits

EPOCHS = 6
SIZE, FEATURES, TEMPERATURE = 256, 16, 0.2


class TwoViews(Dataset):
    """Two random views of each digit."""

    def __init__(self) -> None:
        self.digits = Digits("train")

    def __len__(self) -> int:
        return len(self.digits)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        image = self.digits[index][0]
        return self.view(image), self.view(image)

    def view(self, image: Tensor) -> Tensor:
        shift = torch.randint(-1, 2, (2,)).tolist()
        return image.roll(shift, (1, 2)) + 0.1 * torch.randn(image.shape)


class MoCo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, FEATURES)
        )
        self.key_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.queue: Tensor
        self.end: Tensor
        self.register_buffer("queue", normalize(torch.randn(SIZE, FEATURES)))
        self.register_buffer("end", torch.zeros((), dtype=torch.int64))

    def loss(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the loss of a pair of views, and queue its keys."""
        queries = normalize(self.encoder(queries))
        with torch.no_grad():
            pairs = zip(self.key_encoder.parameters(), self.encoder.parameters(), strict=True)
            for mean, weight in pairs:
                mean.lerp_(weight, 0.01)
            keys = normalize(self.key_encoder(keys))
        positive = (queries * keys).sum(1, keepdim=True)
        negative = queries @ self.queue.clone().t()
        with torch.no_grad():
            places = (self.end + torch.arange(len(keys), device=keys.device)) % SIZE
            self.queue[places] = keys
            self.end.copy_((self.end + len(keys)) % SIZE)
        scores = torch.cat([positive, negative], 1) / TEMPERATURE
        return cross_entropy(scores, scores.new_zeros(len(scores), dtype=torch.int64))


def make(kind: type[MoCo]) -> tuple[MoCo, torch.optim.Optimizer, DataLoader]:
    torch.manual_seed(0)
    model = kind()
    optimizer = torch.optim.SGD(
        model.encoder.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4
    )
    return model, optimizer, DataLoader(TwoViews(), 64, shuffle=True, drop_last=True)


def plain(epochs: int = EPOCHS) -> tuple[nn.Module, torch.optim.Optimizer, list[float]]:
    model, optimizer, loader = make(MoCo)
    scheduler = CosineAnnealingLR(optimizer, epochs)
    losses = []
    for _ in range(epochs):
        for queries, keys in loader:
            loss = model.loss(queries, keys)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    return model, optimizer, losses


class SteppingMoCo(MoCo):
    def train_step(self, batch):
        return {"loss": self.loss(*batch)}


def ported(work_dir: str = "runs/moco", epochs: int = EPOCHS, hooks=()) -> Runner:
    model, optimizer, loader = make(SteppingMoCo)
    runner = Runner(
        model,
        train_loader=loader,
        optimizer=optimizer,
        scheduler=CosineAnnealingLR(optimizer, epochs),
        hooks=hooks,
        max_epochs=epochs,
        work_dir=work_dir,
        resume="auto",
    )
    return runner.train()


if __name__ == "__main__":
    weights = plain()[0].state_dict()
    state = ported().model.state_dict()
    print("same weights:", all(torch.equal(state[name], each) for name, each in weights.items()))
