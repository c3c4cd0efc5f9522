"""Checkpoints that MMEngine itself wrote: read, imported and continued; malicious ones refused."""

from __future__ import annotations

import importlib
import json
import pickle
import shutil
import sys
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hookline
from hookline.checkpoint import CheckpointError, load_checkpoint
from hookline.cli.main import main
from hookline.compat import install, uninstall, unpickle
from hookline.compat.importing import split_average, to_hookline
from hookline.hooks import EMAHook
from tests.problems import raises_problem

GOLDEN = Path(__file__).parents[1] / "golden"
FILE = (
    GOLDEN / "mmengine_0.10.7_epoch_2.pth"
)  # after two epochs of the job in mmengine_job.py without dropout, with EMA
CURVE = json.loads((GOLDEN / "mmengine_0.10.7.json").read_text())  # all four epochs of it


@pytest.fixture(scope="module")
def job() -> Iterator[ModuleType]:
    """The job, with `import mmengine` meaning ours."""
    real = [name for name in sys.modules if name.split(".")[0] == "mmengine"]
    if real:
        pytest.skip("the real mmengine was imported in this process")
    install("mmengine")
    try:
        yield importlib.import_module("tests.compat.mmengine_job")
    finally:
        uninstall("mmengine")


def test_a_file_of_mmengine_is_read_as_plain_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mmengine", raising=False)  # another test may have imported it
    checkpoint = unpickle.load(FILE)
    history = checkpoint["message_hub"]["log_scalars"]["train/loss"]
    assert history["log_history"].tolist() == pytest.approx(CURVE["losses"][:12])
    assert checkpoint["meta"]["epoch"] == 2
    assert checkpoint["message_hub"]["runtime_info"]["best_score"] == pytest.approx(
        CURVE["metrics"][1]["val/accuracy"]
    )
    assert "mmengine" not in sys.modules


def test_a_run_of_mmengine_is_continued_with_the_losses_that_it_would_have_had(
    job: ModuleType, tmp_path: Path
) -> None:
    probe = job.Probe()
    changes = {
        "model": {"type": "JobNet", "dropout": 0.0},
        "train_cfg": {"by_epoch": True, "max_epochs": 4, "val_interval": 1},
    }
    runner = job.runner("epochs", str(tmp_path), probe, load_from=str(FILE), resume=True, **changes)
    runner.train()
    assert probe.losses == pytest.approx(CURVE["losses"][12:], abs=1e-6)
    # On another processor, a sample between two classes may get the other one.
    one_sample = 1 / 40
    expected = [pytest.approx(metrics, abs=1.01 * one_sample) for metrics in CURVE["metrics"][2:]]
    assert probe.metrics == expected
    assert probe.calls[0][0] == "before_run"
    assert [call[0] for call in probe.calls].index("after_load_checkpoint") == 1


def test_a_work_directory_of_mmengine_is_resumed_though_it_was_moved(
    job: ModuleType, tmp_path: Path
) -> None:
    shutil.copyfile(FILE, tmp_path / "epoch_2.pth")
    (tmp_path / "last_checkpoint").write_text("/somewhere/else/epoch_2.pth")
    changes = {
        "model": {"type": "JobNet", "dropout": 0.0},
        "train_cfg": {"by_epoch": True, "max_epochs": 3, "val_interval": 1},
    }
    probe = job.Probe()
    job.runner("epochs", str(tmp_path), probe, resume=True, **changes).train()
    assert probe.losses == pytest.approx(CURVE["losses"][12:18], abs=1e-6)


def test_the_command_imports_it_with_the_average_where_hookline_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "last.pth"
    assert main(["ckpt", "import", str(FILE), "-o", str(target)]) == 0
    assert "epoch 2, iteration 12" in capsys.readouterr().out
    theirs, ours = unpickle.load(FILE), load_checkpoint(target)
    assert torch.equal(ours["ema_state_dict"]["head.weight"], theirs["state_dict"]["head.weight"])
    assert torch.equal(
        ours["state_dict"]["head.weight"], theirs["ema_state_dict"]["module.head.weight"]
    )
    assert not torch.equal(ours["state_dict"]["head.weight"], ours["ema_state_dict"]["head.weight"])
    assert set(ours["optimizer"]) == {"state", "param_groups"}


def model() -> nn.Module:
    """The job's model without MMEngine: the same names and shapes."""
    body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.0))
    return nn.Sequential(OrderedDict(body=body, head=nn.Linear(16, 3)))


def test_hookline_s_own_runner_continues_with_an_imported_checkpoint(tmp_path: Path) -> None:
    main(["ckpt", "import", str(FILE), "-o", str(tmp_path / "last.pth")])
    net = model()
    groups = [{"params": [parameter]} for parameter in net.parameters()]
    batches = [(torch.randn(16, 8), torch.randint(3, (16,))) for _ in range(6)]
    average = EMAHook(momentum=0.9)
    runner = hookline.Runner(
        net,
        train_loader=batches,
        optimizer=torch.optim.AdamW(groups, lr=0.02),
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=3,
        work_dir=tmp_path,
        resume="auto",
        hooks=[average],
    )
    runner.train()
    assert (runner.epoch, runner.iter) == (3, 18)
    state = runner.optimizer.state_dict()["state"]  # type: ignore[union-attr]
    assert int(state[0]["step"]) == 18


def test_a_compat_run_continues_with_an_imported_checkpoint(
    job: ModuleType, tmp_path: Path
) -> None:
    main(["ckpt", "import", str(FILE), "-o", str(tmp_path / "imported.pth")])
    probe = job.Probe()
    changes = {
        "model": {"type": "JobNet", "dropout": 0.0},
        "train_cfg": {"by_epoch": True, "max_epochs": 4, "val_interval": 1},
    }
    given = {"load_from": str(tmp_path / "imported.pth"), "resume": True, **changes}
    job.runner("epochs", str(tmp_path / "run"), probe, **given).train()
    assert probe.losses == pytest.approx(CURVE["losses"][12:], abs=1e-6)


class Malicious:
    """What runs a command when it is unpickled freely."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call


def touch(path: str) -> None:
    Path(path).touch()


@pytest.mark.parametrize(
    "where",
    [
        lambda evil: {"state_dict": {}, "extra": evil},
        lambda evil: {
            "state_dict": {},
            "message_hub": {
                "log_scalars": {"train/loss": evil},
                "runtime_info": {},
                "resumed_keys": {},
            },
        },
        lambda evil: {"state_dict": {}, "meta": {"cfg": [1, {"deep": evil}]}},
    ],
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_file_with_an_added_malicious_class_is_refused_and_nothing_of_it_runs(
    tmp_path: Path, where: Any, protocol: int
) -> None:
    victim = tmp_path / "victim"
    checkpoint = {
        **torch.load(_plain(tmp_path), weights_only=True),
        **where(Malicious(touch, (str(victim),))),
    }
    torch.save(checkpoint, tmp_path / "evil.pth", pickle_protocol=protocol)
    with raises_problem(CheckpointError, file=str(tmp_path / "evil.pth")):
        unpickle.load(tmp_path / "evil.pth")
    assert main(["ckpt", "import", str(tmp_path / "evil.pth")]) == 2
    assert not victim.exists()


def _plain(tmp_path: Path) -> Path:
    torch.save({"state_dict": {"weight": torch.ones(2)}}, tmp_path / "plain.pth")
    return tmp_path / "plain.pth"


@pytest.mark.parametrize(
    "call",
    [
        (eval, ("1 + 1",)),
        (getattr, (str, "upper")),
        (pickle.loads, (b"N.",)),
        (np.load, ("x.npy",)),
    ],
)
def test_only_the_few_known_functions_may_be_called(tmp_path: Path, call: Any) -> None:
    torch.save({"state_dict": {}, "evil": Malicious(*call)}, tmp_path / "evil.pth")
    with pytest.raises(CheckpointError):
        unpickle.load(tmp_path / "evil.pth")


def test_the_environment_cannot_switch_the_protection_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    victim = tmp_path / "victim"
    torch.save({"state_dict": {}, "evil": Malicious(touch, (str(victim),))}, tmp_path / "evil.pth")
    with pytest.raises(CheckpointError):
        unpickle.load(tmp_path / "evil.pth")
    assert not victim.exists()


def test_arrays_scalars_and_paths_come_out_plain(tmp_path: Path) -> None:
    values = {
        "array": np.arange(3.0),
        "number": np.float32(2.5),
        "whole": np.int64(7),
        "path": Path("a/b"),
        "words": np.array(["x"]),
    }
    torch.save(
        {"state_dict": {}, "meta": {key: value for key, value in values.items() if key != "words"}},
        tmp_path / "file.pth",
    )
    meta = unpickle.load(tmp_path / "file.pth")["meta"]
    assert meta["array"].tolist() == [0.0, 1.0, 2.0]
    assert (meta["number"], meta["whole"], meta["path"]) == (2.5, 7, "a/b")
    assert type(meta["number"]) is float


def test_the_average_in_mmcv_s_buffers_is_separated_from_the_weights() -> None:
    average, raw = torch.ones(2), torch.zeros(2)
    weights, averaged = split_average({"state_dict": {"fc.weight": average, "ema_fc_weight": raw}})
    assert torch.equal(weights["fc.weight"], raw)
    assert averaged is not None
    assert torch.equal(averaged["fc.weight"], average)
    assert set(weights) == set(averaged) == {"fc.weight"}


def test_bare_weights_are_imported_and_anything_else_is_not() -> None:
    assert set(to_hookline({"fc.weight": torch.ones(1)}, "x")["state_dict"]) == {"fc.weight"}
    with raises_problem(CheckpointError, file="x"):
        to_hookline({"something": 1}, "x")
