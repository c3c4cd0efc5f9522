"""Handwritten digits: a plain PyTorch loop, and the same with Hookline.

python examples/classification.py            both, and their accuracies
python examples/classification.py --quick    two epochs
"""

from __future__ import annotations

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader

from hookline import Runner
from hookline.data import DATASETS

EPOCHS = 12


def data(split: str):
    return DATASETS.build({"type": "digits", "split": split})


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)),
    )


def plain(epochs: int) -> float:
    """Train with a plain loop: no checkpoint, no resume, no log file."""
    train, val = DataLoader(data("train"), 64, shuffle=True), DataLoader(data("val"), 256)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(train))
    accuracy = 0.0
    for epoch in range(epochs):
        model.train()
        for images, labels in train:
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        model.eval()
        right = count = 0
        with torch.no_grad():
            for images, labels in val:
                right += int((model(images).argmax(1) == labels).sum())
                count += len(labels)
        accuracy = right / count
        print(f"epoch {epoch + 1}: accuracy {accuracy:.3f}")
    return accuracy


def hookline(epochs: int) -> float:
    """Train the same parts, with checkpoints, the best model, resume, logs and a report."""
    model = make_model()
    runner = Runner(
        model,
        train_loader=DataLoader(data("train"), 64, shuffle=True),
        val_loader=DataLoader(data("val"), 256),
        optimizer=torch.optim.AdamW(model.parameters(), lr=2e-3),
        loss_fn=nn.CrossEntropyLoss(),
        metrics=["accuracy"],
        hooks=[
            {"type": "CosineAnnealingLrUpdaterHook", "min_lr": 0.0, "by_epoch": False},
            {"type": "EarlyStoppingHook", "monitor": "accuracy", "patience": 5},
        ],
        max_epochs=epochs,
        work_dir="runs/classification",
    )
    runner.train()
    return runner.metrics["accuracy"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two epochs, to see that it runs")
    epochs = 2 if parser.parse_args().quick else EPOCHS
    print(f"plain {plain(epochs):.3f}, hookline {hookline(epochs):.3f}")
