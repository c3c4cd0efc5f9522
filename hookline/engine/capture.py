"""What a checkpoint holds, and how it is put back: everything that the rest of a run depends on."""

from __future__ import annotations

import io
import platform
import random
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from hookline.dist import World
from hookline.engine.changes import config_changes, keep_changes
from hookline.engine.environment import seed_everything
from hookline.engine.length import both_lengths
from hookline.errors import HooklineError
from hookline.secrets import mask_secrets
from hookline.version import __version__

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

COUNTERS = ("epoch", "iter", "inner_iter", "optimizer_steps")


def capture(runner: BaseRunner, world: World | None = None) -> dict[str, Any]:
    """The state between two iterations. Its tensors are the live ones: copy or write them before training goes on.

    With a world all its processes take part, and the random numbers and recent values of each are in it.
    """
    checkpoint: dict[str, Any] = {
        "meta": {
            **{name: getattr(runner, name) for name in COUNTERS},
            "time": time.time(),
            "versions": {"hookline": __version__, "torch": str(torch.__version__), "python": platform.python_version()},
            "config": mask_secrets(runner.config),
            "world_size": runner.world.size,
            "seed": runner.seed,
            "hyperparameters": runner.configured,
            "metrics": dict(runner.metrics),
            "best": {name: dict(value) for name, value in runner.best.items()},
        },
        "state_dict": dict(runner.model.state_dict()),
        "hooks": {hook.name: state for hook in runner.hooks if (state := hook.state_dict())},
        "rng": rng_state(),
        "events": runner.events.state_dict(),
    }
    if runner.optimizer is not None:
        checkpoint["optimizer"] = _each(runner.optimizer, lambda optimizer: optimizer.state_dict())
    if runner.scheduler is not None:
        checkpoint["scheduler"] = _each(runner.scheduler, lambda scheduler: scheduler.state_dict())
    loader: Any = runner.train_loader
    if hasattr(loader, "batches_done"):  # one of ours: workers may have read further, and only the run knows how far it is
        checkpoint["loader"] = loader.state_dict(runner.inner_iter)
    elif hasattr(loader, "state_dict"):
        checkpoint["loader"] = loader.state_dict()
    if world is not None and world.size > 1:
        own = _packed({"rng": checkpoint["rng"], "events": checkpoint["events"]})
        checkpoint["by_rank"] = [torch.frombuffer(bytearray(state), dtype=torch.uint8) for state in world.gather(own)]
    return checkpoint


def of_this_process(runner: BaseRunner, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """A checkpoint with the random numbers and recent values of this process; new random numbers if there were fewer processes."""
    rank, states = runner.world.rank, checkpoint.get("by_rank", [])
    if rank == 0:
        return checkpoint
    if rank < len(states):
        return {**checkpoint, **torch.load(io.BytesIO(bytes(states[rank].numpy())), weights_only=True)}
    seed_everything((runner.seed or 0) + 1_000_003 * rank + checkpoint["meta"]["iter"])
    return {**checkpoint, "rng": rng_state()}


def _packed(state: Mapping[str, Any]) -> bytes:
    torch.save(dict(state), stream := io.BytesIO())
    return stream.getvalue()


def restore(runner: BaseRunner, checkpoint: Mapping[str, Any]) -> None:
    """Put a checkpoint's state back into the runner's own objects; a misfit is told before anything is changed."""
    load_weights(runner, checkpoint)
    for name in ("optimizer", "scheduler"):
        target = getattr(runner, name)
        if target is not None and name in checkpoint:
            _load_each(target, checkpoint[name])
    _tell_changes(runner, checkpoint["meta"])
    for name in COUNTERS:
        setattr(runner, name, checkpoint["meta"].get(name, 0))
    _restore_loader(runner, checkpoint.get("loader"))
    _restore_length(runner)
    runner.metrics.update(checkpoint["meta"].get("metrics", {}))
    runner.best.update(checkpoint["meta"].get("best", {}))
    runner.events.load_state_dict(checkpoint.get("events", {}))
    restore_hooks(runner, checkpoint)
    known = {hook.name for hook in runner.hooks}
    lost = [name for name in checkpoint.get("hooks", {}) if name not in known]
    if lost:
        runner.logger.warning("the checkpoint has state of hooks that are not there any more: %s", ", ".join(lost))


@contextmanager
def moment_of(runner: BaseRunner, checkpoint: Mapping[str, Any]) -> Iterator[None]:
    """Count as a checkpoint does while its weights are evaluated; a training that follows begins at its own beginning.

    After whole epochs that is as in the training's own validation of these weights, when the last of them is not yet counted.
    """
    meta, best, before = checkpoint.get("meta"), dict(runner.best), {name: getattr(runner, name) for name in COUNTERS}
    place = {name: meta[name] for name in COUNTERS if name in meta} if isinstance(meta, Mapping) else {}
    try:
        for name, value in place.items():
            setattr(runner, name, value)
        if runner.epoch and not runner.inner_iter:
            runner.epoch, runner.inner_iter = runner.epoch - 1, runner.epoch_length or 1
        yield
    finally:
        for name, value in before.items():
            setattr(runner, name, value)
        if checkpoint:  # what is the best of other weights is not this run's
            runner.best = best


def _tell_changes(runner: BaseRunner, meta: Mapping[str, Any]) -> None:
    for text in keep_changes(runner.optimizer, meta.get("hyperparameters", []), runner.configured):
        runner.logger.warning("changed since the checkpoint and in force from now on: %s", text)
    changes = config_changes(runner, meta["config"]) if meta.get("config") and runner.config else []
    if changes:
        runner.logger.warning("the config is not the checkpoint's: %s", "; ".join(changes))


def _restore_loader(runner: BaseRunner, state: Any) -> None:
    """Go to the next batch that was not trained on yet, without reading those before it where the loader can do that."""
    loader: Any = runner.train_loader
    tell_epoch(loader, runner.epoch)  # first: the place inside of it is in the state
    if state is not None and hasattr(loader, "load_state_dict"):
        loader.load_state_dict(state)
        if runner.inner_iter == 0 and not hasattr(loader, "batches_done"):
            next(iter(loader), None)  # a stateful loader saved at the end of an epoch first goes through what it has left of it: nothing
    if getattr(loader, "resumable", False):
        runner.inner_iter = loader.batches_done  # counted in today's batch size
        runner.in_epoch = loader.epoch == runner.epoch
    elif runner.inner_iter and not (state is not None and not hasattr(loader, "batches_done")):
        runner.skip_batches = runner.inner_iter
        kind = type(loader).__name__
        runner.logger.warning("%s keeps no position: %d batches of this epoch are read again and skipped", kind, runner.inner_iter)


def _restore_length(runner: BaseRunner) -> None:
    """Reckon the run's length anew, for the batches may have another size than those before the checkpoint."""
    if runner.epoch_length:
        ahead = runner.iter - runner.epoch * runner.epoch_length - runner.inner_iter
        epochs = runner.max_epochs if runner.iter_limit is None else None
        runner.max_epochs, runner.max_iters = both_lengths(epochs, runner.iter_limit, runner.epoch_length, ahead)


def tell_epoch(loader: Any, epoch: int) -> None:
    """Tell a loader and its sampler which epoch it is, if they want to know: their order may depend on it."""
    target: Any
    for target in (loader, getattr(loader, "sampler", None)):
        if hasattr(target, "set_epoch"):
            target.set_epoch(epoch)


def restore_hooks(runner: BaseRunner, checkpoint: Mapping[str, Any]) -> None:
    states = checkpoint.get("hooks", {})
    for hook in runner.hooks:
        if hook.name in states:
            hook.load_state_dict(states[hook.name])


def rng_state() -> dict[str, Any]:
    """The state of every random number generator in use, as tensors and plain values."""
    version, internal, gauss = random.getstate()
    state: dict[str, Any] = {"python": [version, torch.tensor(internal, dtype=torch.int64), gauss], "torch": torch.get_rng_state()}
    if "numpy" in sys.modules:
        import numpy as np

        numpy_state: Any = np.random.get_state(legacy=True)
        kind, keys, position, has_gauss, cached = numpy_state
        state["numpy"] = [kind, torch.tensor(keys.tolist(), dtype=torch.int64), position, has_gauss, cached]
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restore_rng(state: Mapping[str, Any]) -> None:
    """Continue the random numbers where `rng_state` was taken."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal.tolist()), gauss))
    torch.set_rng_state(state["torch"].cpu())
    if "numpy" in state:
        import numpy as np

        kind, keys, position, has_gauss, cached = state["numpy"]
        np.random.set_state((kind, np.array(keys.tolist(), dtype=np.uint32), position, has_gauss, cached))
    if "cuda" in state and torch.cuda.is_available():
        for device, of_device in zip(range(torch.cuda.device_count()), state["cuda"], strict=False):  # there may be fewer or more today
            torch.cuda.set_rng_state(of_device, device)


def _each(target: Any, function: Any) -> Any:
    """Apply to one object, a list or a dict of them (several optimizers, as for GANs)."""
    if isinstance(target, Mapping):
        return {name: _each(value, function) for name, value in target.items()}
    if isinstance(target, (list, tuple)):
        return [_each(value, function) for value in target]
    return function(target)


def _load_each(target: Any, state: Any) -> None:
    if isinstance(target, Mapping):
        for name, value in target.items():
            _load_each(value, state[name])
    elif isinstance(target, (list, tuple)):
        for value, part in zip(target, state, strict=True):
            _load_each(value, part)
    else:
        target.load_state_dict(state)


def load_weights(runner: BaseRunner, checkpoint: Mapping[str, Any], strict: bool = True) -> None:
    """Load a checkpoint's weights; those that do not fit are an error, or, if not strict, left out and listed."""
    weights = checkpoint.get("state_dict", checkpoint)
    own = runner.model.state_dict()
    missing, unexpected = _compare_keys(own, weights)
    if missing or unexpected:
        text = f"{_list('missing', missing)}{_list('not in the model', unexpected)}".removesuffix("; ")
        if strict:
            raise HooklineError(f"the checkpoint does not fit the model: {text}")
        runner.logger.warning("weights that do not fit were left out: %s", text)
        weights = {key: value for key, value in weights.items() if key in own and value.shape == own[key].shape}
    runner.model.load_state_dict(weights, strict=strict)


def _compare_keys(own: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    missing = [key for key in own if key not in given]
    unexpected = [key for key in given if key not in own]
    for key, value in own.items():
        if key in given and isinstance(value, torch.Tensor) and value.shape != given[key].shape:
            missing.append(f"{key} of shape {tuple(value.shape)} (it has {tuple(given[key].shape)})")
    return missing, unexpected


def _list(label: str, names: list[str]) -> str:
    if not names:
        return ""
    return f"{label}: {', '.join(names[:6])}{f' and {len(names) - 6} more' if len(names) > 6 else ''}; "
