"""What a wrapped callback costs at a site where it does nothing, over calling it directly: at most 3 µs.

    python benchmarks/foreign.py [--json FILE]      where the other frameworks are: `make bench-peers` runs it

Every site that comes again and again in a run is measured (those at its beginning and end are not), for a callback that has all
methods: what the wrapper calls there is recorded, and called directly for comparison. Each figure is the least of many rounds, the two in
turns, so that a busy machine counts for neither. The direct call passes its arguments as a list, which costs it about 0.2 µs; where a
figure is negative, that is why.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")
sys.path.insert(0, str(Path(__file__).parents[1]))

import keras
import lightning.pytorch as pl
import torch
import transformers
from torch import nn

from hookline.engine import SITE_NAMES, BaseRunner
from hookline.hooks import EvalHook, OptimizerHook
from tests.compat_foreign import composer_stubs

with composer_stubs.installed():
    import composer

    import hookline.compat.composer  # noqa: F401

LIMIT = 3.0  # µs
CALLS, ROUNDS = 1000, 40
SITES = [
    site
    for site in SITE_NAMES
    if site.endswith(("_iter", "_epoch", "_val", "forward", "backward", "_step", "save_checkpoint"))
]


def idle(base: type, methods: Iterable[str]) -> Any:
    """A callback that has each of these methods, and does nothing in any of them."""
    return type("Idle", (base,), dict.fromkeys(methods, lambda self, *args, **kwargs: None))()


class Algorithm(composer.Algorithm):
    """Matches nothing; being asked is what is compared."""

    def match(self, event, state):
        return False

    def apply(self, event, state, logger): ...


def callbacks() -> Iterator[tuple[str, Any]]:
    """Of each framework one for every method, and those of which the wrapper does something although they do nothing."""
    yield (
        "lightning",
        idle(pl.Callback, [name for name in dir(pl.Callback) if name.startswith("on_")]),
    )
    yield (
        "transformers",
        idle(
            transformers.TrainerCallback,
            [name for name in dir(transformers.TrainerCallback) if name.startswith("on_")],
        ),
    )
    yield "transformers: on_log", idle(transformers.TrainerCallback, ["on_log"])
    yield (
        "keras",
        idle(
            keras.callbacks.Callback,
            [name for name in dir(keras.callbacks.Callback) if name.startswith("on_")],
        ),
    )
    yield "keras: on_epoch_end", idle(keras.callbacks.Callback, ["on_epoch_end"])
    yield "composer", idle(composer.Callback, [event.value for event in composer.Event])
    yield "composer: algorithm", Algorithm()


def recorded(
    hook: Any, call: Callable[[], object]
) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """What the wrapper calls of its callback at a site."""
    seen: list[Any] = []

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            def method(*args: Any, **kwargs: Any) -> None:
                seen.append((name, args, kwargs))

            return method

    callback, hook.callback = hook.callback, Recorder()
    try:
        call()
    finally:
        hook.callback = callback
    return seen


def direct(
    callback: Any, calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]]
) -> Callable[[], object]:
    """The same calls without the wrapper."""
    bound = [(getattr(callback, name), args, kwargs) for name, args, kwargs in calls]

    def call() -> None:
        for method, args, kwargs in bound:
            method(*args, **kwargs)

    return call


def least(functions: list[Callable[[], object]]) -> list[float]:
    """The shortest time of one call of each, in µs."""
    best = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for index, function in enumerate(functions):
            began = time.perf_counter()
            for _ in range(CALLS):
                function()
            best[index] = min(best[index], (time.perf_counter() - began) / CALLS * 1e6)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, dict[str, dict[str, float]]] = {}
    model = nn.Linear(4, 2)
    data = [(torch.randn(8, 4), torch.randint(2, (8,)))]
    above = []
    print(f"{'callback':<22} {'site':<24} {'direct':>8} {'wrapped':>8} {'more':>8}   µs")
    for name, callback in callbacks():
        with tempfile.TemporaryDirectory() as folder:
            parts = {
                "optimizer": torch.optim.SGD(model.parameters(), 0.1),
                "loss_fn": nn.CrossEntropyLoss(),
                "val_loader": data,
            }
            hooks = [OptimizerHook(), EvalHook(save_best=False), callback]
            runner = BaseRunner(model, data, hooks=hooks, max_epochs=1, work_dir=folder, **parts)
            runner.train()
        runner.batch, runner.outputs = (
            data[0],
            {"loss": torch.tensor(1.0), "predictions": torch.zeros(8, 2), "targets": data[0][1]},
        )
        runner.checkpoint = {"state_dict": {}, "meta": {}}
        hook = runner.hooks[-1]
        for site in SITES:
            method = hook.site_method(site)
            if method is None:
                continue

            def wrapped(method: Any = method, runner: Any = runner) -> None:
                method(runner)

            alone, ours = least([direct(callback, recorded(hook, wrapped)), wrapped])
            above += [f"{name} at {site}"] if ours - alone > LIMIT else []
            results.setdefault(name, {})[site] = {
                "direct": alone,
                "wrapped": ours,
                "more": ours - alone,
            }
            print(f"{name:<22} {site:<24} {alone:>8.2f} {ours:>8.2f} {ours - alone:>8.2f}")
    print(f"more than {LIMIT} µs over a direct call: {', '.join(above) or 'nowhere'}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    return int(bool(above))


if __name__ == "__main__":
    sys.exit(main())
