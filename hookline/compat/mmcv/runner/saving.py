"""How a runner's checkpoints are written: at a seam, one file for each directory under all its names, by Hookline's store."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hookline.checkpoint import CheckpointStore
from hookline.compat.mmcv.parallel import is_module_wrapper
from hookline.engine.capture import capture

MMCV_VERSION = "1.7.2"  # whose interface and layout of checkpoints this is
LATEST = "latest.pth"
ENGINE_META = frozenset(
    {"time", "inner_iter", "optimizer_steps", "versions", "world_size", "hyperparameters", "metrics", "best", "mmcv_version"}
)


class Saving:
    """Collects what hooks want saved until the next seam."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._stores: dict[str, CheckpointStore] = {}
        self._due: dict[tuple[str, bool], tuple[list[str], list[str], dict[str, Any]]] = {}

    def request(
        self,
        out_dir: Any,
        name: str,
        save_optimizer: bool = True,
        *,
        latest: bool = True,
        create_symlink: bool = True,
        surplus: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Have the state saved at the next seam; files of the names in `surplus` go when the new one is there."""
        names, old, more = self._due.setdefault((str(out_dir), save_optimizer), ([], [], {}))
        names += [name, *([LATEST] if latest and create_symlink else [])]
        old += surplus
        more.update(meta or {})
        self._runner.request_save(write=self._write_due)

    def now(self, out_dir: Any, names: list[str], save_optimizer: bool, meta: Mapping[str, Any]) -> None:
        """Save the state as it is, as that after the current iteration or epoch if its hooks are running."""
        runner = self._runner
        before = runner.iter, runner.inner_iter, runner.epoch, runner.flow
        if runner.site == "after_train_iter":
            runner.iter, runner.inner_iter = runner.iter + 1, runner.inner_iter + 1
        elif runner.site == "after_train_epoch":
            runner.epoch, runner.inner_iter, runner.flow = runner.epoch + 1, 0, [runner.flow[0], runner.flow[1] + 1]
        elif runner.site == "":
            runner.inner_iter = 0
        try:
            self.write(capture(runner), out_dir, names, save_optimizer, meta=meta)
        finally:
            runner.iter, runner.inner_iter, runner.epoch, runner.flow = before
            if not runner.running:
                self.close()

    def write(
        self,
        checkpoint: Mapping[str, Any],
        out_dir: Any,
        names: list[str],
        save_optimizer: bool,
        surplus: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        runner = self._runner
        if not runner.is_main:
            return
        counters = {key: checkpoint["meta"][key] for key in ("epoch", "iter", "inner_iter", "optimizer_steps")}
        engine_meta = {key: value for key, value in checkpoint["meta"].items() if key != "config"}  # which MMCV wants to be text
        about = {**engine_meta, **(runner.meta or {}), **(meta or {}), **counters, "mmcv_version": MMCV_VERSION}
        content = {**checkpoint, "meta": about, "mmcv": runner.place()}
        if is_module_wrapper(runner.model):
            content["state_dict"] = dict(runner.model.module.state_dict())
        if not save_optimizer:
            content.pop("optimizer", None)
        store = self._store(out_dir)
        store.save(content, names[0], links=list(dict.fromkeys(names[1:])), step=counters["iter"], epoch=counters["epoch"])
        gone = [name for name in surplus if name not in names]
        if gone:
            store.remove(*gone)

    def close(self) -> None:
        """Let go of the directories."""
        for store in self._stores.values():
            store.unlock()
        self._stores = {}

    def _write_due(self, checkpoint: dict[str, Any]) -> None:
        due, self._due = self._due, {}
        for (out_dir, save_optimizer), (names, surplus, meta) in due.items():
            self.write(checkpoint, out_dir, names, save_optimizer, surplus, meta)

    def _store(self, out_dir: Any) -> CheckpointStore:
        key = os.path.abspath(out_dir)
        if key not in self._stores:
            store = CheckpointStore(Path(key))
            store.prepare()
            self._stores[key] = store
        return self._stores[key]
