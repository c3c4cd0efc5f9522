"""`hookline demo`: the config that it writes. `test_json.py` trains it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.cli.demo import write_config
from hookline.cli.errors import CommandLineError
from tests.cli.helpers import ROOT


def test_the_config_is_that_of_the_repository(tmp_path: Path) -> None:
    write_config(tmp_path)
    write_config(tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == (ROOT / "hookline" / "configs" / path.name).read_bytes()


def test_a_changed_config_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "digits.yaml"
    path.write_text("seed: 1\n")
    with pytest.raises(CommandLineError):
        write_config(tmp_path)
    assert path.read_text() == "seed: 1\n"


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_folder_or_a_file_that_is_no_text_is_an_error(tmp_path: Path, content) -> None:
    path = tmp_path / "digits.yaml"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(CommandLineError):
        write_config(tmp_path)
