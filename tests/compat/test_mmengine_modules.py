"""The smaller parts of MMEngine's names: models, histories, the visualizer, configs, and the hooks besides the default ones."""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hookline.compat.mmengine.config import Config
from hookline.compat.mmengine.dataset import pseudo_collate
from hookline.compat.mmengine.hooks import Hook
from hookline.compat.mmengine.logging import HistoryBuffer, MessageHub, MMLogger
from hookline.compat.mmengine.model import BaseModel
from hookline.compat.mmengine.optim import build_optim_wrapper
from hookline.compat.mmengine.registry import HOOKS
from hookline.compat.mmengine.visualization import Visualizer
from tests.compat.mmengine_parts import Net, make_runner


def test_losses_are_summed_by_their_names() -> None:
    loss, logged = BaseModel().parse_losses(
        {
            "loss_a": torch.tensor([1.0, 3.0]),
            "loss_b": [torch.tensor(1.0)],
            "accuracy": torch.tensor(0.5),
        }
    )
    assert float(loss) == 3.0
    assert list(logged) == ["loss", "loss_a", "loss_b", "accuracy"]


def test_a_history_stays_cheap_and_keeps_its_longest_length() -> None:
    history = HistoryBuffer(max_length=50)
    for value in range(200):
        history.update(float(value))
    assert (len(history.data[0]), history.min(), history.current()) == (50, 150.0, 199.0)
    assert history.mean(10) == 194.5
    again = HistoryBuffer.from_plain(history.to_plain())
    assert again.data[0].tolist() == history.data[0].tolist()
    hub = MessageHub.get_instance("of a test")
    hub.update_scalar("a", torch.tensor(2.0))
    hub.update_scalar("b", np.float32(4), count=2)
    assert (hub.get_scalar("a").current(), hub.get_scalar("b").mean()) == (2.0, 2.0)


@pytest.mark.parametrize("make", [list, np.array, torch.tensor])
def test_a_history_begins_with_nested_values_and_takes_float_counts(make: Any) -> None:
    history = HistoryBuffer(make([[-1.0, 1.0, 1.0]]), make([[1, 1, 1]]), max_length=3)
    history.update(2.0, 4.0)  # type: ignore[arg-type]
    values, counts = history.data
    assert values.tolist() == [1.0, 1.0, 2.0]
    assert counts.tolist() == [1, 1, 4]


def test_scalars_are_written_by_the_visualizer(tmp_path: Path) -> None:
    visualizer = Visualizer("one", save_dir=str(tmp_path))
    visualizer.add_scalars({"loss": torch.tensor(0.5)}, step=7)
    row = json.loads((tmp_path / "vis_data" / "scalars.json").read_text())
    assert row == {"step": 7, "loss": 0.5}
    with pytest.raises(AttributeError, match=r"pip install 'hookline\[mmengine\]'"):
        visualizer.draw_featmap(torch.rand(4, 5, 6))


def test_the_other_hooks_do_their_work_in_a_run(tmp_path: Path) -> None:
    hooks: list[Any] = [
        {"type": "EmptyCacheHook", "before_epoch": True, "after_iter": True},
        {"type": "SyncBuffersHook"},
        {
            "type": "EMAHook",
            "ema_type": "MomentumAnnealingEMA",
            "gamma": 10,
            "begin_epoch": 2,
            "update_buffers": True,
        },
    ]
    logger = {"type": "LoggerHook", "interval": 2}
    runner = make_runner(
        tmp_path / "run", custom_hooks=hooks, default_hooks={"logger": logger}, log_level="INFO"
    )
    runner.train()
    rows = [
        json.loads(line)
        for line in next((tmp_path / "run").rglob("vis_data/scalars.json")).read_text().splitlines()
    ]
    assert [row["step"] for row in rows if "loss" in row] == [2, 4, 6, 8]
    assert [row["accuracy"] for row in rows if "accuracy" in row]


def test_the_model_gets_its_own_weights_back_when_a_validation_with_the_average_fails(
    tmp_path: Path,
) -> None:
    class Failing(Hook):
        def after_val_iter(
            self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
        ) -> None:
            self.inside = runner.model.fc[0].weight.clone()
            raise RuntimeError("no")

        def before_val(self, runner: Any) -> None:
            self.before = runner.model.fc[0].weight.clone()

    failing = Failing()
    runner = make_runner(tmp_path, custom_hooks=[{"type": "EMAHook"}, failing])
    with pytest.raises(RuntimeError) as caught:
        runner.train()
    assert any(
        "Failing at after_val_iter" in note
        for note in getattr(caught.value, "__notes__", ["Failing at after_val_iter"])
    )
    assert not torch.equal(failing.inside, failing.before)
    assert torch.equal(runner.model.fc[0].weight, failing.before)


def test_attributes_of_a_hook_that_hookline_uses_too_keep_their_own_meaning(tmp_path: Path) -> None:
    class Mine(Hook):
        def __init__(self) -> None:
            self.frequency, self.calls = 3, 0

        def after_train_iter(self, runner: Any, *args: Any, **kwargs: Any) -> None:
            self.calls += "outputs" in kwargs

        def cleanup(self, something: int) -> None:
            raise AssertionError("this is not one of MMEngine's stages")

    mine = Mine()
    make_runner(tmp_path, custom_hooks=[mine]).train()
    assert (mine.calls, mine.frequency) == (8, 3)


def test_samples_are_collated_to_lists() -> None:
    assert pseudo_collate([{"a": 1}, {"a": 2}]) == {"a": [1, 2]}
    assert pseudo_collate([(1, "x"), (2, "y")]) == [(1, 2), ("x", "y")]


def test_weights_are_loaded_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runner, other = make_runner(tmp_path, 1), Net()
    runner.message_hub.update_info("odd", object())
    runner.train()
    assert "odd (object)" in capsys.readouterr().out
    weights = torch.load(tmp_path / "epoch_1.pth", weights_only=True)["state_dict"]
    wrapped = {f"module.{key}": value for key, value in weights.items()}
    torch.save({"state_dict": wrapped}, tmp_path / "x.pth")
    loaded = make_runner(tmp_path / "other", model=other)
    loaded.load_checkpoint(tmp_path / "x.pth", strict=True)
    assert torch.equal(other.fc[0].weight, runner.model.fc[0].weight)
    with pytest.raises(RuntimeError, match="missing keys"):
        make_runner(tmp_path / "else", model=BaseModelOfOne()).load_checkpoint(
            tmp_path / "x.pth", strict=True
        )
    with pytest.raises(FileNotFoundError):
        loaded.load_checkpoint("https://example.org/x.pth")


class BaseModelOfOne(BaseModel):
    """A model with one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)


class NoCopy:
    """A value that cannot be copied."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("no copies")


def test_a_value_that_cannot_be_copied_does_not_keep_the_hub_from_being_saved() -> None:
    hub, value = MessageHub.get_instance("with a value that cannot be copied"), NoCopy()
    hub.update_info("open", value)
    hub.update_info("closed", [1])
    state = hub.state_dict()["runtime_info"]
    assert state["open"] is value
    assert state["closed"] == [1]


def test_a_new_level_of_a_logger_holds_at_once() -> None:
    logger = MMLogger.get_instance("with levels", log_level="DEBUG")
    assert logger.isEnabledFor(logging.INFO)
    logger.setLevel(logging.ERROR)
    assert not logger.isEnabledFor(logging.INFO)


def test_the_keys_of_a_config_are_attributes_at_every_depth() -> None:
    cfg = Config({"model": {"depth": 18}, "hooks": [{"type": "A"}]})
    cfg.lr = 0.1
    assert (cfg.model.depth, cfg.hooks[0].type, cfg["lr"]) == (18, "A", 0.1)
    assert cfg.to_dict() == {"model": {"depth": 18}, "hooks": [{"type": "A"}], "lr": 0.1}
    assert type(cfg.to_dict()["model"]) is dict
    with pytest.raises(AttributeError, match="did you mean 'depth'"):
        _ = cfg.model.dept


@pytest.mark.parametrize(
    "use",
    [
        lambda: Config.fromfile("config.py"),
        lambda: BaseModel(init_cfg={"type": "Constant", "val": 1.0}),
        lambda: make_runner("unused", auto_scale_lr={"enable": True, "base_batch_size": 4}),
        lambda: HOOKS.build({"type": "ProfilerHook"}),
        lambda: importlib.import_module("hookline.compat.mmengine.hooks").ProfilerHook,
        lambda: build_optim_wrapper(
            Net(), {"optimizer": {"type": "SGD"}, "paramwise_cfg": {"a": 1}}
        ),
    ],
)
def test_a_part_that_needs_mmengine_itself_names_the_extra(use: Callable[[], Any]) -> None:
    with pytest.raises(Exception, match=r"pip install 'hookline\[mmengine\]'"):
        use()
