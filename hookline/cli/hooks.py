"""`hookline hooks`: list all hooks, or describe one."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import textwrap
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import yaml

from hookline.cli.output import print_json, print_table, priority_label
from hookline.cli.printing import show
from hookline.config.hook_list import short_name
from hookline.config.yaml_marks import Dumper
from hookline.engine import HOOKS, BaseHook, get_priority
from hookline.errors import ConfigError, Suggestion

REQUIRED = object()
MAX_LISTED = 6
MIN_SIMILARITY = 0.7
MIN_WORD_LENGTH = 3
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z\d]+")


def run(name: str | None, as_json: bool) -> int:
    """Print the list of all hooks, or the description of one."""
    if name is None:
        summaries = {key: doc_of(cls).partition("\n")[0] for key, cls in HOOKS.items()}
        if as_json:
            print_json(summaries)
        else:
            print_table(list(summaries.items()))
        return 0
    full_name = find_hook(name)
    if as_json:
        print_json(_as_dict(full_name, HOOKS.get(full_name)))
    else:
        _describe(full_name, HOOKS.get(full_name))
    return 0


def find_hook(name: str) -> str:
    """Return the registered name for a name in any case or its short form; keep a dotted path."""
    if "." in name:
        return name
    by_lower_case = {}
    for known in HOOKS.names():
        by_lower_case[short_name(known)] = known
        by_lower_case[known.lower()] = known
    if name.lower() not in by_lower_case:
        raise ConfigError(f"unknown hook {name!r}", suggestion=_suggest_hook(name))
    return by_lower_case[name.lower()]


# Suggestions for an unknown name


def _suggest_hook(name: str) -> Suggestion:
    """Suggest a hook with a similar name, or else hooks whose description fits the name."""
    by_core = {_core(known): known for known in HOOKS.names()}
    near = get_close_matches(_core(name), by_core, n=1, cutoff=MIN_SIMILARITY)
    if near:
        return Suggestion(nearest=by_core[near[0]])
    for word in _search_words(name):
        found = _search_hooks(word)
        if found:
            listed = ", ".join(found[:MAX_LISTED])
            rest = len(found) - MAX_LISTED
            more = f" and {rest} more" if rest > 0 else ""
            return Suggestion(advice=f"hooks about {word!r}: {listed}{more}")
    return Suggestion(advice="`hookline hooks` lists all hooks")


def _core(name: str) -> str:
    """Return a name without its ending "Hook", which makes all names look similar."""
    return name.lower().replace("_", "").removesuffix("hook")


def _search_words(name: str) -> list[str]:
    """Return the whole name, then its words, without repetitions."""
    words = [_core(name)]
    for part in WORD.findall(name):
        word = _core(part)
        if len(word) >= MIN_WORD_LENGTH and word not in words:
            words.append(word)
    return [word for word in words if word]


def _search_hooks(word: str) -> list[str]:
    """Return the hooks with a word in their name, then in a parameter, then in their docstring."""
    by_name: list[str] = []
    by_parameter: list[str] = []
    by_description: list[str] = []
    # A hook with two names is searched once.
    hooks = {cls: name for name, cls in HOOKS.items()}
    for cls, name in hooks.items():
        known = HOOKS.own_parameters(cls).known
        fitting = [key for key in known if word in _core(key)]
        if word in _core(name):
            by_name.append(name)
        elif fitting:
            by_parameter.append(f"{name} ({fitting[0]})")
        elif re.search(rf"\b{re.escape(word)}", doc_of(cls).lower()):
            by_description.append(name)
    return by_name + by_parameter + by_description


# The description of a hook


def _describe(name: str, cls: type[BaseHook]) -> None:
    own = HOOKS.own_parameters(cls)
    defaults = {key: default_of(cls, parameter) for key, parameter in own.known.items()}
    rows = [(key, type_of(parameter), shown(defaults[key])) for key, parameter in own.known.items()]
    common = [key for key in HOOKS.COMMON if key not in own.known]
    if own.open_ended:
        common.insert(0, "any other")
    show(f"{name}\n\n{doc_of(cls)}".rstrip())
    _print_section("parameters", rows)
    show(f"  also: {', '.join(common)}")
    _print_section("sites", [(site,) for site in sites_of(cls)])
    _print_section("priority", [(priority_label(cls.priority),)])
    _print_section("state in checkpoints", [(field,) for field in state_of(cls)])
    show("\nexample")
    show(textwrap.indent(example(name, defaults), "  "), end="")


def _as_dict(name: str, cls: type[BaseHook]) -> dict[str, Any]:
    parameters = {}
    for key, parameter in HOOKS.own_parameters(cls).known.items():
        default = default_of(cls, parameter)
        parameters[key] = {"type": type_of(parameter), "required": default is REQUIRED}
        if default is not REQUIRED:
            parameters[key]["default"] = json.loads(json.dumps(default, default=repr))
    return {
        "name": name,
        "doc": doc_of(cls),
        "parameters": parameters,
        "sites": sites_of(cls),
        "priority": get_priority(cls.priority),
        "state": state_of(cls),
    }


def _print_section(title: str, rows: Sequence[tuple[str, ...]]) -> None:
    show(f"\n{title}")
    print_table([(f"  {first}", *rest) for first, *rest in rows] or [("  none",)])


def sites_of(cls: type[BaseHook]) -> list[str]:
    """Return all sites of a class, including those that an instance may disable."""
    return [*BaseHook.get_triggered_stages(object.__new__(cls)), *cls.extra_sites]


def doc_of(cls: type) -> str:
    """Return the docstring of a class, never that of a base class."""
    return inspect.cleandoc(cls.__doc__ or "")


def type_of(parameter: inspect.Parameter) -> str:
    """Return the annotation of a parameter as text."""
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return ""
    if isinstance(annotation, str):
        return annotation
    return inspect.formatannotation(annotation)


def default_of(cls: type, parameter: inspect.Parameter) -> Any:
    """Return the default of a parameter, or REQUIRED."""
    if parameter.default is parameter.empty:
        return REQUIRED
    for field in _fields(cls):
        if field.name == parameter.name and field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
    return parameter.default


def shown(default: Any) -> str:
    """Return a default in the form of a config."""
    if default is REQUIRED:
        return "required"
    return f"= {json.dumps(default, ensure_ascii=False, default=repr)}"


def state_of(cls: type[BaseHook]) -> list[str]:
    """Return the names of the fields that a checkpoint stores."""
    names = [field.name for field in _fields(cls) if field.metadata.get("state")]
    if cls.state_dict is not BaseHook.state_dict:
        names.append("the result of its state_dict()")
    return names


def example(name: str, defaults: dict[str, Any]) -> str:
    """Return a config with every parameter of a hook; `???` marks required values."""
    hook = {"type": name}
    for key, value in defaults.items():
        hook[key] = "???" if value is REQUIRED else value
    plain = json.loads(json.dumps(hook, default=repr))
    text: str = yaml.dump(
        {"hooks": [plain]}, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120
    )
    return text


def _fields(cls: type) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
