"""`hookline hooks`: all hooks, or all about one of them."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import re
import textwrap
from difflib import get_close_matches
from typing import Any

import yaml

from hookline.cli.output import print_table, priority_label
from hookline.config.hook_list import short_name
from hookline.config.yaml_marks import Dumper
from hookline.engine import HOOKS, BaseHook
from hookline.errors import ConfigError
from hookline.signature import parameters

REQUIRED = object()
MOST_NAMED = 6


def run(args: argparse.Namespace) -> int:
    if args.name is None:
        print_table([(name, doc_of(cls).partition("\n")[0]) for name, cls in HOOKS.items()])
    else:
        _describe(*_find(args.name))
    return 0


def _find(name: str) -> tuple[str, type[BaseHook]]:
    """A hook by its name, in any case, by its short form (`early_stopping`) or by its dotted path."""
    if "." in name:
        return name, HOOKS.get(name)
    names = HOOKS.names()
    by_folded = {short_name(key): key for key in names} | {key.lower(): key for key in names}
    if name.lower() not in by_folded:
        raise ConfigError(f"unknown hook {name!r}{_nearest(name, names)}")
    found = by_folded[name.lower()]
    return found, HOOKS.get(found)


def _nearest(name: str, names: list[str]) -> str:
    """The end of an error message: a name so close that it must be meant, or else the hooks that speak of what it says."""
    wanted = _core(name)
    by_core = {_core(key): key for key in names}  # "Hook", which all have in common, brings no two of them closer
    if near := get_close_matches(wanted, by_core, n=1, cutoff=0.7):
        return f"; did you mean {by_core[near[0]]!r}?"
    words = [_core(word) for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z\d]+", name)]
    for word in dict.fromkeys([wanted, *(word for word in words if len(word) > 2)]):
        if word and (found := _speaking_of(word)):
            more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
            return f"; hooks that speak of {word!r}: {', '.join(found[:MOST_NAMED])}{more}"
    return "; `hookline hooks` lists them all"


def _core(name: str) -> str:
    return name.lower().replace("_", "").removesuffix("hook")


def _speaking_of(word: str) -> list[str]:
    """Hooks with a word in their name, in that of a parameter (which is shown) or in their description, in this order."""
    found: list[list[str]] = [[], [], []]
    for name, cls in {cls: (name, cls) for name, cls in HOOKS.items()}.values():  # a hook with two names once
        told = [key for key in parameters(HOOKS.signature_of(cls)).known if word in _core(key)]
        if word in _core(name):
            found[0].append(name)
        elif told:
            found[1].append(f"{name} ({told[0]})")
        elif re.search(rf"\b{re.escape(word)}", doc_of(cls).lower()):
            found[2].append(name)
    return [name for kind in found for name in kind]


def _describe(name: str, cls: type[BaseHook]) -> None:
    own = parameters(HOOKS.signature_of(cls))
    defaults = {key: default_of(cls, parameter) for key, parameter in own.known.items()}
    common = [key for key in HOOKS.COMMON if key not in own.known]
    print(f"{name}\n\n{doc_of(cls)}".rstrip())
    _section("parameters", [(key, type_of(parameter), shown(defaults[key])) for key, parameter in own.known.items()])
    print(f"  besides: {'any, ' if own.open_ended else ''}{', '.join(common)}")
    _section("sites", [(site,) for site in sites_of(cls)])
    _section("priority", [(priority_label(cls.priority),)])
    _section("state that checkpoints keep", [(field,) for field in state_of(cls)])
    print("\nexample")
    print(textwrap.indent(example(name, defaults), "  "), end="")


def _section(title: str, rows: list[tuple[str, ...]]) -> None:
    print(f"\n{title}")
    print_table([(f"  {first}", *rest) for first, *rest in rows] or [("  none",)])


def sites_of(cls: type[BaseHook]) -> list[str]:
    """All sites of a class, whatever an instance, as it is configured, would leave alone."""
    return [*BaseHook.get_triggered_stages(object.__new__(cls)), *cls.extra_sites]


def doc_of(cls: type) -> str:
    return inspect.cleandoc(cls.__doc__ or "")  # inspect.getdoc would take the base class's if there is none


def type_of(parameter: inspect.Parameter) -> str:
    hint = parameter.annotation
    return "" if hint is parameter.empty else hint if isinstance(hint, str) else inspect.formatannotation(hint)


def default_of(cls: type, parameter: inspect.Parameter) -> Any:
    if parameter.default is parameter.empty:
        return REQUIRED
    for field in _fields(cls):
        if field.name == parameter.name and field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
    return parameter.default


def _fields(cls: type) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()


def shown(default: Any) -> str:
    """A default as a config would have it."""
    return "required" if default is REQUIRED else f"= {json.dumps(default, ensure_ascii=False, default=repr)}"


def state_of(cls: type[BaseHook]) -> list[str]:
    names = [field.name for field in _fields(cls) if field.metadata.get("state")]
    return names if cls.state_dict is BaseHook.state_dict else [*names, "what its own state_dict() gives"]


def example(name: str, defaults: dict[str, Any]) -> str:
    """A config with every parameter; `???` stands where a value must be given."""
    hook = {"type": name} | {key: "???" if value is REQUIRED else value for key, value in defaults.items()}
    return yaml.dump({"hooks": [json.loads(json.dumps(hook, default=repr))]}, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
