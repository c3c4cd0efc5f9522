"""Parameters of CheckpointHook: observed are the files and their contents."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline import HOOKS
from hookline.checkpoint import load_checkpoint
from hookline.checkpoint.mirror_manifest import read_manifest
from hookline.hooks import EvalHook, LambdaHook
from hookline.remote import RemoteDirectory
from tests.contracts.parameters.rows import Below, Config, Row, rows
from tests.contracts.training import Scripted, files_below, saved_at, train
from tests.helpers import batches, small_model


def files(config: Config, folder: Path) -> list[str]:
    """Return the checkpoints that a run of four epochs leaves."""
    train(folder, config, EvalHook(), train_loader=batches(2), max_epochs=4)
    return files_below(folder.parent, "*.pth")


def parts(config: Config, folder: Path) -> list[str]:
    """Return the names of the parts of the last checkpoint."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    train(folder, config, model=model, optimizer=optimizer, scheduler=scheduler)
    return sorted(load_checkpoint(folder / "last.pth"))


def saved_weights(config: Config, folder: Path) -> list[str]:
    """Return the names of the weights in the checkpoint of a model with a frozen layer."""
    model = small_model()
    model[0].requires_grad_(False)
    train(folder, config, model=model)
    return list(load_checkpoint(folder / "last.pth")["state_dict"])


def postponed_tensors(config: Config, folder: Path) -> int:
    """Return how many tensors a save in the first iteration copies later."""
    counts = []

    def count(runner: Any) -> None:
        counts.append(len(list(runner.checkpointer.postponed())))

    train(folder, config, LambdaHook(after_train_iter=count))
    return counts[0]


def best_iteration(config: Config, folder: Path) -> int:
    """Return the iteration of the best checkpoint by a metric whose name shows no direction."""
    metrics = {"quux": Scripted(1.0, 0.5, 2.0, 1.5)}
    loader = batches(1)
    train(folder, config, EvalHook(), metrics=metrics, train_loader=loader, max_epochs=4)
    return saved_at(folder, "best_quux.pth")


def files_after_failure(config: Config, folder: Path) -> list[str]:
    """Return the checkpoints of a run that fails in its third iteration."""

    def fail(runner: Any) -> None:
        if runner.iter == 2:
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        train(folder, config, LambdaHook(after_forward=fail))
    return files_below(folder, "*.pth")


def averaged_models(config: Config, folder: Path) -> int:
    """Return how often buffers are averaged over ranks, in a run with a single rank."""
    averaged: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hookline.hooks.checkpoint_hook.average_buffers", averaged.append)
        train(folder, config)
    return len(averaged)


def saved_on_main_thread(config: Config, folder: Path) -> bool:
    """Return whether checkpoint files are written by the thread that trains."""
    threads = set()
    replace = os.replace

    def note(source: Any, target: Any, **more: Any) -> None:
        if str(target).endswith(".pth"):
            threads.add(threading.current_thread() is threading.main_thread())
        replace(source, target, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", note)
        train(folder, config)
    (on_main_thread,) = threads
    return on_main_thread


def mirrored_names(config: Config, folder: Path) -> list[str]:
    """Return the names of the checkpoints in the mirror of a run."""
    train(folder, config)
    manifest = read_manifest(RemoteDirectory("memory://contracts/mirror"))
    entries = () if manifest is None else manifest.entries
    return [entry.name for entry in entries]


def exported(config: Config, folder: Path) -> list[str]:
    """Return the exported files of a run, with the checkpoint that they come from."""
    metrics = {"accuracy": Scripted(0.9, 0.1)}
    train(folder, config, EvalHook(), {"type": "CheckpointHook"}, metrics=metrics)
    paths = files_below(folder.parent, "model.*")
    (card,) = folder.parent.rglob("README.md")
    return [*paths, str("best_accuracy.pth" in card.read_text())]


def sites(config: Config, folder: Path) -> list[str]:
    """Return the sites at which the hook acts; averaging buffers needs several processes."""
    return HOOKS.build(config).get_triggered_stages()


NEVER = {"interval": -1, "save_best": False, "save_last": False}

ROWS: dict[str, list[Row]] = {
    "ExportHook": rows(
        exported,
        {"formats": ["safetensors"]},
        formats=(["safetensors"], ["safetensors", "pt2"]),
        checkpoint=("best", "last"),
        out_dir=(None, Below("elsewhere")),
    ),
    "CheckpointHook": [
        *rows(
            files,
            interval=(1, 2),
            by_epoch=(True, False),
            max_keep_ckpts=(5, 2),
            save_last=(True, False),
            save_best=(True, "val_loss"),
            best_metric=("accuracy", "val_loss"),
            out_dir=(None, Below("elsewhere")),
            filename_tmpl=("epoch_{}.pth", "state_{}.pth"),
            save_begin=(0, 3),
            published_keys=(None, ["state_dict"]),
            keep_best=(1, 2),
        ),
        *rows(files, {"max_keep_ckpts": 1}, keep_every_n_epochs=(None, 2)),
        *rows(files, NEVER, every=(None, 1e-6)),
        *rows(
            parts,
            save_optimizer=(True, False),
            save_scheduler=(True, False),
            save_param_scheduler=(None, False),
        ),
        *rows(saved_weights, trainable_only=(False, True)),
        *rows(best_iteration, {"best_metric": "quux"}, rule=("greater", "less")),
        *rows(best_iteration, {"save_best": "quux"}, less_keys=(None, ["quux"])),
        *rows(
            best_iteration,
            {"save_best": "quux", "less_keys": ["quux"]},
            greater_keys=(None, ["quux"]),
        ),
        *rows(files_after_failure, {"by_epoch": False}, save_on_exception=(False, True)),
        *rows(saved_on_main_thread, async_save=(True, False)),
        *rows(postponed_tensors, overlap_copy=(False, True)),
        *rows(mirrored_names, mirror=(None, "memory://contracts/mirror")),
        *rows(averaged_models, sync_buffer=(False, True)),
    ],
}
