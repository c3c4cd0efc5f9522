"""Save and restore run state other than weights: optimizers, objects, frozen parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookline.checkpoint import check_plain
from hookline.checkpoint.objects import (
    check_all_saved,
    check_no_lazy,
    collect_objects,
    load_objects,
    stateful_objects,
)
from hookline.checkpoint.parts import load_states, restore_hooks
from hookline.checkpoint.resume_diff import apply_changes, reapply_changes
from hookline.checkpoint.shards import split
from hookline.checkpoint.structure import check_structure, restoring
from hookline.optim.group_names import (
    add_missing_groups,
    frozen_names,
    group_names,
    has_added_groups,
    has_fewer_groups,
    name_parameters,
    restore_frozen,
)
from hookline.optim.groups import by_name
from hookline.rng import restore_rng


def add_parts(run: Any, checkpoint: dict[str, Any]) -> None:
    """Add the states of objects and the names of grouped and frozen parameters to a checkpoint."""
    named = named_parameters(run)
    checkpoint["meta"]["param_groups"] = group_names(run.optimizer, named)
    initial = run.checkpointer.initially_frozen
    saved = frozen_names(named)
    # One list for both, if they are equal: a file has each list once.
    checkpoint["meta"]["frozen"] = {
        "initial": initial,
        "saved": initial if saved == initial else saved,
    }
    objects = collect_objects(objects_of(run))
    if objects:
        checkpoint["objects"] = objects


def restore_parts(run: Any, checkpoint: Mapping[str, Any]) -> None:
    """Check the structure; restore objects, optimizers, schedulers, results and events."""
    check_structure(checkpoint, "the checkpoint")
    restore_objects(run, checkpoint)
    meta = checkpoint["meta"]
    if "frozen" in meta:
        restore_frozen(named_parameters(run), meta["frozen"], run.checkpointer.initially_frozen)
    for name in ("optimizer", "scheduler"):
        target = getattr(run, name)
        if target is None:
            continue
        if name not in checkpoint:
            run.logger.warning("not an exact resume: the checkpoint has no %s state", name)
        elif not _is_deferred(run, name, checkpoint):
            with restoring(name):
                load_states(target, checkpoint[name])
    with restoring("meta"):
        now = run.checkpointer.initial_hyperparameters
        apply_changes(meta, run.optimizer, now, run.config, run.logger)
    run.metrics.update(meta.get("metrics", {}))
    run.best.load_state_dict(meta.get("best", {}))
    with restoring("events"):
        run.events.load_state_dict(checkpoint.get("events", {}))


def restore_again(run: Any, checkpoint: Mapping[str, Any]) -> None:
    """Restore random numbers, hook state, and an optimizer with groups that hooks added.

    Groups that no hook has added again by now are added with the parameters of the saved names.
    """
    restore_hooks(run.hooks, checkpoint)
    meta = checkpoint["meta"]
    names = meta.get("param_groups", {})
    now = run.checkpointer.initial_hyperparameters
    if "optimizer" in checkpoint and has_added_groups(names, now):
        add_missing_groups(run.optimizer, names, named_parameters(run))
        with restoring("optimizer"):
            load_states(run.optimizer, checkpoint["optimizer"])
            reapply_changes(run.optimizer, meta.get("hyperparameters", []), now)
    if "rng" in checkpoint:
        with restoring("rng"):
            restore_rng(checkpoint["rng"])


def restore_objects(run: Any, checkpoint: Mapping[str, Any]) -> None:
    """Load the state of a trainable loss, metrics and services."""
    states = checkpoint.get("objects", {})
    if isinstance(states, Mapping):
        for problem in load_objects(objects_of(run), states):
            run.logger.warning("the checkpoint does not fit: %s", problem)


def check_savable(run: Any, capture: Callable[..., Mapping[str, Any]]) -> None:
    """Raise if the run saves checkpoints but its state cannot be saved or would be incomplete."""
    if not run.checkpointer.is_open:
        return
    objects = objects_of(run).values()
    check_no_lazy([run.model, *objects])
    state = capture(run, all_ranks=False)
    kept = {key: value for key, value in state.items() if key not in run.checkpointer.excluded}
    check_plain(split(kept)[0])
    writers = [hook for hook in run.hooks if hook.site_method("before_save_checkpoint")]
    check_all_saved(by_name(run.optimizer), kept, [run.model, *objects, *writers])


def objects_of(run: Any) -> dict[str, Any]:
    """Return a run's objects with state by name, other than model, optimizer and hooks."""
    named: dict[str, Any] = {"loss_fn": run.loss_fn}
    for name, metric in run.evaluation.metrics.items():
        named[f"metrics.{name}"] = metric
    for name, service in vars(run.sites.services).items():
        named[f"services.{name}"] = service
    known = [run.model, run.optimizer, run.scheduler, run.train_loader, *run.hooks]
    return stateful_objects(named, known)


def named_parameters(run: Any) -> dict[str, Any]:
    """Return the parameters of the model and of objects such as a trainable loss, by name."""
    return name_parameters({"model": run.model, **objects_of(run)})


def frozen_parameters(run: Any) -> list[str]:
    """Return the names of the parameters that require no gradient."""
    return frozen_names(named_parameters(run))


def _is_deferred(run: Any, name: str, checkpoint: Mapping[str, Any]) -> bool:
    """Return whether `restore_again` must restore the optimizer, because it lacks hooks' groups."""
    if name != "optimizer" or not has_fewer_groups(run.optimizer, checkpoint[name]):
        return False
    names = checkpoint["meta"].get("param_groups", {})
    return has_added_groups(names, run.checkpointer.initial_hyperparameters)
