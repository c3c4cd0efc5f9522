"""`install`: a framework's name imports our version, in this process and on request only."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hookline.compat.mmengine
import hookline.compat.mmengine.hooks
from hookline.cli.main import main
from hookline.compat import install, uninstall
from hookline.errors import HooklineError
from tests.waiting import LIMIT_S


@pytest.fixture
def _installed() -> Iterator[None]:
    if "mmengine" in sys.modules:
        pytest.skip("the real mmengine was imported in this process")
    install("mmengine")
    yield
    uninstall("mmengine")


@pytest.mark.usefixtures("_installed")
def test_the_name_means_the_very_same_modules() -> None:
    mmengine = importlib.import_module("mmengine")
    hooks = importlib.import_module("mmengine.hooks")
    deep = importlib.import_module("mmengine.hooks.checkpoint_hook")
    assert mmengine is hookline.compat.mmengine
    assert hooks.Hook is hookline.compat.mmengine.hooks.Hook
    assert deep.CheckpointHook is hooks.CheckpointHook
    assert deep.__spec__.name == deep.__name__ == "hookline.compat.mmengine.hooks.checkpoint_hook"
    assert importlib.reload(importlib.import_module("json"))  # other imports are left alone
    install("mmengine")  # the second time changes nothing


def test_uninstalling_takes_it_back() -> None:
    install("mmengine")
    importlib.import_module("mmengine.hooks")
    uninstall("mmengine")
    assert not [name for name in sys.modules if name.split(".")[0] == "mmengine"]
    assert hookline.compat.mmengine.hooks.Hook.__module__ == "hookline.compat.mmengine.hooks.hook"


@pytest.mark.usefixtures("_installed")
def test_importing_a_submodule_logs_nothing(caplog) -> None:
    exec("from mmengine import hooks, runner, optim", {})  # noqa: S102
    assert caplog.text == ""


@pytest.mark.usefixtures("_installed")
def test_a_name_that_is_not_covered_gets_the_nearest_one(caplog) -> None:
    with pytest.raises(ImportError):
        exec("from mmengine.hooks import EMAHok", {})  # noqa: S102
    assert "'EMAHook'" in caplog.text
    with pytest.raises(ImportError):
        exec("from mmengine.dataset import BaseDataset", {})  # noqa: S102
    assert "pip install 'hookline[mmengine]'" in caplog.text
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'hookline\[mmengine\]'"):
        importlib.import_module("mmengine.structures")
    with pytest.raises(ModuleNotFoundError, match=r"mmengine\.hook .*'mmengine\.hooks'"):
        importlib.import_module("mmengine.hook")
    mmengine = importlib.import_module("mmengine")
    with pytest.raises(AttributeError, match="'Config'"):
        _ = mmengine.Confg
    assert not hasattr(mmengine, "nothing_like_it")


def test_a_package_that_was_imported_already_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "mmcv", sys)
    with pytest.raises(HooklineError, match="mmcv"):
        install("mmcv")
    with pytest.raises(HooklineError, match="'mmengine'"):
        install("mmengin")


SCRIPT = """
import argparse
import sys
from pathlib import Path
from mmengine.config import Config
from mmengine.registry import HOOKS
import neighbour

parser = argparse.ArgumentParser()
parser.add_argument("--out")
args = parser.parse_args()
Path(args.out).write_text(f"{__name__} {HOOKS.get('EMAHook').__module__} {neighbour.WORD}")
sys.exit(3)
"""


def test_a_script_is_run_as_if_it_had_been_written_for_hookline(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "neighbour.py").write_text("WORD = 'hello'")
    command = [
        sys.executable,
        "-m",
        "hookline",
        "run-as",
        "mmengine",
        str(tmp_path / "script.py"),
        "--out",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 3, done.stderr
    assert (
        tmp_path / "out"
    ).read_text() == "__main__ hookline.compat.mmengine.hooks.ema_hook hello"


def test_a_missing_script_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run-as", "mmengine", "nowhere.py"]) == 2
    assert "no such script" in capsys.readouterr().err


def test_a_script_for_mmcv_trains_as_it_is(tmp_path: Path) -> None:
    script = """
import logging
import torch
from mmcv.runner import EpochBasedRunner, HOOKS, Hook

@HOOKS.register_module()
class Count(Hook):
    done = 0
    def after_train_iter(self, runner):
        Count.done += 1

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 1)
    def train_step(self, data, optimizer):
        return {"loss": self.fc(data).mean(), "num_samples": len(data)}

model = Model()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
runner = EpochBasedRunner(model, optimizer=optimizer, work_dir=WORK, logger=logging.getLogger("x"), max_epochs=2)
runner.register_training_hooks(lr_config={"policy": "fixed"}, optimizer_config={}, custom_hooks_config=[{"type": "Count"}])
runner.run([torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2)], [("train", 1)])
print(Count.done, runner.epoch)
"""
    (tmp_path / "script.py").write_text(script.replace("WORK", repr(str(tmp_path / "run"))))
    command = [sys.executable, "-m", "hookline", "run-as", "mmcv", str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "4 2"
