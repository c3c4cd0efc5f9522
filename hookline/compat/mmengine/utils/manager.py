"""Classes with global instances by name: loggers, message hubs and visualizers."""

from __future__ import annotations

from typing import Any, TypeVar

M = TypeVar("M", bound="ManagerMixin")


class ManagerMeta(type):
    """A metaclass whose classes each have a table of instances."""

    def __init__(cls, *args: Any) -> None:
        cls._instance_dict: dict[str, Any] = {}
        super().__init__(*args)


class ManagerMixin(metaclass=ManagerMeta):
    """A class whose instances have names; the newest one is the current one."""

    def __init__(self, name: str = "", **kwargs: Any) -> None:
        if not isinstance(name, str) or not name:
            raise AssertionError(f"name must be a non-empty string, but got {name!r}")
        self._instance_name = name

    @classmethod
    def get_instance(cls: type[M], name: str, **kwargs: Any) -> M:
        """Return the instance with a name; the first call makes it with `kwargs`."""
        if not isinstance(name, str):
            raise AssertionError(f"type of name should be str, but got {type(name)}")
        if name not in cls._instance_dict:
            cls._instance_dict[name] = cls(name=name, **kwargs)
        return cls._instance_dict[name]  # type: ignore[no-any-return]

    @classmethod
    def get_current_instance(cls) -> Any:
        if not cls._instance_dict:
            raise RuntimeError(
                f"Before calling {cls.__name__}.get_current_instance(), you should call "
                "get_instance(name=xxx)"
            )
        return next(reversed(cls._instance_dict.values()))

    @classmethod
    def check_instance_created(cls, name: str) -> bool:
        return name in cls._instance_dict

    @property
    def instance_name(self) -> str:
        return self._instance_name
