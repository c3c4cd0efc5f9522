"""A JSON Schema of configs, with which editors complete, explain and check them."""

from __future__ import annotations

import collections.abc
import re
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from hookline.config.schedules import POLICIES, known_policies
from hookline.config.schema import LOADER, REQUIRED, SPLITS, TOP_LEVEL, TRAINING
from hookline.data import DATASETS, make_loader
from hookline.data.options import OWN, PASSED_ON
from hookline.docstrings import argument_docs, inherited_argument_docs, summary_of
from hookline.engine import HOOKS
from hookline.hooks.builder import DEFAULT_HOOKS
from hookline.metrics import METRICS
from hookline.models import MODELS
from hookline.optim import OPTIMIZERS, SCHEDULERS
from hookline.optim.build import EXTRA
from hookline.optim.losses import LOSSES
from hookline.optim.schedulers import COMMON as SCHEDULER_KEYS
from hookline.registry import Registry
from hookline.signature import parameters

Schema = dict[str, Any]

DIALECT = "http://json-schema.org/draft-07/schema#"
INTERPOLATION: Schema = {"type": "string", "pattern": r"\$\{"}
DOTTED: Schema = {"type": "string", "pattern": r"^[\w]+(\.\w+)+$"}  # the path of a class
NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
ARRAYS = (list, tuple, set, collections.abc.Sequence, collections.abc.Iterable)
OBJECTS = (dict, collections.abc.Mapping)
DESCRIPTIONS = {
    "work_dir": "The directory for checkpoints, logs and reports, or a URL such as s3://bucket/run.",
    "experiment_dir": "Another name of work_dir.",
    "custom_imports": "Modules to import first, which register your classes.",
    "model": "The model: a registered name or a dotted path, with its parameters.",
    "dataset": "The data set, with its parameters.",
    "loader": "Options of the data loaders, for all splits or for one.",
    "checkpoint": "The parameters of CheckpointHook.",
    "lr_config": "A learning rate schedule, or one for each group: policy and its parameters.",
    "momentum_config": "A momentum schedule, or one for each group: policy and its parameters.",
    "training": "The length of the run, its loss and its metrics.",
    "epochs": "The length of the run in epochs.",
    "iters": "The length of the run in iterations.",
    "loss": "The loss function, with its parameters.",
    "drop_hooks": "Default hooks that the run does not have.",
    "collate_fn": "The dotted path of a function that makes a batch from a list of samples.",
}
# Keys that the classes of a registry have in common.
COMMON = {
    "name": "The name of the hook in messages and checkpoints.",
    "priority": "The place in the order of hooks: a number from 0 to 100, or a name such as HIGH.",
    "frequency": "Call the hook only every so many iterations or epochs.",
    "policy": "The schedule. Its parameters depend on it.",
    "params": "Patterns of the parameters of this optimizer, such as '*.weight@2d'.",
    "groups": "Rules for groups of parameters by name: params, lr_factor, weight_decay_factor.",
    "no_decay": "Patterns of parameters without weight decay, such as [bias, norm].",
    "layer_decay": "The factor between the learning rates of two layers.",
    "by_epoch": "Step after each epoch. Otherwise step after each step of the optimizer.",
    "monitor": "The metric for ReduceLROnPlateau.",
}


def config_schema(runner: type) -> Schema:
    """Return the schema of configs, with all registered classes.

    Args:
        runner: The class of the runner, whose docstring explains its parameters.
    """
    docs = {**inherited_argument_docs(runner), **DESCRIPTIONS}
    registries: dict[str, Registry[Any]] = {
        "model": MODELS,
        "dataset": DATASETS,
        "scheduler": SCHEDULERS,
        "loss": LOSSES,
        "metric": METRICS,
        "hook": HOOKS,
        "optimizer": OPTIMIZERS,
    }
    given = {"optimizer": ("params",), "scheduler": ("optimizer",)}  # by Hookline, not the config
    extra = {"optimizer": EXTRA, "scheduler": SCHEDULER_KEYS}
    definitions = {}
    for name, registry in registries.items():
        definitions[name] = _component(registry, given.get(name, ()), extra.get(name, {}))
    for section in POLICIES:
        definitions[f"{section}_policy"] = _policy(section)
    top = {key: _typed(hint, docs.get(key, "")) for key, hint in TOP_LEVEL.items()}
    top["model"] = _reference("model", docs["model"])
    splits: Schema = {
        "type": "object",
        "properties": dict.fromkeys(SPLITS, _reference("dataset")),
        "additionalProperties": False,
    }
    top["dataset"] = _any_of([_reference("dataset"), splits], docs["dataset"])
    optimizers = {"type": "object", "additionalProperties": _reference("optimizer")}
    top["optimizer"] = _any_of([_reference("optimizer"), optimizers], docs["optimizer"])
    schedulers = [_reference("scheduler"), {"type": "array", "items": _reference("scheduler")}]
    top["scheduler"] = _any_of(schedulers, docs["scheduler"])
    for section in POLICIES:
        policy = _reference(f"{section}_policy")
        by_group = {"type": "object", "additionalProperties": policy}
        top[section] = _any_of([policy, by_group], docs[section])
    top["checkpoint"] = _checkpoint(docs["checkpoint"])
    top["hooks"] = _hooks(docs["hooks"])
    top["drop_hooks"]["items"] = {"enum": list(DEFAULT_HOOKS)}
    top["training"] = _training(docs)
    top["loader"] = _loader(docs["loader"])
    top["base"] = _typed(str | list[str], "Configs that this one inherits from.")
    return {
        "$schema": DIALECT,
        "title": "Hookline config",
        "type": "object",
        "properties": top,
        "additionalProperties": False,
        "anyOf": [{"required": list(REQUIRED)}, {"required": ["base"]}],
        "definitions": definitions,
    }


def type_schema(hint: Any) -> Schema:
    """Return the schema of a type; an empty one, which allows everything, if it has none."""
    if hint in NAMES:
        return {"type": NAMES[hint]}
    origin = typing.get_origin(hint) or hint
    if origin is typing.Literal:
        return {"enum": list(typing.get_args(hint))}
    if origin in (typing.Union, types.UnionType):
        options = [type_schema(each) for each in typing.get_args(hint)]
        return {"anyOf": options} if all(options) else {}
    if origin in ARRAYS:
        items = [each for each in typing.get_args(hint) if each is not ...]
        return {"type": "array", "items": type_schema(items[0]) if len(items) == 1 else {}}
    if origin in OBJECTS:
        return {"type": "object"}
    return {}


def _typed(hint: Any, description: str = "") -> Schema:
    """Return the schema of a value: of a type, or an interpolation such as `${seed}`."""
    schema = type_schema(hint)
    if schema and schema.get("type") not in ("string", "object", "array"):
        schema = {"anyOf": [schema, INTERPOLATION]}
    return {**schema, "description": description} if description else schema


def _reference(name: str, description: str = "") -> Schema:
    schema: Schema = {"$ref": f"#/definitions/{name}"}
    return {"allOf": [schema], "description": description} if description else schema


def _any_of(options: list[Schema], description: str) -> Schema:
    return {"anyOf": options, "description": description}


def _component(registry: Registry[Any], given: Iterable[str], extra: Mapping[str, Any]) -> Schema:
    """Return the schema of a component: a name, or a mapping for each registered class."""
    # METRICS also finds the classes of torchmetrics by their names.
    other = {"type": "string"} if registry is METRICS else DOTTED
    options: list[Schema] = [{"enum": registry.names()}, other]
    hints = {**registry.COMMON, **extra}
    common = {name: _typed(hint, COMMON[name]) for name, hint in hints.items()}
    for name, cls in registry.items():
        first = {"type": {"const": name, "description": summary_of(cls)}}
        options.append(_class_schema(name, cls, registry, given, {**first, **common}))
    options.append({"type": "object", "properties": {"type": other}, "required": ["type"]})
    return {"anyOf": options}


def _class_schema(
    name: str,
    cls: type,
    registry: Registry[Any],
    given: Iterable[str],
    common: Mapping[str, Schema],
) -> Schema:
    """Return the schema of a mapping with the parameters of a class.

    Args:
        name: The title.
        cls: The class.
        registry: The registry that builds it.
        given: Parameters that are not in a config.
        common: The schemas of other keys; the first is required.
    """
    own = parameters(registry.signature_of(cls))
    docs = inherited_argument_docs(cls)
    properties: Schema = {**common}
    for key, parameter in own.known.items():
        if key in given:
            continue
        properties[key] = _typed(own.hints.get(key, Any), docs.get(key, ""))
        if isinstance(parameter.default, (bool, int, float, str)):
            properties[key]["default"] = parameter.default
    return {
        "type": "object",
        "title": name,
        "description": summary_of(cls),
        "properties": properties,
        "required": list(common)[:1],
        "additionalProperties": own.open_ended,
    }


def _policy(section: str) -> Schema:
    """Return the schema of a schedule: a policy, or the class of its hook, with its parameters."""
    common = {name: _typed(hint, COMMON[name]) for name, hint in HOOKS.COMMON.items()}
    options: list[Schema] = []
    for policy, name in known_policies(section).items():
        cls = HOOKS.get(name)
        spellings = [{"const": policy}, {"enum": _other_spellings(policy)}]
        written = {"anyOf": spellings, "description": summary_of(cls)}
        options.append(_class_schema(policy, cls, HOOKS, (), {"policy": written, **common}))
    options.append({"allOf": [{"type": "object"}, _reference("hook")]})
    return {"anyOf": options}


def _other_spellings(policy: str) -> list[str]:
    """Return usual spellings of a policy, such as `cosine_annealing`."""
    words = re.findall("[A-Z]+[a-z]*", policy)
    return sorted({"_".join(words).lower(), policy.lower()})


def _checkpoint(description: str) -> Schema:
    cls = HOOKS.get("CheckpointHook")
    common = {name: _typed(hint, COMMON[name]) for name, hint in HOOKS.COMMON.items()}
    schema = _class_schema("CheckpointHook", cls, HOOKS, (), common)
    return {**schema, "required": [], "description": description}


def _hooks(description: str) -> Schema:
    by_name = {"type": "object", "additionalProperties": {"type": ["object", "string", "null"]}}
    in_list = {"type": "array", "items": _reference("hook")}
    return _any_of([in_list, by_name, {"type": "null"}], description)


def _training(docs: Mapping[str, str]) -> Schema:
    properties = {key: _typed(hint, docs.get(key, "")) for key, hint in TRAINING.items()}
    properties["loss"] = _reference("loss", docs["loss"])
    properties["metrics"] = {
        "type": "array",
        "items": _reference("metric"),
        "description": docs["metrics"],
    }
    return {
        "type": "object",
        "description": docs["training"],
        "properties": properties,
        "additionalProperties": False,
    }


def _loader(description: str) -> Schema:
    docs = {**dict.fromkeys(PASSED_ON, "An option of torch's DataLoader."), **DESCRIPTIONS}
    docs |= argument_docs(make_loader)
    hints = {**OWN, **PASSED_ON}
    options = {name: _typed(hints[name], docs[name]) for name in sorted(LOADER)}
    split = {"type": "object", "properties": options, "additionalProperties": False}
    return {
        "type": "object",
        "description": description,
        "properties": {**options, **dict.fromkeys(SPLITS, split)},
        "additionalProperties": False,
    }
