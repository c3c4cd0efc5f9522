"""From a config to the arguments of a runner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset

from hookline.config.components import as_component, building, split_parameter, with_default
from hookline.config.hooks import checked_hooks
from hookline.config.load import load_config
from hookline.config.places import Config
from hookline.config.schema import DEFAULT_LOSS, DEFAULT_METRICS, DEFAULT_OPTIMIZER, SPLITS
from hookline.data import DATASETS, describe, make_loader
from hookline.engine import seed_everything
from hookline.engine.cost_report import DEFAULT_BUDGET
from hookline.errors import ConfigError, Path, Problem
from hookline.metrics import Metric, build_metrics
from hookline.models import MODELS
from hookline.optim import LOSSES, OPTIMIZERS, SCHEDULERS
from hookline.optim.schedulers import build_schedulers
from hookline.signature import fits, parameters

OF_CLASSES = (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss)  # losses whose targets are class numbers
ELEMENTWISE = (nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss, nn.BCELoss, nn.BCEWithLogitsLoss)


def build(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a Runner. The config is checked first; ConfigError has file and line of what is wrong.

    The first weights depend on `seed` alone: the random numbers are seeded anew just before the model is built.
    """
    config = config if isinstance(config, Config) else load_config(config)
    hooks = checked_hooks(config)
    seed, training = _get(config, "seed", 0), config["training"]
    metrics = _get(training, "metrics", _default_metrics(training.get("loss")))
    with building(config, ("training", "metrics")):
        metric_objects = build_metrics(list(metrics), path=())
    for index, metric in enumerate(metric_objects.values()):
        _place(config, ("training", "metrics", index), metric)
    datasets = _build_datasets(config)
    loaders = {split: _build_loader(config, dataset, split, seed) for split, dataset in datasets.items()}
    seed_everything(seed)
    model = _build_model(config, datasets["train"])
    loss_fn = _build_loss(config, training.get("loss"))
    optimizer = _build_optimizer(config, model)
    return {
        "model": model,
        "train_loader": loaders["train"],
        "val_loader": loaders.get("val"),
        "test_loader": loaders.get("test"),
        "optimizer": optimizer,
        "scheduler": _build_scheduler(config, optimizer),
        "loss_fn": loss_fn,
        "metrics": metric_objects,
        "hooks": list(hooks.values()),
        "drop_hooks": list(_get(config, "drop_hooks", [])),
        **{f"max_{unit}": training[unit] for unit in ("epochs", "iters") if training.get(unit) is not None},
        "work_dir": config["work_dir"],
        "seed": seed,
        "device": _get(config, "device", "auto"),
        "resume": config.get("resume"),
        "load_from": config.get("load_from"),
        "load_strict": _get(config, "load_strict", True),
        "hook_order": _get(config, "hook_order", "nested"),
        "hook_budget": _get(config, "hook_budget", DEFAULT_BUDGET),
        "strategy": _get(config, "strategy", "auto"),
        "sync_bn": _get(config, "sync_bn", False),
        "compile": _get(config, "compile", False),
        "config": config,
    }


def _get(config: Mapping[str, Any], key: str, default: Any) -> Any:
    value = config.get(key)
    return default if value is None else value


def _default_metrics(loss: Any) -> Iterable[str]:
    """Accuracy is for class numbers; with any other loss that is the only measure we know."""
    cls = LOSSES.get(with_default(loss, DEFAULT_LOSS)["type"])
    return DEFAULT_METRICS if isinstance(cls, type) and issubclass(cls, OF_CLASSES) else ()


def _build_loss(config: Config, given: Any) -> Any:
    with building(config, ("training", "loss")):
        loss_fn = LOSSES.build(with_default(given, DEFAULT_LOSS))
    if given is None and isinstance(loss_fn, nn.Module):
        _ask_once(config, loss_fn, _unmeant)
    if type(loss_fn) in ELEMENTWISE:
        _ask_once(config, loss_fn, _unlike)
    elif type(loss_fn) in OF_CLASSES:
        _ask_once(config, loss_fn, partial(_beyond, config))
    return loss_fn


def _ask_once(config: Config, loss_fn: nn.Module, objection: Callable[[Any, Tensor, Tensor], Problem | None]) -> None:
    """Have a loss refuse what it cannot have been meant for, at the first batch; the batches after it cost nothing."""

    def check(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        asked.remove()
        if len(arguments) > 1 and all(isinstance(each, Tensor) for each in arguments[:2]):
            problem = objection(module, *arguments[:2])
            if problem is not None:
                raise ConfigError(config.locate(problem))

    asked = loss_fn.register_forward_pre_hook(check)


def _unmeant(loss: nn.Module, predictions: Tensor, targets: Tensor) -> Problem | None:
    """Against the default loss, where the targets are no class numbers."""
    if not targets.is_floating_point():
        return None
    message = (
        f"'loss' is not given, so it is {type(loss).__name__}, which wants class numbers; the targets are floats "
        f"{list(targets.shape)}: set training.loss, e.g. MSELoss"
    )
    return Problem(message, ("training",))


def _beyond(config: Config, loss: nn.Module, predictions: Tensor, targets: Tensor) -> Problem | None:
    """Against class numbers for which the model gives nothing; torch names neither, and on a GPU not even the line."""
    if targets.is_floating_point() or predictions.ndim != targets.ndim + 1:
        return None
    classes, counted = predictions.shape[1 if targets.ndim else 0], targets[targets != getattr(loss, "ignore_index", -100)]
    if not counted.numel() or (highest := int(counted.max())) < classes:
        return None
    message = f"gives {classes} classes, and there is a target {highest}: targets must be 0 to {classes - 1}"
    path: Path = ("model", "num_classes") if config.at(("model", "num_classes")) is not None else ("model",)
    return Problem(message, path, where="model")


def _unlike(loss: nn.Module, predictions: Tensor, targets: Tensor) -> Problem | None:
    """Against a loss that compares number by number, where each prediction has not its own target; torch may go on with all pairs."""
    classes = not targets.is_floating_point() and predictions.ndim == targets.ndim + 1
    sizes = zip(targets.shape[::-1], predictions.shape[::-1], strict=False)
    if not classes and targets.ndim <= predictions.ndim and all(size in (1, wanted) for size, wanted in sizes):
        return None
    advice = "CrossEntropyLoss is for class numbers" if classes else "give both the same shape"
    shapes = f"predictions {list(predictions.shape)} and targets {list(targets.shape)}"
    where = f"training.loss {type(loss).__name__}"
    return Problem(f"compares number by number, and cannot with {shapes}: {advice}", ("training", "loss"), where=where)


def _place(config: Config, path: Path, metric: Metric) -> None:
    """Have a metric of ours tell at its place what it cannot measure, which the first batch shows; a user's own has its own lines."""
    if not type(metric).__module__.startswith("hookline.metrics."):
        return
    update = metric.update

    def first(preds: Any, targets: Any) -> None:
        try:
            update(preds, targets)
        except (ValueError, RuntimeError) as error:
            raise ConfigError(config.locate(Problem(str(error), path))) from error
        delattr(metric, "update")  # from now on it is the class's own again

    setattr(metric, "update", first)  # noqa: B010  # mypy knows it as a method


def _build_datasets(config: Config) -> dict[str, Dataset[Any]]:
    given = as_component(config["dataset"])
    parts: dict[str, tuple[Path, dict[str, Any]]]
    if given.get("type") is None:
        parts = {split: (("dataset", split), as_component(given[split])) for split in SPLITS if given.get(split) is not None}
    else:
        parts = dict.fromkeys(_splits_of(given), (("dataset",), given))
    return {split: _build_dataset(config, path, part, split) for split, (path, part) in parts.items()}


def _splits_of(given: Mapping[str, Any]) -> Iterable[str]:
    """The splits that one data set can be asked for; one that takes no `split` is for training alone."""
    if not split_parameter(given):
        return SPLITS[:1]
    hint = parameters(DATASETS.get(given["type"])).hints.get("split", Any)
    return [split for split in SPLITS if fits(split, hint)]


def _build_dataset(config: Config, path: Path, given: dict[str, Any], split: str) -> Dataset[Any]:
    chosen = dict.fromkeys(split_parameter(given), split)
    with building(config, path, DATASETS.get(given["type"]).__name__):
        dataset = DATASETS.build({**given, **chosen})
        if isinstance(dataset, Sized) and len(dataset) == 0:
            raise ValueError(f"there is no sample in it ({split})")
    return dataset


def _build_loader(config: Config, dataset: Dataset[Any], split: str, seed: int) -> Any:
    given = _get(config, "loader", {})
    common = {key: value for key, value in given.items() if key not in SPLITS and value is not None}
    if split != "train":  # leaving out or mixing samples is for training; a score counts them all
        common = {key: value for key, value in common.items() if key not in ("shuffle", "drop_last")}
    shuffle = split == "train" and not isinstance(dataset, IterableDataset)
    own = {key: value for key, value in _get(given, split, {}).items() if value is not None}
    options = {"shuffle": shuffle, **common, **own}
    with building(config, ("loader",)):
        return make_loader(dataset, seed=seed, **options)


def _build_model(config: Config, train_data: Dataset[Any]) -> nn.Module:
    given = as_component(config["model"])
    cls = MODELS.get(given["type"])
    with building(config, ("model",), cls.__name__):
        return MODELS.build({**given, **_left_open(cls, given, train_data)})


def _left_open(cls: type, given: Mapping[str, Any], train_data: Dataset[Any]) -> dict[str, Any]:
    """The arguments of a model that the data tells: those not given for which it has no default either, or None."""
    known = parameters(cls).known
    wanted = {name for name, p in known.items() if (p.default is p.empty or p.default is None) and given.get(name) is None}
    return {name: value for name, value in vars(describe(train_data)).items() if name in wanted and value is not None}


def _build_optimizer(config: Config, model: nn.Module) -> torch.optim.Optimizer:
    given = with_default(config.get("optimizer"), DEFAULT_OPTIMIZER)
    with building(config, ("optimizer",), OPTIMIZERS.get(given["type"]).__name__):
        return OPTIMIZERS.build(given, params=[p for p in model.parameters() if p.requires_grad])


def _build_scheduler(config: Config, optimizer: torch.optim.Optimizer) -> Any:
    with building(config, ("scheduler",)):
        return build_schedulers(SCHEDULERS, config.get("scheduler"), optimizer)
