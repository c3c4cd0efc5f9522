"""Rows about the example configs of the requirements."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import yaml

from hookline import Runner, build_hooks, get_priority
from hookline.config import check, load_config
from tests.documents.runs import new_folder
from tests.documents.table import REQUIREMENTS, Section

# The blocks of the document, with its keys and values.
BLOCKS = {
    "complete": [
        "{type: CheckpointHook, interval: 1, max_keep_ckpts: 3, save_best: true,"
        " best_metric: accuracy, rule: greater}",
        "{type: LoggerHook, interval: 50}",
        "{type: TensorBoardHook, log_dir: tensorboard_logs, interval: 100, log_graph: true}",
        "{type: EvalHook, interval: 1, save_best: true, metric: accuracy}",
        "{type: EarlyStoppingHook, monitor: val_loss, patience: 10, mode: min,"
        " restore_best_weights: true}",
        "{type: EMAHook, momentum: 0.9999, warm_up: 500}",
        "{type: VisualizationHook, interval: 500, max_samples: 8, save: true}",
    ],
    "distributed": [
        "{type: CheckpointHook, interval: 1, max_keep_ckpts: 3}",
        "{type: LoggerHook, interval: 50}",
        "{type: DistEvalHook, interval: 1}",
        "{type: EMAHook, momentum: 0.9999}",
    ],
    "profiling": [
        "{type: ProfilerHook, profile_iters: 100, schedule: {wait: 10, warmup: 10, active: 80},"
        " record_shapes: true, profile_memory: true, export_chrome_trace: true}",
        "{type: MemoryProfilerHook, interval: 100, warn_threshold: 10.0}",
        "{type: IterTimerHook, interval: 50}",
    ],
}
REST = """
model: {type: mlp, hidden: [16]}
dataset: {type: digits}
loader: {batch_size: 128}
training: {epochs: 1}
"""

configs = Section(REQUIREMENTS, "example configs")


@cache
def trained(block: str) -> Runner:
    folder = new_folder()
    lines = "".join(f"  - {line}\n" for line in BLOCKS[block])
    path = folder / "config.yaml"
    path.write_text(f"work_dir: {folder / 'run'}\n{REST}hooks:\n{lines}", encoding="utf-8")
    config = load_config(path)
    check(config)
    place = os.getcwd()
    os.chdir(folder)  # a relative `log_dir` is relative to it
    try:
        runner = Runner.from_config(config)
        runner.train()
    finally:
        os.chdir(place)
    return runner


def entries(block: str) -> list[dict[str, Any]]:
    return [yaml.safe_load(line) for line in BLOCKS[block]]


def is_applied(block: str, entry: dict[str, Any]) -> None:
    (hook,) = [each for each in trained(block).hooks if type(each).__name__ == entry["type"]]
    for name, value in entry.items():
        if name != "type":
            assert getattr(hook, name) == value, name


for _block in BLOCKS:
    configs.add(
        "file",
        f"the {_block} config trains from a file",
        lambda block=_block: trained(block).epoch == 1,
    )
    configs.add(
        "behavior",
        f"the hooks of the {_block} config are built in the order of their priorities",
        lambda block=_block: (
            (values := [get_priority(hook.priority) for hook in build_hooks(entries(block))])
            == sorted(values)
        ),
    )
    for _entry in entries(_block):
        configs.add(
            "parameter",
            f"the {_block} config sets {', '.join(list(_entry)[1:])} of {_entry['type']}",
            lambda block=_block, entry=_entry: is_applied(block, entry),
        )
