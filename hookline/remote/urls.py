"""URLs of directories and files in object storage, such as `s3://bucket/run/last.pth`."""

from __future__ import annotations

import os
import re

from hookline.secrets import mask_text

URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/]*.*", re.DOTALL)


def is_url(value: object) -> bool:
    """Return whether a value is text with a scheme, such as `s3://bucket/run`."""
    return isinstance(value, str) and URL.fullmatch(value) is not None


def split_url(url: str) -> tuple[str, str]:
    """Return the directory and the last part of a URL: `s3://bucket/run` and `last.pth`."""
    directory, _, name = url.rstrip("/").rpartition("/")
    return directory, name


def shown(url: str | os.PathLike[str]) -> str:
    """Return a URL for people, without the credentials in it."""
    return mask_text(str(url))
