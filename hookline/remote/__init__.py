"""Files in object storage, through fsspec. This package knows nothing about checkpoints."""

from hookline.remote.storage import RemoteDirectory, RemoteError, RemoteFileMissing
from hookline.remote.urls import is_read_only, is_url, shown, split_url
from hookline.remote.work_dir import WorkDir, find_url_problem, locate_work_dir

__all__ = [
    "RemoteDirectory",
    "RemoteError",
    "RemoteFileMissing",
    "WorkDir",
    "find_url_problem",
    "is_read_only",
    "is_url",
    "locate_work_dir",
    "shown",
    "split_url",
]
