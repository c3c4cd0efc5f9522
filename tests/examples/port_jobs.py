"""Processes that run the ports of `examples/ports`, are killed and continue."""

from __future__ import annotations

import importlib
import logging
import os
import signal
from dataclasses import dataclass
from typing import Any

import torch

from hookline import BaseHook, Runner, state
from hookline.hooks import EMAHook


@dataclass
class LossesHook(BaseHook):
    """Keep the loss of every iteration."""

    losses: list[float] = state([])

    def after_train_iter(self, runner):
        self.losses.append(float(runner.outputs["loss"].detach()))


@dataclass
class KillHook(BaseHook):
    """Kill the process in an iteration of a run.

    Args:
        at: Finished iterations before the one that is killed.
        save_at: Finished iterations before the one that ends with a checkpoint, if any.
        run: The name of the run's directory; every run if it is empty.
    """

    at: int
    save_at: int | None = None
    run: str = ""

    def after_train_iter(self, runner):
        if self.run not in ("", runner.work_dir.name):
            return
        if runner.iter == self.save_at:
            runner.request_save("last")
        if runner.iter == self.at:
            runner.checkpointer.wait()
            os.kill(os.getpid(), signal.SIGKILL)


def run_port(
    name: str, work_dir: str, length: dict[str, int], kill: dict[str, Any] | None = None
) -> list[Runner]:
    """Run a port, which continues an earlier run in the directory; return its runners."""
    hooks = [{"type": f"{__name__}.LossesHook"}]
    if kill is not None:
        hooks.append({"type": f"{__name__}.KillHook", **kill})
    result = importlib.import_module(f"examples.ports.{name}").ported(
        work_dir, **length, hooks=hooks
    )
    return result if isinstance(result, list) else [result]


def outcome(runners: list[Runner]) -> list[dict[str, Any]]:
    """Return the weights, optimizer states, losses and averages of runs."""
    outcomes = []
    for runner in runners:
        losses = runner.hook("LossesHook")
        assert isinstance(losses, LossesHook)
        averages = [hook.average.state_dict() for hook in runner.hooks if isinstance(hook, EMAHook)]
        outcomes.append(
            {
                "weights": dict(runner.model.state_dict()),
                "optimizer": optimizer_states(runner.optimizer),
                "losses": losses.losses,
                "averages": averages,
            }
        )
    return outcomes


def optimizer_states(optimizer: Any) -> Any:
    """Return the state of an optimizer, or of several by name."""
    if isinstance(optimizer, dict):
        return {name: each.state_dict() for name, each in optimizer.items()}
    return optimizer.state_dict()


def run_in_process(
    name: str, work_dir: str, length: dict[str, int], kill: dict[str, Any] | None, result: str
) -> None:
    """Run a port in this process and write its outcome to a file, unless it is killed."""
    torch.set_num_threads(1)
    logging.getLogger("hookline").setLevel(logging.ERROR)
    runners = run_port(name, work_dir, length, kill)
    torch.save(outcome(runners), result)
