"""Train with a hook in a host, and observe what it does."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hookline import HOOKS
from hookline.engine import BaseHook
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook
from tests.contracts.hooks import active_config
from tests.contracts.parameters.rows import place_below
from tests.contracts.training import files_below
from tests.helpers import Tracer
from tests.parity.hosts import Host

# Instead of the set-up of the contract tests.
CONFIGS: dict[str, dict[str, Any]] = {"StopAtHook": {"type": "StopAtHook", "iter": 6}}


@dataclass
class Observation:
    """Everything that a hook did.

    Args:
        refused: The site or parameter because of which the host has refused the hook.
        calls: How often the hook was called at each site.
        state: Its `state_dict` at the end.
        scalars: The recorded scalars, as (value, iteration, epoch).
        records: Other records, as (kind, name, iteration).
        files: The names of the files in the work directory.
        weights: The weights at the end.
        sites: All sites of the run, in order.
    """

    refused: str = ""
    calls: dict[str, int] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    scalars: dict[str, list[Any]] = field(default_factory=dict)
    records: list[Any] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    weights: dict[str, Any] = field(default_factory=dict)
    sites: list[str] = field(default_factory=list)


class Recorder(BaseHook):
    """Keeps images, histograms, figures, texts and files that are recorded."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def before_run(self, runner: Any) -> None:
        runner.events.listeners.append(self)

    def write_row(self, row: Any) -> None:
        """Do nothing: the log is compared with the run."""

    def write(self, record: Any) -> None:
        self.records.append((record.kind, record.name, record.iter))


def observe(host: Host, hook: str, folder: Path) -> Observation:
    """Train with a hook in a host, and return what it did."""
    folder.mkdir(parents=True)
    tested = HOOKS.build(place_below(folder, CONFIGS.get(hook) or active_config(hook)))
    tracer = Tracer()
    recorder = Recorder()
    hooks = [tracer, recorder, tested]
    if hook == "RollbackHook":
        hooks.insert(0, CheckpointHook(by_epoch=False, interval=2))
    try:
        runner = host(folder, hook, hooks)
        if hook == "TestHook" and runner.test_loader is not None:
            runner.test()
    except HooklineError as error:
        return Observation(refused=error.site or error.parameter or str(error))
    counts = Counter(tracer.log)
    calls = {}
    for site, its_hooks in runner.sites.hooks.items():
        if tested in its_hooks:
            calls[site] = counts[site]
    scalars = {}
    for name in runner.events.latest():
        history = runner.events.history(name)
        scalars[name] = [(each.value, each.iter, each.epoch) for each in history]
    return Observation(
        calls=calls,
        state=copy.deepcopy(tested.state_dict()),
        scalars=scalars,
        records=recorder.records,
        files=files_below(folder),
        weights=copy.deepcopy(runner.model.state_dict()),
        sites=tracer.log,
    )
