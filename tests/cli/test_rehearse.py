"""Mistakes that would cost hours, each found in seconds."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from hookline.checkpoint import CheckpointStore
from hookline.cli.main import main
from hookline.rehearsal.samples import spread

CORES = len(os.sched_getaffinity(0))

PARTS = """
import time
import torch
from torch import nn
from torch.utils.data import Dataset
from hookline import BaseHook

class Data(Dataset):
    def __init__(self, split, fault="", count=22):
        self.split, self.fault, self.count = split, fault, count
        self.transform = (lambda x: x) if fault == "unpicklable" else None
    def __len__(self):
        return self.count
    def __getitem__(self, index):
        if self.fault == "missing_last" and index == self.count - 1:
            open(f"/no/such/folder/{index}.png")
        if self.fault == "missing_amid" and index == 13:
            open(f"/no/such/folder/{index}.png")
        if self.fault == "hangs" and index == self.count - 1:
            time.sleep(1000)
        size = 5 if self.fault == "shape" else 4
        x = torch.full((size,), float(index) / 10)
        if self.fault == "nan":
            x = x * float("nan")
        if self.fault == "numbers":
            return x, torch.ones(3)
        if self.fault == "lengths":
            return torch.ones(index + 1), 0
        label = 7 if self.fault == "label" and index == self.count - 1 else index % 3
        return x, label

class Net(nn.Module):
    def __init__(self, unused=False, outputs=3):
        super().__init__()
        self.body = nn.Linear(4, outputs)
        self.unused = nn.Linear(2, 2) if unused else None
    def forward(self, x):
        return self.body(x)

class FailsAt(BaseHook):
    def __init__(self, site: str = "after_val_epoch"):
        self.leave_alone(*({"after_val_epoch", "after_test_epoch", "before_save_checkpoint"} - {site}))
    def after_val_epoch(self, runner):
        raise KeyError("val_accuracy_top7")
    def after_test_epoch(self, runner):
        raise KeyError("only in the test")
    def before_save_checkpoint(self, runner):
        runner.checkpoint["mine"] = object()

class Rare(BaseHook):
    def __init__(self, interval: int = 1000):
        self.interval = interval
    def after_train_iter(self, runner):
        if self.every_n_iters(runner, self.interval):
            runner.no_such_attribute

class Forgets(BaseHook):
    seen = 0
    def after_train_iter(self, runner):
        self.seen += 1
    def state_dict(self):
        return {"seen": self.seen}
"""

CONFIG = """\
work_dir: {folder}/run
device: cpu
model: {{type: {parts}.Net}}
dataset:
  train: {{type: {parts}.Data, split: train}}
  val: {{type: {parts}.Data, split: val}}
  test: {{type: {parts}.Data, split: test}}
loader: {{batch_size: 4}}
training: {{epochs: 2}}
"""

PLANTED = {
    "a metric that is not measured": (["hooks=[{type: CheckpointHook, save_best: acuracy_top7}]"], r"no metric 'acuracy_top7' is measured"),
    "early stopping by a misspelt metric": (
        ["hooks=[{type: EarlyStoppingHook, monitor: val_lossy}]"],
        r"no metric 'val_lossy' is measured",
    ),
    "checkpoints that fill the disk": (
        ["training.epochs=1000000000000", "hooks=[{type: CheckpointHook, max_keep_ckpts: -1}]"],
        r"disk: checkpoints need [\d.]+ PB",
    ),
    "a missing file in the last batch of validation": (["dataset.val.fault=missing_last"], r"validation: FileNotFoundError.*/21\.png"),
    "a missing file amid the training data": (
        ["dataset.train.fault=missing_amid", "loader.shuffle=false"],
        r"sample 13: FileNotFoundError",
    ),
    "data that a worker cannot be given": (
        ["dataset.train.fault=unpicklable", "loader.num_workers=1", "loader.multiprocessing_context=spawn"],
        r"error: training: .*(pickle|local object)",
    ),
    "another shape in validation only": (["dataset.val.fault=shape"], r"error: validation: RuntimeError: mat1 and mat2"),
    "another shape in the test only": (["dataset.test.fault=shape"], r"error: test: RuntimeError: mat1 and mat2"),
    "a work directory that cannot be made": (["work_dir={folder}/config.yaml/run"], r"work_dir: .* is not a directory"),
    "an out_dir that cannot be written": (
        ["hooks=[{{type: CheckpointHook, out_dir: {folder}/config.yaml/out}}]"],
        r"CheckpointHook\.out_dir: .* is not a directory",
    ),
    "a hook that fails after a validation": (["hooks=[{parts}.FailsAt]"], r"error: validation: KeyError: 'val_accuracy_top7'.*FailsAt"),
    "a hook that fails after the test": (
        ["hooks=[{{type: {parts}.FailsAt, site: after_test_epoch}}]"],
        r"error: test: KeyError: 'only in the test'",
    ),
    "a hook that adds what cannot be saved": (
        ["hooks=[{{type: {parts}.FailsAt, site: before_save_checkpoint}}]"],
        r"error: saving: .*object",
    ),
    "a hook that fails in its thousandth iteration": (["hooks=[{parts}.Rare]"], r"error: training: AttributeError: .*no_such_attribute"),
    "a hook whose state does not come back": (
        ["hooks=[{parts}.Forgets]"],
        r"error: resume: what was saved does not come back: Forgets\.seen",
    ),
    "a loss that is not finite": (["dataset.train.fault=nan"], r"error: training: the loss of batch 1 is nan"),
    "a label beyond the classes in the last batch": (
        ["dataset.train.fault=label", "loader.shuffle=false"],
        r"error: training: IndexError: Target 7 is out of bounds",
    ),
    "a learning rate that changes nothing": (["optimizer={type: SGD, lr: 1.0e-30}"], r"error: training: no weight has changed"),
    "layers that no gradient reaches": (["model.unused=true"], r"warning: training: no gradient reaches unused\.bias, unused\.weight"),
    "a tracker that is not installed": (["hooks=[{type: ClearMLHook}]"], r"clearml is not installed"),
    "a layer's name in a picture hook": (
        ["hooks=[{type: FeatureMapHook, layers: [boddy]}]"],
        r"no layer is named 'boddy'; did you mean 'body'\?",
    ),
    "data that never comes": (["dataset.val.fault=hangs", "--limit=3"], r"error: validation: it did not come to an end in time"),
    "more time than there is": (
        ["training.epochs=100000000", "hooks=[{type: TimeLimitHook, limit: 1min}]"],
        r"warning: time: .* TimeLimitHook ends it after 60 s",
    ),
    "more workers than cores": ([f"loader.num_workers={CORES + 1}"], rf"warning: loader: {CORES + 1} data workers for {CORES} cores"),
}
ONLY_WARNED = {"layers that no gradient reaches", "more time than there is", "more workers than cores"}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    parts = f"planted_{re.sub('[^a-z0-9]', '_', tmp_path.name.lower())}"
    (tmp_path / f"{parts}.py").write_text(PARTS)
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG.format(folder=tmp_path, parts=parts))
    yield str(path)
    sys.modules.pop(parts, None)


def fill(arguments: list[str], config: str) -> list[str]:
    folder = Path(config).parent
    parts = next(folder.glob("planted_*.py")).stem
    return [text.format(folder=folder, parts=parts) if "{folder}" in text or "{parts}" in text else text for text in arguments]


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_found_before_training(name: str, config: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, expected = PLANTED[name]
    if name == "more workers than cores":
        arguments = [*arguments, "dataset.train.count=6", "dataset.val.count=6", "dataset.test.count=6"]
    code = main(["rehearse", config, *fill(arguments, config)])
    out = capsys.readouterr().out
    assert re.search(expected, out), out
    assert code == (0 if name in ONLY_WARNED else 1), out
    assert [path.name for path in Path(config).parent.iterdir() if "rehears" in path.name or path.name == "run"] == []


MEASURES = ["dataset.train.fault=numbers", "dataset.val.fault=numbers", "dataset.test=null", "training.loss=mse", "training.metrics=[mae]"]


@pytest.mark.parametrize(
    ("arguments", "phases", "advice"),
    [
        ([*MEASURES, "model.outputs=1"], ["training", "validation"], "the model's output must fit the targets: look at its last layer"),
        (["dataset.train.fault=shape"], ["training"], "the model must fit the samples"),
        (["dataset.val.fault=shape"], ["validation"], "make the samples of this phase the same shape as those of training"),
        (["dataset.train.fault=lengths"], ["training"], "samples of one batch differ in size: pad them"),
    ],
)
def test_the_advice_fits_what_is_of_the_wrong_shape(
    arguments: list[str], phases: list[str], advice: str, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rehearse", config, *arguments, "--json"]) == 1
    errors = [finding for finding in json.loads(capsys.readouterr().out)["findings"] if finding["level"] == "error"]
    assert [finding["where"] for finding in errors] == phases
    assert all(finding["advice"].startswith(advice) for finding in errors), errors


def test_a_good_config_passes_and_leaves_nothing_behind(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", config, "loader.num_workers=1"]) == 0
    out = capsys.readouterr().out
    assert "training, validation, saving, test, resume" in out
    assert "samples read  training 22 of 22, validation 22 of 22, test 22 of 22" in out
    assert "nothing would go wrong" in out
    assert re.search(r"whole run +about [\d.]+ s", out)
    assert not (Path(config).parent / "run").exists()


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_checkpoints_that_are_dropped_right_after_a_save_are_no_state_that_is_lost(
    keep: int, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = f"{{type: CheckpointHook, interval: 10, by_epoch: false, max_keep_ckpts: {keep}}}"
    assert main(["rehearse", config, f"hooks=[{hook}]"]) == 0, capsys.readouterr().out


def test_data_that_there_is_not_is_not_said_to_be_rehearsed(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", config, "dataset.test=null"]) == 0
    assert "test data" not in capsys.readouterr().out


def test_what_is_wrong_in_the_config_itself_is_exit_code_2(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", config, "hooks=[{type: EarlyStoppingHook, patiance: 3}]"]) == 2
    captured = capsys.readouterr()
    assert "did you mean 'patience'?" in captured.out + captured.err


def test_scripts_get_json(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", config, "dataset.val.fault=shape", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ready"] is False
    assert [finding["where"] for finding in found["findings"] if finding["level"] == "error"] == ["validation"]
    assert found["memory"]["weights"] == 15 * 4


def test_a_directory_in_use_is_an_error_and_one_with_checkpoints_a_warning(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", config]) == 0
    capsys.readouterr()
    assert main(["rehearse", config]) == 0
    assert "holds checkpoints of an earlier run" in capsys.readouterr().out
    assert main(["rehearse", config, "resume=auto"]) == 0
    assert "holds checkpoints" not in capsys.readouterr().out
    store = CheckpointStore(Path(config).parent / "run")
    store.lock()
    try:
        assert main(["rehearse", config]) == 1
    finally:
        store.unlock()
    assert "in use by process" in capsys.readouterr().out


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 101])
def test_samples_are_read_once_each_from_both_ends(count: int) -> None:
    order = list(spread(count))
    assert sorted(order) == list(range(count))
    assert order[:2] == [0, count - 1][: min(count, 2)]
