"""`hookline ckpt`: list, show, verify, publish, compare, consolidate and import checkpoints."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from hookline.checkpoint import (
    CheckpointError,
    CheckpointStore,
    load_whole,
    local_checkpoint,
    publish,
    write_checkpoint,
)
from hookline.checkpoint.manifest import Entry, find
from hookline.checkpoint.mirror_manifest import read_manifest
from hookline.checkpoint.mirror_restore import content_problem
from hookline.checkpoint.structure import check_structure, restoring
from hookline.checkpoint.trainable import BASE, TAG, describe_base, is_partial
from hookline.cli.common import make_runner
from hookline.cli.errors import CommandLineError, ExitCode
from hookline.cli.output import only_json, print_json, print_path, print_table
from hookline.cli.printing import show
from hookline.config import load_config
from hookline.errors import dotted
from hookline.events.format import format_bytes, format_scalars
from hookline.export.pretrained import PRETRAINED_FORMATS, write_pretrained
from hookline.remote import RemoteDirectory, is_url, shown, split_url
from hookline.verify import NOT_COMPARED, compare_checkpoints

MAX_VALUE_CHARACTERS = 200


def list_checkpoints(directory: str, as_json: bool) -> int:
    """Print the checkpoints of a work directory."""
    entries = _list_entries(directory)
    if as_json:
        print_json([dataclasses.asdict(entry) for entry in entries])
    elif entries:
        headers = ("name", "epoch", "iter", "size", "saved", "metrics")
        print_table([_entry_row(entry) for entry in entries], headers)
    else:
        show(f"no checkpoints in {directory}")
    return ExitCode.OK


def show_checkpoint(path: str, as_json: bool) -> int:
    """Print the parts of a checkpoint."""
    parts = dict(_describe(_load(path)))
    if as_json:
        print_json(parts)
    else:
        print_table(list(parts.items()))
    return ExitCode.OK


def verify_checkpoints(path: str, as_json: bool) -> int:
    """Verify the checksum of a checkpoint, or of all in a work directory or a mirror."""
    results = _verify_mirror(path) if is_url(path) else _verify_directory(path)
    if as_json:
        print_json({name: {"good": not text, "error": text} for name, text in results.items()})
    else:
        partial = {name for entry in _entries_beside(path) for name in _partial_names(entry)}
        for name, text in results.items():
            remark = f" ({TAG})" if name in partial else ""
            show(text or f"{name}: good{remark}")
        if not results:
            show(f"no checkpoints in {path}")
    return ExitCode.FAILED if any(results.values()) else ExitCode.OK


def publish_checkpoint(
    path: str,
    file_format: str,
    config: str | None,
    shard_size: str,
    output: str | None,
    as_json: bool,
) -> int:
    """Write the weights of a checkpoint and print the path of the file or folder."""
    with _local_file(path) as source:
        beside = Path(source.name) if is_url(path) else source
        target = beside.with_suffix("") if output is None else Path(output)
        if file_format not in PRETRAINED_FORMATS:
            print_path(publish(load_whole(source), target, file_format), as_json)
            return ExitCode.OK
        if config is None:
            message = f"--format {file_format} builds the model: give its config with --config"
            raise CommandLineError(message, parameter="--config")
        if output is None:
            target = target.with_name(f"{target.name}-{file_format}")
        with only_json(as_json):
            runner = make_runner(load_config(config, ["device=cpu"]))
            checkpoint = load_whole(source)
            model = runner.model
            tokenizer = getattr(getattr(runner.train_loader, "dataset", None), "tokenizer", None)
            write_pretrained(
                model, checkpoint, beside.name, target, file_format, shard_size, tokenizer
            )
        print_path(target, as_json)
    return ExitCode.OK


def diff_checkpoints(first: str, second: str, as_json: bool) -> int:
    """Print the differences between two checkpoints, part by part."""
    parts = compare_checkpoints(_load(first), _load(second))
    code = ExitCode.FAILED if any(parts.values()) else ExitCode.OK
    if as_json:
        print_json({"equal": code == ExitCode.OK, "differences": parts})
        return code
    width = max((len(part) for part in parts), default=0)
    for part, differences in parts.items():
        label = part
        for text in differences or ["equal"]:
            show(f"{label:{width}}  {text}")
            label = ""
    show(f"ignored, because they differ between any two runs: {NOT_COMPARED}")
    return code


def consolidate_checkpoint(path: str, output: str | None, as_json: bool) -> int:
    """Write a sharded checkpoint as one file and print its path."""
    with _local_file(path) as source:
        beside = Path(source.name) if is_url(path) else source
        target = beside.with_name(f"{source.stem}_whole.pth") if output is None else Path(output)
        write_checkpoint(load_whole(source), target)
    print_path(target, as_json)
    return ExitCode.OK


def import_checkpoint(path: str, output: str | None, as_json: bool) -> int:
    """Convert a checkpoint of MMEngine or MMCV and print a summary."""
    # Imported by name: no layer of the package depends on `compat`.
    unpickle = importlib.import_module("hookline.compat.unpickle")
    importing = importlib.import_module("hookline.compat.importing")
    source = Path(path)
    target = source.with_name(f"{source.stem}_hookline.pth") if output is None else Path(output)
    content = unpickle.load(source)
    with restoring("content"):
        checkpoint = importing.to_hookline(content, str(source))
    check_structure(checkpoint, str(source))
    meta = checkpoint["meta"]
    store = CheckpointStore(target.parent)
    store.prepare()
    try:
        store.save(
            checkpoint, target.name, step=meta["iter"], epoch=meta["epoch"], tags=["imported"]
        )
    finally:
        store.unlock()
    origin = meta["versions"]["imported_from"]
    if as_json:
        counters = {"epoch": meta["epoch"], "iter": meta["iter"], "from": origin}
        has_average = "ema_state_dict" in checkpoint
        print_json({"file": str(target), **counters, "averaged_weights": has_average})
        return ExitCode.OK
    average = ", with averaged weights" if "ema_state_dict" in checkpoint else ""
    show(f"{target}: epoch {meta['epoch']}, iteration {meta['iter']}, from {origin}{average}")
    return ExitCode.OK


def _open_store(directory: Path) -> CheckpointStore:
    if not directory.is_dir():
        raise CommandLineError(f"{directory} is not a directory; give the work directory of a run")
    return CheckpointStore(directory)


def _list_entries(directory: str) -> list[Entry]:
    """Return the checkpoints of a work directory or a mirror."""
    if not is_url(directory):
        return _open_store(Path(directory)).entries()
    manifest = read_manifest(RemoteDirectory(directory))
    if manifest is None:
        raise CommandLineError(f"{shown(directory)} is not the mirror of a run")
    return manifest.checkpoints()


def _verify_directory(path: str) -> dict[str, str | None]:
    """Return the problem of each checkpoint in a work directory, or of one; None if it is good."""
    target = Path(path)
    if target.is_file():
        store = _open_store(target.parent)
        names = [target.name]
    else:
        store = _open_store(target)
        names = [name for entry in store.entries() for name in entry.names]
    results: dict[str, str | None] = {}
    for name in names:
        try:
            store.verify(name)
            results[name] = None
        except CheckpointError as error:
            results[name] = str(error)
    return results


def _entries_beside(path: str) -> list[Entry]:
    """Return the checkpoints in a work directory or a mirror, or beside a file in one."""
    if is_url(path):
        is_mirror = read_manifest(RemoteDirectory(path)) is not None
        return _list_entries(path if is_mirror else split_url(path)[0])
    target = Path(path)
    return _open_store(target.parent if target.is_file() else target).entries()


def _partial_names(entry: Entry) -> tuple[str, ...]:
    return entry.names if TAG in entry.tags else ()


def _verify_mirror(url: str) -> dict[str, str | None]:
    """Return the problem of each checkpoint in a mirror, or of one, without using the disk."""
    remote = RemoteDirectory(url)
    manifest = read_manifest(remote)
    if manifest is None:
        directory, name = split_url(url)
        remote = RemoteDirectory(directory)
        entry = find(name, _list_entries(directory))
        return {name: content_problem(remote, entry)}
    results = {}
    for entry in manifest.checkpoints():
        problem = content_problem(remote, entry)
        for name in entry.names:
            results[name] = None if problem is None else f"{name}: {problem}"
    return results


@contextlib.contextmanager
def _local_file(path: str) -> Iterator[Path]:
    """Yield a checkpoint file; for a directory or a mirror, its newest good checkpoint."""
    if is_url(path):
        with local_checkpoint(path) as file:
            yield file
        return
    target = Path(path)
    if not target.is_dir():
        yield target
        return
    entry = CheckpointStore(target).latest()
    if entry is None:
        raise CommandLineError(f"no good checkpoint in {target}")
    yield target / entry.name


def _load(path: str) -> dict[str, Any]:
    with _local_file(path) as file:
        return load_whole(file)


def _entry_row(entry: Entry) -> tuple[str, ...]:
    remarks = [format_scalars(entry.metrics)]
    if not entry.finite:
        remarks.append("NOT FINITE")
    remarks += entry.tags
    return (
        ", ".join(entry.names),
        str(entry.epoch),
        str(entry.step),
        format_bytes(entry.size),
        _format_date(entry.time),
        " ".join(remarks).strip(),
    )


def _describe(checkpoint: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a label and a text for each part of a checkpoint."""
    for key, value in checkpoint.items():
        tensors = list(_tensors(value))
        if key == "meta" and isinstance(value, Mapping):
            yield from _describe_meta(value)
        elif key == BASE and is_partial(checkpoint):
            with restoring(BASE):
                text = describe_base(value)
            yield key, text
        elif key == "events" and isinstance(value, Mapping):
            yield key, f"the latest values of {', '.join(map(str, value))}" if value else "none"
        elif tensors:
            count = sum(tensor.numel() for tensor in tensors)
            size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            yield key, f"{len(tensors)} tensors, {count:,} values, {format_bytes(size)}"
        else:
            yield key, _shorten(str(value))


def _describe_meta(meta: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in meta.items():
        if name == "config":  # It is long, and `config.yaml` has it.
            continue
        is_time = name == "time" and isinstance(value, (int, float))
        yield dotted(("meta", name)), _format_date(value) if is_time else str(value)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _format_date(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):  # The file has an impossible time.
        return str(seconds)


def _shorten(text: str) -> str:
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    return f"{text[: MAX_VALUE_CHARACTERS - 1]}…"
