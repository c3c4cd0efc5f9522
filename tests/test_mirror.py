"""The tests mirror the package: the tests of `hookline/a/b.py` are in `tests/a/test_b.py`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = ROOT / "hookline", ROOT / "tests"

# Modules whose tests are elsewhere, with the reason and a pattern of the files.
ELSEWHERE = {
    # These packages have the modules of other frameworks. Their tests follow the documents and the
    # behavior of each framework.
    "compat/*": "compat*/test_*.py",
    # A command is tested together with its function, which has the same name.
    "cli/commands/*": "cli/test_*.py",
    # A tracker's writer is tested through the tracker's hook, which starts and configures it.
    "events/clearml.py": "hooks/test_clearml_hook.py",
    "events/dvclive.py": "hooks/test_dvclive_hook.py",
    "events/mlflow.py": "hooks/test_mlflow_hook.py",
    "events/neptune.py": "hooks/test_neptune_hook.py",
    "events/swanlab.py": "hooks/test_swanlab_hook.py",
    "events/tensorboard.py": "hooks/test_tensorboard_hook.py",
    "events/trackio.py": "hooks/test_trackio_hook.py",
    "events/wandb.py": "hooks/test_wandb_hook.py",
    # Parts of one behavior, which one file tests as a whole.
    "checkpoint/errors.py": "checkpoint/test_loading.py",
    "config/components.py": "config/test_validate.py",
    "config/schema.py": "config/test_validate.py",
    "config/sections.py": "config/test_validate.py",
    "data/datasets.py": "data/test_digits.py",
    "data/replay.py": "data/test_position.py",
    "data/reread.py": "data/test_position.py",
    "data/stateful.py": "data/test_position.py",
    "data/torch_samplers.py": "data/test_position.py",
    "data/worker_pool.py": "data/test_fetch.py",
    # It needs the packages of `make test-compat`.
    "data/text_files.py": "compat_foreign/test_finetune.py",
    "export/pretrained.py": "compat_foreign/test_finetune.py",
    "dist/rendezvous.py": "dist/test_launch.py",
    "dist/wrapping.py": "dist/test_training.py",
    "engine/checkpointing.py": "engine/test_run_state.py",
    "engine/sites.py": "engine/test_hook.py",
    "events/backlog.py": "events/test_delivery.py",
    "events/builtin.py": "events/test_every_value_arrives.py",
    "events/console.py": "hooks/test_logger_hook.py",
    "events/event_files.py": "hooks/test_tensorboard_hook.py",
    "events/memory.py": "hooks/test_logger_hook.py",
    "events/receipts.py": "events/test_delivery.py",
    "events/record_files.py": "events/test_every_value_arrives.py",
    "export/checkpoints.py": "cli/test_export.py",
    "export/errors.py": "export/test_verification.py",
    "metrics/base.py": "metrics/test_measurement.py",
    "metrics/builtin.py": "metrics/test_means.py",
    "profiling/profile_files.py": "hooks/test_profiler_hook.py",
    "report/names.py": "report/test_control.py",
    "report/recorder.py": "hooks/test_report_hook.py",
    "runner.py": "engine/test_runner.py",
    "verify/trace.py": "verify/test_chain.py",
    "visual/attribution.py": "hooks/test_cam_hook.py",
    # Base classes of hooks are tested with the hooks.
    "hooks/bases/*": "hooks/test_*_hook.py",
    "hooks/base_hook.py": "engine/test_hook.py",
    "hooks/builder.py": "config/test_hooks.py",
    "hooks/lr_scheduler_hook.py": "hooks/test_param_scheduler_hook.py",
    "hooks/uneven_batch_hook.py": "dist/test_training.py",
    # Nothing to test apart.
    "__main__.py": "cli/test_process.py",
    "version.py": "test_public_names.py",
}


def modules() -> list[str]:
    paths = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    return sorted(path.relative_to(PACKAGE).as_posix() for path in paths)


def mirror_of(module: str) -> Path:
    path = Path(module)
    return TESTS / path.parent / f"test_{path.name}"


def test_every_module_has_a_test_file_of_its_name_or_a_listed_one() -> None:
    missing = []
    for module in modules():
        is_listed = any(fnmatchcase(module, pattern) for pattern in ELSEWHERE)
        if not is_listed and not mirror_of(module).is_file():
            missing.append(module)
    assert missing == []


def test_every_listed_module_exists_and_is_tested_where_the_list_names() -> None:
    wrong = []
    for pattern, tests in ELSEWHERE.items():
        matching = [module for module in modules() if fnmatchcase(module, pattern)]
        if not matching or not list(TESTS.glob(tests)):
            wrong.append(pattern)
        if "*" not in pattern and mirror_of(pattern).is_file():
            wrong.append(f"{pattern} is not an exception")
    assert wrong == []
