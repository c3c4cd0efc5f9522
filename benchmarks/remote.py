"""Measure how long a save to object storage blocks training, against Lightning in the same run.

    python benchmarks/remote.py [--millions 25] [--rounds 3] [--saves 4] [--json FILE]

25 million weights with AdamW make a checkpoint of about 300 MB. An S3 server (moto) runs in another
process on this machine. The contenders take turns, in random order: each trains a few iterations
and saves after each of them.

- "local" is Hookline without a mirror: it copies the state at the seam, and a thread writes it.
- "mirror" is the same with a mirror, to which another thread uploads. A save begins while the
  upload of an earlier one is under way.
- "overlap" is "mirror" with `overlap_copy`: weights and moments are copied during the next
  iteration. Where the optimizer's step waits for that, the wait counts as a part of the save.
- "Lightning" is ModelCheckpoint with a directory in the same storage.
- "copy" is one copy of the same tensors into existing memory, the limit of a snapshot.

Times are wall-clock times of the training thread, and its CPU times. Lightning is left out where it
is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.data import DataLoader

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.checkpoint import collect
from hookline import Runner
from hookline.engine.run_state import capture
from hookline.hooks import CheckpointHook

BUCKET = "runs"
SERVER = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.object_storage import s3_server
with s3_server() as port:
    print(port, flush=True)
    sys.stdin.read()
"""


class Blocked(NamedTuple):
    """The time of one save in the training thread."""

    wall: float
    cpu: float


class Stopwatch:
    """Measures saves.

    The first one of a run allocates memory, and after the last one no iteration follows. These two
    do not count.
    """

    def __init__(self) -> None:
        self.times: list[Blocked] = []
        self._began = Blocked(0.0, 0.0)

    def start(self) -> None:
        self._began = Blocked(time.perf_counter(), time.thread_time())

    def stop(self) -> None:
        self.times.append(self._passed())

    def add(self) -> None:
        """Count the time since `start` as a part of the last save."""
        last, more = self.times[-1], self._passed()
        self.times[-1] = Blocked(last.wall + more.wall, last.cpu + more.cpu)

    def _passed(self) -> Blocked:
        wall = time.perf_counter() - self._began.wall
        return Blocked(wall, time.thread_time() - self._began.cpu)


class TimedCheckpointHook(CheckpointHook):
    """Times how long each save blocks the training thread."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.watch = Stopwatch()

    def before_save_checkpoint(self, runner: Any) -> None:
        super().before_save_checkpoint(runner)
        # Saves are rarer in practice: the local rest of the previous one is not part of this one.
        runner.checkpointer.wait()
        self.watch.start()

    def after_save_checkpoint(self, runner: Any) -> None:
        self.watch.stop()
        super().after_save_checkpoint(runner)

    def wait_for_copy(self, runner: Any) -> None:
        self.watch.start()
        super().wait_for_copy(runner)
        if self.watch.times:
            self.watch.add()


def make_model(millions: float) -> tuple[nn.Module, list[Any]]:
    torch.manual_seed(0)
    width = int((millions * 1e6 / 6) ** 0.5)
    layers: list[nn.Module] = []
    for _ in range(6):
        layers += [nn.Linear(width, width), nn.ReLU()]
    batch = (torch.randn(8, width), torch.randn(8, width))
    return nn.Sequential(*layers), [batch]


def hookline(
    folder: Path, url: str | None, arguments: argparse.Namespace, **options: Any
) -> list[Blocked]:
    model, data = make_model(arguments.millions)
    hook = TimedCheckpointHook(
        by_epoch=False, interval=1, max_keep_ckpts=1, save_last=False, mirror=url, **options
    )
    runner = Runner(
        model,
        train_loader=data * (arguments.saves + 2),
        optimizer=torch.optim.AdamW(model.parameters()),
        loss_fn=nn.MSELoss(),
        max_epochs=1,
        work_dir=folder,
        hooks=[hook],
        drop_hooks=["LoggerHook"],
    )
    runner.train()
    return hook.watch.times[1:-1]


def copy(arguments: argparse.Namespace) -> list[Blocked]:
    model, _ = make_model(arguments.millions)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(1, model[0].in_features)).sum().backward()
    optimizer.step()
    runner = Runner(model, optimizer=optimizer, train_loader=[], max_iters=1)
    tensors = list(collect(capture(runner)))
    buffers = [torch.empty_like(tensor) for tensor in tensors]
    watch = Stopwatch()
    for _ in range(arguments.saves + 2):
        watch.start()
        for buffer, tensor in zip(buffers, tensors, strict=True):
            buffer.numpy()[...] = tensor.numpy()  # Torch's threads wait for busy cores.
        watch.stop()
    return watch.times[1:-1]


def lightning(folder: Path, url: str, arguments: argparse.Namespace) -> list[Blocked]:
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import ModelCheckpoint

    model, data = make_model(arguments.millions)

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: Any, index: int) -> Any:
            return nn.functional.mse_loss(self.model(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

    class Timed(ModelCheckpoint):
        def on_train_batch_end(self, *given: Any, **named: Any) -> None:
            watch.start()
            super().on_train_batch_end(*given, **named)
            watch.stop()

    watch = Stopwatch()
    callback = Timed(
        dirpath=url, every_n_train_steps=1, save_top_k=1, save_on_train_epoch_end=False
    )
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=1,
        callbacks=[callback],
        logger=False,
        default_root_dir=str(folder),
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = DataLoader(data * (arguments.saves + 2), batch_size=None)
    trainer.fit(Module(), loader)
    return watch.times[1:-1]


def measure(arguments: argparse.Namespace) -> dict[str, list[Blocked]]:
    contenders: dict[str, Callable[[Path, str], list[Blocked]]] = {
        "copy": lambda folder, url: copy(arguments),
        "local": lambda folder, url: hookline(folder, None, arguments),
        "mirror": lambda folder, url: hookline(folder, url, arguments),
        "overlap": lambda folder, url: hookline(folder, url, arguments, overlap_copy=True),
    }
    if importlib.util.find_spec("lightning") is not None:
        contenders["Lightning"] = lambda folder, url: lightning(folder, url, arguments)
    times: dict[str, list[Blocked]] = {name: [] for name in contenders}
    for number in range(arguments.rounds):
        for name in random.sample(list(contenders), len(contenders)):
            with tempfile.TemporaryDirectory() as folder:
                url = f"s3://{BUCKET}/{name}-{number}"
                times[name] += contenders[name](Path(folder), url)
                remove(url)
    return times


def remove(url: str) -> None:
    """Free the memory of the server."""
    import fsspec

    files, path = fsspec.core.url_to_fs(url)
    files.invalidate_cache()
    if files.exists(path):
        files.rm(path, recursive=True)


def summarize(times: dict[str, list[Blocked]]) -> dict[str, dict[str, float]]:
    base = statistics.median(each.wall for each in times["copy"])
    results = {}
    for name, values in times.items():
        walls = [each.wall for each in values]
        results[name] = {
            "seconds": statistics.median(walls),
            "ratio": statistics.median(walls) / base,
            "least": min(walls),
            "most": max(walls),
            "cpu": statistics.median(each.cpu for each in values),
        }
    return results


def start_server() -> subprocess.Popen[str]:
    """Start an S3 server in another process, and lead s3:// URLs to it."""
    from tests.object_storage import environment

    command = [sys.executable, "-c", SERVER, str(Path(__file__).parents[1])]
    server = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    port = int(server.stdout.readline())
    os.environ.update(environment(f"http://127.0.0.1:{port}"))
    return server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", type=float, default=25.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--saves", type=int, default=4, help="saves of a contender in a round")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    logging.getLogger("lightning.pytorch.utilities.rank_zero").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    server = start_server()
    try:
        results = summarize(measure(arguments))
    finally:
        server.communicate()
    megabytes = 12 * arguments.millions
    count = arguments.rounds * arguments.saves
    print(f"checkpoint of about {megabytes:.0f} MB, medians of {count} saves")
    for name, row in results.items():
        spread = f"{row['least']:.3f}–{row['most']:.3f}"
        print(
            f"{name:12}{row['seconds']:8.3f} s (CPU {row['cpu']:.3f} s) "
            f"{row['ratio']:8.2f} of a copy   {spread}"
        )
    added = results["mirror"]["seconds"] - results["local"]["seconds"]
    print(f"the mirror adds {1000 * added:.1f} ms to a local save")
    if arguments.json:
        arguments.json.write_text(json.dumps({"megabytes": megabytes, **results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
