"""The configs of the product's own documents load as they stand."""

from __future__ import annotations

from pathlib import Path

from hookline.config import load_config, validate

GUIDE = """\
# config.yaml
experiment_dir: "experiments/my_experiment"

model:
  type: "cnn"
  # ... 模型配置 ...

dataset:
  type: "cifar10"
  # ... 数据集配置 ...

training:
  epochs: 50
  # ... 训练配置 ...
  
# 这里定义Hook
hooks:
  - type: "TimeTrackingHook"
    name: "training_timer"
    frequency: 1  # 每个epoch都要触发
    log_to_file: true
    log_path: "time_tracking.log"
    
  - type: "FeatureMapHook"
    name: "feature_visualizer"
    frequency: 100  # 每100步可视化一次
    max_features: 16
    sample_batch_idx: 0
    
  - type: "SystemMonitorHook"
    name: "system_monitor"
    frequency: 10  # 每10步记录一次系统资源使用情况
    interval: 2  # 采样间隔（秒）
    track_cpu: true  # 是否监控CPU使用率
    track_memory: true  # 是否监控内存使用率
    track_gpu: true  # 是否监控GPU使用率
    track_gpu_memory: true  # 是否监控GPU内存使用率
"""


def test_the_guides_config_is_good(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(GUIDE, encoding="utf-8")
    config = load_config(tmp_path / "config.yaml", ["hooks.training_timer.frequency=5"])
    assert config["work_dir"] == config["experiment_dir"] == "experiments/my_experiment"
    assert config["hooks"][0]["frequency"] == 5
    assert validate(config) == []
