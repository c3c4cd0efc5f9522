"""The work directory of a run: a local directory, and where it is copied to if it is a URL."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hookline.errors import ConfigError, Problem, Suggestion
from hookline.remote.storage import RemoteDirectory
from hookline.remote.urls import is_read_only, is_url

PARENT = "runs"  # of work directories without a name, and of the local copies of URLs
USE_S3 = Suggestion(
    advice="use s3://bucket/path, and AWS_ENDPOINT_URL for the address of the server"
)


class WorkDir(NamedTuple):
    """The local directory of a run, and the URL that it is copied to, if there is one."""

    path: Path
    url: str | None


def locate_work_dir(
    given: str | os.PathLike[str] | None, share: Callable[[str], str] = str
) -> WorkDir:
    """Return the work directory that a user means.

    The local directory of `s3://bucket/run` is `runs/s3/bucket/run`.

    Args:
        given: A path, a URL, or None for a new directory with the current time in its name.
        share: Returns the text of rank 0 on all ranks.

    Raises:
        ConfigError: If nothing can be written to the URL.
    """
    if not given:
        return WorkDir(Path(share(time.strftime(f"{PARENT}/%Y%m%d-%H%M%S"))), None)
    if not is_url(given):
        return WorkDir(Path(given), None)
    url = str(given).rstrip("/")
    problem = find_url_problem(url, "work_dir")
    if problem is not None:
        raise ConfigError(problem)
    scheme, _, rest = url.partition("://")
    names = [name for name in rest.split("/") if name]
    return WorkDir(Path(PARENT, scheme.lower(), *names), url)


def find_url_problem(url: str, parameter: str) -> Problem | None:
    """Return the reason why no files can be copied to a URL, without opening it."""
    scheme, _, rest = url.partition("://")
    if is_read_only(url):
        message = f"must not begin with {scheme}://, which can only be read"
        return Problem(message, (parameter,), parameter=parameter, suggestion=USE_S3)
    try:
        RemoteDirectory(url).check_available()
    except ConfigError as error:
        return replace(error.problems[0], path=(parameter,), parameter=parameter)
    names = [name for name in rest.split("/") if name]
    if not names or not all(map(_is_directory_name, names)):
        message = "must have a bucket or a directory, and plain names"
        return Problem(message, (parameter,), parameter=parameter, value=url)
    return None


def _is_directory_name(name: str) -> bool:
    is_plain = not any(character in name for character in "\\?#[]")
    return name not in (".", "..") and is_plain and name.isprintable()
