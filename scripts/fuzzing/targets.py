"""The readers that are fuzzed, each with valid files to start from.

A target is a function of a path. It may return, or raise an error for users (HooklineError). Any
other exception, a crash, or a case that takes longer than the limit is a finding.
"""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from hookline.checkpoint import CheckpointStore, load_whole
from hookline.checkpoint.adoption import describe_unlisted
from hookline.checkpoint.legacy_shards import convert
from hookline.checkpoint.manifest import Entry, Ledger, encode
from hookline.checkpoint.names import MANIFEST
from hookline.checkpoint.shard_metadata import decode
from hookline.checkpoint.structure import check_structure
from hookline.compat import unpickle
from hookline.config import load_config, validate
from hookline.errors import HooklineError
from hookline.events.read import read_curves
from scripts.fuzzing.mutations import mutate_bytes, mutate_manifest, mutate_pickle_in_zip

ROOT = Path(__file__).parents[2]
Mutate = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """A reader, the name of its file, valid contents of that file, and ways to change them."""

    read: Callable[[Path], object]
    file: str
    seeds: Callable[[], list[bytes]]
    mutations: tuple[Mutate, ...] = (mutate_bytes,)


def read_checkpoint(path: Path) -> None:
    checkpoint = load_whole(path)
    check_structure(checkpoint, str(path))
    describe_unlisted(path.parent, ())


def read_manifest(path: Path) -> None:
    store = CheckpointStore(path.parent)
    store.entries()
    store.find_latest()
    try:
        store.prepare()
    finally:
        store.unlock()


def read_shards(path: Path) -> None:
    """Read an index of shards, whose readers raise ValueError."""
    data = path.read_bytes()
    with contextlib.suppress(ValueError, HooklineError):
        decode(data if data.startswith(b"{") else convert(data))


def read_config(path: Path) -> None:
    validate(load_config(path))


def checkpoint_seeds() -> list[bytes]:
    meta = {"iter": 3, "epoch": 1, "versions": {"hookline": "0.2.0"}, "time": 1.0}
    content: dict[str, Any] = {
        "meta": meta,
        "state_dict": {"w": torch.ones(3), "half": torch.ones(2, 2, dtype=torch.float16)},
        "hooks": {"CheckpointHook": {"kept": ["epoch_1.pth"]}},
        "optimizer": {"state": {0: {"step": torch.tensor(1.0)}}, "param_groups": [{"lr": 0.1}]},
    }
    new = io.BytesIO()
    torch.save(content, new)
    old = io.BytesIO()
    torch.save(content, old, _use_new_zipfile_serialization=False)
    return [new.getvalue(), old.getvalue()]


def new_checkpoint_seeds() -> list[bytes]:
    return checkpoint_seeds()[:1]


def manifest_seeds() -> list[bytes]:
    entries = (
        Entry(("epoch_1.pth", "last.pth"), 3, "0" * 64, 1, 1, {"accuracy": 0.5}, time=1.0),
        Entry(("best_accuracy.pth",), 3, "1" * 64, 2, 1, tags=("inexact",)),
    )
    ledger = Ledger(5, entries, entries[1], "0123456789abcdef", ("shards_1_0a1b2c3d",))
    return [encode(ledger)]


def shard_seeds() -> list[bytes]:
    index = (
        b'{"format": 1, "tensors": {"w": {"shape": [4], "dtype": "float32", "chunks": [{"offset": '
        b'[0], "shape": [4], "file": "__0_0.distcp", "start": 0, "length": 99}]}}}'
    )
    names = b"ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}X\x01\x00\x00\x00ab."
    return [index, b"\x80\x02" + names]


def log_seeds() -> list[bytes]:
    rows = b'{"mode": "train", "epoch": 1, "iter": 1, "loss": 0.5}\n' * 3
    return [rows + b'{"mode": "val", "epoch": 1, "iter": 3, "accuracy": NaN}\n']


def config_seeds() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "hookline" / "configs").glob("*.yaml"))]


TARGETS = {
    "checkpoint": Target(read_checkpoint, "last.pth", checkpoint_seeds),
    "checkpoint pickle": Target(
        read_checkpoint, "last.pth", new_checkpoint_seeds, (mutate_pickle_in_zip,)
    ),
    "import": Target(
        unpickle.load, "epoch_1.pth", new_checkpoint_seeds, (mutate_bytes, mutate_pickle_in_zip)
    ),
    "manifest": Target(read_manifest, MANIFEST, manifest_seeds, (mutate_bytes, mutate_manifest)),
    "shards": Target(read_shards, "index", shard_seeds),
    "log": Target(read_curves, "log.jsonl", log_seeds),
    "config": Target(read_config, "config.yaml", config_seeds),
}
