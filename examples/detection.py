"""Finding circles, squares and triangles: a plain PyTorch loop, and the same with Hookline.

python examples/detection.py            both, and their average precisions
python examples/detection.py --quick    two epochs
"""

from __future__ import annotations

import argparse
from typing import Literal

import torch
from torch.utils.data import DataLoader

from hookline import Runner
from hookline.data.shapes import ShapesDetection
from hookline.models.detector import Detector

EPOCHS = 8


def data(split: Literal["train", "val"]) -> ShapesDetection:
    return ShapesDetection(split=split, size=48, count=384 if split == "train" else 96)


def make_model() -> Detector:
    torch.manual_seed(0)
    return Detector(num_classes=3, width=24)


def plain(epochs: int) -> float:
    train = DataLoader(data("train"), 16, shuffle=True)
    val_data = data("val")
    val = DataLoader(val_data, 32)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(train))
    for epoch in range(epochs):
        model.train()
        for images, targets in train:
            loss = model.loss(model(images), targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
        print(f"epoch {epoch + 1}: loss of the last batch {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        found = [one for images, _ in val for one in model.decode(model(images))]
    return val_data.evaluate(found)["ap50"]


def hookline(epochs: int) -> float:
    """Train a model with a `train_step`; the data set evaluates, and a hook draws predictions."""
    model = make_model()
    runner = Runner(
        model,
        train_loader=DataLoader(data("train"), 16, shuffle=True),
        val_loader=DataLoader(data("val"), 32),
        optimizer=torch.optim.AdamW(model.parameters(), lr=3e-3),
        hooks=[
            {"type": "OptimizerHook", "grad_clip": {"max_norm": 10.0}},
            {"type": "CosineAnnealingLrUpdaterHook", "min_lr": 0.0, "by_epoch": False},
            {"type": "CheckpointHook", "best_metric": "ap50", "max_keep_ckpts": 1},
            {"type": "DetVisualizationHook", "interval": 96, "max_samples": 4},
        ],
        max_epochs=epochs,
        work_dir="runs/detection",
    )
    runner.train()
    return runner.metrics["ap50"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two epochs, to see that it runs")
    epochs = 2 if parser.parse_args().quick else EPOCHS
    print(f"plain {plain(epochs):.3f}, hookline {hookline(epochs):.3f}")
