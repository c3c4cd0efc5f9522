"""Work directories: paths, URLs, and URLs that cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.errors import ConfigError
from hookline.remote import find_url_problem, locate_work_dir


def test_a_path_is_local():
    assert locate_work_dir("runs/a") == (Path("runs/a"), None)
    assert locate_work_dir(Path("/tmp/a")) == (Path("/tmp/a"), None)


def test_without_a_path_all_ranks_get_the_directory_of_rank_0():
    assert locate_work_dir(None, lambda text: f"{text}-shared").path.name.endswith("-shared")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("memory://bucket/run", "runs/memory/bucket/run"),
        ("memory://bucket/run/", "runs/memory/bucket/run"),
        ("file:///mnt/store/run", "runs/file/mnt/store/run"),
    ],
)
def test_a_url_has_a_local_directory(url, path):
    assert locate_work_dir(url) == (Path(path), url.rstrip("/"))


@pytest.mark.parametrize(
    "url",
    [
        "memory://bucket/../../etc",
        "memory://",
        "memory://bucket/a\nb",
        "memory://bucket/run?versionId=3",
        "http://host/run",
        "nonsense://bucket/run",
        "s3://key:hunter2@bucket/run",
        "s3://key:hunter2/x@bucket/run",
        "s3://key:hunter2@[bucket/run",
    ],
)
def test_a_url_that_cannot_work_is_an_error_without_secrets(url):
    with pytest.raises(ConfigError) as caught:
        locate_work_dir(url)
    assert caught.value.parameter == "work_dir"
    assert "hunter2" not in str(caught.value)


def test_a_missing_package_is_a_problem_that_names_the_extra():
    problem = find_url_problem("gs://bucket/run", "mirror")
    assert problem.path == ("mirror",)
    assert problem.suggestion.advice == "pip install 'hookline[gcs]'"
