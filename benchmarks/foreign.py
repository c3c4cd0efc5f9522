"""Measure the cost of a wrapped callback that does nothing, beyond a direct call: at most 3 µs.

    python benchmarks/foreign.py [--json FILE]

It needs the other frameworks: `make bench-peers` runs it. Every site of an iteration, an epoch and a
validation is measured, for a callback with all methods. Those of a save are not: callbacks of
transformers get a folder there. The calls of the wrapper at a site are recorded, and made directly
for comparison. Both take turns, and each figure is the least of many rounds, so that other load
affects neither. The direct call passes its arguments as a list, which takes about 0.2 µs, so a
figure can be negative.
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

LIMIT_US = 3.0
CALLS = 1000
ROUNDS = 40
SITES = [
    site
    for site in SITE_NAMES
    if site.endswith(("_iter", "_epoch", "_val", "forward", "backward", "_step"))
]


def idle(base: type, methods: Iterable[str]) -> Any:
    """Return a callback with these methods, all of which do nothing."""
    return type("Idle", (base,), dict.fromkeys(methods, lambda self, *args, **kwargs: None))()


class Algorithm(composer.Algorithm):
    """An algorithm that matches no event, so that only the cost of matching is compared."""

    def match(self, event, state):
        return False

    def apply(self, event, state, logger): ...


def callbacks() -> Iterator[tuple[str, Any]]:
    """Yield a callback with all methods of each framework, and some that need extra work."""
    bases = {
        "lightning": pl.Callback,
        "transformers": transformers.TrainerCallback,
        "keras": keras.callbacks.Callback,
    }
    for name, base in bases.items():
        yield name, idle(base, [method for method in dir(base) if method.startswith("on_")])
    yield "transformers: on_log", idle(transformers.TrainerCallback, ["on_log"])
    yield "keras: on_epoch_end", idle(keras.callbacks.Callback, ["on_epoch_end"])
    yield "composer", idle(composer.Callback, [event.value for event in composer.Event])
    yield "composer: algorithm", Algorithm()


def record_calls(
    hook: Any, call: Callable[[], object]
) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Return the calls that the wrapper makes to its callback at a site."""
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
    """Return a function that makes the same calls without the wrapper."""
    bound = [(getattr(callback, name), args, kwargs) for name, args, kwargs in calls]

    def call() -> None:
        for method, args, kwargs in bound:
            method(*args, **kwargs)

    return call


def least(functions: list[Callable[[], object]]) -> list[float]:
    """Return the shortest time of a call of each function, in µs."""
    best = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for index, function in enumerate(functions):
            began = time.perf_counter()
            for _ in range(CALLS):
                function()
            best[index] = min(best[index], (time.perf_counter() - began) / CALLS * 1e6)
    return best


def measure(callback: Any) -> dict[str, dict[str, float]]:
    """Return the times of direct and wrapped calls by site."""
    model = nn.Linear(4, 2)
    data = [(torch.randn(8, 4), torch.randint(2, (8,)))]
    with tempfile.TemporaryDirectory() as folder:
        runner = BaseRunner(
            model,
            data,
            hooks=[OptimizerHook(), EvalHook(save_best=False), callback],
            max_epochs=1,
            work_dir=folder,
            optimizer=torch.optim.SGD(model.parameters(), 0.1),
            loss_fn=nn.CrossEntropyLoss(),
            val_loader=data,
        )
        runner.train()
    runner.batch = data[0]
    runner.outputs = {
        "loss": torch.tensor(1.0),
        "predictions": torch.zeros(8, 2),
        "targets": data[0][1],
    }
    runner.checkpoint = {"state_dict": {}, "meta": {}}
    hook = runner.hooks[-1]
    rows = {}
    for site in SITES:
        method = hook.site_method(site)
        if method is None:
            continue

        def call_wrapped(method: Any = method) -> None:
            method(runner)

        call_direct = direct(callback, record_calls(hook, call_wrapped))
        alone, wrapped = least([call_direct, call_wrapped])
        rows[site] = {"direct": alone, "wrapped": wrapped, "more": wrapped - alone}
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, dict[str, dict[str, float]]] = {}
    above = []
    print(f"{'callback':<22} {'site':<24} {'direct':>8} {'wrapped':>8} {'more':>8}   µs")
    for name, callback in callbacks():
        results[name] = measure(callback)
        for site, row in results[name].items():
            times = f"{row['direct']:>8.2f} {row['wrapped']:>8.2f} {row['more']:>8.2f}"
            print(f"{name:<22} {site:<24} {times}")
            if row["more"] > LIMIT_US:
                above.append(f"{name} at {site}")
    print(f"more than {LIMIT_US} µs over a direct call: {', '.join(above) or 'nowhere'}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    return int(bool(above))


if __name__ == "__main__":
    sys.exit(main())
