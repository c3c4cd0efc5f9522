"""Checkpoints: their content, and how they are written, found, verified and loaded.

This package knows neither the runner nor any hook.
"""

from hookline.checkpoint.diff import diff
from hookline.checkpoint.errors import CheckpointError, UnsafeCheckpoint
from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.formats import check_plain, is_finite
from hookline.checkpoint.loading import load_checkpoint, load_whole, with_shards
from hookline.checkpoint.manifest import INEXACT, Entry
from hookline.checkpoint.mirror_restore import local_checkpoint
from hookline.checkpoint.names import check_name, is_reserved_name, safe_name
from hookline.checkpoint.publish import publish, write_checkpoint
from hookline.checkpoint.saver import Saver
from hookline.checkpoint.snapshot import Snapshot
from hookline.checkpoint.store import CheckpointStore, Latest

__all__ = [
    "INEXACT",
    "CheckpointError",
    "CheckpointStore",
    "Entry",
    "FileSystem",
    "Latest",
    "Saver",
    "Snapshot",
    "UnsafeCheckpoint",
    "check_name",
    "check_plain",
    "diff",
    "is_finite",
    "is_reserved_name",
    "load_checkpoint",
    "load_whole",
    "local_checkpoint",
    "publish",
    "safe_name",
    "with_shards",
    "write_checkpoint",
]
