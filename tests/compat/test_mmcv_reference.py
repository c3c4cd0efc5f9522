"""The same jobs as under MMCV 1.7.2 itself: the same calls, losses, rates, momenta, averages, log rows, lines and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookline.compat.mmcv import runner as ours
from tests.compat.mmcv_jobs import RESUMED, jobs, run_job, shortened

REFERENCE = json.loads((Path(__file__).parent / "mmcv_reference.json").read_text())


@pytest.mark.parametrize("name", jobs())
def test_a_job_goes_as_it_does_under_mmcv_itself(name, tmp_path):
    result = json.loads(json.dumps(shortened(run_job(ours, tmp_path, **jobs()[name]), name)))
    assert result.keys() == REFERENCE[name].keys()
    for key, expected in REFERENCE[name].items():
        assert same(result[key], expected), (key, result[key], expected)


def test_a_checkpoint_of_mmcv_is_resumed_as_mmcv_does_it(tmp_path):
    """With its average of the weights in the model's place, its best score, and the momenta of its optimizer."""
    job = next(iter(jobs().values()))
    resumed = run_job(
        ours, tmp_path, **job, resume=str(Path(__file__).parent / "mmcv_1_7_2_epoch_2.pth")
    )
    expected = REFERENCE[RESUMED]
    for key in ("calls", "losses", "rates", "weights", "rows"):
        assert same(json.loads(json.dumps(resumed[key])), expected[key]), (
            key,
            resumed[key],
            expected[key],
        )
    assert resumed["messages"]["best_score"] == expected["messages"]["best_score"]


def test_a_job_resumed_in_its_middle_continues_as_in_mmcv(tmp_path):
    """Which MMCV itself, whose random numbers are lost, does not manage."""
    name = "epochs with EMA, evaluation and clipping"
    run_job(ours, tmp_path / "whole", **jobs()[name])
    resumed = run_job(
        ours, tmp_path / "resumed", **jobs()[name], resume=str(tmp_path / "whole" / "epoch_2.pth")
    )
    assert same(resumed["losses"], REFERENCE[name]["losses"][12:])
    assert same(resumed["weights"], REFERENCE[name]["weights"])


def same(one, other) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return one == pytest.approx(other, rel=1e-4, abs=2e-5)  # rows are rounded to five digits
    return one == other
