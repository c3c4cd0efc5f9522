"""Dry runs of configs with one planted mistake each."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hookline.checkpoint import CheckpointStore
from hookline.dry_run import DryRunResult
from hookline.runner import Runner
from tests.dry_run.conftest import Try

CORES = len(os.sched_getaffinity(0))

# Overrides, the phase or setting of the error, and a pattern of its text.
ERRORS = {
    "a best checkpoint by an unknown metric": (
        ["hooks=[{type: CheckpointHook, save_best: acuracy_top7}]"],
        "training",
        "acuracy_top7",
    ),
    "early stopping by a misspelled metric": (
        ["hooks=[{type: EarlyStoppingHook, monitor: val_lossy}]"],
        "training",
        "val_lossy",
    ),
    "checkpoints that fill the disk": (
        ["training.epochs=1000000000000", "hooks=[{type: CheckpointHook, max_keep_ckpts: -1}]"],
        "disk",
        r"[\d.]+ PB",
    ),
    "a missing file in the last batch of validation": (
        ["dataset.val.fault=missing_last"],
        "validation",
        r"FileNotFoundError.*/21\.png",
    ),
    "a missing file amid the training data": (
        ["dataset.train.fault=missing_amid", "loader.shuffle=false"],
        "training data",
        "sample 13: FileNotFoundError",
    ),
    "data that cannot be sent to a worker": (
        [
            "dataset.train.fault=unpicklable",
            "loader.num_workers=1",
            "loader.multiprocessing_context=spawn",
        ],
        "training",
        "pickle|local object",
    ),
    "another shape in validation only": (
        ["dataset.val.fault=shape"],
        "validation",
        "RuntimeError: mat1 and mat2",
    ),
    "another shape in the test only": (
        ["dataset.test.fault=shape"],
        "test",
        "RuntimeError: mat1 and mat2",
    ),
    "a work directory below a file": (
        ["work_dir={folder}/config.yaml/run"],
        "work_dir",
        "not a directory",
    ),
    "an out_dir below a file": (
        ["hooks=[{{type: CheckpointHook, out_dir: {folder}/config.yaml/out}}]"],
        "CheckpointHook.out_dir",
        "not a directory",
    ),
    "a hook that fails after a validation": (
        ["hooks=[{parts}.FailsAt]"],
        "validation",
        "KeyError: 'val_accuracy_top7'.*FailsAt",
    ),
    "a hook that fails after the test": (
        ["hooks=[{{type: {parts}.FailsAt, site: after_test_epoch}}]"],
        "test",
        "KeyError: 'only in the test'",
    ),
    "a hook that adds an object to the checkpoint": (
        ["hooks=[{{type: {parts}.FailsAt, site: before_save_checkpoint}}]"],
        "saving",
        "object",
    ),
    "a hook that fails in its thousandth iteration": (
        ["hooks=[{parts}.Rare]"],
        "training",
        "AttributeError: .*no_such_attribute",
    ),
    "a hook whose state is not restored": (
        ["hooks=[{parts}.Forgets]"],
        "resume",
        r"Forgets\.seen",
    ),
    "a loss that is not finite": (
        ["dataset.train.fault=nan"],
        "training",
        "batch 1 is nan",
    ),
    "a label beyond the classes in the last batch": (
        ["dataset.train.fault=label", "loader.shuffle=false"],
        "training",
        "IndexError: Target 7 is out of bounds",
    ),
    "a learning rate without effect": (
        ["optimizer={type: SGD, lr: 1.0e-30}"],
        "training",
        "no weight has changed",
    ),
    "a tracker that is not installed": (
        ["hooks=[{type: ClearMLHook}]"],
        "training",
        "clearml",
    ),
    "a misspelled layer of a picture hook": (
        ["hooks=[{type: FeatureMapHook, layers: [boddy]}]"],
        "training",
        r"did you mean 'body'\?",
    ),
}
WARNINGS = {
    "layers without a gradient": (
        ["model.unused=true"],
        "training",
        r"unused\.bias, unused\.weight",
    ),
    "a time limit that is too short": (
        ["training.epochs=100000000", "hooks=[{type: TimeLimitHook, limit: 1min}]"],
        "time",
        "TimeLimitHook .* 60 s",
    ),
    "more workers than cores": (
        [
            f"loader.num_workers={CORES + 1}",
            "dataset.train.count=6",
            "dataset.val.count=6",
            "dataset.test.count=6",
        ],
        "loader",
        f"{CORES + 1} data workers for {CORES} cores",
    ),
    "a stream, which has no positions": (
        ["dataset={{train: {{type: {parts}.Stream, split: train}}}}", "training={{iters: 4}}"],
        "resume",
        "StreamLoader",
    ),
    "a warning of a hook": (
        ["hooks=[{parts}.Talks]"],
        "log",
        "the first warning",
    ),
}


def fill(overrides: list[str], config: Path, parts: str) -> list[str]:
    """Insert the directory and the module into overrides that refer to them."""
    filled = []
    for text in overrides:
        if "{folder}" in text or "{parts}" in text or "{{" in text:
            text = text.format(folder=config.parent, parts=parts)
        filled.append(text)
    return filled


def reliable_findings(result: DryRunResult) -> list[tuple[str, str]]:
    """Return level and place of all findings except those that depend on the machine's speed."""
    return [(each.level, each.where) for each in result.findings if each.where != "loader"]


def assert_nothing_is_left(folder: Path) -> None:
    assert not (folder / "run").exists()
    assert [path for path in folder.iterdir() if "dry-run" in path.name] == []


@pytest.mark.parametrize("name", ERRORS)
def test_a_planted_error_is_found(name: str, config: Path, parts: str, try_run: Try) -> None:
    overrides, where, pattern = ERRORS[name]
    result = try_run(*fill(overrides, config, parts))
    found = [finding for finding in result.errors if finding.where == where]
    assert any(re.search(pattern, finding.text) for finding in found), result.findings
    assert_nothing_is_left(config.parent)


@pytest.mark.parametrize("name", WARNINGS)
def test_a_planted_weakness_is_only_a_warning(
    name: str, config: Path, parts: str, try_run: Try
) -> None:
    overrides, where, pattern = WARNINGS[name]
    result = try_run(*fill(overrides, config, parts))
    assert result.errors == []
    found = [finding for finding in result.warnings if finding.where == where]
    assert any(re.search(pattern, finding.text) for finding in found), result.findings
    assert_nothing_is_left(config.parent)


def test_a_dry_run_leaves_the_mirror_alone(config: Path, try_run: Try) -> None:
    url = f"file://{config.parent}/mirror"
    assert try_run(f"hooks=[{{type: CheckpointHook, mirror: {url}}}]").errors == []
    assert not (config.parent / "mirror").exists()


def test_a_good_config_has_no_findings(config: Path, try_run: Try) -> None:
    result = try_run("loader.num_workers=1")
    assert reliable_findings(result) == []
    phases = ["training", "validation", "saving", "test", "resume"]
    assert result.done == [*phases, "training data", "validation data", "test data"]
    assert result.read == dict.fromkeys(("training", "validation", "test"), "22 of 22")
    assert set(result.seconds) == {"training", "saving", "validation"}
    assert result.memory["weights"] == 15 * 4
    assert_nothing_is_left(config.parent)


def test_data_that_hangs_ends_at_the_time_limit(try_run: Try) -> None:
    result = try_run("dataset.val.fault=hangs", limit=3600.0)
    assert [finding.where for finding in result.errors] == ["validation"]


def test_many_pictures_and_slow_hooks_are_no_warnings_of_a_dry_run(try_run: Try) -> None:
    hooks = (
        "{type: FeatureMapHook, layers: [body]}, {type: GradientFlowHook}, {type: HistogramHook}"
    )
    assert reliable_findings(try_run("hook_budget=0.001%", f"hooks=[{hooks}]")) == []


def test_only_warnings_of_the_log_become_findings(parts: str, try_run: Try) -> None:
    result = try_run(f"hooks=[{parts}.Talks]")
    assert [each.text for each in result.findings if each.where == "log"] == ["the first warning"]


def test_hooks_that_start_late_act_in_a_dry_run(try_run: Try) -> None:
    late = "{type: CheckpointHook, save_begin: 50}, {type: EvalHook, start: 50}"
    result = try_run(f"hooks=[{late}, {{type: EMAHook, begin_epoch: 50}}]", "training.epochs=100")
    assert reliable_findings(result) == []
    assert {"validation", "saving", "resume"} <= set(result.done)


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_checkpoints_removed_right_after_a_save_are_no_lost_state(keep: int, try_run: Try) -> None:
    hook = f"{{type: CheckpointHook, interval: 10, by_epoch: false, max_keep_ckpts: {keep}}}"
    assert try_run(f"hooks=[{hook}]").errors == []


def test_a_split_without_data_is_not_tried(try_run: Try) -> None:
    result = try_run("dataset.test=null")
    assert reliable_findings(result) == []
    assert not {"test", "test data"} & set(result.done)


def test_a_checkpoint_to_resume_from_is_loaded(config: Path, try_run: Try) -> None:
    Runner.from_config(config, [f"work_dir={config.parent / 'old'}"]).train()
    checkpoint = config.parent / "old" / "last.pth"
    assert reliable_findings(try_run(f"resume={checkpoint}")) == []
    result = try_run(f"resume={checkpoint}", "model.outputs=4")
    assert [finding.where for finding in result.errors] == ["resume"]


def test_a_work_dir_in_use_is_an_error_and_old_checkpoints_are_a_warning(
    config: Path, try_run: Try
) -> None:
    Runner.from_config(config).train()
    assert reliable_findings(try_run()) == [("warning", "work_dir")]
    assert reliable_findings(try_run("resume=auto")) == []
    store = CheckpointStore(config.parent / "run")
    store.lock()
    try:
        assert [finding.where for finding in try_run().errors] == ["work_dir"]
    finally:
        store.unlock()


@pytest.mark.parametrize(
    ("overrides", "phases", "advice"),
    [
        (["dataset.train.fault=shape"], ["training"], "input and the samples"),
        (["dataset.val.fault=shape"], ["validation"], "same shape as those of training"),
        (["dataset.train.fault=lengths"], ["training"], "collate_fn"),
    ],
)
def test_the_advice_depends_on_where_shapes_differ(
    overrides: list[str], phases: list[str], advice: str, try_run: Try
) -> None:
    errors = try_run(*overrides).errors
    assert [finding.where for finding in errors] == phases
    assert all(advice in finding.advice for finding in errors), errors
