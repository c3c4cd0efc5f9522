"""Storages other than the disk, through the file clients of the installed MMCV."""

from __future__ import annotations

import importlib
import os.path as osp
from collections.abc import Mapping
from typing import Any

from hookline.compat import overlay
from hookline.compat.mmcv.errors import ADVICE


def find_remote(uri: Any, file_client_args: Mapping[str, Any] | None) -> Any:
    """Return MMCV's file client for a file or directory, or None if it is on the disk."""
    if overlay.find("mmcv") is None:
        backend = (file_client_args or {}).get("backend")
        if backend not in (None, "disk") or "://" in str(uri):
            raise ValueError(
                f"{uri}: only files on the disk are covered without MMCV itself, got "
                f"file_client_args={file_client_args}; {ADVICE}"
            )
        return None
    fileio = importlib.import_module("mmcv.fileio.file_client")
    arguments = None if file_client_args is None else dict(file_client_args)
    client = fileio.FileClient.infer_client(arguments, str(uri))
    return None if isinstance(client.client, fileio.HardDiskBackend) else client


def resolve_out_dir(
    runner: Any, out_dir: str | None, owner: str, file_client_args: Mapping[str, Any] | None
) -> tuple[str, Any]:
    """Return the work directory, or the directory of its name in `out_dir`, and its client."""
    if not out_dir:
        if runner.work_dir is None:
            raise ValueError(f"{owner}: the runner has no work_dir; give the hook an out_dir")
        out_dir = runner.work_dir
    client = find_remote(out_dir, file_client_args)
    if runner.work_dir is None or out_dir == runner.work_dir:
        return str(out_dir), client
    return join_path(client, out_dir, osp.basename(str(runner.work_dir).rstrip(osp.sep))), client


def join_path(client: Any, directory: Any, name: str) -> str:
    """Return the path of a file in a directory of a storage, or of the disk if it is None."""
    if client is None:
        return osp.join(directory, name)
    return str(client.join_path(directory, name))
