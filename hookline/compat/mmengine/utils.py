"""`mmengine.utils`: classes with named instances."""

from __future__ import annotations

from typing import Any, TypeVar

from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE

M = TypeVar("M", bound="ManagerMixin")


class ManagerMeta(type):
    """A metaclass whose classes each have a table of instances."""

    def __init__(cls, *args: Any) -> None:
        cls._instance_dict: dict[str, Any] = {}
        super().__init__(*args)


class ManagerMixin(metaclass=ManagerMeta):
    """A class whose instances have names; the newest one is the current one."""

    def __init__(self, name: str) -> None:
        self.instance_name = name

    @classmethod
    def get_instance(cls: type[M], name: str, **kwargs: Any) -> M:
        """Return the instance with a name; the first call makes it with `kwargs`."""
        if name not in cls._instance_dict:
            cls._instance_dict[name] = cls(name, **kwargs)
        return cls._instance_dict[name]  # type: ignore[no-any-return]

    @classmethod
    def get_current_instance(cls: type[M]) -> M:
        """Return the newest instance."""
        if not cls._instance_dict:
            return cls.get_instance("mmengine")
        return next(reversed(cls._instance_dict.values()))  # type: ignore[no-any-return]

    @classmethod
    def check_instance_created(cls, name: str) -> bool:
        return name in cls._instance_dict


__getattr__ = not_covered(__name__, advice=ADVICE)
