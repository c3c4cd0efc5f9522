"""Measure how long a save blocks training, against `torch.save` in the same run.

    python benchmarks/checkpoint.py [--millions 25] [--saves 7] [--json FILE]

25 million weights with AdamW make a checkpoint of about 300 MB. Training is blocked while the
snapshot is copied at the seam. The limit is one copy of the same tensors into existing memory.
Without overlap (`async_save: false`), it is blocked while the file is written and synced instead.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookline import Runner
from hookline.engine.run_state import capture
from hookline.hooks import CheckpointHook


class TimedCheckpointHook(CheckpointHook):
    """Times how long each save blocks the training thread."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.blocked: list[float] = []
        self._began = 0.0

    def before_save_checkpoint(self, runner: Any) -> None:
        super().before_save_checkpoint(runner)
        # Saves are rarer in practice: the rest of the previous one is not the cost of this one.
        runner.checkpointer.wait()
        self._began = time.perf_counter()

    def after_save_checkpoint(self, runner: Any) -> None:
        self.blocked.append(time.perf_counter() - self._began)
        super().after_save_checkpoint(runner)


def timed(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def build(
    folder: Path, millions: float, saves: int, overlap: bool
) -> tuple[Runner, TimedCheckpointHook]:
    torch.manual_seed(0)
    width = int((millions * 1e6 / 6) ** 0.5)
    model = nn.Sequential(
        *[layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU())]
    )
    data = [(torch.randn(64, width), torch.randn(64, width)) for _ in range(2)]
    hook = TimedCheckpointHook(
        by_epoch=False, interval=2, max_keep_ckpts=1, save_last=False, async_save=overlap
    )
    runner = Runner(
        model,
        train_loader=data,
        optimizer=torch.optim.AdamW(model.parameters()),
        loss_fn=nn.MSELoss(),
        max_iters=2 * saves + 3,
        work_dir=folder / ("overlap" if overlap else "no_overlap"),
        hooks=[hook],
        drop_hooks=["LoggerHook"],
    )
    return runner, hook


def plain_saves(checkpoint: dict[str, Any], folder: Path, saves: int) -> dict[str, list[float]]:
    """Time torch.save with the same content, with and without fsync, and one copy in memory."""
    times: dict[str, list[float]] = {
        "torch.save": [],
        "torch.save + fsync": [],
        "one memory copy": [],
    }
    tensors = list(collect(checkpoint))
    buffers = [torch.empty_like(tensor) for tensor in tensors]
    for buffer, tensor in zip(buffers, tensors, strict=True):
        buffer.copy_(tensor)
    for _ in range(saves):
        times["torch.save"].append(timed(lambda: torch.save(checkpoint, folder / "plain.pth")))
        times["torch.save + fsync"].append(
            timed(lambda: save_and_sync(checkpoint, folder / "synced.pth"))
        )
        times["one memory copy"].append(
            timed(lambda: [b.copy_(t) for b, t in zip(buffers, tensors, strict=True)])
        )
    return times


def save_and_sync(checkpoint: dict[str, Any], path: Path) -> None:
    with path.open("wb") as file:
        torch.save(checkpoint, file)
        file.flush()
        os.fsync(file.fileno())


def collect(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        yield value.detach()
    elif isinstance(value, (dict, list, tuple)):
        items = value.values() if isinstance(value, dict) else value
        for item in items:
            yield from collect(item)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=float, default=25.0)
    parser.add_argument("--saves", type=int, default=7)
    parser.add_argument("--json", type=Path, help="also write the results here")
    args = parser.parse_args()
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    with tempfile.TemporaryDirectory() as name:
        runner, hook = build(Path(name), args.millions, args.saves, overlap=True)
        runner.train()
        waiting, waiting_hook = build(Path(name), args.millions, args.saves, overlap=False)
        waiting.train()
        checkpoint = capture(runner)
        times = plain_saves(checkpoint, Path(name), args.saves)
        size = (Path(name) / "plain.pth").stat().st_size / 1e6
    # The first save allocates the buffers that all later ones use.
    times["blocked by Hookline"] = hook.blocked[1:]
    times["blocked without overlap"] = waiting_hook.blocked[1:]
    base = statistics.median(times["torch.save"])
    print(f"checkpoint of {size:.0f} MB, medians of {args.saves} saves")
    results = {}
    for label, values in times.items():
        median = statistics.median(values)
        results[label] = {
            "seconds": median,
            "ratio": median / base,
            "least": min(values),
            "most": max(values),
        }
        spread = f"{min(values):.3f}–{max(values):.3f}"
        print(f"{label:26}{median:8.3f} s   {median / base:6.3f} of torch.save   {spread}")
    print(f"first save, into fresh memory: {hook.blocked[0]:.3f} s")
    if args.json:
        args.json.write_text(json.dumps({"megabytes": size, **results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
