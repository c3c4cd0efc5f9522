"""`hookline ckpt`: ls, show, verify, publish, diff, consolidate and import."""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from hookline.checkpoint import CheckpointError, CheckpointStore, load_whole, publish, write_checkpoint
from hookline.cli.arguments import UsageError
from hookline.cli.output import print_json, print_table
from hookline.errors import dotted
from hookline.events.format import format_scalars
from hookline.verify import LEFT_OUT, compare_checkpoints


def run(args: argparse.Namespace) -> int:
    paths = [Path(path) for path in args.paths]
    wanted = 2 if args.action == "diff" else 1
    if len(paths) != wanted:
        raise UsageError(f"hookline ckpt {args.action} takes {wanted} path{'s' if wanted > 1 else ''}, got {len(paths)}")
    actions = {"ls": _list, "show": _show, "verify": _verify, "publish": _publish, "diff": _diff, "consolidate": _consolidate}
    return {**actions, "import": _import}[args.action](args, paths)


def _list(args: argparse.Namespace, paths: list[Path]) -> int:
    entries = _store(paths[0]).entries()
    if args.json:
        print_json([entry._asdict() if hasattr(entry, "_asdict") else vars(entry) for entry in entries])
        return 0
    rows = [
        (
            ", ".join(entry.names),
            str(entry.epoch),
            str(entry.step),
            f"{entry.size / 1e6:.1f} MB",
            _date(entry.time),
            " ".join([format_scalars(entry.metrics), *([] if entry.finite else ["NOT FINITE"]), *entry.tags]).strip(),
        )
        for entry in entries
    ]
    if rows:
        print_table(rows, headers=("name", "epoch", "iter", "size", "saved", "metrics"))
    else:
        print(f"no checkpoints in {paths[0]}")
    return 0


def _show(args: argparse.Namespace, paths: list[Path]) -> int:
    content = dict(_describe(load_whole(_file(paths[0]))))
    if args.json:
        print_json(content)
    else:
        print_table(list(content.items()))
    return 0


def _verify(args: argparse.Namespace, paths: list[Path]) -> int:
    store = _store(paths[0] if paths[0].is_dir() else paths[0].parent)
    names = [paths[0].name] if paths[0].is_file() else [name for entry in store.entries() for name in entry.names]
    bad = 0
    for name in names:
        try:
            store.verify(name)
            print(f"{name}: good")
        except CheckpointError as error:
            bad += 1
            print(f"{name}: {str(error).removeprefix(f'{store.directory / name}: ')}")
    if not names:
        print(f"no checkpoints in {paths[0]}")
    return 1 if bad else 0


def _publish(args: argparse.Namespace, paths: list[Path]) -> int:
    source = _file(paths[0])
    target = Path(args.output) if args.output else source.with_suffix("")
    print(publish(load_whole(source), target, args.format))
    return 0


def _consolidate(args: argparse.Namespace, paths: list[Path]) -> int:
    source = _file(paths[0])
    target = Path(args.output) if args.output else source.with_name(f"{source.stem}_whole.pth")
    write_checkpoint(load_whole(source), target)
    print(target)
    return 0


def _import(args: argparse.Namespace, paths: list[Path]) -> int:
    unpickle, importing = (importlib.import_module(f"hookline.compat.{name}") for name in ("unpickle", "importing"))
    checkpoint = importing.to_hookline(unpickle.load(paths[0]), str(paths[0]))
    target = Path(args.output) if args.output else paths[0].with_name(f"{paths[0].stem}_hookline.pth")
    store, meta = CheckpointStore(target.parent), checkpoint["meta"]
    store.prepare()
    try:
        store.save(checkpoint, target.name, step=meta["iter"], epoch=meta["epoch"], tags=["imported"])
    finally:
        store.unlock()
    average = ", the average apart from the weights" if "ema_state_dict" in checkpoint else ""
    print(f"{target}: epoch {meta['epoch']}, iteration {meta['iter']}, from {meta['versions']['imported_from']}{average}")
    return 0


def _diff(args: argparse.Namespace, paths: list[Path]) -> int:
    parts = compare_checkpoints(*(load_whole(_file(path)) for path in paths))
    width = max(map(len, parts), default=0)
    for part, differences in parts.items():
        for index, text in enumerate(differences or ["equal"]):
            print(f"{'' if index else part:{width}}  {text}")
    print(f"left out, for they differ between any two runs: {LEFT_OUT}")
    return 1 if any(parts.values()) else 0


def _store(directory: Path) -> CheckpointStore:
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory; give the work directory of a run")
    return CheckpointStore(directory)


def _file(path: Path) -> Path:
    """A checkpoint file; for a directory its newest good one."""
    if not path.is_dir():
        return path
    entry = CheckpointStore(path).latest()
    if entry is None:
        raise UsageError(f"{path} holds no good checkpoint")
    return path / entry.name


def _describe(checkpoint: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in checkpoint.items():
        tensors = list(_tensors(value))
        if key == "meta":
            named = {**value, "time": _date(value["time"])} if value.get("time") else value
            yield from ((dotted((key, name)), str(item)) for name, item in named.items() if name != "config")
        elif key == "events":
            yield key, f"the latest values of {', '.join(value)}" if value else "none"
        elif tensors:
            count = sum(tensor.numel() for tensor in tensors)
            size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            yield key, f"{len(tensors)} tensors, {count:,} values, {size / 1e6:.1f} MB"
        else:
            text = str(value)
            yield key, text if len(text) <= 200 else text[:199] + "…"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
