"""The same jobs under real MMEngine and under ours. Skipped where the real package is not installed.

The package is looked for in this interpreter, or in the one that HOOKLINE_MMENGINE_PYTHON names. `make test-compat` installs it in
a separate environment, because it depends on OpenCV.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
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


@cache
def result(script: str, which: str, *arguments: str) -> Any:
    """What a script prints under the real package (`mmengine`) or under ours (`hookline`)."""
    python = str(PYTHON) if which == "mmengine" else sys.executable
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[1])}
    command = [python, str(HERE / script), which, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=LIMIT_S, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("JOB ")]
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(lines[-1].removeprefix("JOB "))


@pytest.mark.parametrize("kind", ["epochs", "iters"])
def test_the_same_job_has_the_same_losses_and_the_same_hook_calls(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    real, ours = (
        result("mmengine_job.py", which, kind, str(tmp_path_factory.mktemp(which)))
        for which in ("mmengine", "hookline")
    )
    assert ours["losses"] == pytest.approx(real["losses"], abs=1e-6)
    assert ours["rates"] == [pytest.approx(rates) for rates in real["rates"]]
    assert ours["metrics"] == [pytest.approx(metrics) for metrics in real["metrics"]]
    assert ours["weights"] == pytest.approx(real["weights"], abs=1e-5)
    assert ours["calls"] == real["calls"]
    assert ours["hooks"] == real["hooks"]
    assert {call[0] for call in real["calls"]} >= {
        "before_save_checkpoint",
        "after_val_epoch",
        "after_test_iter",
        "after_run",
    }


def test_every_parameter_scheduler_gives_the_same_values_to_the_last_bit() -> None:
    real, ours = (result("mmengine_schedules.py", which) for which in ("mmengine", "hookline"))
    assert list(ours) == list(real)
    assert len(real) > 25
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
