"""Overrides from options, and runners from configs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.cli.common import locate_runner_errors, make_runner, option_overrides
from hookline.config import load_config
from hookline.errors import ConfigError, RegistrationError
from tests.cli.helpers import write_config


def test_only_given_options_become_overrides() -> None:
    assert option_overrides(work_dir="a: b", device=None, resume="ü") == [
        'work_dir="a: b"',
        'resume="ü"',
    ]


def test_a_runner_is_built_from_a_config(tmp_path: Path) -> None:
    runner = make_runner(load_config(write_config(tmp_path)))
    assert runner.work_dir == tmp_path / "run"
    assert not runner.work_dir.exists()


def test_a_device_that_is_not_available_is_located_in_the_config(tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path), ["device=cuda:77"])
    with pytest.raises(ConfigError) as caught:
        make_runner(config)
    (problem,) = caught.value.problems
    assert problem.path == ("device",)
    assert problem.file == "command line"


def test_a_registration_error_is_located_at_the_hooks(tmp_path: Path) -> None:
    path = write_config(tmp_path)
    with pytest.raises(ConfigError) as caught, locate_runner_errors(load_config(path)):
        raise RegistrationError("two owners")
    (problem,) = caught.value.problems
    assert problem.path == ("hooks",)
    assert problem.file == path
