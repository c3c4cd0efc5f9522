"""Load pickled tensors and plain values: nothing is executed, and no file crashes Python."""

from __future__ import annotations

import io
import pickle
import pickletools
import tarfile
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import torch

MAX_NESTED_TUPLES = 1000
# One hash may visit this many tuples, and this many times as many as the file has.
MAX_VISITS = 10_000
MAX_SHARES = 10
ZIP = b"PK\x03\x04"
MAX_EXPANSION = 10  # times the size of a zip file; torch.save does not compress
PICKLES_OF_OLD_FORMAT = 5  # magic number, version, platform, content, keys of storages
TUPLES = frozenset(["TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"])
PUTS = frozenset(["PUT", "BINPUT", "LONG_BINPUT"])
GETS = frozenset(["GET", "BINGET", "LONG_BINGET"])


class HostilePickle(ValueError):
    """A pickle that would crash or hang a process."""


def load_plain(stream: BinaryIO) -> Any:
    """Load a file of torch.save to the CPU, with the restricted unpickler of torch.

    Raises:
        HostilePickle: If tuples are nested as in no honest file.
        UnpicklingError: If torch.save did not write the file, or it refers to code.
        Exception: Any error of torch, if the file is damaged.
    """
    position = stream.tell()
    try:
        for data in _pickles(stream):
            check_nesting(data)
    except HostilePickle:
        raise
    except ValueError as error:
        raise pickle.UnpicklingError(str(error)) from error
    stream.seek(position)
    return torch.load(stream, map_location="cpu", weights_only=True)


def check_nesting(stream: BinaryIO) -> None:
    """Read one pickle without building anything; raise ValueError for hostile tuples.

    A key of a dict is hashed. For deeply nested tuples this exhausts the stack of the process, and
    for tuples that share their items at every level it never ends. Other containers have no hash.
    """
    stack: list[_Tuples | None] = []  # the tuples in each value; None is a mark
    memo: dict[Any, _Tuples | None] = {}
    count = 0
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            if opcode.name in PUTS:
                memo[argument] = stack[-1]
            elif opcode.name == "MEMOIZE":
                memo[len(memo)] = stack[-1]
            elif opcode.name in GETS:
                stack.append(memo[argument])
            elif opcode.name == "DUP":
                stack.append(stack[-1])
            elif opcode.name == "MARK":
                stack.append(None)
            elif opcode.name in TUPLES:
                count += 1
                stack.append(_join(_pop_arguments(opcode, stack)))
                _check_tuples(stack[-1], count)
            else:
                _pop_arguments(opcode, stack)
                stack += [NO_TUPLES] * len(opcode.stack_after)
    except (IndexError, KeyError) as error:
        raise ValueError("not a complete pickle") from error


class _Tuples(NamedTuple):
    """How deep tuples are nested in a value, and how many of them a hash visits."""

    depth: int
    visits: int


NO_TUPLES = _Tuples(0, 0)


def _join(items: list[_Tuples]) -> _Tuples:
    """Return the tuples in a tuple of these items."""
    depth = 1 + max((item.depth for item in items), default=0)
    return _Tuples(depth, 1 + sum(item.visits for item in items))


def _check_tuples(found: _Tuples | None, count: int) -> None:
    """Raise ValueError if a tuple cannot be hashed in time; `count` tuples were made so far."""
    if found is None:
        return
    if found.depth > MAX_NESTED_TUPLES:
        raise HostilePickle(f"tuples nested deeper than {MAX_NESTED_TUPLES} levels")
    if found.visits > MAX_VISITS + MAX_SHARES * count:
        raise HostilePickle("nested tuples that share their items too often")


def _pop_arguments(opcode: pickletools.OpcodeInfo, stack: list[_Tuples | None]) -> list[_Tuples]:
    """Remove the arguments of an opcode from the stack and return them."""
    arguments = []
    count = len(opcode.stack_before)
    if pickletools.markobject in opcode.stack_before:
        count = opcode.stack_before.index(pickletools.markobject)
        while (item := stack.pop()) is not None:
            arguments.append(item)
    for _ in range(count):
        arguments.append(stack.pop() or NO_TUPLES)
    return arguments


def _pickles(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Yield each pickle that torch.load reads from a file, in its zip format or its old one."""
    position = stream.tell()
    is_zip = stream.read(len(ZIP)) == ZIP
    stream.seek(position)
    if is_zip:
        _check_expansion(stream)
        stream.seek(position)
        # The reader of torch.load itself: another one might find another record.
        reader = torch._C.PyTorchFileReader(stream)  # noqa: SLF001
        yield io.BytesIO(reader.get_record("data.pkl"))
        return
    if tarfile.is_tarfile(stream):
        raise HostilePickle("the tar format of torch 0.1 is not supported")
    stream.seek(position)
    for _ in range(PICKLES_OF_OLD_FORMAT):
        yield stream


def _check_expansion(stream: BinaryIO) -> None:
    """Raise HostilePickle if a small zip file unpacks to a size that exhausts memory."""
    size = stream.seek(0, io.SEEK_END)
    try:
        with zipfile.ZipFile(stream) as archive:
            expanded = sum(record.file_size for record in archive.infolist())
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from error
    if expanded > MAX_EXPANSION * size:
        raise HostilePickle(f"{size:,} bytes that unpack to {expanded:,}")
