"""Pictures of the schedules that the examples of the pages configure."""

from __future__ import annotations

import torch

from hookline.cli.docs_words import EXAMPLES
from hookline.cli.lr import schedule_of
from hookline.data import make_loader
from hookline.engine import BaseHook
from hookline.hooks import LrUpdaterHook, MomentumUpdaterHook
from hookline.runner import Runner

EPOCHS, PER_EPOCH = 100, 20
EVERY = 4  # iterations between the points of the line
LR, MOMENTUM = 0.1, 0.9
LEFT, TOP, WIDTH, HEIGHT = 70, 30, 560, 180  # of the field in which the line is drawn, in a picture of 660 by 250


def has_schedule(cls: type[BaseHook]) -> bool:
    """Whether a hook makes a curve that can be drawn ahead."""
    return issubclass(cls, (LrUpdaterHook, MomentumUpdaterHook))


def schedule_caption(cls: type[BaseHook]) -> str:
    """What the picture shows, in a sentence."""
    what, base = ("learning rate", LR) if issubclass(cls, LrUpdaterHook) else ("momentum", MOMENTUM)
    return f"The {what} in {EPOCHS} epochs of {PER_EPOCH} iterations with the example below; the optimizer has {base}."


def schedule_picture(cls: type[BaseHook]) -> str:
    """The curve of a hook's example as SVG."""
    values = _curve(cls)
    low, high = min(values), max(values)
    spread = (high - low) or 1.0
    places = [LEFT + WIDTH * index / (len(values) - 1) for index in range(len(values))]
    points = [f"{x:.1f},{TOP + HEIGHT * (high - value) / spread:.1f}" for x, value in list(zip(places, values, strict=True))[::EVERY]]
    bottom, right = TOP + HEIGHT, LEFT + WIDTH
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 250" font-family="sans-serif" font-size="13" fill="#888">
<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#888"/>
<text x="{LEFT - 8}" y="{TOP + 5}" text-anchor="end">{high:.3g}</text>
<text x="{LEFT - 8}" y="{bottom + 5}" text-anchor="end">{low:.3g}</text>
<text x="{LEFT}" y="{bottom + 22}" text-anchor="middle">0</text>
<text x="{LEFT + WIDTH // 2}" y="{bottom + 22}" text-anchor="middle">epoch</text>
<text x="{right}" y="{bottom + 22}" text-anchor="middle">{EPOCHS}</text>
<polyline points="{" ".join(_without_straight_parts(points))}" fill="none" stroke="#5c6bc0" stroke-width="2.5" stroke-linejoin="round"/>
</svg>
"""


def _curve(cls: type[BaseHook]) -> list[float]:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
    loader = make_loader(torch.utils.data.TensorDataset(torch.zeros(PER_EPOCH, 1)), batch_size=1)
    hook = {"type": cls.__name__, **EXAMPLES[cls.__name__]}
    runner = Runner(model, train_loader=loader, optimizer=optimizer, max_epochs=EPOCHS, hooks=[hook])
    (values,) = schedule_of(runner)["lr" if issubclass(cls, LrUpdaterHook) else "momentum"].values()
    return values


def _without_straight_parts(points: list[str]) -> list[str]:
    """The points less those on a level between two others: they add nothing but bytes."""
    heights = [point.partition(",")[2] for point in points]
    inner = [index for index in range(1, len(points) - 1) if not heights[index - 1] == heights[index] == heights[index + 1]]
    return [points[index] for index in (0, *inner, len(points) - 1)]
