"""Make docs/images/pictures.png and docs/images/hooks: pictures of each kind, from real runs.

    python scripts/make_contact_sheet.py [--runs FOLDER]

Trains the three demos and a small transformer with all hooks that draw, in a few minutes.
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
from hookline.visual.backends import render
from hookline.visual.canvas import Canvas, Raster, Text

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
COLUMNS = 3

# Lengths in pixels.
WIDTH = 470
GAP = 14
TITLE_HEIGHT = 24

# Title, run, folder of the pictures, and index of the picture.
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
    """A transformer with one token per pixel of an 8x8 digit, for fine attention maps."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1, 1, 32))
        self.positions = nn.Parameter(torch.randn(1, 65, 32) * 0.1)
        self.embed = nn.Linear(1, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        tokens = self.embed(images.flatten(1)[:, :, None])
        tokens = torch.cat([self.token.expand(len(tokens), -1, -1), tokens], 1) + self.positions
        return self.head(self.layer(tokens)[:, 0])


def train(name: str, folder: Path) -> None:
    """Run one of the trainings, with more pictures than by default."""
    if name == "transformer":
        train_transformer(folder)
        return
    config = load_config(ROOT / "hookline" / "configs" / f"{name}.yaml", [f"work_dir={folder}"])
    if name == "digits":
        config["hooks"] = [
            {"type": "LoggerHook"},
            {"type": "VisualizationHook", "max_samples": 12, "interval": 100},
            {"type": "FeatureMapHook", "layers": ["features.0"]},
            {"type": "GradientFlowHook", "frequency": 10},
            {"type": "CAMHook", "interval": 100, "max_samples": 6},
            {"type": "SaliencyHook", "interval": 100, "max_samples": 3},
        ]
    else:
        config["hooks"][-1]["max_samples"] = 2
    Runner.from_config(config).train()


def train_transformer(folder: Path) -> None:
    digits = Runner.from_config(load_config(ROOT / "hookline" / "configs" / "digits.yaml"))
    torch.manual_seed(0)
    model = Transformer()
    Runner(
        model,
        optimizer=torch.optim.AdamW(model.parameters(), lr=3e-3),
        loss_fn=nn.CrossEntropyLoss(),
        hooks=[{"type": "AttentionMapHook", "frequency": 100}],
        work_dir=folder,
        max_epochs=15,
        train_loader=digits.train_loader,
        val_loader=digits.val_loader,
    ).train()


def load_picture(path: Path) -> np.ndarray:
    """Load a picture, enlarged or shrunk to about the width of a column."""
    image = Image.open(path).convert("RGB")
    if image.width <= WIDTH // 2:
        image = image.resize((2 * image.width, 2 * image.height), Image.Resampling.NEAREST)
    if image.width > WIDTH:
        height = round(image.height * WIDTH / image.width)
        image = image.resize((WIDTH, height), Image.Resampling.LANCZOS)
    return np.asarray(image)


def picture_path(runs: Path, run: str, folder: str, index: int) -> Path:
    return sorted((runs / run / "visualizations" / folder).glob("step_*.png"))[index]


def save_hook_pictures(runs: Path) -> None:
    """Save the picture of each hook for its page."""
    for title, *place in SHEET:
        if ":" not in title:
            save_image(load_picture(picture_path(runs, *place)), IMAGES / "hooks" / f"{title}.png")


def save_image(pixels: np.ndarray, path: Path) -> None:
    """Save with 32 shades of each color, which halve the size of the file and look the same."""
    rounded = (pixels.astype(int) + 4) // 8 * 8
    image = Image.fromarray(rounded.clip(0, 255).astype(np.uint8))
    image.save(path, optimize=True)
    print(f"{path}: {image.width} x {image.height}, {path.stat().st_size / 1000:.0f} kB")


def draw_sheet(runs: Path) -> np.ndarray:
    """Draw all pictures below their titles, each in the shortest column."""
    canvas = Canvas(0, GAP + COLUMNS * (WIDTH + GAP), (246, 246, 248))
    heights = [GAP] * COLUMNS
    for title, run, folder, index in SHEET:
        pixels = load_picture(picture_path(runs, run, folder, index))
        column = heights.index(min(heights))
        x = GAP + column * (WIDTH + GAP)
        y = heights[column]
        canvas.add(Text(x, y + TITLE_HEIGHT / 2, title, 15), Raster(x, y + TITLE_HEIGHT, pixels))
        heights[column] += TITLE_HEIGHT + pixels.shape[0] + GAP
    canvas.height = max(heights)
    return render(canvas, "matplotlib")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, help="keep the runs here, and reuse existing ones")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with tempfile.TemporaryDirectory() as temporary:
        runs = arguments.runs or Path(temporary)
        for name in dict.fromkeys(run for _, run, _, _ in SHEET):
            if not (runs / name).exists():
                train(name, runs / name)
        save_hook_pictures(runs)
        save_image(draw_sheet(runs), IMAGES / "pictures.png")


if __name__ == "__main__":
    main()
