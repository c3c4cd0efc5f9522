"""Two real processes under MMCV's interface."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import LIMIT_S


@pytest.mark.slow
def test_two_processes_train_evaluate_save_and_resume_bit_for_bit(tmp_path):
    check_two_processes(sys.executable, tmp_path)


def check_two_processes(python: str, tmp_path: Path) -> None:
    command = [
        python,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "tests.compat.mmcv_distributed",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [*command, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        env=environment,
        check=True,
        timeout=LIMIT_S,
    )
    ranks = [json.loads((tmp_path / f"rank_{rank}.json").read_text()) for rank in (0, 1)]
    assert [different for different, _ in ranks] == [[], []]
    assert ranks[0][1] == ranks[1][1]  # the same weights on both
    count, accuracy, messages = json.loads((tmp_path / "whole" / "results.json").read_text())
    assert count == 32
    assert Path(messages["best_ckpt"]).is_file()
    assert messages["best_score"] >= accuracy
    assert {path.name for path in (tmp_path / "whole").glob("epoch_*.pth")} == {
        "epoch_1.pth",
        "epoch_2.pth",
        "epoch_3.pth",
    }
