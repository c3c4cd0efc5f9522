"""Build the arguments of a runner from a config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any

from torch import nn
from torch.utils.data import Dataset, IterableDataset

from hookline.config.components import (
    as_component,
    locating_errors,
    split_parameter,
    with_default,
)
from hookline.config.error_locator import ErrorLocator
from hookline.config.first_batch import CLASSIFICATION_LOSSES, check_first_batch
from hookline.config.hooks import checked_hooks
from hookline.config.load import load_config
from hookline.config.locations import Config
from hookline.config.optimizers import complete_optimizer
from hookline.config.schema import DEFAULT_LOSS, DEFAULT_METRICS, SPLITS
from hookline.data import DATASETS, describe, make_loader
from hookline.engine import seed_everything
from hookline.errors import KeyPath
from hookline.factories import name_of
from hookline.metrics import Metric, build_metrics
from hookline.models import MODELS
from hookline.optim import LOSSES, OPTIMIZERS, SCHEDULERS
from hookline.optim.build import build_optimizers, is_several
from hookline.optim.groups import Optimizers
from hookline.optim.schedulers import build_schedulers
from hookline.profiling.cost_report import DEFAULT_BUDGET
from hookline.signature import fits, parameters
from hookline.step import computes_loss

# Options of a runner that a config has under the same name, with their defaults.
RUNNER_OPTIONS: dict[str, Any] = {
    "seed": 0,
    "device": "auto",
    "resume": None,
    "load_from": None,
    "load_strict": True,
    "hook_order": "nested",
    "hook_budget": DEFAULT_BUDGET,
    "strategy": "auto",
    "sync_bn": False,
    "compile": False,
    "deterministic": False,
}
# The same in the section `training`.
TRAINING_OPTIONS = {
    "max_train_batches": None,
    "max_val_batches": None,
    "overfit_batches": None,
    "sanity_val_batches": 2,
}


def build(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a Runner.

    The initial weights depend on `seed` alone: random numbers are seeded just before the model
    is built.

    Raises:
        ConfigError: If the config has problems, each with file and line.
    """
    config = config if isinstance(config, Config) else load_config(config)
    hooks = checked_hooks(config)
    seed = _get(config, "seed", 0)
    datasets = _build_datasets(config)
    loaders = {
        split: _build_loader(config, dataset, split, seed) for split, dataset in datasets.items()
    }
    seed_everything(seed)
    model = _build_model(config, datasets["train"])
    loss_fn = _build_loss(config, model)
    metrics = _build_metrics(config, loss_fn)
    optimizer = _build_optimizer(config, model)
    return {
        "model": model,
        "train_loader": loaders["train"],
        "val_loader": loaders.get("val"),
        "test_loader": loaders.get("test"),
        "optimizer": optimizer,
        "scheduler": _build_scheduler(config, optimizer),
        "loss_fn": loss_fn,
        "metrics": metrics,
        "hooks": list(hooks.values()),
        "drop_hooks": list(_get(config, "drop_hooks", [])),
        "work_dir": config["work_dir"],
        "config": config,
        "locate_error": ErrorLocator(config, {**hooks, **_metric_paths(metrics)}),
        **_run_length(config["training"]),
        **{
            name: _get(config["training"], name, default)
            for name, default in TRAINING_OPTIONS.items()
        },
        **{name: _get(config, name, default) for name, default in RUNNER_OPTIONS.items()},
    }


def build_optimizer(config: Config) -> Optimizers:
    """Build only the optimizer of a config, for a model that is discarded."""
    seed_everything(_get(config, "seed", 0))
    return _build_optimizer(config, _build_model(config, _build_datasets(config)["train"]))


def _get(config: Mapping[str, Any], key: str, default: Any) -> Any:
    value = config.get(key)
    return default if value is None else value


def _without_none(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if value is not None}


def _run_length(training: Mapping[str, Any]) -> dict[str, int]:
    lengths = {"max_epochs": training.get("epochs"), "max_iters": training.get("iters")}
    return _without_none(lengths)


def _build_metrics(config: Config, loss_fn: Any) -> dict[str, Metric]:
    given = _get(config["training"], "metrics", _default_metrics(loss_fn))
    with locating_errors(config, ("training", "metrics")):
        return build_metrics(list(given), path=())


def _metric_paths(metrics: Mapping[str, Metric]) -> dict[KeyPath, object]:
    return {("training", "metrics", index): each for index, each in enumerate(metrics.values())}


def _default_metrics(loss_fn: Any) -> Iterable[str]:
    """Return accuracy for a loss on class numbers; other losses have no default metric."""
    return DEFAULT_METRICS if isinstance(loss_fn, CLASSIFICATION_LOSSES) else ()


def _build_loss(config: Config, model: nn.Module) -> Any:
    """Return the loss, or None if the config has none and the model computes it."""
    given = config["training"].get("loss")
    if given is None and computes_loss(model):
        return None
    with locating_errors(config, ("training", "loss")):
        loss_fn = LOSSES.build(with_default(given, DEFAULT_LOSS))
    check_first_batch(config, loss_fn, is_default=given is None)
    return loss_fn


def _build_datasets(config: Config) -> dict[str, Dataset[Any]]:
    given = as_component(config["dataset"])
    if given.get("type") is not None:
        return {
            split: _build_dataset(config, ("dataset",), given, split)
            for split in _available_splits(given)
        }
    datasets = {}
    for split in SPLITS:
        if given.get(split) is not None:
            part = as_component(given[split])
            datasets[split] = _build_dataset(config, ("dataset", split), part, split)
    return datasets


def _available_splits(given: Mapping[str, Any]) -> Iterable[str]:
    """Return the splits of one data set; a data set without a `split` parameter is for training."""
    if not split_parameter(given):
        return SPLITS[:1]
    hint = parameters(DATASETS.get(given["type"])).hints.get("split", Any)
    return [split for split in SPLITS if fits(split, hint)]


def _build_dataset(
    config: Config, path: KeyPath, given: dict[str, Any], split: str
) -> Dataset[Any]:
    chosen = dict.fromkeys(split_parameter(given), split)
    with locating_errors(config, path, name_of(DATASETS.get(given["type"]))):
        dataset = DATASETS.build({**given, **chosen})
        if isinstance(dataset, Sized) and len(dataset) == 0:
            raise ValueError(f"the {split} split has no samples")
    return dataset


def _build_loader(config: Config, dataset: Dataset[Any], split: str, seed: int) -> Any:
    given = _get(config, "loader", {})
    excluded = set(SPLITS)
    if split != "train":  # An evaluation scores every sample once, in order.
        excluded |= {"shuffle", "shuffle_method", "sample_weights", "drop_last"}
    common = {name: value for name, value in given.items() if name not in excluded}
    options = {**_without_none(common), **_without_none(_get(given, split, {}))}
    options.setdefault("shuffle", split == "train" and not isinstance(dataset, IterableDataset))
    with locating_errors(config, ("loader",)):
        return make_loader(dataset, seed=seed, **options)


def _build_model(config: Config, train_data: Dataset[Any]) -> nn.Module:
    given = as_component(config["model"])
    cls = MODELS.get(given["type"])
    with locating_errors(config, ("model",), name_of(cls)):
        return MODELS.build({**given, **_arguments_from_data(cls, given, train_data)})


def _arguments_from_data(
    cls: type, given: Mapping[str, Any], train_data: Dataset[Any]
) -> dict[str, Any]:
    """Return the arguments of a model that follow from the data, such as `num_classes`.

    Only parameters that the config omits and that have no default, or None, are filled in.
    """
    arguments = {}
    known = parameters(cls).known
    for name, value in vars(describe(train_data)).items():
        parameter = known.get(name)
        if parameter is None or value is None or given.get(name) is not None:
            continue
        if parameter.default is parameter.empty or parameter.default is None:
            arguments[name] = value
    return arguments


def _build_optimizer(config: Config, model: nn.Module) -> Optimizers:
    given = complete_optimizer(config.get("optimizer"))
    title = "" if is_several(given) else OPTIMIZERS.get(given["type"]).__name__
    with locating_errors(config, ("optimizer",), title):
        return build_optimizers(OPTIMIZERS, given, model)


def _build_scheduler(config: Config, optimizer: Optimizers) -> Any:
    with locating_errors(config, ("scheduler",)):
        return build_schedulers(SCHEDULERS, config.get("scheduler"), optimizer)
