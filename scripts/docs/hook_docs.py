"""Read the documentation of a hook from its class: docstring, parameters, state and sites."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import types
import typing
from typing import Any, NamedTuple

import griffe
import yaml

import hookline.hooks
from hookline.config.hook_list import short_name
from hookline.engine import HOOKS, SITE_NAMES, BaseHook, Priority, get_priority
from hookline.signature import parameters


class Row(NamedTuple):
    """A parameter or a state field. Only an optional parameter has a default."""

    name: str
    type: str
    meaning: str
    required: bool = False
    default: str = ""


class HookDoc:
    """The documentation of one hook class.

    Attributes:
        text: The docstring without its sections.
        meanings: The meaning of each parameter. A parameter of a base class is described there.
        attributes: The content of each state field, in the same way.
        state_note: Further state of the hook in a checkpoint.
        example: A code block in YAML, or in Python for a hook that a config cannot build.
    """

    def __init__(self, cls: type[BaseHook]) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.text = ""
        self.example = ""
        self.state_note = ""
        self.meanings: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        for base in reversed(cls.__mro__[: cls.__mro__.index(BaseHook)]):
            self._read(base)

    @property
    def summary(self) -> str:
        """The first line."""
        return self.text.partition("\n")[0]

    @property
    def page(self) -> str:
        """The file name of the page, which is that of the module if it holds only this hook."""
        module = self.cls.__module__.rpartition(".")[2]
        if module.replace("_", "") == self.name.lower():
            return f"{module}.md"
        return f"{short_name(self.name)}_hook.md"

    @functools.cached_property
    def aliases(self) -> list[str]:
        """Other names under which the hook is registered."""
        return [name for name, cls in HOOKS.items() if cls is self.cls and name != self.name]

    @property
    def priority(self) -> str:
        """The priority as a number, with its name if it has one."""
        number = get_priority(self.cls.priority)
        names = [priority.name for priority in Priority if priority == number]
        return " ".join([*names, str(number)])

    def parameters(self) -> list[Row]:
        """Return the parameters, without those that every hook has."""
        found = parameters(self.cls)
        rows = []
        for name, parameter in found.known.items():
            if name in HOOKS.COMMON and name not in self.meanings:
                continue
            kind = _type_name(found.hints.get(name, parameter.annotation))
            required = parameter.default is parameter.empty
            default = "" if required else self._default(parameter)
            rows.append(Row(name, kind, self.meanings.get(name, ""), required, default))
        return rows

    def state_fields(self) -> list[Row]:
        """Return the fields that a checkpoint keeps."""
        rows = []
        for field in self._fields():
            if field.metadata.get("state"):
                kind = str(field.type).replace(" | ", " or ").replace("None", "null")
                rows.append(Row(field.name, kind, self.attributes.get(field.name, "")))
        return rows

    def sites(self) -> list[str]:
        """Return the sites at which the class has a method."""
        own = [
            site for site in SITE_NAMES if getattr(self.cls, site) is not getattr(BaseHook, site)
        ]
        return [*own, *self.cls.extra_sites]

    def example_config(self) -> dict[str, Any] | None:
        """Return the hook of the example as a config, None if the example is Python."""
        language, _, code = self.example.removesuffix("```").partition("\n")
        if language != "```yaml":
            return None
        (config,) = yaml.safe_load(code)["hooks"]
        return dict(config)

    def _read(self, base: type) -> None:
        """Add the docstring of the class itself or of a base class."""
        doc = vars(base).get("__doc__")
        if not doc:
            return
        self.text = ""
        self.example = ""
        docstring = griffe.Docstring(inspect.cleandoc(doc))
        sections = docstring.parse("google", warn_missing_types=False, warn_unknown_params=False)
        for section in sections:
            if section.kind is griffe.DocstringSectionKind.text:
                self.text += section.value
            elif section.kind is griffe.DocstringSectionKind.parameters:
                self.meanings.update(_descriptions(section))
            elif section.kind is griffe.DocstringSectionKind.attributes:
                self.attributes.update(_descriptions(section))
            elif section.title == "State":
                self.state_note = section.value.contents
            elif section.title == "Example":
                self.example = section.value.contents

    def _default(self, parameter: inspect.Parameter) -> str:
        """Return a default as a config would write it."""
        default = parameter.default
        for field in self._fields():
            if field.name == parameter.name and field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
        return json.dumps(default, ensure_ascii=False, default=repr)

    def _fields(self) -> tuple[dataclasses.Field[Any], ...]:
        return dataclasses.fields(self.cls) if dataclasses.is_dataclass(self.cls) else ()


def all_hooks() -> list[HookDoc]:
    """Return the documentation of every built-in hook, by name."""
    names = [name for name in dir(hookline.hooks) if name in HOOKS]
    return [HookDoc(HOOKS.get(name)) for name in names]


def _descriptions(section: Any) -> dict[str, str]:
    return {item.name: " ".join(item.description.split()) for item in section.value}


def _type_name(hint: Any) -> str:
    """Write a type as a config sees it, such as `int or null`."""
    if hint is type(None):
        return "null"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_type_name(each) for each in typing.get_args(hint))
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(repr(value) for value in typing.get_args(hint))
    text = hint if isinstance(hint, str) else inspect.formatannotation(hint)
    for module in ("collections.abc.", "torch.nn.modules.module.", "typing."):
        text = text.replace(module, "")
    return text.replace(" | ", " or ").replace("None", "null")
