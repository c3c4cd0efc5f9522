"""Measure calls of all hooks of one site, against a plain loop over a tuple of bound methods.

    python benchmarks/dispatch.py [--rounds 101] [--json FILE]

There are no hooks, ten, and a hundred, with an empty method at the site. The contenders take turns
in random order; the CPU time of each turn is divided by that of the plain loop in the same round.
pluggy, MMEngine, Lightning and Ignite are measured if they are installed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from hookline.engine import BaseHook, BaseRunner

COUNTS = (0, 10, 100)
PLAIN = "plain tuple loop"
LIMIT = 1.15  # of the plain loop, with ten hooks
Loop = Callable[[int], None]


class Ours(BaseHook):
    def after_train_iter(self, runner: Any) -> None:
        pass


class PlainHook:
    def after_train_iter(self, runner: Any) -> None:
        pass


def plain(count: int) -> Loop:
    calls, runner = tuple(PlainHook().after_train_iter for _ in range(count)), object()

    def loop(times: int) -> None:
        site = calls
        for _ in range(times):
            for call in site:
                call(runner)

    return loop


def hookline(count: int) -> Loop:
    runner = BaseRunner(torch.nn.Linear(1, 1), hooks=[Ours() for _ in range(count)])

    def loop(times: int) -> None:
        sites = runner.sites
        for _ in range(times):
            for call in sites.after_train_iter:
                call(runner)

    return loop


def with_pluggy(count: int) -> Loop:
    import pluggy

    spec, implementation = pluggy.HookspecMarker("bench"), pluggy.HookimplMarker("bench")

    class Spec:
        @spec
        def after_train_iter(self, runner: Any) -> None: ...

    class Plugin:
        @implementation
        def after_train_iter(self, runner: Any) -> None:
            pass

    manager = pluggy.PluginManager("bench")
    manager.add_hookspecs(Spec)
    for _ in range(count):
        manager.register(Plugin())

    def loop(times: int) -> None:
        call = manager.hook.after_train_iter
        for _ in range(times):
            call(runner=manager)

    return loop


def with_mmengine(count: int) -> Loop:
    from mmengine.hooks import Hook
    from mmengine.runner import Runner

    class Theirs(Hook):
        def after_train_iter(
            self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
        ) -> None:
            pass

    runner = Runner.__new__(Runner)  # `call_hook` only reads the hooks
    runner._hooks = [Theirs() for _ in range(count)]

    def loop(times: int) -> None:
        for _ in range(times):
            runner.call_hook("after_train_iter", batch_idx=0, data_batch=None, outputs=None)

    return loop


def with_lightning(count: int) -> Loop:
    import lightning.pytorch as pl
    from lightning.pytorch.trainer import call

    class Theirs(pl.Callback):
        def on_train_batch_end(self, *args: Any) -> None:
            pass

    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = pl.Trainer(accelerator="cpu", callbacks=[Theirs() for _ in range(count)], **quiet)

    def loop(times: int) -> None:
        for _ in range(times):
            call._call_callback_hooks(trainer, "on_train_batch_end", None, None, 0)

    return loop


def with_ignite(count: int) -> Loop:
    from ignite.engine import Engine, Events

    engine = Engine(lambda engine, batch: None)
    for _ in range(count):
        engine.add_event_handler(Events.ITERATION_COMPLETED, PlainHook().after_train_iter)

    def loop(times: int) -> None:
        for _ in range(times):
            engine.fire_event(Events.ITERATION_COMPLETED)

    return loop


CONTENDERS: dict[str, Callable[[int], Loop]] = {
    PLAIN: plain,
    "Hookline": hookline,
    "pluggy": with_pluggy,
    "MMEngine": with_mmengine,
    "Lightning": with_lightning,
    "Ignite": with_ignite,
}


def measure(count: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the nanoseconds per site, and the ratio to the plain loop."""
    loops = {}
    for name, make in CONTENDERS.items():
        with contextlib.suppress(ImportError):
            loops[name] = make(count)
    repeats = {name: _repeats(loop) for name, loop in loops.items()}
    times: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name in random.sample(list(loops), len(loops)):
            started = time.process_time()
            loops[name](repeats[name])
            times[name].append((time.process_time() - started) / repeats[name] * 1e9)
    rows = {}
    for name, values in times.items():
        ratios = [value / base for value, base in zip(values, times[PLAIN], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        rows[name] = {"ns": statistics.median(values), "ratio": middle, "low": low, "high": high}
    return rows


def _repeats(loop: Loop) -> int:
    """Return the number of repetitions that last about 4 milliseconds."""
    loop(200)
    started = time.perf_counter()
    loop(200)
    return max(20, int(0.004 / ((time.perf_counter() - started) / 200)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--json", type=Path, help="also write the results here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = {str(count): measure(count, arguments.rounds) for count in COUNTS}
    for count, rows in results.items():
        print(f"one site with {count} hooks{'':12}{'ns':>10}{'ratio':>9}   quartiles")
        for name, row in rows.items():
            quartiles = f"{row['low']:.3f}–{row['high']:.3f}"
            print(f"  {name:32}{row['ns']:10.0f}{row['ratio']:9.3f}   {quartiles}")
    ratio = results["10"]["Hookline"]["ratio"]
    print(f"ten hooks: {ratio:.3f} of the plain loop, limit {LIMIT}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
