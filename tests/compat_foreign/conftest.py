"""These tests need the other frameworks; `make test-compat` installs them beside the rest and runs this folder alone."""

from __future__ import annotations

import gc
import importlib.util
import os

import pytest

from tests.compat_foreign import matrix

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("CODECARBON_LOG_LEVEL", "error")
os.environ.setdefault(
    "COMET_DISABLE_AUTO_LOGGING", "1"
)  # else it changes other packages as soon as it is imported
os.environ.setdefault("COMET_AUTO_LOG_CO2", "0")

ABSENT = [
    name
    for name in ("lightning", "transformers", "peft", "keras", "optuna")
    if importlib.util.find_spec(name) is None
]
collect_ignore_glob = ["test_*.py"] if ABSENT else []
if not ABSENT:  # no test needs a network; what tries all the same (codecarbon asks where it is) shall fail at once, not wait
    os.environ |= dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"
    )
    os.environ |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")

_shown: set[matrix.Row] = set()
_failed: set[str] = set()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "shows(row): the test verifies a row of the matrix of callbacks"
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Every training of Hugging Face's Trainer collects garbage, and would go through all that was imported for half a second."""
    gc.freeze()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> object:
    outcome = yield
    rows = [tuple(mark.args[0]) for mark in item.iter_markers("shows")]
    if rows and call.when == "call":
        outcome.get_result().user_properties.append(
            ("shows", rows)
        )  # so it gets here from the processes that run tests


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.add(report.nodeid)
    elif report.passed and report.when == "call":
        _shown.update(
            matrix.Row(*row)
            for name, rows in report.user_properties
            if name == "shows"
            for row in rows
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Compare the page with the results, if all tests of the folder ran."""
    config = session.config
    chosen = config.option.keyword or any("::" in arg or arg.endswith(".py") for arg in config.args)
    whole = (
        not chosen
        and not hasattr(config, "workerinput")
        and any("compat_foreign" in str(arg) for arg in config.args)
    )
    if ABSENT or not whole or _failed or not _shown:
        return
    content = matrix.table(list(_shown))
    if os.environ.get("HOOKLINE_WRITE_MATRIX"):
        matrix.write(content)
    elif content != matrix.written():
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(
                "the matrix in docs/foreign-callbacks.md is not what was found; run `make compat-matrix`",
                red=True,
            )
        session.exitstatus = 1
