"""`hookline train`: files, messages and exit codes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from hookline.checkpoint import CheckpointStore
from hookline.cli.main import main
from tests.cli.helpers import error_of, write_config
from tests.config.broken_configs import broken_configs

OWN_HOOKS = """
import os, signal

from hookline import BaseHook

class SignallingHook(BaseHook):
    def after_train_iter(self, runner):
        os.kill(os.getpid(), signal.SIGTERM)

class FailingHook(BaseHook):
    def after_train_iter(self, runner):
        if runner.iter == 2:
            raise RuntimeError("my own mistake")

class MisspeltHook(BaseHook):
    def after_trian_iter(self, runner): ...

class SendingHook(BaseHook):
    def __init__(self, api_token: str, note: str) -> None:
        self.api_token = api_token

class RefusingHook(BaseHook):
    def after_train_epoch(self, runner):
        runner.request_save("other", write=None)
"""


@pytest.fixture
def own_hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with hooks of a user, most of which fail."""
    name = f"own_hooks_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN_HOOKS)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_training_writes_checkpoints_logs_and_config_and_prints_a_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="hookline")
    assert main(["train", write_config(tmp_path), "training.epochs=2"]) == 0
    shown = capsys.readouterr().out
    run = tmp_path / "run"
    assert "stopped: reached max_epochs=2, after 10 iterations in" in caplog.text
    assert re.search("^last +accuracy", "\n".join(caplog.messages), re.MULTILINE)
    assert [line.split() for line in shown.splitlines()] == [
        ["next", "hookline", "test", str(tmp_path / "config.yaml"), "training.epochs=2"]
    ]
    assert {"config.yaml", "log.jsonl", "hookline.log", "last.pth", "epoch_2.pth"} <= {
        path.name for path in run.iterdir()
    }


def test_the_next_command_evaluates_the_run_that_has_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    assert main(["train", config, f"work_dir={tmp_path / 'my run'}"]) == 0
    *_, line = capsys.readouterr().out.splitlines()
    _, hookline, *command = shlex.split(line)
    assert hookline == "hookline"
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoint"].startswith(str(tmp_path / "my run"))


def test_without_a_logger_the_summary_has_the_reason_to_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", write_config(tmp_path), "hooks.logger=null"]) == 0
    assert re.search(
        r"^stopped +reached max_epochs=1, after 5 iterations in ",
        capsys.readouterr().out,
        re.MULTILINE,
    )


def test_the_saved_config_is_resolved_and_has_no_secrets(tmp_path: Path, own_hooks: str) -> None:
    hook = f"  - {{type: {own_hooks}.SendingHook, api_token: abc123, note: 'seed ${{seed}}'}}\n"
    assert main(["train", write_config(tmp_path, hook), "seed=5"]) == 0
    text = (tmp_path / "run" / "config.yaml").read_text()
    assert yaml.safe_load(text)["seed"] == 5
    assert yaml.safe_load(text)["hooks"][-1]["note"] == "seed 5"
    assert "abc123" not in text


def test_the_config_is_saved_before_training(tmp_path: Path, own_hooks: str) -> None:
    assert main(["train", write_config(tmp_path), f"+hooks.x.type={own_hooks}.FailingHook"]) == 1
    assert (
        yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["hooks"][-1]["name"] == "x"
    )


def test_options_win_over_config_and_overrides(tmp_path: Path) -> None:
    other = tmp_path / "sübdir: #1"
    assert (
        main(
            [
                "train",
                write_config(tmp_path),
                "work_dir=nowhere",
                "--work-dir",
                str(other),
                "--device",
                "cpu",
            ]
        )
        == 0
    )
    assert yaml.safe_load((other / "config.yaml").read_text())["work_dir"] == str(other)
    assert not (tmp_path / "run").exists()


def test_resume_continues_until_the_run_is_finished(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="hookline")
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    assert main(["train", config, "--resume", "training.epochs=2"]) == 0
    assert "reached max_epochs=2, after 10 iterations" in caplog.text
    caplog.clear()
    steps = [
        json.loads(line)["iter"]
        for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    ]
    assert steps == sorted(steps)
    assert main(["train", config, "training.epochs=2", "--resume"]) == 0
    assert "already finished: reached max_epochs=2" in caplog.text
    assert "resumed at" not in caplog.text
    assert CheckpointStore(tmp_path / "run").entries()[-1].step == 10


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("resume=null", "; the same command with `--resume` continues"),
        ("resume=auto", "; the same command continues"),
    ],
)
def test_an_interrupted_run_prints_how_to_continue(
    option: str, hint: str, tmp_path: Path, own_hooks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path, f"  - {{type: {own_hooks}.SignallingHook}}\n")
    assert main(["train", config, option]) == 143
    assert capsys.readouterr().err.strip().endswith(hint)


def test_resume_takes_a_path(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="hookline")
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    path = str(tmp_path / "run" / "epoch_1.pth")
    assert (
        main(
            [
                "train",
                config,
                "training.epochs=2",
                "--resume",
                path,
                "--work-dir",
                str(tmp_path / "second"),
            ]
        )
        == 0
    )
    assert "reached max_epochs=2, after 10 iterations" in caplog.text


def test_a_failure_shows_the_code_of_the_user_and_names_hook_and_site(
    tmp_path: Path, own_hooks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", write_config(tmp_path), f"+hooks.x.type={own_hooks}.FailingHook"]
    assert main(arguments) == 1
    text = capsys.readouterr().err
    assert f"{own_hooks}.py" in text
    assert "my own mistake" in text
    assert "hookline: raised in x at after_train_iter (epoch 1, iteration 3)" in text
    assert "runner.py" not in text
    assert main([*arguments, "--debug"]) == 1
    assert "runner.py" in capsys.readouterr().err


def test_the_traceback_of_a_failure_is_logged_and_printed_once(
    tmp_path: Path,
    own_hooks: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert main(["train", write_config(tmp_path), f"+hooks.x.type={own_hooks}.FailingHook"]) == 1
    log = (tmp_path / "run" / "hookline.log").read_text()
    assert "ERROR failed after 2 iterations\nTraceback (most recent call last):\n" in log
    assert f"{own_hooks}.py" in log
    assert "RuntimeError: my own mistake" in log
    shown = capsys.readouterr()
    assert (shown.out + shown.err).count("RuntimeError: my own mistake") == 1
    assert "my own mistake" not in caplog.text


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("+hooks.x.type={own}.MisspeltHook", "after_train_iter"),
        ("hooks=[{{type: OptimizerHook}}, {{type: OptimizerHook, name: other}}]", "optimize"),
        ("device=cuda:77", "cuda:77"),
    ],
)
def test_a_mistake_found_while_building_is_located_in_the_config(
    override: str, expected: str, tmp_path: Path, own_hooks: str
) -> None:
    error = error_of("train", write_config(tmp_path), override.format(own=own_hooks))
    assert expected in str(error)
    assert error.problems[0].file in (str(tmp_path / "config.yaml"), "command line")
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_of_another_model_is_an_error_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    assert main(["train", config, "model.width=8", "training.epochs=2", "--resume"]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("debug", [False, True])
def test_a_hookline_error_during_training_exits_with_1(
    debug: bool, tmp_path: Path, own_hooks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides = [f"+hooks.x.type={own_hooks}.RefusingHook", "hooks.checkpoint=null"]
    options = ["--debug"] if debug else []
    assert main(["train", write_config(tmp_path), *overrides, *options]) == 1
    assert ("Traceback" in capsys.readouterr().err) == debug


def test_an_unusable_work_dir_is_located_in_the_config(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    config = write_config(tmp_path)
    (problem,) = error_of("train", config).problems
    assert problem.path == ("work_dir",)
    assert (problem.file, problem.line) == (config, 1)


def test_resume_without_a_checkpoint_starts_a_new_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", write_config(tmp_path), "--resume"]) == 0
    assert "starting a new run" in capsys.readouterr().err


def test_a_directory_in_use_is_rejected_and_keeps_its_config(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    store = CheckpointStore(tmp_path / "run")
    store.lock()
    before = (tmp_path / "run" / "config.yaml").read_text()
    try:
        assert main(["train", config, "seed=99"]) == 2
    finally:
        store.unlock()
    assert (tmp_path / "run" / "config.yaml").read_text() == before


def test_every_broken_config_is_a_short_error_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = broken_configs(tmp_path)
    assert len(cases) >= 100
    failures = []
    for label, path, overrides in cases:
        code = main(["train", str(path), *overrides])
        shown = capsys.readouterr()
        # A .txt file is not read, so it has no lines.
        place = re.search(
            r"^(command line|\S+/config_\d+\.(yaml:\d+|json:\d+|toml:\d+|txt)): ", shown.err
        )
        if (
            code != 2
            or not place
            or "Traceback" in shown.err
            or len(shown.err.splitlines()) > 24
            or shown.out
        ):
            failures.append(f"{label}: exit code {code}\n{shown.err}")
    assert not failures, "\n".join(failures)
    assert "runs" not in {path.name for path in tmp_path.iterdir()}
