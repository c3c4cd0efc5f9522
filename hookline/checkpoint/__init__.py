"""Checkpoints that survive: what they hold, how they are written, found, verified and loaded. Knows no runner and no hook."""

from hookline.checkpoint.diff import diff
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.formats import check_plain, is_finite
from hookline.checkpoint.loading import load_checkpoint, load_whole, with_shards
from hookline.checkpoint.manifest import INEXACT, Entry
from hookline.checkpoint.names import check_name, is_promise, safe_name
from hookline.checkpoint.publish import publish, write_checkpoint
from hookline.checkpoint.saver import Saver
from hookline.checkpoint.snapshot import Snapshot
from hookline.checkpoint.store import CheckpointStore, Latest
from hookline.checkpoint.writer import BackgroundWriter

__all__ = [
    "INEXACT",
    "BackgroundWriter",
    "CheckpointError",
    "CheckpointStore",
    "Entry",
    "FileSystem",
    "Latest",
    "Saver",
    "Snapshot",
    "check_name",
    "check_plain",
    "diff",
    "is_finite",
    "is_promise",
    "load_checkpoint",
    "load_whole",
    "publish",
    "safe_name",
    "with_shards",
    "write_checkpoint",
]
