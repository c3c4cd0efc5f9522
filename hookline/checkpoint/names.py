"""Names of checkpoints, and the file names that the store keeps for itself."""

from __future__ import annotations

import re
import secrets
import string

from hookline.errors import ConfigError
from hookline.secrets import mask_text

MANIFEST = "checkpoints.json"
JOURNAL = "checkpoints.journal.json"
HIDDEN = "."  # the prefix of both in a directory where other programs read every visible .json file
LEDGERS = (MANIFEST, JOURNAL, HIDDEN + MANIFEST, HIDDEN + JOURNAL)
LEDGER_TEMPORARIES = tuple(f"{name}.tmp" for name in LEDGERS)
LOCK = ".hookline.lock"
MAX_NAME_BYTES = 255  # the limit of every common file system


def check_name(name: str) -> str:
    """Return a name that is a plain file name and cannot lead out of its directory.

    Raises:
        ConfigError: If it is anything else, or a name that the store uses itself.
    """
    if not isinstance(name, str) or not name:
        raise _name_error("must be text", name)
    if name in (".", "..") or "/" in name or "\\" in name:
        raise _name_error("must be a file name, without '/', '\\' or '..'", name)
    if not name.isprintable():  # control characters and unpaired surrogates
        raise _name_error("must consist of printable characters", name)
    if len(name.encode()) > MAX_NAME_BYTES:
        raise _name_error(f"must not be longer than {MAX_NAME_BYTES} bytes", name)
    if name in (*LEDGERS, *LEDGER_TEMPORARIES, LOCK) or is_temporary(name):
        raise _name_error("must not be a name that the store uses itself", name)
    return name


def is_number_template(template: str) -> bool:
    """Return whether a template such as `epoch_{:03d}.pth` makes short names from integers.

    The width of a field is checked before anything is formatted, because it is the size of the
    result.
    """
    try:
        fields = [field for field in string.Formatter().parse(template) if field[1] is not None]
    except ValueError:
        return False
    for _, name, width, conversion in fields:
        is_plain = name in ("", "0") and conversion is None
        if not is_plain or re.fullmatch(r"0?\d{0,2}d?", width or "") is None:
            return False
    return len(fields) == 1


def is_reserved_name(name: str) -> bool:
    """Return whether a name recommends its checkpoint, as the last or the best one."""
    return name.startswith(("last.", "best_"))


def safe_name(text: str) -> str:
    """Turn text such as `val/accuracy` into a part of a file name, `val_accuracy`.

    Secrets in it are masked.
    """
    return re.sub(r"[^\w.+=@-]", "_", mask_text(text)).strip(".") or "_"


def new_token() -> str:
    """Return random text that marks the temporary files of one store."""
    return secrets.token_hex(8)


def temporary_name(token: str = "") -> str:
    """Return a new name for a temporary file, with the token of the store that owns it."""
    return f".hookline-{token}-{secrets.token_hex(8)}.tmp"


def is_temporary(name: str, token: str | None = None) -> bool:
    """Return whether a file is temporary, by its name; with a token, only a file of its store."""
    match = re.fullmatch(r"\.hookline-([0-9a-f]*)-[0-9a-f]{16}\.tmp", name)
    if match is None:
        return False
    return token is None or match[1] == token


def shard_directory_name(step: int) -> str:
    """Return a new name for the directory with the shards of one checkpoint."""
    return f"shards_{step}_{secrets.token_hex(4)}"


def is_shard_directory(name: str) -> bool:
    """Return whether a name is one that `shard_directory_name` makes."""
    return re.fullmatch(r"shards_-?\d+_[0-9a-f]{8}", name) is not None


def _name_error(message: str, name: object) -> ConfigError:
    return ConfigError(message, component="checkpoint name", parameter="name", value=name)
