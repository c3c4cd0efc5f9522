"""`hookline test`: the evaluation of a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookline.checkpoint import CheckpointStore
from hookline.cli.main import main
from tests.cli.helpers import error_of, write_config


@pytest.fixture
def trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A config with a finished run."""
    config = write_config(tmp_path)
    assert main(["train", config, "training.epochs=2"]) == 0
    capsys.readouterr()
    return config


def test_the_best_checkpoint_is_tested_by_default(
    trained: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", trained]) == 0
    text = capsys.readouterr().out
    assert "best_accuracy.pth" in text
    assert "accuracy 0." in text
    assert "test_loss" in text


def test_json_is_the_only_output_and_the_split_is_chosen(
    trained: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", trained, "--json", "--split", "val", "--checkpoint", "last"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["checkpoint"] == str(tmp_path / "run" / "last.pth")
    assert result["split"] == "val"
    assert result["metrics"] == CheckpointStore(tmp_path / "run").entries()[-1].metrics


@pytest.mark.parametrize("which", ["epoch_1", "epoch_1.pth", "{run}/epoch_1.pth"])
def test_a_checkpoint_is_given_by_its_name_or_path(
    which: str, trained: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["test", trained, "--json", "--checkpoint", which.format(run=tmp_path / "run")]) == 0
    )
    assert json.loads(capsys.readouterr().out)["checkpoint"] == str(
        tmp_path / "run" / "epoch_1.pth"
    )


def test_testing_changes_no_file_and_works_during_training(trained: str, tmp_path: Path) -> None:
    files = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    store = CheckpointStore(tmp_path / "run")
    store.lock()
    assert main(["test", trained]) == 0
    store.unlock()
    lock = tmp_path / "run" / ".hookline.lock"
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir() if path != lock} == {
        path: content for path, content in files.items() if path != lock
    }


def test_data_of_eval_hook_is_used_for_validation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = "{clean: {dataset: {type: digits, split: val}, batch_size: 256}}"
    config = write_config(
        tmp_path, f"  - {{type: EvalHook, metric: clean/accuracy, dataloader: {sets}}}\n"
    )
    only_train = "dataset={train: {type: digits, split: train}}"
    assert main(["train", config, only_train]) == 0
    capsys.readouterr()
    assert main(["test", config, only_train, "--split", "val"]) == 0
    assert "clean/accuracy" in capsys.readouterr().out


def test_an_unknown_checkpoint_suggests_the_nearest_one(trained: str) -> None:
    error = error_of("test", trained, "--checkpoint", "epoch_11.pth")
    assert error.parameter == "--checkpoint"
    assert error.suggestion.nearest == "epoch_1.pth"


def test_testing_before_training_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    error = error_of("test", write_config(tmp_path))
    assert "hookline train" in error.suggestion.advice
    assert not (tmp_path / "run").exists()


def test_without_checkpoints_the_weights_of_load_from_are_tested(
    trained: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = str(tmp_path / "run" / "epoch_1.pth")
    assert (
        main(
            [
                "test",
                trained,
                f"load_from={weights}",
                "--work-dir",
                str(tmp_path / "other"),
                "--json",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["checkpoint"] == weights


def test_one_of_several_best_checkpoints_must_be_named(trained: str, tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "run")
    store.prepare()
    store.save(store.load("last.pth"), "best_f1.pth", step=11, epoch=3)
    store.unlock()
    error = error_of("test", trained)
    assert "best_accuracy.pth" in str(error)
    assert "best_f1.pth" in str(error)
    assert main(["test", trained, "--checkpoint", "best_f1"]) == 0


def test_the_best_of_several_kept_checkpoints_is_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path, "  - {type: CheckpointHook, keep_best: 3}\n")
    assert main(["train", config, "training.epochs=2"]) == 0
    capsys.readouterr()
    assert main(["test", config, "--json"]) == 0
    path = tmp_path / "run" / "best_accuracy.pth"
    assert json.loads(capsys.readouterr().out)["checkpoint"] == str(path)


def test_missing_data_is_located_in_the_config_with_the_other_split(trained: str) -> None:
    dataset = "dataset={train: {type: digits}, val: {type: digits, split: val}}"
    (problem,) = error_of("test", trained, dataset).problems
    assert problem.path == ("dataset",)
    assert problem.file == "command line"
    assert "--split val" in problem.suggestion.advice


def test_a_damaged_checkpoint_is_an_error_without_a_traceback(
    trained: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run" / "best_accuracy.pth"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(content)
    assert main(["test", trained]) == 2
    text = capsys.readouterr().err
    assert str(path) in text
    assert "Traceback" not in text
