"""Read the index of shards that release 0.1.0 wrote, which is a pickle.

The unpickler resolves a closed list of names, each to a stand-in that holds data and does nothing.
Nothing of torch is built or called. The data are then converted to the JSON index and validated
like one.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Mapping
from typing import Any

from hookline.checkpoint.pickles import check_nesting
from hookline.checkpoint.shard_metadata import FORMAT
from hookline.checkpoint.shards import DTYPES

FILE_NAME = ".metadata"
METADATA = "torch.distributed.checkpoint.metadata"
RECORDS = [
    (METADATA, "BytesStorageMetadata"),
    (METADATA, "ChunkStorageMetadata"),
    (METADATA, "Metadata"),
    (METADATA, "MetadataIndex"),
    (METADATA, "StorageMeta"),
    (METADATA, "TensorProperties"),
    (METADATA, "TensorStorageMetadata"),
    (METADATA, "_MEM_FORMAT_ENCODING"),
    ("pathlib", "PosixPath"),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    ("torch.serialization", "_get_layout"),
]


def convert(data: bytes) -> bytes:
    """Return the JSON index for a pickled one; raise ValueError if it refers to anything else."""
    unpickler = ClosedUnpickler(data)
    check_nesting(io.BytesIO(data))
    try:
        tensors = _convert_metadata(unpickler.load())
    except ValueError:
        raise
    except Exception as error:  # a pickle can raise anything
        raise ValueError(f"not an index of shards ({type(error).__name__}: {error})") from error
    return json.dumps({"format": FORMAT, "tensors": tensors}).encode()


class ClosedUnpickler(pickle.Unpickler):
    """An unpickler that resolves only the names of its table, without looking anything up."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.table = make_table()

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.table:
            raise ValueError(f"refused: refers to {module}.{name}")
        return self.table[module, name]


def make_table() -> dict[tuple[str, str], Any]:
    """Return the admitted names with their stand-ins.

    The stand-ins are made for each file, so that a file cannot change them for the next one.
    """
    table: dict[tuple[str, str], Any] = {("torch", name): name for name in DTYPES}
    table["torch", "Size"] = tuple
    table["builtins", "set"] = tuple
    table["collections", "OrderedDict"] = dict
    for module, name in RECORDS:
        table[module, name] = _make_record_class(name)
    return table


def _make_record_class(name: str) -> type:
    """Return a class whose objects hold the pickled state of an object of that name."""

    def __init__(self: Any, *args: Any) -> None:
        pass

    def __setstate__(self: Any, state: Any) -> None:
        self.__dict__["pickled"] = state

    return type(name, (), {"__init__": __init__, "__setstate__": __setstate__})


def _convert_metadata(metadata: Any) -> dict[str, Any]:
    """Return the tensors of an index as JSON has them."""
    content = _state(metadata, "Metadata")
    places: dict[tuple[str, tuple[int, ...]], Mapping[str, Any]] = {}
    for index, place in content["storage_data"].items():
        key = _state(index, "MetadataIndex")
        places[key["fqn"], tuple(key["offset"] or ())] = _state(place, "_StorageInfo")
    tensors = {}
    for key, item in content["state_dict_metadata"].items():
        tensor = _state(item, "TensorStorageMetadata")
        chunks = []
        for each in tensor["chunks"]:
            chunk = _state(each, "ChunkStorageMetadata")
            place = places[key, tuple(chunk["offsets"])]
            chunks.append(
                {
                    "offset": list(chunk["offsets"]),
                    "shape": list(chunk["sizes"]),
                    "file": place["relative_path"],
                    "start": place["offset"],
                    "length": place["length"],
                }
            )
        dtype = _state(tensor["properties"], "TensorProperties")[0]
        tensors[key] = {"shape": list(tensor["size"]), "dtype": dtype, "chunks": chunks}
    return tensors


def _state(record: Any, kind: str) -> Any:
    """Return the state of a record; raise ValueError if it is of another kind."""
    if type(record).__name__ != kind:
        raise ValueError(f"not an index of shards: {type(record).__name__} instead of {kind}")
    return record.__dict__["pickled"]
