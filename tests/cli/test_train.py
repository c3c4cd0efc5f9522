from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from hookline.checkpoint import CheckpointStore
from hookline.cli.main import main
from tests.cli.helpers import write_config
from tests.config.broken_configs import broken_configs

OWN_HOOKS = """
from hookline import BaseHook

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
    """A module of the user's with hooks, most of which go wrong."""
    name = f"own_hooks_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN_HOOKS)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_training_leaves_checkpoints_logs_and_config_and_says_what_was_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="hookline")
    assert main(["train", write_config(tmp_path), "training.epochs=2"]) == 0
    shown = capsys.readouterr().out
    run = tmp_path / "run"
    assert "stopped: reached max_epochs=2, after 10 iterations in" in caplog.text
    assert "stopped" not in shown  # once is enough
    assert "accuracy" in shown.split("last ")[1]
    assert "in epoch" in shown.split("best ")[1]
    assert f"epoch_1.pth, epoch_2.pth, last.pth in {run}/" in shown.replace("best_accuracy.pth, ", "").replace(", best_accuracy.pth", "")
    assert {"config.yaml", "log.jsonl", "hookline.log", "last.pth", "epoch_2.pth"} <= {path.name for path in run.iterdir()}


def test_without_a_logger_the_command_says_why_training_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", write_config(tmp_path), "hooks.logger=null"]) == 0
    assert re.search(r"^stopped +reached max_epochs=1, after 5 iterations in ", capsys.readouterr().out, re.MULTILINE)


def test_the_config_that_is_kept_is_the_resolved_one_without_secrets(tmp_path: Path, own_hooks: str) -> None:
    hook = f"  - {{type: {own_hooks}.SendingHook, api_token: abc123, note: 'seed ${{seed}}'}}\n"
    assert main(["train", write_config(tmp_path, hook), "seed=5"]) == 0
    text = (tmp_path / "run" / "config.yaml").read_text()
    assert yaml.safe_load(text)["seed"] == 5
    assert yaml.safe_load(text)["hooks"][-1]["note"] == "seed 5"
    assert "abc123" not in text


def test_the_config_is_there_before_training_begins(tmp_path: Path, own_hooks: str) -> None:
    assert main(["train", write_config(tmp_path), f"+hooks.x.type={own_hooks}.FailingHook"]) == 1
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["hooks"][-1]["name"] == "x"


def test_options_go_over_the_config_and_overrides(tmp_path: Path) -> None:
    other = tmp_path / "sübdir: #1"
    assert main(["train", write_config(tmp_path), "work_dir=nowhere", "--work-dir", str(other), "--device", "cpu"]) == 0
    assert yaml.safe_load((other / "config.yaml").read_text())["work_dir"] == str(other)
    assert not (tmp_path / "run").exists()


def test_resume_continues_and_then_has_nothing_to_do(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="hookline")
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    assert main(["train", config, "--resume", "training.epochs=2"]) == 0
    assert "reached max_epochs=2, after 10 iterations" in caplog.text
    caplog.clear()
    steps = [json.loads(line)["iter"] for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)
    assert main(["train", config, "training.epochs=2", "--resume"]) == 0
    assert "this run is finished already: it has reached max_epochs=2" in caplog.text
    assert "resumed at" not in caplog.text
    assert CheckpointStore(tmp_path / "run").entries()[-1].step == 10


def test_resume_takes_a_path(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="hookline")
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    path = str(tmp_path / "run" / "epoch_1.pth")
    assert main(["train", config, "training.epochs=2", "--resume", path, "--work-dir", str(tmp_path / "second")]) == 0
    assert "reached max_epochs=2, after 10 iterations" in caplog.text


def test_a_failure_shows_the_users_code_and_names_hook_and_site(tmp_path: Path, own_hooks: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", write_config(tmp_path), f"+hooks.x.type={own_hooks}.FailingHook"]
    assert main(arguments) == 1
    text = capsys.readouterr().err
    assert f"{own_hooks}.py" in text
    assert "my own mistake" in text
    assert "hookline: raised in x at after_train_iter (epoch 1, iteration 3)" in text
    assert "runner.py" not in text
    assert main([*arguments, "--debug"]) == 1
    assert "runner.py" in capsys.readouterr().err


def test_the_traceback_of_a_failure_is_in_the_log_file_and_nowhere_twice(
    tmp_path: Path, own_hooks: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
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
        ("+hooks.x.type={own}.MisspeltHook", "looks like a site but is none; did you mean 'after_train_iter'?"),
        ("hooks=[{{type: OptimizerHook}}, {{type: OptimizerHook, name: other}}]", "both own 'optimize'"),
        ("device=cuda:77", "cannot be used here"),
    ],
)
def test_what_only_building_can_find_is_a_mistake_with_a_place(
    override: str, expected: str, tmp_path: Path, own_hooks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", write_config(tmp_path), override.format(own=own_hooks)]) == 2
    text = capsys.readouterr().err
    assert expected in text
    assert text.startswith((str(tmp_path), "command line"))
    assert "Traceback" not in text
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_that_does_not_fit_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    assert main(["train", config, "model.width=8", "training.epochs=2", "--resume"]) == 2
    text = capsys.readouterr().err
    assert "does not fit the model" in text
    assert "Traceback" not in text


def test_an_error_of_hookline_in_the_middle_of_training_is_a_failure_in_a_line(
    tmp_path: Path, own_hooks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", write_config(tmp_path), f"+hooks.x.type={own_hooks}.RefusingHook", "hooks.checkpoint=null"]) == 1
    text = capsys.readouterr().err
    assert "nobody writes checkpoints here" in text
    assert "Traceback" not in text


def test_a_work_dir_that_cannot_be_is_a_mistake_with_a_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").write_text("a file")
    assert main(["train", write_config(tmp_path)]) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"{tmp_path}/config.yaml:1: work_dir: cannot be used")
    assert "Traceback" not in text


def test_a_directory_in_use_is_refused_and_its_config_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    store = CheckpointStore(tmp_path / "run")
    store.lock()
    before = (tmp_path / "run" / "config.yaml").read_text()
    assert main(["train", config, "seed=99"]) == 2
    assert "in use by" in capsys.readouterr().err
    assert (tmp_path / "run" / "config.yaml").read_text() == before


def test_all_broken_configs_are_mistakes_on_one_screen_without_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = broken_configs(tmp_path)
    assert len(cases) >= 100
    failures = []
    for label, path, overrides in cases:
        code = main(["train", str(path), *overrides])
        shown = capsys.readouterr()
        place = re.search(r"^(command line|\S+/config_\d+\.(yaml:\d+|json:\d+|toml:\d+|txt)): ", shown.err)  # .txt: never read
        if code != 2 or not place or "Traceback" in shown.err or len(shown.err.splitlines()) > 24 or shown.out:
            failures.append(f"{label}: exit code {code}\n{shown.err}")
    assert not failures, "\n".join(failures)
    assert "runs" not in {path.name for path in tmp_path.iterdir()}
