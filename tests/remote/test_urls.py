"""URLs of directories and files in object storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.remote import is_url, shown, split_url


@pytest.mark.parametrize("value", ["s3://bucket/run", "gs://b", "file:///tmp/x", "abfs://c@a/x"])
def test_text_with_a_scheme_is_a_url(value):
    assert is_url(value)


@pytest.mark.parametrize("value", ["runs/a", "/tmp/x", "C:\\runs", "auto", Path("s3/b"), None, 3])
def test_paths_and_other_values_are_no_urls(value):
    assert not is_url(value)


def test_a_url_is_split_into_directory_and_name():
    assert split_url("s3://bucket/run/last.pth") == ("s3://bucket/run", "last.pth")
    assert split_url("s3://bucket/run/") == ("s3://bucket", "run")


def test_a_shown_url_has_no_credentials():
    assert "hunter2" not in shown("sftp://user:hunter2@host/run")
