"""URLs of directories and files in object storage, such as `s3://bucket/run/last.pth`."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from hookline.secrets import URL_PASSWORD, mask_text

READ_ONLY = ("http", "https")
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/]*.*", re.DOTALL)


def is_url(value: object) -> bool:
    """Return whether a value is text with a scheme, such as `s3://bucket/run`."""
    return isinstance(value, str) and URL.fullmatch(value) is not None


def split_url(url: str) -> tuple[str, str]:
    """Return the directory and the last part of a URL: `s3://bucket/run` and `last.pth`."""
    directory, _, name = url.rstrip("/").rpartition("/")
    return directory, name


def is_read_only(url: str) -> bool:
    """Return whether a URL is on a web server, which only sends files and lists none."""
    return url.partition("://")[0].lower() in READ_ONLY


def has_password(url: str) -> bool:
    """Return whether a URL has a password, also one with a slash, as those of S3 have."""
    if URL_PASSWORD.search(url) is not None:
        return True
    try:
        return urlsplit(url).password is not None
    except ValueError:  # It has brackets, which only an address of a host may have.
        return True


def shown(url: str | os.PathLike[str]) -> str:
    """Return a URL for people, without the credentials in it."""
    return mask_text(str(url))
