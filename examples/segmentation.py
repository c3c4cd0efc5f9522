"""Circles, squares and triangles, pixel by pixel: a plain PyTorch loop, and the same with Hookline.

python examples/segmentation.py            both, and the share of pixels that they get right
python examples/segmentation.py --quick    two epochs
"""

from __future__ import annotations

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader

from hookline import Runner
from hookline.data import DATASETS
from hookline.models import MODELS

EPOCHS = 6


def data(split: str):
    return DATASETS.build(
        {
            "type": "shapes_segmentation",
            "split": split,
            "size": 48,
            "count": 256 if split == "train" else 64,
        }
    )


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return MODELS.build({"type": "segmenter", "in_channels": 3, "num_classes": 4})


def plain(epochs: int) -> float:
    train, val = DataLoader(data("train"), 16, shuffle=True), DataLoader(data("val"), 32)
    model = make_model()
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        for images, masks in train:
            loss = nn.functional.cross_entropy(model(images), masks)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            average.update_parameters(model)
        print(f"epoch {epoch + 1}: loss of the last batch {loss.item():.3f}")
    average.eval()
    with torch.no_grad():
        right = [(average(images).argmax(1) == masks).float().mean() for images, masks in val]
    return float(torch.stack(right).mean())


def hookline(epochs: int) -> float:
    """Train with averaged weights from a hook; validation uses them, checkpoints hold both."""
    model = make_model()
    runner = Runner(
        model,
        train_loader=DataLoader(data("train"), 16, shuffle=True),
        val_loader=DataLoader(data("val"), 32),
        optimizer=torch.optim.AdamW(model.parameters(), lr=3e-3),
        loss_fn=nn.CrossEntropyLoss(),
        metrics=["accuracy"],
        hooks=[
            {"type": "EMAHook", "momentum": 0.9},
            {"type": "SegVisualizationHook", "interval": 64, "max_samples": 4},
        ],
        max_epochs=epochs,
        work_dir="runs/segmentation",
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
