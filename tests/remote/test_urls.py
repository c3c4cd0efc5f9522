"""URLs of directories and files in object storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.remote import is_read_only, is_url, shown, split_url
from hookline.remote.urls import has_password


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


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:hunter2@bucket/run",
        "s3://key:hunter/2@bucket/run",
        "s3://:hunter2@bucket/run",
        "sftp://key:hunter2@host:22/run",
        "s3://key:hunter2@[bucket/run",
    ],
)
def test_a_url_with_a_password_is_recognized(url):
    assert has_password(url)


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/run",
        "abfs://container@account.dfs.core.windows.net/run",
        "sftp://user@host:22/run",
        "https://host:8080/path@2x.pth",
        "s3://bucket/run:1@2x",
    ],
)
def test_a_url_without_a_password_is_none(url):
    assert not has_password(url)


def test_web_servers_are_read_only():
    assert is_read_only("https://host/last.pth")
    assert is_read_only("HTTP://host/last.pth")
    assert not is_read_only("s3://bucket/last.pth")
