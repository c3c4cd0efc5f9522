from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.config import load_config, save_resolved


def test_the_saved_config_reads_back_without_its_secrets(tmp_path: Path) -> None:
    config = load_config(
        {
            "seed": 1,
            "optimizer": {"lr": 1e-5, "name": "1e-5"},
            "hooks": [{"type": "WandbHook", "api_key": "hunter2"}],
        }
    )
    save_resolved(config, tmp_path / "config.yaml")
    assert "hunter2" not in (tmp_path / "config.yaml").read_text()
    again = load_config(tmp_path / "config.yaml")
    assert dict(again) == {**config, "hooks": [{"type": "WandbHook", "api_key": "***"}]}


def test_the_file_is_not_for_everybody(tmp_path: Path) -> None:
    save_resolved({"seed": 1}, tmp_path / "config.yaml")
    assert stat.S_IMODE((tmp_path / "config.yaml").stat().st_mode) == 0o640


def test_a_link_at_the_target_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "config.yaml").symlink_to(victim)
    save_resolved({"seed": 1}, tmp_path / "config.yaml")
    assert victim.read_text() == "mine"
    assert (tmp_path / "config.yaml").read_text() == "seed: 1\n"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_resolved({"seed": 1}, tmp_path / "config.yaml")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_resolved({"seed": 2}, tmp_path / "config.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
    assert load_config(tmp_path / "config.yaml")["seed"] == 1


def test_an_object_in_a_config_is_written_as_text(tmp_path: Path) -> None:
    save_resolved({"seed": 1, "function": Path}, tmp_path / "config.yaml")
    assert "pathlib" in (tmp_path / "config.yaml").read_text()


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["seed", "device"]),
        st.text("a${}\\: '\"#1e-3?\n", max_size=12).filter(lambda text: text != "???"),
    )
)
def test_text_comes_back_as_it_was_even_with_dollars(
    tmp_path_factory: pytest.TempPathFactory, config: dict[str, str]
) -> None:
    path = tmp_path_factory.mktemp("saved") / "config.yaml"
    save_resolved({**config, "work_dir": "w"}, path)
    assert dict(load_config(path)) == {**config, "work_dir": "w"}
