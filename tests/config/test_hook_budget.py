"""`hook_budget` in a config."""

from __future__ import annotations

import pytest

from hookline import Runner
from tests.problems import raises_problem

CONFIG = {"model": "cnn", "dataset": "digits", "training": {"epochs": 1}, "device": "cpu"}


@pytest.mark.parametrize("written, share", [("2%", 0.02), (0.5, 0.5), (None, 0.05)])
def test_it_reaches_the_runner(written, share, tmp_path):
    runner = Runner.from_config({**CONFIG, "work_dir": str(tmp_path), "hook_budget": written})
    assert runner.sites.costs.budget == pytest.approx(share)


@pytest.mark.parametrize("written", ["much", 7, "0%"])
def test_a_wrong_share_is_rejected_at_its_line(written, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(
        f"model: cnn\ndataset: digits\ntraining: {{epochs: 1}}\nhook_budget: {written}\n"
    )
    with raises_problem(parameter="hook_budget", value=written, file=str(path), line=4):
        Runner.from_config(path)
