"""Compare fine-tuning with LoRA, from a config, with the Trainer of Hugging Face on the same job.

    python benchmarks/finetune.py [--blocks 60] [--block 5] [--json FILE]

A tiny BERT and a tiny GPT-2 with the data of `examples/finetune/`, on the CPU, in one thread. For
each of them it prints

- the largest difference of a loss in one epoch: same data, order and seed, with dropout;
- the bytes of a checkpoint, beside those of adapter and Adam moments and of the Trainer's folder;
- the difference of the scores after `hookline ckpt publish` and `from_pretrained`;
- the time per step of both. They take turns in one process, so a disturbance affects both.

It needs the packages of `make test-compat` and no network.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from datasets import disable_progress_bars
from peft import PeftModel
from transformers import TrainerCallback
from transformers import logging as hf_logging

from hookline import Runner
from hookline.checkpoint import load_checkpoint
from hookline.cli.main import main as hookline_command
from hookline.config import load_config
from hookline.hooks import LambdaHook

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.turns import WARM_UP, Turns, ratio
from examples.finetune import make_models, with_trainer

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "examples" / "finetune"
JOBS = ("classification", "causal_lm")
STEP_SEED = 1000  # Both sides seed dropout with it and the number of the step.


def config_of(job: str, folder: Path, **training: Any) -> Any:
    """Return the config of a job for one epoch without validation."""
    overrides = [f"work_dir={folder}", "dataset.val=null", "training.metrics=[]"]
    overrides += [f"training.{key}={value}" for key, value in training.items()]
    overrides.append(
        "hooks=[{type: OptimizerHook, grad_clip: {max_norm: 1.0}},"
        "{type: CheckpointHook, trainable_only: true, save_best: false}]"
    )
    return load_config(CONFIGS / f"{job}.yaml", overrides)


class Watch(TrainerCallback):
    """Seeds each step of the Trainer, as `seed_steps` does ours."""

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        torch.manual_seed(STEP_SEED + state.global_step)


class Noting(with_trainer.InOrder):
    """A Trainer that keeps each loss."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.losses: list[float] = []

    def compute_loss(self, *arguments: Any, **options: Any) -> Any:
        found = super().compute_loss(*arguments, **options)
        self.losses.append(found.item())
        return found


def train_ours(job: str, folder: Path) -> tuple[list[float], list[int], Any]:
    """Train an epoch from the config; return the losses, the order of samples and the model."""
    losses: list[float] = []
    seed = LambdaHook(before_train_iter=lambda runner: torch.manual_seed(STEP_SEED + runner.iter))
    note = LambdaHook(after_train_iter=lambda runner: losses.append(runner.outputs["loss"].item()))
    runner = Runner.from_config(config_of(job, folder, epochs=1))
    runner.register_hook(seed)
    runner.register_hook(note)
    order = [int(each) for batch in runner.train_loader.sampler.batches(0, 0) for each in batch]
    runner.train()
    return losses, order, runner.model


def train_theirs(job: str, folder: Path, order: list[int]) -> list[float]:
    """Train an epoch with the Trainer; return the losses."""
    trainer = with_trainer.make_trainer(job, folder, 1, Noting, logging_strategy="no")
    trainer.order = order

    trainer.add_callback(Watch())
    trainer.train()
    return trainer.losses


def bytes_of(path: Path) -> int:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(file.stat().st_size for file in files)


def compare_checkpoints(job: str, ours: Path, theirs: Path) -> dict[str, float]:
    """Return the sizes of checkpoints after one epoch."""
    checkpoint = load_checkpoint(ours / "last.pth")
    adapter = sum(each.nbytes for each in checkpoint["state_dict"].values())
    moments = sum(
        state[key].nbytes
        for state in checkpoint["optimizer"]["state"].values()
        for key in ("exp_avg", "exp_avg_sq")
    )
    (folder,) = theirs.glob("checkpoint-*")
    return {
        "checkpoint": bytes_of(ours / "last.pth"),
        "adapter and moments": adapter + moments,
        "trainer": bytes_of(folder),
    }


def reopen(job: str, folder: Path, model: Any) -> float:
    """Return the largest difference of a score between the trained and the published model."""
    config = str(CONFIGS / f"{job}.yaml")
    target = folder / "adapter"
    command = ["ckpt", "publish", str(folder / "last.pth"), "--format", "peft", "--config", config]
    with contextlib.redirect_stdout(io.StringIO()):
        assert hookline_command([*command, "-o", str(target)]) == 0
    inner = model.get_base_model()
    base = type(inner).from_pretrained(inner.name_or_path)
    loaded = PeftModel.from_pretrained(base, target).eval()
    tokens = torch.arange(2, 22).reshape(2, 10)
    with torch.no_grad():
        return float((loaded(tokens).logits - model.eval()(tokens).logits).abs().max())


class PacedLoader:
    """Batches of another loader, epoch after epoch, as long as there are turns."""

    def __init__(self, turns: Turns, name: str, batches: Any) -> None:
        self.turns, self.name, self.batches = turns, name, batches
        self.dataset = batches.dataset

    def __len__(self) -> int:
        return sum(name == self.name for name in self.turns._order) * self.turns.block

    def __iter__(self) -> Iterator[Any]:
        source = self._endless()
        while self.turns.wait(self.name):
            started = self.turns.clock()
            for _ in range(self.turns.block):
                yield next(source)
            self.turns.done(self.name, self.turns.clock() - started)

    def _endless(self) -> Iterator[Any]:
        while True:
            yield from self.batches


class Paced(with_trainer.InOrder):
    """A Trainer whose loader waits for its turns."""

    turns: Any = None

    def get_train_dataloader(self) -> Any:
        return PacedLoader(self.turns, "trainer", super().get_train_dataloader())


def time_steps(job: str, folder: Path, blocks: int, block: int) -> dict[str, Any]:
    """Return microseconds per step of both, and the median ratio of ours to theirs."""
    turns = Turns(["hookline", "trainer"], blocks + WARM_UP, block, time.thread_time)
    errors: list[BaseException] = []
    length = (blocks + WARM_UP) * block
    runner = Runner.from_config(config_of(job, folder / "ours", epochs="null", iters=length))
    runner.train_loader = PacedLoader(turns, "hookline", runner.train_loader)
    options = {"max_steps": length, "logging_steps": 50}
    trainer = with_trainer.make_trainer(job, folder / "theirs", 1, Paced, **options)
    trainer.turns = turns

    def run(name: str, train: Any) -> None:
        try:
            train()
        except BaseException as error:
            errors.append(error)
        with turns._changed:  # The last turn has no next batch that would end it.
            failed = bool(errors)
            if failed or turns._order[turns._next :][:1] == [name]:
                turns._next = len(turns._order) if failed else turns._next + 1
            turns._changed.notify_all()

    jobs = {"hookline": runner.train, "trainer": trainer.train}
    threads = [threading.Thread(target=run, args=job) for job in jobs.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    ours, theirs = (turns.microseconds[name][WARM_UP:] for name in ("hookline", "trainer"))
    count = min(len(ours), len(theirs))
    return {**ratio(ours[:count], theirs[:count]), "trainer_us": statistics.median(theirs)}


def measure(job: str, folder: Path, blocks: int, block: int) -> dict[str, Any]:
    """Compare one job and print the results."""
    ours, order, model = train_ours(job, folder / "ours")
    theirs = train_theirs(job, folder / "theirs", order)
    assert len(ours) == len(theirs)
    gap = max(abs(one - other) for one, other in zip(ours, theirs, strict=True))
    sizes = compare_checkpoints(job, folder / "ours", folder / "theirs")
    share = sizes["checkpoint"] / sizes["adapter and moments"]
    difference = reopen(job, folder / "ours", model)
    times = time_steps(job, folder / "timed", blocks, block)
    print(f"{job}: {len(ours)} steps, loss {ours[0]:.4f} to {ours[-1]:.4f}")
    print(f"  largest difference of a loss to the Trainer's: {gap:.2e}")
    print(
        f"  checkpoint {sizes['checkpoint']:,} bytes: {share:.3f} of adapter and moments, "
        f"{sizes['checkpoint'] / sizes['trainer']:.3f} of the Trainer's folder"
    )
    print(f"  largest difference of a score after PeftModel.from_pretrained: {difference:.2e}")
    print(
        f"  time per step {times['us'] / 1000:.2f} ms, Trainer {times['trainer_us'] / 1000:.2f} ms: "
        f"ratio {times['ratio']:.3f} ({times['low']:.3f}–{times['high']:.3f})"
    )
    return {"loss_gap": gap, "bytes": sizes, "score_gap": difference, "time": times}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=60)
    parser.add_argument("--block", type=int, default=5, help="steps in a turn")
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    target = arguments.json.resolve() if arguments.json else None
    torch.set_num_threads(1)
    logging.getLogger("hookline").addHandler(logging.NullHandler())
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    disable_progress_bars()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        make_models.main(folder / "finetune")
        results = {
            job: measure(job, folder / job, arguments.blocks, arguments.block) for job in JOBS
        }
        os.chdir(ROOT)
    if target:
        target.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
