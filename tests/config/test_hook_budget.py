"""`hook_budget` in a config."""

from __future__ import annotations

import pytest

from hookline import Runner
from hookline.errors import ConfigError

CONFIG = {"model": "cnn", "dataset": "digits", "training": {"epochs": 1}, "device": "cpu"}


@pytest.mark.parametrize("written, share", [("2%", 0.02), (0.5, 0.5), (None, 0.05)])
def test_it_reaches_the_runner(written, share, tmp_path):
    runner = Runner.from_config({**CONFIG, "work_dir": str(tmp_path), "hook_budget": written})
    assert runner.hook_budget == pytest.approx(share)


@pytest.mark.parametrize("written", ["much", 7, "0%"])
def test_what_is_no_share_is_refused_with_its_place(written, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(f"model: cnn\ndataset: digits\ntraining: {{epochs: 1}}\nhook_budget: {written}\n")
    with pytest.raises(ConfigError, match=r"c\.yaml:4: hook_budget: must be a share of the time such as 5% or 0\.05"):
        Runner.from_config(path)
