from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.config import Config, load_config
from hookline.errors import ConfigError
from tests.problems import raises_problem

TEXT = """\
model: cnn
training: {epochs: 1, metrics: [accuracy, f1]}
hooks:
  - type: LoggerHook
    interval: 5
  - type: my_project.hooks.EarlyStoppingHook
    patience: 3
  - {type: CheckpointHook, name: training_saver}
  - {type: IterTimerHook, name: one}
  - {type: IterTimerHook, name: two}
"""


@pytest.fixture
def load(tmp_path: Path) -> Any:
    path = tmp_path / "c.yaml"
    path.write_text(TEXT)

    def load(*overrides: str) -> Config:
        return load_config(path, overrides)

    return load


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("training.epochs=3", ("training", "epochs"), 3),
        ("training.epochs=", ("training", "epochs"), None),
        ("seed=5", ("seed",), 5),
        ("optimizer.lr=1e-3", ("optimizer", "lr"), 1e-3),
        ("optimizer={type: SGD, lr: 0.1}", ("optimizer",), {"type": "SGD", "lr": 0.1}),
        ("loader.val.batch_size=9", ("loader", "val", "batch_size"), 9),
        ("training.metrics=[a, b, c]", ("training", "metrics"), ["a", "b", "c"]),
        ("training.metrics.1=auroc", ("training", "metrics", 1), "auroc"),
        ("training.metrics[0]=auroc", ("training", "metrics", 0), "auroc"),
        ("training.loss.label_smoothing=0.1", ("training", "loss", "label_smoothing"), 0.1),
        ("model.width=8", ("model",), {"type": "cnn", "width": 8}),
        ("work_dir=a=b", ("work_dir",), "a=b"),
        ("+extra.deep.key=1", ("extra", "deep", "key"), 1),
        ("hooks.0.interval=7", ("hooks", 0, "interval"), 7),
        ("hooks.logger.interval=7", ("hooks", 0, "interval"), 7),
        ("hooks.LoggerHook.interval=7", ("hooks", 0, "interval"), 7),
        ("hooks.early_stopping.patience=9", ("hooks", 1, "patience"), 9),
        ("hooks.EarlyStoppingHook.patience=9", ("hooks", 1, "patience"), 9),
        ("hooks.training_saver.interval=2", ("hooks", 2, "interval"), 2),
        ("hooks.checkpoint.interval=2", ("hooks", 2, "interval"), 2),
        ("hooks.two.interval=2", ("hooks", 4, "interval"), 2),
        ("hooks.one={type: EvalHook}", ("hooks", 3), {"type": "EvalHook", "name": "one"}),
        ("hooks.eval.interval=2", ("hooks", 5), {"type": "EvalHook", "interval": 2}),
        ("+hooks.x.type=EMAHook", ("hooks", 5), {"type": "EMAHook", "name": "x"}),
        ("hooks=[EvalHook]", ("hooks",), [{"type": "EvalHook"}]),
        ("hooks=null", ("hooks",), []),
    ],
)
def test_an_override_sets_one_value_and_its_location(
    load: Any, override: str, path: tuple[Any, ...], value: Any
) -> None:
    config = load(override)
    found: Any = config
    for part in path:
        found = found[part]
    assert found == value
    if not isinstance(value, dict):
        assert config.location(path) == ("command line", None)


def test_overrides_apply_in_their_order(load: Any) -> None:
    config = load(
        "+hooks.x.type=EMAHook",
        "hooks.x.momentum=0.9",
        "hooks.ema.interval=2",
        "training.epochs=2",
        "training.epochs=3",
    )
    assert config["hooks"][-1] == {"type": "EMAHook", "name": "x", "momentum": 0.9, "interval": 2}
    assert config["training"]["epochs"] == 3


@pytest.mark.parametrize(
    ("override", "left", "dropped"),
    [
        ("hooks.early_stopping=null", 4, None),
        ("hooks.logger=null", 4, ["LoggerHook"]),
        ("hooks.training_saver=null", 4, ["CheckpointHook"]),
        ("hooks.eval=null", 5, ["EvalHook"]),
        ("hooks.EvalHook=null", 5, ["EvalHook"]),
        ("hooks.one=null", 4, None),  # the other timer stays
    ],
)
def test_a_dropped_default_hook_does_not_come_back(
    load: Any, override: str, left: int, dropped: list[str] | None
) -> None:
    config = load(override)
    assert len(config["hooks"]) == left
    assert config.get("drop_hooks") == dropped


def test_a_hook_that_was_dropped_can_be_taken_back(load: Any) -> None:
    config = load("hooks.eval=null", "hooks.eval.interval=2")
    assert config["drop_hooks"] == []
    assert config["hooks"][-1] == {"type": "EvalHook", "interval": 2}


@pytest.mark.parametrize(
    ("override", "path", "nearest"),
    [
        ("epochs=3", ("epochs",), "training.epochs"),
        ("training.epoch=3", ("training", "epoch"), "epochs"),
        ("trianing.epochs=3", ("trianing", "epochs"), "training"),
        ("hooks.loger.interval=3", ("hooks", "loger", "interval"), "logger"),
        ("hooks.early_stoping=null", ("hooks", "early_stoping"), "early_stopping"),
        ("hooks.iter_timer.interval=3", ("hooks", "iter_timer"), None),
        ("hooks.9.interval=3", ("hooks", "9"), None),
        ("training.metrics.2=x", ("training", "metrics", "2"), None),
        ("seven", (), None),
        ("seed=[1", ("seed",), None),
    ],
)
def test_a_wrong_override_is_reported_with_its_path_and_a_suggestion(
    load: Any, override: str, path: tuple[str, ...], nearest: str | None
) -> None:
    with raises_problem(file="command line", line=None, path=path, nearest=nearest):
        load(override)


def test_an_error_does_not_repeat_a_secret_value(load: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        load("api_key=hunter2")
    assert "hunter2" not in str(caught.value)
