"""Names to classes, so that a config can build everything."""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from hookline.errors import ConfigError, Problem, suggest
from hookline.signature import check_arguments

log = logging.getLogger(__name__)

T = TypeVar("T")
C = TypeVar("C", bound=type)

# A dotted path names a class to build, and these modules hold nothing that a training config builds.
FORBIDDEN_MODULES = frozenset(
    {"os", "posix", "nt", "subprocess", "sys", "builtins", "shutil", "importlib", "runpy", "ctypes", "pickle", "socket", "pty"}
)


class Registry(Generic[T]):
    """Classes of one kind by name; builds them from `{type: Name, …}`.

    `home` is the module whose import registers the built-in ones; it is imported on the first look-up, so that
    registering costs nobody an import. Packages may announce more under the entry point group `hookline.<name>s`.
    """

    COMMON: ClassVar[Mapping[str, type]] = {}  # what every class here can be given, besides its own parameters

    def __init__(self, name: str, kind: type[T] | tuple[type, ...], home: str | None = None) -> None:
        self.name = name
        self.kind = kind
        self._home = home
        self._classes: dict[str, type[T]] = {}
        self._complete = False

    def register(self, name: str | type | None = None, *, force: bool = False) -> Any:
        """Decorator: `@HOOKS.register()` or `@HOOKS.register("Name")`."""
        if isinstance(name, type):  # used without parentheses
            return self.register()(name)

        def decorate(cls: C) -> C:
            key = name or cls.__name__
            known = self._classes.get(key)
            redefined = known is not None and (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
            if known is not None and not force and not redefined:
                if _is_ours(known) == _is_ours(cls):
                    raise KeyError(f"{self.name} {key!r} is registered already, as {_full_name(known)}; force=True replaces it")
                log.warning("%s %r is that of %s, not the built-in one", self.name, key, (cls if _is_ours(known) else known).__module__)
            if known is None or force or redefined or _is_ours(known):
                self._classes[key] = cls
            return cls

        return decorate

    def register_module(self, name: str | None = None, force: bool = False, module: type | None = None) -> Any:
        """The same as `register`, under the name and with the arguments that MMEngine and MMCV use."""
        if module is not None:
            return self.register(name, force=force)(module)
        return self.register(name, force=force)

    def get(self, name: str) -> type[T]:
        """The class of a registered name or a dotted path; ConfigError with a suggestion if there is none."""
        if (known := self._look_up(name)) is not None:
            return known
        if "." in name:
            return self._import(name)
        folded = {key.lower(): cls for key, cls in self.items()}
        if name.lower() in folded:
            return folded[name.lower()]
        raise ConfigError(Problem(f"unknown {self.name} {name!r}{suggest(name, self._classes)}", ("type",)))

    def build(self, config: Mapping[str, Any] | T | str, **extra: Any) -> T:
        """An instance from `{type: …, parameters…}`; a ready instance is passed through."""
        if isinstance(config, str):
            config = {"type": config}
        if not isinstance(config, Mapping):
            return config
        problems = self.check(config, frozenset(extra))
        if problems:
            raise ConfigError(problems)
        cls = self.get(config["type"])
        try:
            return self.construct(cls, {**self.arguments(config), **extra})
        except (TypeError, ValueError) as error:  # a value that only the class itself can judge
            raise ConfigError(Problem(str(error) if cls.__name__ in str(error) else f"{cls.__name__}: {error}")) from error

    def check(self, config: Mapping[str, Any], provided: frozenset[str] = frozenset()) -> list[Problem]:
        """What is wrong with a config, without building anything."""
        name = config.get("type")
        if not isinstance(name, str):
            what = "missing 'type'" if name is None else f"'type' must be text, got {name!r}"
            return [Problem(f"{what}: the name of a {self.name}", () if name is None else ("type",))]
        try:
            cls = self.get(name)
        except ConfigError as error:
            return error.problems
        return check_arguments(self.signature_of(cls), self.arguments(config), provided, self.COMMON)

    def arguments(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The part of a config that goes to the constructor."""
        return {str(key): value for key, value in config.items() if key != "type"}

    def signature_of(self, cls: type[T]) -> Callable[..., Any]:
        """What a config is checked against."""
        return cls

    def construct(self, cls: type[T], arguments: dict[str, Any]) -> T:
        return cls(**arguments)

    def names(self) -> list[str]:
        self._load_all()
        return sorted(self._classes)

    def items(self) -> list[tuple[str, type[T]]]:
        self._load_all()
        return sorted(self._classes.items())

    def __contains__(self, name: object) -> bool:
        return (isinstance(name, str) and self._look_up(name) is not None) or name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def _look_up(self, name: str) -> type[T] | None:
        self._load()
        if name not in self._classes and self._home:
            getattr(sys.modules.get(self._home), name, None)  # a home that imports its names on use registers this one now
        return self._classes.get(name)

    def _load_all(self) -> None:
        self._load()
        home = sys.modules.get(self._home or "")
        for name in getattr(home, "__all__", ()):
            getattr(home, name)

    def _load(self) -> None:
        if self._complete:
            return
        self._complete = True  # first, because the modules below look names up while they are imported
        if self._home:
            importlib.import_module(self._home)
        for entry in importlib.metadata.entry_points(group=f"hookline.{self.name}s"):
            if entry.name not in self._classes:
                try:
                    self._classes[entry.name] = self._checked(entry.load(), entry.value)
                except Exception as error:  # another package's fault must not stop runs that do not use it
                    log.warning("%s %r of package %s cannot be used: %s", self.name, entry.name, entry.dist and entry.dist.name, error)

    def _import(self, path: str) -> type[T]:
        module_name, _, attribute = path.rpartition(".")
        if module_name.split(".")[0] in FORBIDDEN_MODULES:
            raise ConfigError(Problem(f"{path!r}: module {module_name!r} may not be used from a config", ("type",)))
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name and not module_name.startswith(error.name):
                raise  # the user's module was found, and what it needs was not: its traceback tells more
            raise ConfigError(Problem(f"unknown {self.name} {path!r}: there is no module {module_name!r}", ("type",))) from error
        if not hasattr(module, attribute):
            raise ConfigError(Problem(f"module {module_name!r} has no {attribute!r}{suggest(attribute, _classes_of(module))}", ("type",)))
        return self._checked(getattr(module, attribute), path)

    def _checked(self, target: Any, path: str) -> type[T]:
        if not isinstance(target, type) or not issubclass(target, self.kind):
            kinds = self.kind if isinstance(self.kind, tuple) else (self.kind,)
            wanted = " or ".join(_full_name(kind) for kind in kinds)
            raise ConfigError(Problem(f"{path!r} is not a {self.name} class (a subclass of {wanted})", ("type",)))
        return target  # type: ignore[return-value]  # a subclass of the kind, as just found


def _classes_of(module: object) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, type)]


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("hookline.")


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
