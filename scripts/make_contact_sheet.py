"""Make docs/images/pictures.png: one picture of each kind, out of real runs.

    python scripts/make_contact_sheet.py [--runs FOLDER]

It trains the three demos and a small transformer on the digits, with all hooks that draw; that takes a few minutes.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from hookline import Runner, load_config
from hookline.visual.canvas import blank
from hookline.visual.render import render

ROOT = Path(__file__).parents[1]
COLUMNS, WIDTH, GAP, TITLE = 3, 470, 14, 24

# Title, run, folder of the pictures, and which of them.
SHEET = (
    ("VisualizationHook", "digits", "VisualizationHook/val", 0),
    ("DetVisualizationHook", "shapes_detection", "DetVisualizationHook/train", -1),
    ("SegVisualizationHook", "shapes_segmentation", "SegVisualizationHook/train", 2),
    ("FeatureMapHook", "digits", "FeatureMapHook/features.0", -1),
    ("AttentionMapHook", "transformer", "AttentionMapHook/layer.self_attn", -1),
    ("CAMHook", "digits", "CAMHook/val", -1),
    ("SaliencyHook", "digits", "SaliencyHook/val", -1),
    ("GradientFlowHook", "digits", "GradientFlowHook", -1),
    ("GradientFlowHook: over training", "digits", "GradientFlowHook/history", -1),
    ("GradientFlowHook: histograms", "digits", "GradientFlowHook/histograms", -1),
)


class Transformer(nn.Module):
    """Looks at an 8x8 digit pixel by pixel, so that its attention can be seen finely."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 1, 32))
        self.places = nn.Parameter(torch.randn(1, 65, 32) * 0.1)
        self.embed = nn.Linear(1, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        tokens = self.embed(images.flatten(1)[:, :, None])
        tokens = torch.cat([self.token.expand(len(tokens), -1, -1), tokens], 1) + self.places
        return self.head(self.layer(tokens)[:, 0])


def train(name: str, folder: Path) -> None:
    """One of the runs, with pictures more often than by default."""
    if name == "transformer":
        pictures = [{"type": "AttentionMapHook", "frequency": 100}]
        config = load_config(ROOT / "configs" / "digits.yaml", [f"work_dir={folder}", "training.epochs=15", "optimizer.lr=3e-3"])
        config["hooks"], config["model"] = pictures, {"type": "cnn", "width": 4}
        parts = Runner.from_config(config)
        torch.manual_seed(0)
        model = Transformer()
        loaders = {"train_loader": parts.train_loader, "val_loader": parts.val_loader}
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        Runner(model, optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), hooks=pictures, work_dir=folder, max_epochs=15, **loaders).train()
        return
    config = load_config(ROOT / "configs" / f"{name}.yaml", [f"work_dir={folder}"])
    if name == "digits":
        kinds = ("LoggerHook", "CheckpointHook")
        config["hooks"] = [
            *(hook for hook in config["hooks"] if hook["type"] in kinds),
            {"type": "VisualizationHook", "max_samples": 12, "interval": 100},
            {"type": "FeatureMapHook", "layers": ["features.0"]},
            {"type": "GradientFlowHook", "frequency": 10},
            {"type": "CAMHook", "interval": 100, "max_samples": 6},
            {"type": "SaliencyHook", "interval": 100, "max_samples": 3},
        ]
    else:
        config["hooks"][-1]["max_samples"] = 2
    Runner.from_config(config).train()


def sheet(runs: Path) -> np.ndarray:
    """All pictures below their titles, in columns that are filled where there is most room."""
    cells = []
    for title, run, folder, which in SHEET:
        path = sorted((runs / run / "visualizations" / folder).glob("step_*.png"))[which]
        image = Image.open(path).convert("RGB")
        if image.width <= WIDTH // 2:
            image = image.resize((2 * image.width, 2 * image.height), Image.Resampling.NEAREST)
        if image.width > WIDTH:
            image = image.resize((WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS)
        cells.append((title, np.asarray(image)))
    heights, places = [GAP] * COLUMNS, []
    for _, pixels in cells:
        column = heights.index(min(heights))
        places.append((GAP + column * (WIDTH + GAP), heights[column]))
        heights[column] += TITLE + pixels.shape[0] + GAP
    picture = blank(max(heights), GAP + COLUMNS * (WIDTH + GAP), (246, 246, 248))
    for (title, pixels), (left, top) in zip(cells, places, strict=True):
        picture.write(left, top + TITLE / 2, title, 15)
        picture.paste(pixels, left, top + TITLE)
    return render(picture, "matplotlib")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, help="keep the runs here, and use those that are there already")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with tempfile.TemporaryDirectory() as temporary:
        runs = arguments.runs or Path(temporary)
        for name in dict.fromkeys(run for _, run, _, _ in SHEET):
            if not (runs / name).exists():
                train(name, runs / name)
        pixels = (sheet(runs).astype(int) + 4) // 8 * 8  # 32 shades of each colour halve the file and look the same
        image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    path = ROOT / "docs" / "images" / "pictures.png"
    image.save(path, optimize=True)
    print(f"{path}: {image.width} x {image.height}, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
