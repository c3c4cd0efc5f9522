"""Secrets: none of them reaches the console, a log or a saved config."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline.checkpoint import CheckpointStore
from hookline.cli.main import main
from hookline.engine import BaseHook
from hookline.hooks import CheckpointHook, EvalHook, LoggerHook, ReportHook, TensorBoardHook
from hookline.secrets import mask_text
from tests.cli.helpers import write_config
from tests.helpers import batches, make_runner

PASSWORD = "hunter2-of-s3"
TEXTS = [
    f"cannot connect to https://user:{PASSWORD}@host:8080/path",
    f"cannot connect to postgres://user:{PASSWORD}/more@host/db",
    f"401 for https://host/x?id=1&api_key={PASSWORD}&page=2",
    f"403 for https://account.blob.core.windows.net/runs/a.pth?sv=2024&sig={PASSWORD}&se=2030",
    f"403 for https://runs.s3.amazonaws.com/a.pth?X-Amz-Expires=60&X-Amz-Signature={PASSWORD}",
    f"BlobEndpoint=https://account.blob.core.windows.net;SharedAccessSignature=sv=1&sig={PASSWORD}",
    f"Authorization: Bearer {PASSWORD}",
    f"{{'authorization': 'Basic {PASSWORD}'}}",
    f"request failed: {{'Authorization': '{PASSWORD}'}}",
    f"bearer {PASSWORD}{PASSWORD}",
    f'{{"password": "{PASSWORD}"}}',
    f"AWS_SECRET_ACCESS_KEY={PASSWORD}",
    f"login(hf_token='{PASSWORD}')",
]
HARMLESS = [
    "unexpected token: 'x' at line 3",
    "names.sort(key=len)",
    "KeyError: 'loss'",
    "password: null",
    "http://host:8080/path@2x.png?page=2",
    "max_tokens=5, eos_token: 3",
]


@pytest.mark.parametrize("text", TEXTS)
def test_secrets_in_texts_are_masked(text):
    masked = mask_text(text)
    assert PASSWORD not in masked
    assert "***" in masked


@pytest.mark.parametrize("text", HARMLESS)
def test_other_texts_are_kept(text):
    assert mask_text(text) == text


@pytest.mark.parametrize(
    "piece", ["a.", "a://", "a://b:", "?a", "&token", "a-", "authorization ", "token=", "@:/"]
)
def test_a_long_hostile_text_is_masked_in_linear_time(piece):
    def seconds(length: int) -> float:
        text = piece * (length // len(piece))
        began = time.process_time()
        mask_text(text)
        return time.process_time() - began

    assert seconds(200_000) < 100 * max(seconds(20_000), 1e-3)


def failing_hook(text: str) -> BaseHook:
    class Failing(BaseHook):
        """A hook that fails like a client of a database."""

        def after_train_iter(self, runner: Any) -> None:
            try:
                raise OSError(text)
            except OSError as error:
                raise RuntimeError("cannot report") from error

    return Failing()


@pytest.mark.parametrize("text", TEXTS)
def test_an_error_reaches_no_log_with_its_secrets(text, tmp_path):
    logging.getLogger("hookline").setLevel(logging.INFO)
    runner = make_runner(tmp_path, failing_hook(text), LoggerHook(), ReportHook())
    with pytest.raises(RuntimeError):
        runner.train()
    assert "cannot report" in (tmp_path / "hookline.log").read_text()
    for path in tmp_path.iterdir():
        assert PASSWORD not in path.read_text(), path.name


def test_an_error_reaches_no_console_with_its_secrets(tmp_path, capsys, monkeypatch):
    code = f"""
from hookline import BaseHook

class Failing(BaseHook):
    def after_train_iter(self, runner):
        raise OSError({TEXTS[0]!r})
"""
    (tmp_path / "failing_client.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["train", write_config(tmp_path, "  - failing_client.Failing\n")]) == 1
    captured = capsys.readouterr()
    assert "cannot connect" in captured.err
    assert PASSWORD not in captured.out + captured.err


def test_the_value_of_a_secret_variable_is_masked_wherever_it_lands(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DATABASE_PASSWORD", PASSWORD)
    monkeypatch.setenv("ACCOUNT_PASSWORD", "1234567")
    config = Path(write_config(tmp_path))
    lines = [
        "  - {type: TextLoggerHook, out_suffix: 'to ${oc.env:DATABASE_PASSWORD}'}",
        "  - {type: CheckpointHook, interval: '${oc.decode:${oc.env:ACCOUNT_PASSWORD}}'}",
    ]
    text = config.read_text().replace("  - {type: LoggerHook, interval: 2}", "\n".join(lines))
    config.write_text(text)
    assert main(["config", str(config)]) == 0
    assert main(["train", str(config)]) == 0
    assert main(["ckpt", "show", str(tmp_path / "run")]) == 0
    captured = capsys.readouterr()
    assert "to ***" in captured.out
    shown = captured.out + captured.err
    for path in (tmp_path / "run").iterdir():
        if path.is_file():
            shown += path.read_bytes().decode(errors="replace")
    assert PASSWORD not in shown
    assert "1234567" not in (tmp_path / "run" / "config.yaml").read_text()


def test_a_secret_from_the_environment_does_not_reach_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", PASSWORD)
    runner = make_runner(tmp_path, CheckpointHook(), config={"note": f"for {PASSWORD}"})
    runner.train()
    saved = CheckpointStore(tmp_path).load("last.pth") if (tmp_path / "last.pth").exists() else None
    for path in tmp_path.glob("*.pth"):
        assert PASSWORD.encode() not in path.read_bytes()
    assert saved is None or saved["meta"]["config"] == {"note": "for ***"}


class Naming(BaseHook):
    """A hook that uses a secret as the name of everything that it records."""

    def before_train(self, runner: Any) -> None:
        runner.events.add_mean(f"mean of {PASSWORD}", PASSWORD, "global")

    def after_train_iter(self, runner: Any) -> None:
        events = runner.events
        events.put_iteration_scalar(PASSWORD, 1.0)
        events.put_scalar(f"once/{PASSWORD}", 2.0)
        assert events.recorded_at(PASSWORD) == runner.iter
        assert events.history(PASSWORD)[-1].value == 1.0
        events.put_image(f"picture/{PASSWORD}", torch.zeros(3, 4, 4))
        events.put_histogram(PASSWORD, torch.arange(4.0))
        events.put_text(PASSWORD, f"content with {PASSWORD}")

    def after_val_epoch(self, runner: Any) -> None:
        runner.metrics[PASSWORD] = float(runner.iter)
        assert PASSWORD in runner.metrics


def test_a_secret_is_masked_as_a_name_of_metrics_pictures_hooks_and_files(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_API_TOKEN", PASSWORD)
    runner = make_runner(
        tmp_path,
        Naming(name=f"Naming {PASSWORD}", priority="VERY_LOW"),
        LoggerHook(interval=1),
        TensorBoardHook(interval=1, name=PASSWORD),
        {"type": "PeriodicWriterHook", "writers": ["csv"], "period": 1},
        {"type": "GradientFlowHook", "frequency": 2, "name": f"flow-{PASSWORD}"},
        ReportHook(),
        EvalHook(),
        CheckpointHook(
            best_metric=PASSWORD, rule="greater", filename_tmpl=f"at-{PASSWORD}-{{}}.pth"
        ),
        val_loader=batches(2),
    )
    runner.train()
    assert (tmp_path / "at-_-2.pth").exists()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    log = (tmp_path / "log.jsonl").read_text()
    for name in ("***", "once/***", "picture/***", "mean of ***", "content with ***"):
        assert f'"{name}"' in log
    for kind in (".pth", ".png", ".csv", ".html", ".jsonl"):
        assert any(path.suffix == kind for path in files), kind
    for path in files:
        assert PASSWORD not in str(path.relative_to(tmp_path))
        assert PASSWORD.encode() not in path.read_bytes(), path.name
