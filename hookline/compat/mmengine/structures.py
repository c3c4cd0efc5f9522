"""`mmengine.structures`: data and metadata that are passed between models and metrics."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from hookline.compat.missing import not_covered


class BaseDataElement:
    """Data such as tensors, boxes and labels as attributes, with metadata in `metainfo`.

    Only data is moved between devices.
    """

    def __init__(self, *, metainfo: dict[str, Any] | None = None, **kwargs: Any) -> None:
        self._metainfo_fields: set[str] = set()
        self._data_fields: set[str] = set()
        self.set_metainfo(metainfo or {})
        self.set_data(kwargs)

    def set_metainfo(self, metainfo: dict[str, Any]) -> None:
        for key, value in copy.deepcopy(metainfo).items():
            self.set_field(value, key, field_type="metainfo")

    def set_data(self, data: dict[str, Any]) -> None:
        for key, value in data.items():
            setattr(self, key, value)

    def update(self, instance: BaseDataElement) -> None:
        self.set_metainfo(dict(instance.metainfo_items()))
        self.set_data(dict(instance.items()))

    def new(self, *, metainfo: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        other = type(self)()
        other.set_metainfo(dict(self.metainfo_items()) if metainfo is None else metainfo)
        other.set_data(kwargs or dict(self.items()))
        return other

    def clone(self) -> Any:
        return copy.deepcopy(self)

    def keys(self) -> list[str]:
        return [key for key in self.__dict__ if key in self._data_fields]

    def values(self) -> list[Any]:
        return [getattr(self, key) for key in self.keys()]

    def items(self) -> Iterator[tuple[str, Any]]:
        return ((key, getattr(self, key)) for key in self.keys())

    def metainfo_keys(self) -> list[str]:
        return [key for key in self.__dict__ if key in self._metainfo_fields]

    def metainfo_items(self) -> Iterator[tuple[str, Any]]:
        return ((key, getattr(self, key)) for key in self.metainfo_keys())

    def all_keys(self) -> list[str]:
        return self.metainfo_keys() + self.keys()

    def all_items(self) -> Iterator[tuple[str, Any]]:
        return ((key, getattr(self, key)) for key in self.all_keys())

    @property
    def metainfo(self) -> dict[str, Any]:
        return dict(self.metainfo_items())

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key, default)

    def pop(self, key: str, *default: Any) -> Any:
        if key in self._data_fields or key in self._metainfo_fields:
            self._data_fields.discard(key)
            self._metainfo_fields.discard(key)
            return self.__dict__.pop(key)
        if default:
            return default[0]
        raise KeyError(f"{key} is not contained in metainfo or data")

    def set_field(self, value: Any, name: str, dtype: Any = None, field_type: str = "data") -> None:
        if dtype is not None and not isinstance(value, dtype):
            raise AssertionError(f"{value} should be a {dtype} but got {type(value)}")
        fields = {"data": self._data_fields, "metainfo": self._metainfo_fields}
        other = "metainfo" if field_type == "data" else "data"
        if name in fields[other]:
            raise AttributeError(
                f"Cannot set {name} to be a field of {field_type} because {name} is already "
                f"a {other} field"
            )
        fields[field_type].add(name)
        super().__setattr__(name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_metainfo_fields", "_data_fields"):
            super().__setattr__(name, value)
        elif isinstance(getattr(type(self), name, None), property) or name.startswith("_"):
            super().__setattr__(name, value)
            if name.startswith("_"):
                self._data_fields.add(name)
        else:
            self.set_field(value, name)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self._data_fields.discard(name)
        self._metainfo_fields.discard(name)

    def __contains__(self, name: str) -> bool:
        return name in self._data_fields or name in self._metainfo_fields

    def _map(self, kind: Any, function: Any) -> Any:
        """Return a new element with a function applied to the values of a type."""
        changed = {}
        for key, value in self.items():
            changed[key] = function(value) if isinstance(value, kind) else value
        other = type(self)()
        other.set_metainfo(dict(self.metainfo_items()))
        other.set_data(changed)
        return other

    def to(self, *args: Any, **kwargs: Any) -> Any:
        return self._map((torch.Tensor, BaseDataElement), lambda value: value.to(*args, **kwargs))

    def cpu(self) -> Any:
        return self._map((torch.Tensor, BaseDataElement), lambda value: value.cpu())

    def cuda(self) -> Any:
        return self._map((torch.Tensor, BaseDataElement), lambda value: value.cuda())

    def detach(self) -> Any:
        return self._map((torch.Tensor, BaseDataElement), lambda value: value.detach())

    def numpy(self) -> Any:
        def to_numpy(value: Any) -> Any:
            return value.detach().cpu().numpy()

        return self._map((torch.Tensor, BaseDataElement), to_numpy)

    def to_tensor(self) -> Any:
        return self._map(np.ndarray, torch.from_numpy)

    def to_dict(self) -> dict[str, Any]:
        """Return data and metadata as plain dicts."""
        values = {}
        for key, value in self.all_items():
            values[key] = value.to_dict() if isinstance(value, BaseDataElement) else value
        return values

    def __repr__(self) -> str:
        rows = "".join(f"\n    {key}: {value!r}" for key, value in self.all_items())
        return f"<{type(self).__name__}({rows}\n) at {hex(id(self))}>"


class InstanceData(BaseDataElement):
    """Fields of the same length, such as boxes and labels of objects; indexing selects objects."""

    def __len__(self) -> int:
        return len(self.values()[0]) if self.keys() else 0

    def __getitem__(self, item: Any) -> InstanceData:
        if isinstance(item, int):
            item = slice(item, item + 1 or None)
        other = type(self)(metainfo=self.metainfo)
        for key, value in self.items():
            if isinstance(value, list) and not isinstance(item, slice):
                other.set_field([value[index] for index in _indices(item)], key)
            else:
                other.set_field(value[item], key)
        return other

    @staticmethod
    def cat(instances_list: list[InstanceData]) -> InstanceData:
        """Return the concatenation of several elements."""
        first = instances_list[0]
        other = type(first)(metainfo=first.metainfo)
        for key in first.keys():  # noqa: SIM118  # iterating the element yields objects
            other.set_field(_concatenate([getattr(each, key) for each in instances_list]), key)
        return other


def _indices(item: Any) -> list[int]:
    """Return an index array, or a mask, as a list of indices."""
    index = np.asarray(item.cpu() if isinstance(item, torch.Tensor) else item)
    if index.dtype == bool:
        index = np.flatnonzero(index)
    return [int(number) for number in index]


def _concatenate(parts: list[Any]) -> Any:
    if isinstance(parts[0], torch.Tensor):
        return torch.cat(parts)
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return sum(parts, type(parts[0])())


class LabelData(BaseDataElement):
    """The labels of a whole sample."""

    @staticmethod
    def onehot_to_label(onehot: torch.Tensor) -> torch.Tensor:
        return onehot.nonzero().squeeze(-1)

    @staticmethod
    def label_to_onehot(label: torch.Tensor, num_classes: int) -> torch.Tensor:
        return label.new_zeros((num_classes,)).scatter_(0, label, 1)


class PixelData(BaseDataElement):
    """Maps of the same height and width, such as segmentations."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        return tuple(self.values()[0].shape[-2:]) if self.keys() else None


__all__ = ["BaseDataElement", "InstanceData", "LabelData", "PixelData"]
__getattr__ = not_covered(__name__, __all__)
