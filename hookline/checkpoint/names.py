"""Which names a checkpoint may have, and which ones are ours."""

from __future__ import annotations

import re
import secrets

from hookline.errors import ConfigError

MANIFEST = "checkpoints.json"
JOURNAL = "checkpoints.journal.json"
LOCK = ".hookline.lock"
LONGEST = 255  # bytes, the limit of every common file system


def check_name(name: str) -> str:
    """The same name if it is a plain file name that cannot lead out of its directory; else ConfigError."""
    if not isinstance(name, str) or not name:
        raise ConfigError(f"a checkpoint's name must be text, got {name!r}")
    if name in (".", "..") or "/" in name or "\\" in name:
        raise ConfigError(f"checkpoint name {name!r}: must be a file name in the checkpoint directory, without '/', '\\' or '..'")
    if not name.isprintable():  # control characters and unpaired surrogates
        raise ConfigError(f"checkpoint name {name!r}: holds characters that cannot be printed")
    if len(name.encode()) > LONGEST:
        raise ConfigError(f"checkpoint name {name[:40] + '…'!r}: longer than {LONGEST} bytes")
    if name in (MANIFEST, JOURNAL, LOCK) or is_temporary(name):
        raise ConfigError(f"checkpoint name {name!r}: the store uses this name itself")
    return name


def is_promise(name: str) -> bool:
    """Whether a name says that a checkpoint is one to use: the last, or the best in something."""
    return name.startswith(("last.", "best_"))


def safe_name(text: str) -> str:
    """Text such as a metric's name (`val/accuracy`) as a part of a file name (`val_accuracy`)."""
    return re.sub(r"[^\w.+=@-]", "_", text).strip(".") or "_"


def temporary_name() -> str:
    return f".hookline-{secrets.token_hex(8)}.tmp"


def is_temporary(name: str) -> bool:
    """Whether a file of this name is a leftover of ours."""
    return re.fullmatch(r"\.hookline-[0-9a-f]{16}\.tmp", name) is not None
