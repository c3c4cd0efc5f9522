"""Write checkpoints in MMCV's layout at seams: one file per directory, under all its names."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from hookline.checkpoint import CheckpointStore
from hookline.checkpoint.formats import check_plain
from hookline.compat.mmcv import MMCV_VERSION
from hookline.compat.mmcv.parallel import is_module_wrapper
from hookline.compat.mmcv.runner.file_client import join_path
from hookline.compat.mmcv.runner.model_wrapper import module_versions
from hookline.counters import COUNTERS
from hookline.engine.checkpointing import Checkpointer
from hookline.engine.run_state import capture

LATEST = "latest.pth"
ENGINE_META = frozenset(
    {
        "time",
        "inner_iter",
        "optimizer_steps",
        "versions",
        "world_size",
        "hyperparameters",
        "metrics",
        "best",
        "mmcv_version",
        "module_versions",
    }
)


@dataclass
class RequestedFile:
    """The names of a file, the files that it replaces, additions to its `meta`, its storage."""

    names: list[str] = field(default_factory=list)
    surplus: list[str] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    client: Any = None


class MMCVCheckpointer(Checkpointer):
    """The writer of MMCV's checkpoints at the next seam, to any number of directories."""

    def __init__(self, runner: Any) -> None:
        super().__init__(runner, runner.work_dir or ".")
        self._runner: Any = runner
        self._out_dir: Any = None
        self._stores: dict[str, CheckpointStore] = {}
        self._requested: dict[tuple[str, bool], RequestedFile] = {}

    def request_file(
        self,
        out_dir: Any,
        name: str,
        save_optimizer: bool = True,
        *,
        latest: bool = True,
        create_symlink: bool = True,
        surplus: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
        client: Any = None,
    ) -> None:
        """Request a checkpoint at the next seam.

        Args:
            out_dir: The directory of the file.
            name: The name of the file.
            save_optimizer: Whether it holds the state of the optimizer.
            latest: Whether `latest.pth` is another name of it.
            create_symlink: False is another way to leave `latest.pth` out.
            surplus: Files to remove once the new one is written.
            meta: Additions to the `meta` of the checkpoint.
            client: MMCV's client of the directory; None for the disk.
        """
        requested = self._requested.setdefault((str(out_dir), save_optimizer), RequestedFile())
        requested.names.append(name)
        if latest and create_symlink:
            requested.names.append(LATEST)
        requested.surplus += surplus
        requested.meta.update(meta or {})
        requested.client = client
        self._runner.request_save(write=self._write_requested)

    def save_now(
        self, out_dir: Any, names: list[str], save_optimizer: bool, meta: Mapping[str, Any]
    ) -> None:
        """Save at once. While hooks of an iteration or epoch run, save the state after it."""
        runner = self._runner
        before = runner.iter, runner.inner_iter, runner.epoch, runner.flow
        if runner.loop.phase == "after_train_iter":
            runner.iter += 1
            runner.inner_iter += 1
        elif runner.site == "after_train_epoch":
            runner.epoch += 1
            runner.inner_iter = 0
            runner.flow = [runner.flow[0], runner.flow[1] + 1]
        elif runner.site == "":
            runner.inner_iter = 0
        try:
            checkpoint = capture(runner, all_ranks=False)
            self.write_to(checkpoint, out_dir, names, save_optimizer, meta=meta)
        finally:
            runner.iter, runner.inner_iter, runner.epoch, runner.flow = before
            if not runner.loop.is_running:
                self.close()

    def enable(self, out_dir: Any) -> None:
        """Accept requests for named checkpoints, such as that of a signal, in MMCV's layout."""
        self.is_open = True
        self._out_dir = out_dir

    def write(self, checkpoint: Mapping[str, Any]) -> None:
        """Write the requested names; for MMCV's hook, `last` is the file of the iteration."""
        if self._out_dir is None:
            super().write(self._in_mmcv_layout(checkpoint, {}))
            return
        names, self.names = self.names, []
        if "last.pth" in names:
            names[names.index("last.pth")] = f"iter_{self._runner.iter}.pth"
        self.write_to(checkpoint, self._out_dir, names, True)

    def write_to(
        self,
        checkpoint: Mapping[str, Any],
        out_dir: Any,
        names: list[str],
        save_optimizer: bool,
        surplus: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
        client: Any = None,
    ) -> None:
        """Write a checkpoint to a directory, and remove the surplus files."""
        if not self._runner.is_main:
            return
        content = self._in_mmcv_layout(checkpoint, meta or {})
        if not save_optimizer:
            content.pop("optimizer", None)
        files = [name for name in dict.fromkeys(names) if name != LATEST]
        removed = [name for name in surplus if name not in names]
        if client is not None:
            _upload(client, out_dir, content, files, removed)
            return
        store = self._store(out_dir)
        store.save(
            content,
            files[0],
            links=files[1:],
            step=content["meta"]["iter"],
            epoch=content["meta"]["epoch"],
        )
        if LATEST in names:
            _link_latest(Path(out_dir), files[0])
        if removed:
            store.remove(*removed)

    def close(self, wait: bool = True) -> None:
        """Finish the writing, and release the directories."""
        super().close(wait)
        self._out_dir = None
        for store in self._stores.values():
            store.unlock()
        self._stores = {}

    def _write_requested(self, checkpoint: dict[str, Any]) -> None:
        requested, self._requested = self._requested, {}
        for (out_dir, save_optimizer), file in requested.items():
            self.write_to(
                checkpoint,
                out_dir,
                file.names,
                save_optimizer,
                file.surplus,
                file.meta,
                file.client,
            )

    def _in_mmcv_layout(
        self, checkpoint: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> dict[str, Any]:
        runner = self._runner
        # MMCV expects the config to be text, so Hookline's is left out.
        own = {key: value for key, value in checkpoint["meta"].items() if key != "config"}
        counters = {key: own[key] for key in COUNTERS}
        about = {**own, **(runner.meta or {}), **meta, **counters, "mmcv_version": MMCV_VERSION}
        about["module_versions"] = module_versions(runner.model)
        content = {**checkpoint, "meta": _plain_meta(about), "mmcv": runner.data_state()}
        if is_module_wrapper(runner.model):
            content["state_dict"] = dict(runner.model.module.state_dict())
        return content

    def _store(self, out_dir: Any) -> CheckpointStore:
        key = os.path.abspath(out_dir)
        if key not in self._stores:
            # Scripts for MMCV take each visible .json file of the directory for a log.
            store = CheckpointStore(Path(key), hidden=True)
            store.prepare()
            self._stores[key] = store
        return self._stores[key]


def to_bytes(checkpoint: Mapping[str, Any]) -> bytes:
    """Return a checkpoint as the content of a file."""
    buffer = io.BytesIO()
    torch.save(check_plain(checkpoint), buffer)
    return buffer.getvalue()


def _plain_meta(value: Any) -> Any:
    """Return meta data with lists in place of ranges and sets; configs of MMCV have them."""
    if isinstance(value, Mapping):
        return {key: _plain_meta(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_plain_meta(item) for item in value)
    if isinstance(value, (range, set, frozenset)):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def _upload(
    client: Any, out_dir: Any, content: Mapping[str, Any], names: list[str], removed: list[str]
) -> None:
    data = to_bytes(content)
    for name in names:
        client.put(data, join_path(client, out_dir, name))
    for name in removed:
        path = join_path(client, out_dir, name)
        if client.isfile(path):
            client.remove(path)


def _link_latest(directory: Path, name: str) -> None:
    """Let `latest.pth` be a symbolic link to a file beside it."""
    link = directory / f".{LATEST}.{os.getpid()}"
    link.unlink(missing_ok=True)
    link.symlink_to(name)
    link.replace(directory / LATEST)
