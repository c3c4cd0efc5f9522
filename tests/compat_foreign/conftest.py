"""These tests need the other frameworks; `make test-compat` installs them beside the rest and runs this folder alone."""

from __future__ import annotations

import importlib.util
import os

import pytest

from tests.compat_foreign import matrix

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("CODECARBON_LOG_LEVEL", "error")

ABSENT = [name for name in ("lightning", "transformers", "keras", "optuna") if importlib.util.find_spec(name) is None]
collect_ignore_glob = ["test_*.py"] if ABSENT else []

_passed: dict[str, list[matrix.Row]] = {}
_failed: set[str] = set()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shows(row): the test shows what the matrix says of a callback")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> object:
    outcome = yield
    rows = [mark.args[0] for mark in item.iter_markers("shows")]
    report = outcome.get_result()
    if rows and call.when == "call":
        _passed[item.nodeid] = rows if report.passed else []
    if report.failed:
        _failed.add(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """When all of the folder was run, the page must say what was found."""
    config = session.config
    chosen = config.option.keyword or config.option.markexpr or any("::" in arg or arg.endswith(".py") for arg in config.args)
    if ABSENT or chosen or _failed or not _passed or not any("compat_foreign" in str(arg) for arg in config.args):
        return
    content = matrix.table([row for rows in _passed.values() for row in rows])
    if os.environ.get("HOOKLINE_WRITE_MATRIX"):
        matrix.write(content)
    elif content != matrix.written():
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line("the matrix in docs/foreign-callbacks.md is not what was found; run `make compat-matrix`", red=True)
        session.exitstatus = 1
