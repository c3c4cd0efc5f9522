"""The same jobs under real MMEngine, under our stand-ins, and under the overlay. Skipped where the real package is not installed.

The package is looked for in this interpreter, or in the one that HOOKLINE_MMENGINE_PYTHON names. `make test-compat` installs it in
a separate environment, because it depends on OpenCV.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline.checkpoint import CheckpointError
from hookline.compat import unpickle
from tests.waiting import LIMIT_S

HERE = Path(__file__).parent
PYTHON = os.environ.get("HOOKLINE_MMENGINE_PYTHON") or (
    sys.executable if importlib.util.find_spec("mmengine") else None
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        PYTHON is None,
        reason="needs mmengine==0.10.7: run make test-compat, or set HOOKLINE_MMENGINE_PYTHON",
    ),
]


def run(
    script: str, which: str, *arguments: str, launcher: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a script under `mmengine`, the `overlay` of it, or the `stand-ins` of an interpreter without it."""
    python = sys.executable if which == "stand-ins" else str(PYTHON)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[1])}
    package = "mmengine" if which == "mmengine" else "hookline"
    return subprocess.run(
        [python, *launcher, str(HERE / script), package, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=LIMIT_S,
        check=False,
    )


@cache
def result(script: str, which: str, *arguments: str, launcher: Sequence[str] = ()) -> Any:
    """What a script prints."""
    done = run(script, which, *arguments, launcher=launcher)
    lines = [line for line in done.stdout.splitlines() if line.startswith("JOB ")]
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(lines[-1].removeprefix("JOB "))


OURS = ["overlay"] if importlib.util.find_spec("mmengine") else ["overlay", "stand-ins"]


@pytest.mark.parametrize("which", OURS)
@pytest.mark.parametrize("kind", ["epochs", "iters"])
def test_the_same_job_has_the_same_losses_and_the_same_hook_calls(
    kind: str, which: str, tmp_path: Path
) -> None:
    real = result("mmengine_job.py", "mmengine", kind, str(tmp_path / "real"))
    ours = result("mmengine_job.py", which, kind, str(tmp_path / "ours"))
    assert ours["losses"] == pytest.approx(real["losses"], abs=1e-6)
    assert ours["rates"] == [pytest.approx(rates) for rates in real["rates"]]
    assert ours["metrics"] == [pytest.approx(metrics) for metrics in real["metrics"]]
    assert ours["weights"] == pytest.approx(real["weights"], abs=1e-5)
    assert ours["calls"] == real["calls"]
    if which == "overlay":  # The hooks of the stand-ins need fewer stages.
        assert ours["hooks"] == real["hooks"]
    assert {call[0] for call in real["calls"]} >= {
        "before_save_checkpoint",
        "after_val_epoch",
        "after_test_iter",
        "after_run",
    }


@pytest.mark.skipif("stand-ins" not in OURS, reason="this interpreter has no stand-ins")
def test_every_parameter_scheduler_gives_the_same_values_to_the_last_bit() -> None:
    real, ours = (result("mmengine_schedules.py", which) for which in ("mmengine", "stand-ins"))
    assert list(ours) == list(real)
    for name, values in real.items():
        assert ours[name] == values, name


ADD_SOMETHING_EVIL = """
import sys, torch
class Evil:
    def __reduce__(self):
        return open, (sys.argv[3], "w")
source, target = sys.argv[1:3]
checkpoint = torch.load(source, weights_only=False)
checkpoint["message_hub"]["runtime_info"]["note"] = Evil()
torch.save(checkpoint, target)
"""


def test_a_fresh_checkpoint_of_mmengine_is_read_and_one_with_a_malicious_class_is_refused(
    tmp_path: Path,
) -> None:
    result("mmengine_job.py", "mmengine", "epochs", str(tmp_path / "run"))
    checkpoint = unpickle.load(tmp_path / "run" / "epoch_4.pth")
    assert (checkpoint["meta"]["epoch"], checkpoint["meta"]["iter"]) == (4, 24)
    assert isinstance(
        checkpoint["message_hub"]["log_scalars"]["train/loss"]["log_history"], torch.Tensor
    )
    files = [tmp_path / "run" / "epoch_4.pth", tmp_path / "evil.pth", tmp_path / "victim"]
    subprocess.run(
        [str(PYTHON), "-c", ADD_SOMETHING_EVIL, *map(str, files)], check=True, timeout=LIMIT_S
    )
    with pytest.raises(CheckpointError, match="refused"):
        unpickle.load(tmp_path / "evil.pth")
    assert not (tmp_path / "victim").exists()


def test_the_overlay_has_every_public_name_of_mmengine() -> None:
    real, ours = (
        result("mmengine_overlay.py", which, "names") for which in ("mmengine", "overlay")
    )
    assert ours == real
    assert sum(map(len, real.values())) > 405


def test_every_block_of_the_document_runs_on_the_overlay() -> None:
    command = [str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(HERE / "test_mmengine_document.py")],
        capture_output=True,
        text=True,
        cwd=HERE.parents[1],
        timeout=10 * LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("kind", ["epochs", "iters"])
def test_a_killed_run_of_the_overlay_resumes_to_the_same_weights(kind: str, tmp_path: Path) -> None:
    whole = result(
        "mmengine_overlay.py", "overlay", "train", kind, str(tmp_path / "whole"), "whole"
    )
    real = result("mmengine_overlay.py", "mmengine", "train", kind, str(tmp_path / "real"), "whole")
    assert whole["weights"] == real["weights"]
    folder = str(tmp_path / "killed")
    killed = run("mmengine_overlay.py", "overlay", "train", kind, folder, "killed")
    assert killed.returncode == -signal.SIGKILL
    resumed = result("mmengine_overlay.py", "overlay", "train", kind, folder, "resumed")
    assert (resumed["resumed"], resumed["iter"]) == (True, whole["iter"])
    assert resumed["weights"] == whole["weights"]


def test_several_optimizers_resume_to_the_same_weights(tmp_path: Path) -> None:
    job = ("mmengine_overlay.py", "overlay", "several_optimizers")
    real = ("mmengine_overlay.py", "mmengine", "several_optimizers")
    whole = result(*job, str(tmp_path / "whole"), "3", "")
    assert whole == result(*real, str(tmp_path / "real"), "3", "")
    result(*job, str(tmp_path / "parts"), "2", "")
    assert result(*job, str(tmp_path / "parts"), "3", "resume") == whole


def test_two_processes_average_all_buffers_and_resume_to_the_same_weights(tmp_path: Path) -> None:
    def job(which: str, folder: str, *arguments: str) -> list[dict[str, float]]:
        torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
        place = str(tmp_path / folder)
        found: list[dict[str, float]] = result(
            "mmengine_overlay.py", which, "two_processes", place, *arguments, launcher=torchrun
        )
        return found

    whole = job("overlay", "whole", "2", "")
    assert whole == job("mmengine", "real", "2", "")
    assert [rank["count"] for rank in whole] == [8, 8]  # in each epoch, the mean of 2 and 6
    assert whole[0] == whole[1]
    job("overlay", "parts", "1", "")
    assert job("overlay", "parts", "2", "resume") == whole


def test_early_stopping_keeps_its_patience_across_a_resume(tmp_path: Path) -> None:
    found = result("mmengine_overlay.py", "overlay", "early_stopping", str(tmp_path))
    assert found == [[2, 1], [4, 3]]


@pytest.mark.parametrize("kind", ["epochs", "iters"])
def test_a_runner_with_the_documented_call_hook_and_register_hook_trains_as_before(
    kind: str, tmp_path: Path
) -> None:
    real, ours = (
        result("mmengine_overlay.py", which, "own_dispatch", kind, str(tmp_path / which))
        for which in ("mmengine", "overlay")
    )
    assert ours == real
    assert len(ours["files"]) >= 2


def test_a_hook_of_the_project_comes_before_one_of_hookline_with_its_name(tmp_path: Path) -> None:
    hooks = result("mmengine_overlay.py", "overlay", "project_hooks", str(tmp_path))
    assert "__main__.CheckInvalidLossHook" in hooks
    assert "hookline.hooks.throughput_hook.ThroughputHook" in hooks


def test_an_edited_checkpoint_is_loaded_with_the_versions_of_its_modules(tmp_path: Path) -> None:
    found = result("mmengine_overlay.py", "overlay", "checkpoints", str(tmp_path))
    assert found["edited"] == [7.0, 7.0, 7.0]
    assert found["versions"] == {"version": 2}
    assert found["swaps"] > 0
    assert found["resumed"] == 24


@pytest.mark.parametrize("which", OURS)
def test_later_hooks_find_the_checkpoint_of_their_stage_and_are_in_its_final_version(
    which: str, tmp_path: Path
) -> None:
    found = result("mmengine_overlay.py", which, "later_hooks", str(tmp_path))
    assert found["seen"] == [["epoch_2.pth", 1], ["epoch_2.pth", 2], ["epoch_4.pth", 3]]
    assert found["saved"] == [13.0, 13.0, 13.0]


def test_what_projects_use_beside_the_runner_is_as_under_mmengine_alone(tmp_path: Path) -> None:
    real, ours = (
        result("mmengine_borrowed.py", which, str(tmp_path / which))
        for which in ("mmengine", "overlay")
    )
    assert ours == real
    assert ours["samples"]["contains"] == [False, True, True]
    assert ours["samples"]["to_dict"] == {"size": "(4, 4)", "gt": "3"}
    assert "is not consistent" in ours["samples"]["other_length"]
    assert "is not consistent" in ours["samples"]["other_shape"]
    assert ours["datasets"]["True"]["metainfo"] == {"classes": ["cat", "dog"], "task": "cls"}
    assert ours["datasets"]["False"]["whole"] == [2, 1]
    assert "'b': [(1, 2), [3, (4, 5.5)], 'x']" in ours["options"]["merged"]
    assert ours["levels"] == [True, False, True]
    assert ours["weights"]["pretrained"] == [24.0, 28.0]  # 5 more than those of the children
    assert ours["hook_list"] == [6, 0, 6, 6, 4]
