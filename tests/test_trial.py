"""Runs whose work directory comes from `hookline verify-resume`."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.checkpoint import CheckpointStore
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook
from hookline.trial import ENVIRONMENT_VARIABLE, apply_trial
from hookline.verify.trace import read_start
from tests.verify import training_script


def test_without_the_variable_a_run_keeps_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    assert apply_trial("mine", None, ("a hook",)) == ("mine", None, ("a hook",))


@pytest.mark.parametrize("kind", sorted(training_script.LOOPS))
def test_every_loop_trains_in_the_directory_of_the_trial_and_resumes_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "trial"))
    monkeypatch.setattr(training_script, "WIDTH", 4)
    training_script.main(kind)
    assert read_start(tmp_path / "trial").iteration == 0
    checkpoint = CheckpointStore(tmp_path / "trial").load("last.pth")
    assert len(checkpoint["hooks"]["BatchTraceHook"]["digests"]) == 20
    assert [path.name for path in tmp_path.iterdir()] == ["trial"]
    (tmp_path / "trial" / "training_started.json").unlink()  # as if by another process
    training_script.main(kind)
    assert read_start(tmp_path / "trial").iteration == 20


def test_a_second_training_of_a_script_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "trial"))
    monkeypatch.setattr(training_script, "WIDTH", 4)
    training_script.main("runner")
    with pytest.raises(HooklineError, match="more than once") as caught:
        training_script.main("pull")
    assert caught.value.component == "BatchTraceHook"


def test_checkpoints_outside_the_work_directory_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "trial"))
    elsewhere = str(tmp_path / "elsewhere")
    monkeypatch.setattr(training_script, "WIDTH", 4)
    monkeypatch.setitem(training_script.SAVE, "out_dir", elsewhere)
    with pytest.raises(HooklineError) as caught:
        training_script.main("runner")
    assert caught.value.value == elsewhere


def test_a_trial_uses_no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "trial")
    config = {"type": "CheckpointHook", "mirror": "s3://bucket/run"}
    _, _, hooks = apply_trial("mine", None, [config, CheckpointHook(mirror="s3://bucket/run")])
    first, second, _ = hooks
    assert first == {"type": "CheckpointHook"}
    assert second.mirror is None
