"""Files in object storage, through fsspec. This package knows nothing about checkpoints."""

from hookline.remote.storage import RemoteDirectory, RemoteError, RemoteFileMissing
from hookline.remote.urls import is_url, shown, split_url

__all__ = ["RemoteDirectory", "RemoteError", "RemoteFileMissing", "is_url", "shown", "split_url"]
