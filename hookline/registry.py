"""Registries: classes by name, so that a config can build everything."""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar, cast, overload

from hookline.errors import ConfigError, KeyPath, Problem, Suggestion
from hookline.factories import CODE_ARGUMENTS, code_problems, is_factory, name_of
from hookline.foreign_names import suggest_class
from hookline.imports import BUILDING_LIBRARIES, check_origin, import_by_path
from hookline.signature import Part, check_arguments, check_positional, parameters

log = logging.getLogger(__name__)

T = TypeVar("T")
C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


class Registry(Generic[T]):
    """Classes of one kind by name. Builds instances from `{type: Name, …}`.

    Other packages add classes with the entry point group `hookline.<name>s`.

    Args:
        name: The noun for a class in messages, such as `hook`.
        kind: The base class that every registered class must have.
        home: The module that registers the built-in classes, directly or with `add_lazy`. It is
            imported on the first look-up.
        factories: Whether a function or class method may be used in place of a class, if it is
            registered or declared to return the kind (`hookline.factories.is_factory`), in the
            user's code or a library in `hookline.imports.BUILDING_LIBRARIES`. A config may also
            have positional arguments, the list `args`.
        parts: Builds the parts inside a config: mappings with the dotted path of a `type`.
    """

    # Parameters that every class here accepts in addition to its constructor's.
    COMMON: ClassVar[Mapping[str, type]] = {}

    def __init__(
        self,
        name: str,
        kind: type[T] | tuple[type, ...],
        home: str | None = None,
        factories: bool = False,
        parts: Registry[Any] | None = None,
    ) -> None:
        self.name = name
        self.factories = factories
        self.parts = parts
        self.kind = kind
        self._home = home
        self._classes: dict[str, type[T]] = {}
        self._lazy: dict[str, Callable[[str], object]] = {}
        self._complete = False

    @overload
    def register(self, name: F, *, force: bool = False) -> F: ...

    @overload
    def register(self, name: str | None = None, *, force: bool = False) -> Callable[[F], F]: ...

    def register(self, name: str | Callable[..., Any] | None = None, *, force: bool = False) -> Any:
        """Register the decorated class: `@HOOKS.register()` or `@HOOKS.register("Name")`.

        A function that builds a model, a data set or another part may be registered as well.

        Args:
            name: The class's name in configs; its own name by default.
            force: Replace a class that is already registered under the name.
        """
        if callable(name):  # used without parentheses
            self._add(name_of(name), name, force)
            return name

        def decorate(cls: F) -> F:
            self._add(name or name_of(cls), cls, force)
            return cls

        return decorate

    @overload
    def register_module(
        self, name: str | None = None, force: bool = False, *, module: type[C]
    ) -> type[C]: ...

    @overload
    def register_module(
        self, name: str | None = None, force: bool = False, module: None = None
    ) -> Callable[[type[C]], type[C]]: ...

    def register_module(
        self, name: str | None = None, force: bool = False, module: type[Any] | None = None
    ) -> Any:
        """Do the same as `register`, with the arguments of MMEngine and MMCV."""
        decorate = self.register(name, force=force)
        return decorate if module is None else decorate(module)

    def add_lazy(self, names: Iterable[str], load: Callable[[str], object]) -> None:
        """Announce classes that are imported on first use.

        Args:
            names: Names that may be looked up before the import. A name that stands for something
                else, such as a function of the same package, is ignored.
            load: Imports the object of a name. The import registers the class.
        """
        self._lazy.update(dict.fromkeys(names, load))

    def get(self, name: str) -> type[T]:
        """Return the class of a registered name or a dotted path.

        Raises:
            ConfigError: If there is no such class; with the nearest name as a suggestion.
        """
        known = self._look_up(name)
        if known is not None:
            return known
        if "." in name:
            return self._import(name)
        folded = {key.lower(): cls for key, cls in self.items()}
        if name.lower() in folded:
            return folded[name.lower()]
        suggestion = suggest_class(name, self._classes)
        message = f"unknown {self.name} {name!r}"
        raise ConfigError(message, path=("type",), parameter="type", suggestion=suggestion)

    def build(self, config: Mapping[str, Any] | T | str, **extra: Any) -> T:
        """Build an instance.

        Args:
            config: `{type: Name, …}` with the parameters of the class, or only the name. An
                instance is returned unchanged.
            extra: Further arguments of the class.

        Raises:
            ConfigError: With all problems of the config.
        """
        if isinstance(config, str):
            config = {"type": config}
        if not isinstance(config, Mapping):
            return config
        problems = self.check(config, frozenset(extra))
        if problems:
            raise ConfigError(problems)
        cls = self.get(config["type"])
        config = {"type": config["type"], **self._with_parts(self.arguments(config))}
        positional, named = self._split(cls, config)
        try:
            if not self.factories:
                return self.construct(cls, {**named, **extra})
            built = cls(*positional, **named, **extra)
        except (TypeError, ValueError) as error:  # Only the class itself can check this value.
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(str(error), component=name_of(cls)) from error
        return self._checked_result(built, cls)

    def check(
        self, config: Mapping[str, Any], provided: frozenset[str] = frozenset()
    ) -> list[Problem]:
        """Return the problems of a config, without building anything.

        Args:
            config: The config.
            provided: Names of arguments that `build` gets as `extra`.
        """
        name = config.get("type")
        if not isinstance(name, str):
            if name is None:
                return [Problem(f"missing 'type': the name of a {self.name}", parameter="type")]
            message = f"'type' must be the name of a {self.name}"
            return [Problem(message, ("type",), parameter="type", value=name)]
        try:
            cls = self.get(name)
        except ConfigError as error:
            return error.problems
        target = self.signature_of(cls)
        given, nested = self._without_parts(self.arguments(config), ())
        positional, named = self._split(cls, {"type": name, **given})
        if self.factories and "args" in named and "args" not in parameters(target).known:
            return [_needs_list(named["args"])]
        by_name, problems = check_positional(target, positional, named)
        problems += check_arguments(target, named, provided | set(by_name), self.COMMON)
        for index, (parameter, value) in enumerate(by_name.items()):
            if parameter in CODE_ARGUMENTS:  # code_problems sees only names.
                found = code_problems({parameter: value})
                problems += [replace(each, path=("args", index)) for each in found]
        return problems + code_problems(given) + nested

    def arguments(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the constructor in a config."""
        return {str(key): value for key, value in config.items() if key != "type"}

    def kinds(self) -> tuple[type, ...]:
        """Return the base classes, one of which every registered class must have."""
        return self.kind if isinstance(self.kind, tuple) else (self.kind,)

    def signature_of(self, cls: type[T]) -> Callable[..., Any]:
        """Return the callable that a config has the parameters of."""
        return cls

    def construct(self, cls: type[T], arguments: dict[str, Any]) -> T:
        """Construct an instance from checked arguments."""
        return cls(**arguments)

    def names(self) -> list[str]:
        """Return all registered names, sorted."""
        self._load_all()
        return sorted(self._classes)

    def items(self) -> list[tuple[str, type[T]]]:
        """Return all registered names with their classes, sorted by name."""
        self._load_all()
        return sorted(self._classes.items())

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and self._look_up(name) is not None:
            return True
        return name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def _is_part(self, value: Any) -> bool:
        if self.parts is None or not isinstance(value, Mapping):
            return False
        name = value.get("type")
        return isinstance(name, str) and ("." in name or name in self.parts)

    def _with_parts(self, value: Any) -> Any:
        """Return arguments with objects in place of the parts."""
        if self.parts is None:
            return value
        if self._is_part(value):
            return self.parts.build(value)
        if isinstance(value, Mapping):
            return {key: self._with_parts(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._with_parts(item) for item in value]
        return value

    def _without_parts(self, value: Any, path: KeyPath) -> tuple[Any, list[Problem]]:
        """Return arguments with a `Part` in place of each part, and the problems of the parts."""
        if self.parts is None:
            return value, []
        if self._is_part(value):
            return Part(), [each.below(*path) for each in self.parts.check(value)]
        keys: Iterable[Any] = ()
        if isinstance(value, Mapping):
            keys = list(value)
            value = dict(value)
        elif isinstance(value, list):
            keys = range(len(value))
            value = list(value)
        problems: list[Problem] = []
        for key in keys:
            value[key], found = self._without_parts(value[key], (*path, key))
            problems += found
        return value, problems

    def _split(self, cls: type[T], config: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return positional arguments, the list `args`, and named ones."""
        named = self.arguments(config)
        is_list = self.factories and isinstance(named.get("args"), list)
        if not is_list or "args" in parameters(cls).known:
            return [], named
        return named.pop("args"), named

    def _checked_result(self, built: Any, cls: Callable[..., Any]) -> T:
        """Return the object that a factory built; raise ConfigError if it is of another kind."""
        if isinstance(built, self.kinds()):
            return cast("T", built)
        message = f"returned a {type(built).__name__}, which is not a {self.name}"
        raise ConfigError(message, component=name_of(cls))

    def _add(self, name: str, cls: Any, force: bool) -> None:
        known = self._classes.get(name)
        if known is None or force or _full_name(known) == _full_name(cls):
            self._classes[name] = cls
            return
        if _is_ours(known) == _is_ours(cls):
            raise KeyError(
                f"{self.name} {name!r} is already registered as {_full_name(known)}; "
                "force=True replaces it"
            )
        # A user's class wins over the built-in one, whichever is imported first.
        users: type[Any] = cls if _is_ours(known) else known
        self._classes[name] = users
        log.warning("%s %r is %s, not the built-in class", self.name, name, _full_name(users))

    def _look_up(self, name: str) -> type[T] | None:
        self._load()
        if name not in self._classes and name in self._lazy:
            self._lazy[name](name)
        return self._classes.get(name)

    def _load_all(self) -> None:
        self._load()
        for name, load in list(self._lazy.items()):
            load(name)

    def _load(self) -> None:
        if self._complete:
            return
        self._complete = True  # Set first: the imports below look up names, too.
        if self._home:
            importlib.import_module(self._home)
        for entry in importlib.metadata.entry_points(group=f"hookline.{self.name}s"):
            if entry.name not in self._classes:
                self._load_entry_point(entry)

    def _load_entry_point(self, entry: importlib.metadata.EntryPoint) -> None:
        try:
            self._classes[entry.name] = self._checked(entry.load(), entry.value)
        except Exception as error:  # a broken package must not stop runs that do not use it
            package = entry.dist.name if entry.dist is not None else "?"
            log.warning(
                "%s %r of package %s cannot be used: %s", self.name, entry.name, package, error
            )

    def _import(self, path: str) -> type[T]:
        try:
            found = import_by_path(path, self.name, lambda value: isinstance(value, type))
            if self.factories and not isinstance(found, type):
                check_origin(found, path, BUILDING_LIBRARIES)
        except ConfigError as error:
            problems = [replace(each.below("type"), parameter="type") for each in error.problems]
            raise ConfigError(problems) from error
        return self._checked(found, path)

    def _checked(self, target: Any, path: str) -> type[T]:
        if isinstance(target, type) and issubclass(target, self.kinds()):
            return cast("type[T]", target)
        is_private = path.rpartition(".")[2].startswith("_")
        if self.factories and not is_private and is_factory(target, self.kinds()):
            return cast("type[T]", target)  # It is called in the same way.
        wanted = " or ".join(_full_name(kind) for kind in self.kinds())
        message = f"{path!r} is not a {self.name} class (a subclass of {wanted})"
        if self.factories and not isinstance(target, type):
            message += ", nor a function that is annotated to return one"
        raise ConfigError(message, path=("type",), parameter="type", value=path)


def _needs_list(args: Any) -> Problem:
    is_short = isinstance(args, (str, int, float))
    suggestion = Suggestion(f"args: [{args}]") if is_short else Suggestion()
    message = "'args' must be a list of positional arguments"
    about: dict[str, Any] = {"parameter": "args", "value": args, "suggestion": suggestion}
    return Problem(message, ("args",), **about)


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("hookline.")


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
