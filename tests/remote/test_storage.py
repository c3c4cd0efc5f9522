"""Files in object storage, on a real S3 server and on a local disk."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hookline.errors import ConfigError
from hookline.remote import RemoteDirectory, RemoteError, RemoteFileMissing
from hookline.remote.storage import PART_BYTES
from tests.object_storage import FAULTS

HANGS = {"config_kwargs": {"read_timeout": 0.5, "retries": {"max_attempts": 1}}}


def s3(path: str = "run", fault: str | None = None) -> RemoteDirectory:
    remote = RemoteDirectory(f"s3://runs/{path}", HANGS if fault == "hang" else None)
    fs, _ = remote._open()
    fs.retries = 1
    return remote


@pytest.fixture(params=["s3", "file", "memory"])
def remote(request, tmp_path):
    if request.param == "s3":
        request.getfixturevalue("proxy")
        return s3()
    if request.param == "file":
        return RemoteDirectory(f"file://{tmp_path}/store/run")
    return RemoteDirectory(f"memory://{tmp_path.name}/run")


def upload(remote: RemoteDirectory, key: str, data: bytes) -> int:
    sizes: list[int] = []
    remote.upload(key, io.BytesIO(data), len(data), sizes.append)
    return sum(sizes)


def content(remote: RemoteDirectory, key: str) -> bytes:
    pieces: list[bytes] = []
    remote.download(key, pieces.append)
    return b"".join(pieces)


def test_a_file_is_read_listed_and_deleted(remote):
    assert remote.list("files") == []
    assert remote.read("files/a.txt") is None
    assert upload(remote, "files/a.txt", b"text") == 4
    upload(remote, "files/deep/b.txt", b"")
    assert remote.list("files") == ["files/a.txt", "files/deep/b.txt"]
    assert remote.read("files/a.txt") == content(remote, "files/a.txt") == b"text"
    assert content(remote, "files/deep/b.txt") == b""
    remote.remove(["files/a.txt"])
    remote.remove(["files/a.txt"])
    assert remote.list("files") == ["files/deep/b.txt"]


def test_a_file_is_created_only_once(remote):
    assert remote.create("manifests/1.json", b"first")
    assert not remote.create("manifests/1.json", b"second")
    assert remote.read("manifests/1.json") == b"first"


@pytest.mark.parametrize("error", [NotImplementedError, OSError(errno.ENOSYS, "no")])
def test_a_storage_without_conditional_writes_is_written_to_anyway(error):
    class Plain(MemoryFileSystem):
        protocol = "plain"

        def pipe_file(self, path, value, mode="overwrite", **options):
            if mode == "create":
                raise error
            super().pipe_file(path, value, mode, **options)

    fsspec.register_implementation("plain", Plain, clobber=True)
    remote = RemoteDirectory("plain://bucket/run")
    remote.remove(remote.list("manifests"))
    assert remote.create("manifests/1.json", b"first")
    assert not remote.create("manifests/1.json", b"second")
    assert remote.read("manifests/1.json") == b"first"


def test_a_storage_that_deletes_one_file_at_a_time_is_cleaned(tmp_path):
    class OneByOne(MemoryFileSystem):
        """Deletes as the file system of Hugging Face does, which takes no list."""

        def rm(self, path, recursive=False, maxdepth=None):
            super().rm(path.removeprefix("/"), recursive, maxdepth)

    remote = RemoteDirectory(f"hf://buckets/{tmp_path.name}/run")
    remote._opened = (OneByOne(), f"/{tmp_path.name}")
    for key in ("files/a", "files/b", "files/c"):
        upload(remote, key, b"abc")
    remote.remove(["files/a", "files/missing", "files/b"])
    assert remote.list("files") == ["files/c"]


def test_a_missing_file_cannot_be_downloaded(remote):
    with pytest.raises(RemoteFileMissing):
        content(remote, "files/none")


def test_only_the_given_number_of_bytes_is_uploaded(remote):
    remote.upload("files/log", io.BytesIO(b"line 1\nline 2\n"), 7, lambda size: None)
    assert content(remote, "files/log") == b"line 1\n"


def test_a_large_file_is_uploaded_in_parts(proxy):
    data = os.urandom(PART_BYTES + 1000)
    assert upload(s3(), "files/large", data) == len(data)
    assert any("partNumber=2" in path for _, path in proxy.seen)
    assert content(s3(), "files/large") == data


def test_a_failed_upload_leaves_no_file_and_no_parts(proxy):
    proxy.rule = lambda method, path: "500" if "partNumber=2" in path else None
    remote = s3()
    with pytest.raises(RemoteError):
        upload(remote, "files/large", bytes(2 * PART_BYTES + 5))
    proxy.rule = lambda method, path: None
    assert remote.list("files") == []
    assert remote.abort_uploads("files") == 0


def test_parts_of_killed_uploads_are_discarded(proxy):
    remote = s3()
    fs, root = remote._open()
    for key in (f"{root}/files/dead", "runs/other/files/alive"):
        bucket, name, _ = fs.split_path(key)
        fs.call_s3("create_multipart_upload", Bucket=bucket, Key=name)
    assert remote.abort_uploads("files") == 1
    assert remote.abort_uploads("files") == 0
    assert s3("other").abort_uploads("files") == 1


@pytest.mark.parametrize(
    "fault", [each for each in FAULTS if each not in ("cut answer", "short answer")]
)
def test_a_fault_of_an_upload_is_a_remote_error(proxy, fault):
    proxy.rule = lambda method, path: fault if method == "PUT" else None
    with pytest.raises(RemoteError) as caught:
        upload(s3(fault=fault), "files/a", b"0123456789")
    assert caught.value.file == "s3://runs/run/files/a"


@pytest.mark.parametrize("fault", ["500", "503", "deny", "drop", "hang", "cut answer"])
def test_a_fault_of_a_download_is_a_remote_error(proxy, fault):
    upload(s3(), "files/a", b"0123456789")
    proxy.rule = lambda method, path: fault if method == "GET" else None
    with pytest.raises(RemoteError):
        content(s3(fault=fault), "files/a")


def test_errors_have_no_credentials(proxy, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret-value")
    proxy.rule = lambda method, path: "deny"
    with pytest.raises(RemoteError) as caught:
        s3().list("files")
    assert "very-secret-value" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_unknown_scheme_is_an_error(tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        RemoteDirectory("nonsense://bucket/run").check_available()
    assert "nonsense" in str(caught.value)


def test_a_missing_package_is_an_error_that_names_the_extra():
    pytest.importorskip("fsspec")
    with pytest.raises(ConfigError) as caught:
        RemoteDirectory("gs://bucket/run").check_available()
    assert caught.value.suggestion.advice == "pip install 'hookline[gcs]'"
