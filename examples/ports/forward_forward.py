"""Forward-forward learning: each layer has its own loss and optimizer; no backward pass runs
through the network.

python examples/ports/forward_forward.py

The port steps the optimizers of all layers in `train_step`, as a GAN does.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot, softplus
from torch.utils.data import DataLoader

from hookline import Runner
from hookline.data.digits import Digits

EPOCHS = 8
THRESHOLD = 2.0


class Layer(nn.Linear):
    """A layer whose goodness is the mean of its squared outputs."""

    def forward(self, inputs: Tensor) -> Tensor:
        scale = inputs.square().mean(1, keepdim=True).sqrt() + 1e-4
        return super().forward(inputs / scale).relu()

    def loss(self, right: Tensor, wrong: Tensor) -> Tensor:
        """Return a loss that is small if right inputs have more goodness than wrong ones."""
        goodness = self(torch.cat([right, wrong])).square().mean(1)
        good, bad = goodness.chunk(2)
        return softplus(torch.cat([THRESHOLD - good, bad - THRESHOLD])).mean()


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Layer(74, 128)
        self.second = Layer(128, 128)

    def layers(self) -> list[Layer]:
        return [self.first, self.second]

    def inputs(self, images: Tensor, labels: Tensor) -> Tensor:
        return torch.cat([images.flatten(1), one_hot(labels, 10).to(images.dtype)], 1)

    def forward(self, images: Tensor) -> Tensor:
        """Return the goodness of each label."""
        scores = []
        for label in range(10):
            hidden = self.inputs(images, torch.full((len(images),), label, device=images.device))
            score = torch.zeros(len(images), device=images.device)
            for layer in self.layers():
                hidden = layer(hidden)
                score += hidden.square().mean(1)
            scores.append(score)
        return torch.stack(scores, 1)


def make(kind: type[Network]):
    torch.manual_seed(0)
    model = kind()
    optimizers: dict[str, torch.optim.Optimizer] = {
        "first": torch.optim.Adam(model.first.parameters(), lr=3e-3),
        "second": torch.optim.Adam(model.second.parameters(), lr=3e-3),
    }
    train, val = Digits("train"), Digits("val")
    return model, optimizers, DataLoader(train, 64, shuffle=True), DataLoader(val, 256)


def wrong_labels(labels: Tensor) -> Tensor:
    return (labels + torch.randint_like(labels, 1, 10)) % 10


def plain(
    epochs: int = EPOCHS,
) -> tuple[nn.Module, dict[str, torch.optim.Optimizer], list[float]]:
    model, optimizers, train, val = make(Network)
    losses = []
    for epoch in range(epochs):
        for images, labels in train:
            right = model.inputs(images, labels)
            wrong = model.inputs(images, wrong_labels(labels))
            total = 0.0
            for layer, optimizer in zip(model.layers(), optimizers.values(), strict=True):
                loss = layer.loss(right, wrong)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                right, wrong = layer(right).detach(), layer(wrong).detach()
                total += loss.item()
            losses.append(total)
        with torch.no_grad():
            hits = [(model(images).argmax(1) == labels).double() for images, labels in val]
        print(f"epoch {epoch + 1}: accuracy {torch.cat(hits).mean():.4f}")
    return model, optimizers, losses


class SteppingNetwork(Network):
    def train_step(self, batch, optimizer):
        images, labels = batch
        right = self.inputs(images, labels)
        wrong = self.inputs(images, wrong_labels(labels))
        total = torch.zeros((), dtype=torch.float64, device=images.device)
        for layer, own in zip(self.layers(), optimizer.values(), strict=True):
            loss = layer.loss(right, wrong)
            own.zero_grad()
            loss.backward()
            own.step()
            right, wrong = layer(right).detach(), layer(wrong).detach()
            total += loss.detach()
        return {"loss": total}

    def val_step(self, batch):
        images, labels = batch
        return {"predictions": self(images), "targets": labels}


def ported(work_dir: str = "runs/forward_forward", epochs: int = EPOCHS, hooks=()) -> Runner:
    model, optimizers, train, val = make(SteppingNetwork)
    runner = Runner(
        model,
        train_loader=train,
        val_loader=val,
        optimizer=optimizers,
        metrics=["accuracy"],
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
