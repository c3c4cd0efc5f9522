"""A directory in object storage: read, write, list and delete files by their keys."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from hookline.errors import ConfigError, HooklineError, Suggestion
from hookline.remote.urls import has_password, shown
from hookline.secrets import mask_text

CHUNK_BYTES = 1 << 20
PART_BYTES = 16 << 20  # of an upload in several parts
MAX_PARTS = 5000  # S3 allows 10,000.
MAX_DELETED_AT_ONCE = 500
MAX_READ_BYTES = 100 << 20  # of a file that is read as a whole

# The packages for schemes, where an extra installs them.
EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "az": "azure",
    "abfs": "azure",
    "hf": "finetune",
}
USE_SETTINGS = Suggestion(
    advice="use environment variables or the settings of the storage's package"
)

Progress = Callable[[int], object]


class RemoteError(HooklineError):
    """A request to object storage failed; its message has no secrets."""


class RemoteFileMissing(RemoteError):
    """There is no such file in object storage."""


class RemoteDirectory:
    """A directory in object storage.

    Every failure of a request is a RemoteError. A key is a path relative to the directory.

    Args:
        url: Where the directory is. Credentials come from the environment or from the settings of
            the storage's package.
        options: Settings for the file system of fsspec.

    Attributes:
        received: The number of bytes that were downloaded.
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        self.url = url.rstrip("/")
        self._options = dict(options or {})
        self.received = 0
        self._opened: tuple[Any, str] | None = None

    def check_available(self) -> None:
        """Raise ConfigError if no installed package can open the URL, or if it is not allowed.

        It must not have a password, which packages repeat in their errors. In a chain such as
        `reference://run::https://host/list.json`, a file at the second URL is a program for
        templates, and may name any file of this machine.
        """
        import fsspec

        if has_password(self.url):
            raise ConfigError("must be a URL without credentials", suggestion=USE_SETTINGS)
        if "::" in self.url:
            suggestion = Suggestion(advice="name one storage, without '::'")
            raise ConfigError("must not be a chain of URLs", suggestion=suggestion)
        scheme = self.url.partition("://")[0]
        try:
            fsspec.get_filesystem_class(scheme)
        except ImportError as error:
            extra = EXTRAS.get(scheme)
            advice = f"pip install 'hookline[{extra}]'" if extra else mask_text(str(error))
            message = f"the package for {scheme}:// is not installed"
            raise ConfigError(message, suggestion=Suggestion(advice=advice)) from error
        except ValueError as error:
            raise ConfigError(f"unknown scheme {scheme}://", value=shown(self.url)) from error

    def read(self, key: str) -> bytes | None:
        """Return the content of a small file; None if there is no such file."""
        with self._requests("read", key) as (fs, path):
            try:
                size = fs.info(path)["size"]
                if size > MAX_READ_BYTES:
                    raise OSError(errno.EFBIG, f"the file is too large ({size:,} bytes)")
                return bytes(fs.cat_file(path))
            except FileNotFoundError:
                return None

    def create(self, key: str, data: bytes) -> bool:
        """Write a new small file; return False if there is one already.

        The write is conditional if the storage has that.
        """
        with self._requests("create", key) as (fs, path):
            if fs.exists(path):
                return False
            try:
                fs.pipe_file(path, data, mode="create")
            except FileExistsError:
                return False
            except (NotImplementedError, OSError) as error:
                if isinstance(error, OSError) and error.errno != errno.ENOSYS:
                    raise
                fs.pipe_file(path, data)  # The storage has no conditional writes.
        return True

    def upload(self, key: str, source: BinaryIO, size: int, progress: Progress) -> None:
        """Write the next `size` bytes of a file. In object storage, a killed upload leaves no file.

        Raises:
            RemoteError: If the storage fails, or if it has another number of bytes afterwards.
        """
        with self._requests("upload", key) as (fs, path):
            part = max(PART_BYTES, -(-size // MAX_PARTS))
            if size <= part:
                data = source.read(size)
                fs.pipe_file(path, data)
                progress(len(data))
            else:
                _upload_in_parts(fs.open(path, "wb", block_size=part), source, size, progress)
            fs.invalidate_cache()
            found = fs.info(path)["size"]
            if found != size:
                raise OSError(errno.EIO, f"the storage has {found:,} bytes instead of {size:,}")

    def download(
        self, key: str, write: Callable[[bytes], object], expected: int | None = None
    ) -> None:
        """Pass the content of a file to a function, piece by piece.

        Args:
            key: The file.
            write: The function.
            expected: The size of the file. Reading a larger one ends soon after that many bytes.

        Raises:
            RemoteFileMissing: If there is no such file.
        """
        settings = {"block_size": PART_BYTES, "cache_type": "readahead"}
        with self._requests("download", key) as (fs, path), fs.open(path, "rb", **settings) as file:
            size = 0
            while data := file.read(CHUNK_BYTES):
                write(data)
                size += len(data)
                self.received += len(data)
                if expected is not None and size > expected:
                    return

    def list(self, key: str) -> list[str]:
        """Return the keys of all files below a directory."""
        with self._requests("list", key) as (fs, path):
            fs.invalidate_cache()
            root = path[: len(path) - len(key)]
            try:
                found = fs.find(path)
            except FileNotFoundError:
                return []
            return sorted(each[len(root) :] for each in found if each.startswith(root))

    def remove(self, keys: Iterable[str]) -> None:
        """Delete files; those that do not exist are ignored."""
        if self.url.startswith("hf://"):  # Its package takes no list.
            for key in keys:
                request = self._requests("delete", key)
                with request as (fs, path), contextlib.suppress(FileNotFoundError):
                    fs.rm(path)
            return
        waiting = list(keys)
        while waiting:
            some, waiting = waiting[:MAX_DELETED_AT_ONCE], waiting[MAX_DELETED_AT_ONCE:]
            with self._requests("delete", some[0]) as (fs, path):
                root = path[: len(path) - len(some[0])]
                with contextlib.suppress(FileNotFoundError):
                    fs.rm([f"{root}{key}" for key in some])

    def abort_uploads(self, key: str) -> int:
        """Discard the parts of uploads that were killed; return their number.

        Other storages than S3 do that themselves.
        """
        with self._requests("list", key) as (fs, path):
            if not hasattr(fs, "abort_mpu"):
                return 0
            bucket, prefix, _ = fs.split_path(path)
            answer = fs.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=f"{prefix}/")
            uploads = answer.get("Uploads", [])
            for upload in uploads:
                fs.abort_mpu(bucket, upload["Key"], upload["UploadId"])
            return len(uploads)

    @contextlib.contextmanager
    def _requests(self, action: str, key: str) -> Iterator[tuple[Any, str]]:
        """Yield the file system and the full path of a key; errors become RemoteError."""
        try:
            fs, root = self._open()
            yield fs, f"{root}/{key}"
        except ConfigError:
            raise
        # The packages of storages raise errors of many kinds, and their texts may have secrets.
        except Exception as error:
            reason = mask_text(str(error)) or type(error).__name__
            kind = RemoteFileMissing if isinstance(error, FileNotFoundError) else RemoteError
            where = shown(f"{self.url}/{key}")
            raise kind(f"cannot {action}: {reason}", file=where) from None

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            import fsspec

            self.check_available()
            options = {"use_listings_cache": False, "skip_instance_cache": True, **self._options}
            if self.url.startswith(("file://", "local://")):
                options["auto_mkdir"] = True
            if self.url.startswith(("s3://", "s3a://")):
                # A damaged answer is noticed by our hash; an error here would look like a failure.
                unchecked = {"response_checksum_validation": "when_required"}
                options["config_kwargs"] = {**unchecked, **options.get("config_kwargs", {})}
            fs, root = fsspec.core.url_to_fs(self.url, **options)
            self._opened = fs, root.rstrip("/")
        return self._opened


def _upload_in_parts(target: Any, source: BinaryIO, size: int, progress: Progress) -> None:
    """Write to an open remote file. After a failure its parts are discarded."""
    left = size
    try:
        while left:
            data = source.read(min(left, CHUNK_BYTES))
            if not data:
                raise OSError(errno.EIO, f"the local file is {left:,} bytes shorter than before")
            target.write(data)
            left -= len(data)
            progress(len(data))
        target.close()
    except BaseException:
        with contextlib.suppress(Exception):
            target.discard()
        with contextlib.suppress(AttributeError):
            target.closed = True  # Otherwise the garbage collector completes the upload.
        raise
