"""What a wrapped callback costs at a site where it does nothing, over calling it directly: at most 3 µs.

Run it where the other frameworks are: `.venv-compat/bin/python benchmarks/foreign.py`. Each figure is the least of many rounds, the
direct call and the wrapped one in turns, so that a busy machine does not count for either.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")
sys.path.insert(0, str(Path(__file__).parents[1]))

import keras
import lightning.pytorch as pl
import torch
import transformers
from torch import nn

from hookline.engine import BaseRunner
from hookline.hooks import OptimizerHook
from tests.compat_foreign import composer_stubs

with composer_stubs.installed():
    import composer

    import hookline.compat.composer  # noqa: F401

LIMIT = 3.0  # µs
CALLS, ROUNDS = 2000, 60


class IdleLightning(pl.Callback):
    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx): ...
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx): ...
    def on_after_backward(self, trainer, pl_module): ...


class IdleTransformers(transformers.TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs): ...
    def on_step_end(self, args, state, control, **kwargs): ...
    def on_optimizer_step(self, args, state, control, **kwargs): ...


class IdleKeras(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None): ...
    def on_epoch_begin(self, epoch, logs=None): ...


class IdleKerasEpochs(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None): ...


class IdleComposer(composer.Callback):
    def batch_start(self, state, logger): ...
    def batch_end(self, state, logger): ...
    def after_backward(self, state, logger): ...


class IdleAlgorithm(composer.Algorithm):
    def match(self, event, state):
        return False

    def apply(self, event, state, logger): ...


def direct_calls(runner: BaseRunner, hook: Any) -> dict[str, Callable[[], object]]:
    """For each site what calls the callback there without us, with the arguments that it would get."""
    callback, others = hook.callback, {"model": runner.model, "optimizer": runner.optimizer}
    if isinstance(callback, IdleLightning):
        trainer, module, batch = hook.trainer, hook.module, runner.batch
        return {
            "before_train_iter": lambda: callback.on_train_batch_start(trainer, module, batch, 0),
            "after_train_iter": lambda: callback.on_train_batch_end(trainer, module, runner.outputs, batch, 0),
            "after_backward": lambda: (
                callback.on_after_backward(trainer, module),
                callback.on_before_optimizer_step(trainer, module, None),
            ),
        }
    if isinstance(callback, IdleTransformers):
        args, state, control = hook._args, hook._state, hook._control
        others = hook._others
        return {
            "before_train_iter": lambda: callback.on_step_begin(args, state, control, **others),
            "after_train_iter": lambda: callback.on_step_end(args, state, control, **others),
            "after_optimizer_step": lambda: callback.on_optimizer_step(args, state, control, **others),
        }
    if isinstance(callback, IdleKeras):
        return {
            "before_train_iter": lambda: callback.on_train_batch_begin(0, {}),
            "before_train_epoch": lambda: callback.on_epoch_begin(0, {}),
        }
    if isinstance(callback, IdleKerasEpochs):
        return {"after_train_iter": lambda: None}  # where Keras calls nothing, and we add up the loss for the epoch's logs
    state, logger = hook.state, hook.state.logger
    if isinstance(callback, IdleAlgorithm):
        events = hook._events
        sites = ("before_train_iter", "after_forward", "after_backward", "after_optimizer_step")
        return {site: _matches(callback, events[site], state) for site in sites}
    event = composer.Event
    return {
        "before_train_iter": lambda: callback.run_event(event.BATCH_START, state, logger),
        "after_optimizer_step": lambda: callback.run_event(event.BATCH_END, state, logger),
        "after_backward": lambda: callback.run_event(event.AFTER_BACKWARD, state, logger),
    }


def _matches(algorithm: Any, events: Any, state: Any) -> Callable[[], object]:
    def call() -> None:
        for event in events:
            algorithm.match(event, state)

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
    torch.set_num_threads(1)
    model = nn.Linear(4, 2)
    data = [(torch.randn(8, 4), torch.randint(2, (8,)))]
    worst = 0.0
    print(f"{'callback':<18} {'site':<22} {'direct':>8} {'wrapped':>8} {'more':>8}   µs")
    for kind in (IdleLightning, IdleTransformers, IdleKeras, IdleKerasEpochs, IdleComposer, IdleAlgorithm):
        with tempfile.TemporaryDirectory() as folder:
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            hooks = [OptimizerHook(), kind()]
            runner = BaseRunner(model, data, optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), hooks=hooks, max_epochs=1, work_dir=folder)
            runner.train()
        runner.batch, runner.outputs = data[0], {"loss": torch.tensor(1.0), "predictions": None, "targets": data[0][1]}
        hook = runner.hooks[-1]
        for site, direct in direct_calls(runner, hook).items():
            wrapped = hook.site_method(site)
            alone, ours = least([direct, lambda wrapped=wrapped, runner=runner: wrapped(runner)])
            worst = max(worst, ours - alone)
            print(f"{kind.__name__:<18} {site:<22} {alone:>8.2f} {ours:>8.2f} {ours - alone:>8.2f}")
    print(f"at most {worst:.2f} µs more than a direct call (limit {LIMIT})")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
