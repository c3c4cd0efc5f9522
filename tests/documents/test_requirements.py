"""The YAML examples and the tables of the requirements, word for word."""

from __future__ import annotations

import importlib

import pytest
import yaml

from hookline import HOOKS, Priority, Runner, build_hooks, get_priority
from hookline.config import check, load_config
from hookline.hooks import builder

COMPLETE = """
hooks:
  # 检查点钩子
  - type: CheckpointHook
    interval: 1
    max_keep_ckpts: 3
    save_best: true
    best_metric: accuracy
    rule: greater

  # 日志钩子
  - type: LoggerHook
    interval: 50

  # TensorBoard 钩子
  - type: TensorBoardHook
    log_dir: tensorboard_logs
    interval: 100
    log_graph: true

  # 评估钩子
  - type: EvalHook
    interval: 1
    save_best: true
    metric: accuracy

  # 早停钩子
  - type: EarlyStoppingHook
    monitor: val_loss
    patience: 10
    mode: min
    restore_best_weights: true

  # EMA 钩子
  - type: EMAHook
    momentum: 0.9999
    warm_up: 500

  # 可视化钩子
  - type: VisualizationHook
    interval: 500
    max_samples: 8
    save: true
"""

DISTRIBUTED = """
hooks:
  - type: CheckpointHook
    interval: 1
    max_keep_ckpts: 3
    # 仅主进程保存

  - type: LoggerHook
    interval: 50
    # 仅主进程输出

  - type: DistEvalHook
    interval: 1
    # 分布式评估

  - type: EMAHook
    momentum: 0.9999
    # 所有进程同步更新
"""

PROFILING = """
hooks:
  - type: ProfilerHook
    profile_iters: 100
    schedule:
      wait: 10
      warmup: 10
      active: 80
    record_shapes: true
    profile_memory: true
    export_chrome_trace: true

  - type: MemoryProfilerHook
    interval: 100
    warn_threshold: 10.0

  - type: IterTimerHook
    interval: 50
"""

REST = """
work_dir: {folder}
model: {{type: mlp, hidden: [16]}}
dataset: {{type: digits}}
loader: {{batch_size: 128}}
training: {{epochs: 1}}
"""


@pytest.mark.parametrize(
    "text", [COMPLETE, DISTRIBUTED, PROFILING], ids=["complete", "distributed", "profiling"]
)
def test_a_block_of_hooks_builds_sorted_by_priority_and_trains(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # tensorboard_logs is relative
    configs = yaml.safe_load(text)["hooks"]
    priorities = [get_priority(hook.priority) for hook in build_hooks(configs)]
    assert priorities == sorted(priorities)
    path = tmp_path / "config.yaml"
    path.write_text(REST.format(folder=tmp_path / "run") + text)
    config = load_config(path)
    check(config)
    runner = Runner.from_config(config)
    runner.train()
    assert runner.epoch == 1
    assert {config["type"] for config in configs} <= {type(hook).__name__ for hook in runner.hooks}
    assert (tmp_path / "run" / "last.pth").exists()


def test_the_priorities_are_those_of_the_tables():
    table = {
        "EMAHook": 40,
        "LoggerHook": 50,
        "CheckpointHook": 60,
        "EvalHook": 70,
        "EarlyStoppingHook": 90,
    }
    for name, value in table.items():
        assert get_priority(HOOKS.get(name).priority) == value, name
    values = [get_priority(getattr(builder, priority.name)) for priority in Priority]
    assert values == [0, 10, 30, 40, 50, 60, 70, 90, 100]


def test_the_default_hooks_are_built_in_order():
    names = [type(hook).__name__ for hook in builder.get_default_hooks()]
    assert names == [
        "ReportHook",
        "OptimizerHook",
        "LoggerHook",
        "CheckInvalidLossHook",
        "CheckpointHook",
        "IterTimerHook",
        "EvalHook",
    ]


@pytest.mark.parametrize(
    "module, names",
    [
        ("logger_hook", ["LoggerHook", "TensorBoardHook", "WandbHook", "MLflowHook"]),
        ("profiler_hook", ["ProfilerHook", "MemoryProfilerHook", "IterTimerHook"]),
        ("eval_hook", ["EvalHook", "DistEvalHook"]),
        (
            "visualization_hook",
            ["VisualizationHook", "DetVisualizationHook", "SegVisualizationHook"],
        ),
    ],
)
def test_the_classes_can_be_imported_from_where_the_document_has_them(module, names):
    found = importlib.import_module(f"hookline.hooks.{module}")
    for name in names:
        assert getattr(found, name) is HOOKS.get(name), name
    with pytest.raises(AttributeError):
        _ = found.NoSuchHook


def test_a_run_of_wandb_may_have_no_name_in_a_config():
    hook = builder.build_hook({"type": "WandbHook", "project": None, "name": None})
    assert (hook.project, hook.name) == (None, "")
