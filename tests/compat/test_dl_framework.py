"""Every code block of the guide of `dl_framework` runs, with only the package's name replaced."""

from __future__ import annotations

import json
import logging
import re
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from hookline.compat.dl_framework.hooks import (
    BaseHook,
    FeatureMapHook,
    GradientFlowHook,
    SystemMonitorHook,
    TimeTrackingHook,
)
from hookline.compat.dl_framework.hooks.registry import HookRegistry
from hookline.compat.dl_framework.trainers import BaseTrainer
from hookline.compat.dl_framework.utils import load_config
from hookline.engine import HOOKS
from hookline.errors import RegistrationError
from tests.compat.document_blocks import read_blocks
from tests.problems import raises_problem

# The blocks as they stand in the guide. ------------------------------------------------------------------------------

CONFIG_FILE = """\
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

BLOCKS = {
    heading.rpartition(" / ")[2]: text for heading, text in read_blocks("dl_framework").items()
}
CUSTOM_HOOK = BLOCKS["自定义Hook示例"]
RUN: set[str] = set()


def runs(heading: str):
    """Say which block a test runs; it is given the block's text."""
    RUN.add(heading)
    return pytest.mark.parametrize("block", [BLOCKS[heading]], ids=[heading])


SERVICES = (
    "trainer", "config", "model", "train_loader", "val_loader", "optimizer", "scheduler", "device", "logger",
    "experiment_dir", "checkpoints_dir", "logs_dir", "visualization_dir", "visualizer",
)  # fmt: skip

# Running them. -------------------------------------------------------------------------------------------------------


def execute(block: str, namespace: dict | None = None) -> dict:
    """Run a block with the package's name replaced."""
    namespace = {"__name__": "guide"} if namespace is None else namespace
    exec(  # noqa: S102
        compile(block.replace("dl_framework", "hookline.compat.dl_framework"), "<guide>", "exec"),
        namespace,
    )
    return namespace


def method_of_a_hook(block: str, namespace: dict, rest: str = "") -> type[BaseHook]:
    """The class that a loose method of the guide belongs into."""
    body = "".join(f"    {line}\n" for line in (block + rest).splitlines())
    return execute(f"class Loose(BaseHook):\n{body}", {**execute(CUSTOM_HOOK), **namespace})[
        "Loose"
    ]


@pytest.fixture(autouse=True)
def _registry_as_before(monkeypatch):
    """What the blocks register is gone after each test."""
    monkeypatch.setattr(HOOKS, "_classes", dict(HOOKS.items()))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with the guide's config.yaml, cut down to one epoch, and CIFAR-10 files of random images in its default place."""
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(CONFIG_FILE.replace("epochs: 50", "epochs: 1"), encoding="utf-8")
    folder = Path("data/cifar-10-batches-bin")
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for name, count in [
        *((f"data_batch_{number}.bin", 1020) for number in range(1, 6)),
        ("test_batch.bin", 8),
    ]:
        records = random.integers(0, 256, (count, 3073), dtype=np.uint8)
        records[:, 0] %= 10
        records.tofile(folder / name)
    return tmp_path


def small_config(**more) -> dict:
    """The same with the digits, which need no files, in two epochs of 20 steps."""
    return {
        "experiment_dir": "experiment",
        "model": {"type": "cnn", "width": 4},
        "dataset": {"type": "digits"},
        "loader": {"batch_size": 64},
        "training": {"epochs": 2},
        **more,
    }


@pytest.fixture
def trainer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return BaseTrainer(small_config())


def test_the_config_file_of_the_guide_loads_as_it_stands(project):
    Path("config.yaml").write_text(CONFIG_FILE, encoding="utf-8")
    trainer = BaseTrainer(load_config("config.yaml"))
    assert trainer.max_epochs == 50
    names = ("training_timer", "feature_visualizer", "system_monitor")
    timer, pictures, monitor = (trainer.hook(name) for name in names)
    assert (timer.frequency, timer.log_to_file, timer.log_path) == (1, True, "time_tracking.log")
    assert (pictures.frequency, pictures.max_features, pictures.sample_batch_idx) == (100, 16, 0)
    assert (monitor.frequency, monitor.interval) == (10, 2)


@runs("通过配置文件使用Hook")
def test_training_from_the_config_file(block, project):
    trainer = execute(block)["trainer"]
    experiment = project / "experiments/my_experiment"
    assert trainer.stop_reason.details == {"max_epochs": 1}
    assert "epoch 1/1 took" in (experiment / "time_tracking.log").read_text()
    layers = {
        path.parent.name
        for path in (experiment / "visualizations/feature_visualizer").rglob("step_000000.png")
    }
    assert layers == {"features.0", "features.4", "features.8"}
    assert set(trainer.metrics) == {"accuracy", "val_loss", "train_loss"}


@runs("在代码中手动注册Hook")
def test_registering_a_hook_by_hand(block, project):
    execute(block)
    experiment = project / "experiments/my_experiment"
    for name in ("time_tracking.log", "custom_time_tracking.log"):
        assert "epoch 1/1 took" in (experiment / name).read_text()


@runs("自定义Hook示例")
def test_a_custom_hook_logs_and_records(block, trainer, caplog):
    caplog.set_level(logging.INFO, "hookline")
    trainer.register_hook(execute(block)["MyCustomHook"]())
    trainer.train()
    logged = [message for message in caplog.messages if re.match("训练|完成", message)]
    assert logged[0] == "训练即将开始！"
    assert [message.partition("，")[0] for message in logged[1:]] == [
        "完成第 1 个epoch",
        "完成第 2 个epoch",
    ]
    assert "'accuracy': 0." in logged[1]
    assert trainer.events.latest()["custom/metric"] == 0.5


def test_a_config_finds_a_custom_hook_by_its_registered_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cls = execute(CUSTOM_HOOK)["MyCustomHook"]
    entry = {
        "type": "MyCustomHook",
        "name": "mine",
        "frequency": 5,
        "priority": "LOW",
        "anything": [1, 2],
    }
    hook = BaseTrainer(small_config(hooks=[entry])).hook("mine")
    assert type(hook) is cls
    assert hook.config == {"name": "mine", "frequency": 5, "priority": "LOW", "anything": [1, 2]}
    assert (hook.frequency, hook.priority) == (5, "LOW")


@runs("服务注入")
def test_a_loose_hook_point_works_inside_of_a_class(block, trainer, caplog):
    caplog.set_level(logging.INFO, "hookline")
    trainer.register_hook(method_of_a_hook(block, {})())
    trainer.train()
    assert caplog.messages.count("Epoch完成") == 2


def test_all_services_of_the_list_are_there(trainer):
    seen = {}

    class Ask(BaseHook):
        def before_training(self):
            seen.update({name: self.get_service(name) for name in SERVICES})

    trainer.register_hook(Ask())
    assert trainer.train() is trainer
    assert [name for name in SERVICES if seen[name] is None] == ["scheduler"]  # the config has none
    assert seen["trainer"] is trainer
    assert seen["config"]["training"] == {"epochs": 2}
    assert seen["model"] is trainer.model
    assert isinstance(seen["device"], torch.device)
    folders = ("experiment_dir", "checkpoints_dir", "logs_dir", "visualization_dir")
    assert all(seen[name].is_dir() for name in folders)
    assert seen["experiment_dir"] == Path("experiment")
    assert (seen["checkpoints_dir"] / "last.pth").is_file()
    assert (seen["logs_dir"] / "log.jsonl").is_file()
    assert trainer.get_service("nothing") is None


def test_services_are_arguments_too_also_for_hooks_of_the_config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    received = []

    @HookRegistry.register("AsksByName")
    class AsksByName(BaseHook):
        def before_training(self, trainer, visualizer, checkpoints_dir):
            received.append((trainer, visualizer, checkpoints_dir))

    config = small_config(hooks=["AsksByName", {"type": "CheckpointHook", "out_dir": "elsewhere"}])
    trainer = BaseTrainer(config)
    trainer.train()
    assert received == [(trainer, trainer.get_service("visualizer"), Path("elsewhere"))]
    assert Path("elsewhere/last.pth").is_file()


@runs("Hook频率控制")
def test_the_frequency_of_a_hook_config_counts_steps(block, trainer):
    steps = []

    class Steps(BaseHook):
        def after_step(self, step):
            steps.append(step)

    trainer.register_hook(Steps(execute(block)["hook_config"]))
    trainer.train()
    assert steps == list(range(0, trainer.iter, 5))


@runs("Hook频率控制 (2)")
def test_should_trigger_can_be_overridden(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    steps = []
    hook = method_of_a_hook(
        block, {"steps": steps}, "def after_step(self, step):\n    steps.append(step)\n"
    )
    trainer = BaseTrainer(small_config(training={"iters": 125}, loader={"batch_size": 16}))
    trainer.register_hook(hook())
    trainer.train()
    assert steps == [*range(100), 100, 110, 120]


@pytest.mark.slow
@runs("注册自定义服务")
def test_a_custom_service_reaches_a_real_mlflow_server(block, trainer, mlflow_server, monkeypatch):
    for name, value in {
        "NO_PROXY": "localhost,127.0.0.1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
    }.items():
        monkeypatch.setenv(name, value)
    block = block.replace("localhost:5000", f"localhost:{mlflow_server.port}")
    began = int(time.time() * 1000)  # other tests leave runs there as well
    names = execute(block, {"__name__": "guide", "trainer": trainer, "BaseHook": BaseHook})
    trainer.register_hook(names["MLFlowHook"]())
    seen = []

    class Metrics(BaseHook):
        def after_epoch(self, metrics):
            seen.append(dict(metrics))

    trainer.register_hook(Metrics())
    trainer.train()
    runs = (
        names["mlflow"]
        .MlflowClient()
        .search_runs(
            ["0"], f"attributes.start_time >= {began}", order_by=["attributes.start_time ASC"]
        )
    )
    assert [pytest.approx(run.data.metrics) for run in runs] == seen
    assert set(seen[0]) == {"accuracy", "val_loss", "train_loss"}


def test_every_python_block_of_the_guide_is_run_by_a_test_with_its_heading():
    assert set(BLOCKS) == RUN
    assert len(BLOCKS) == 7


# The rest of the interface. ------------------------------------------------------------------------------------------


def test_all_hook_points_are_called_with_what_they_name(trainer):
    calls = []

    class Everything(BaseHook):
        def before_training(self, model):
            calls.append("before_training")
            super().before_training(model)

        def before_epoch(self, epoch, model):
            calls.append(("before_epoch", epoch))
            super().before_epoch(epoch, model)

        def before_step(self, step, batch):
            calls.append(("before_step", step, len(batch)))

        def after_step(self, step, loss, outputs):
            calls.append(("after_step", step, loss.ndim, outputs["loss"] is loss))

        def after_epoch(self, epoch, model, metrics):
            calls.append(("after_epoch", epoch, type(metrics["accuracy"])))
            super().after_epoch(epoch, model, metrics)

        def after_training(self):
            calls.append("after_training")

        def cleanup(self):
            calls.append("cleanup")

    trainer.register_hook(Everything())
    trainer.train()
    first_steps = [("before_step", 0, 2), ("after_step", 0, 0, True)]
    assert calls[:4] == ["before_training", ("before_epoch", 0), *first_steps]
    assert calls[-3:] == [("after_epoch", 1, float), "after_training", "cleanup"]
    assert calls.count("cleanup") == 1


def test_a_hook_that_overrides_nothing_is_called_nowhere():
    assert BaseHook().get_triggered_stages() == []


def test_a_hook_can_be_switched_off_and_on(trainer):
    calls = []

    class Counts(BaseHook):
        def before_epoch(self, epoch):
            calls.append(epoch)

        def cleanup(self):
            calls.append("cleanup")

    off = trainer.register_hook(Counts({"enabled": False, "name": "off"}))

    class SwitchOn(BaseHook):
        def after_epoch(self):
            off.enabled = True

    trainer.register_hook(SwitchOn())
    trainer.train()
    assert calls == [1, "cleanup"]


def test_a_hook_need_not_call_the_constructor_of_its_base(trainer):
    class Plain(BaseHook):
        def __init__(self):
            self.calls = 0

        def after_step(self):
            self.calls += 1

    hook = trainer.register_hook(Plain())
    trainer.train()
    assert hook.calls == trainer.iter
    assert hook.config == {}


def test_an_unknown_argument_is_rejected_at_registration(trainer):
    class Wrong(BaseHook):
        def after_epoch(self, metrix):
            pass

    with raises_problem(RegistrationError, parameter="metrix", nearest="metrics"):
        trainer.register_hook(Wrong())


def test_metrics_are_those_of_the_epoch_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen, losses = [], []

    class See(BaseHook):
        def after_step(self, loss):
            losses.append(loss.item())

        def after_epoch(self, metrics):
            seen.append(dict(metrics))

    for order in ("nested", "flat"):
        trainer = BaseTrainer(
            small_config(
                experiment_dir=order, hook_order=order, hooks=[{"type": "EvalHook", "interval": 2}]
            )
        )
        trainer.register_hook(See())
        trainer.train()
        assert [set(metrics) for metrics in seen] == [
            {"train_loss"},
            {"train_loss", "accuracy", "val_loss"},
        ]
        steps = len(losses) // 2
        assert seen[1]["train_loss"] == pytest.approx(sum(losses[steps:]) / steps, rel=1e-5)
        seen.clear(), losses.clear()


@pytest.mark.parametrize(
    "cls", [TimeTrackingHook, FeatureMapHook, GradientFlowHook, SystemMonitorHook]
)
def test_built_in_hooks_take_a_dict_keywords_or_nothing(cls):
    native = HOOKS.get(cls.__name__)
    assert vars(cls()).keys() == vars(native()).keys()
    assert cls({"frequency": 7}).frequency == cls(frequency=7).frequency == 7
    assert cls({"name": "mine", "priority": "LOW"}).name == "mine"
    assert isinstance(cls(), native)
    assert native is not cls  # registered once
    with raises_problem(parameter="frequenzy", nearest="frequency"):
        cls({"frequenzy": 7})


def test_a_built_in_hook_can_be_subclassed_and_registered():
    @HookRegistry.register("QuietTimer")
    class QuietTimer(TimeTrackingHook):
        pass

    hook = HookRegistry.build({"type": "QuietTimer", "name": "quiet", "log_to_file": False})
    assert (type(hook), hook.name, hook.log_to_file) == (QuietTimer, "quiet", False)


def test_the_visualizer_records_into_the_events(trainer):
    records = []
    trainer.events.listeners.append(type("Listener", (), {"write": staticmethod(records.append)}))
    trainer.events.outbox.open()
    visualizer = trainer.get_service("visualizer")
    visualizer.add_image("a", torch.zeros(3, 4, 4), 1)
    visualizer.add_figure("b", "figure", 1)
    visualizer.add_histogram("c", torch.zeros(4), global_step=1)
    visualizer.add_text("d", "text")
    assert [(record.kind, record.name) for record in records] == [
        ("image", "a"),
        ("figure", "b"),
        ("histogram", "c"),
        ("text", "d"),
    ]


def test_a_trainer_takes_a_file_or_a_mapping_and_overrides(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text(json.dumps(small_config()))
    assert BaseTrainer("config.json").max_epochs == 2
    assert BaseTrainer.from_config("config.json", ["training.epochs=3"]).max_epochs == 3
    with raises_problem(nearest="cnn"):
        BaseTrainer(small_config(model={"type": "cnnn"}))


def test_a_resumed_training_has_the_same_metrics_as_one_in_one_go(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = BaseTrainer(small_config(experiment_dir="whole", training={"iters": 40})).train()
    config = small_config(
        experiment_dir="parts", hooks=[{"type": "CheckpointHook", "by_epoch": False, "interval": 1}]
    )
    BaseTrainer({**config, "training": {"iters": 25}}).train()
    resumed = BaseTrainer({**config, "training": {"iters": 40}, "resume": "auto"}).train()
    assert resumed.metrics["train_loss"] == whole.metrics["train_loss"]


@pytest.mark.parametrize(
    ("module", "name", "hint"),
    [
        ("hookline.compat.dl_framework", "trainer", "did you mean 'trainers'"),
        ("hookline.compat.dl_framework.trainers", "BaseTrainr", "did you mean 'BaseTrainer'"),
        ("hookline.compat.dl_framework.hooks", "TimeTrackHook", "did you mean 'TimeTrackingHook'"),
        (
            "hookline.compat.dl_framework.hooks.registry",
            "HookRegister",
            "did you mean 'HookRegistry'",
        ),
        ("hookline.compat.dl_framework.utils", "load_cfg", "did you mean 'load_config'"),
    ],
)
def test_importing_a_name_that_is_not_covered_logs_the_nearest_one(module, name, hint, caplog):
    with pytest.raises(ImportError):
        exec(f"from {module} import {name}")  # noqa: S102
    assert f"{module.removeprefix('hookline.compat.')}.{name} " in caplog.text
    assert hint in caplog.text
