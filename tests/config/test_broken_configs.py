from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookline.config import build, load_config
from hookline.config.hooks import checked_hooks
from hookline.errors import ConfigError
from tests.config.broken_configs import (
    GOOD,
    GOOD_JSON,
    GOOD_TOML,
    Broken,
    broken_cases,
    broken_configs,
)
from tests.problems import raises_problem


def test_the_configs_are_good_before_they_are_broken(tmp_path: Path) -> None:
    for text, name in ((GOOD, "good.yaml"), (GOOD_JSON, "good.json"), (GOOD_TOML, "good.toml")):
        (tmp_path / name).write_text(text)
        checked_hooks(load_config(tmp_path / name))


def test_there_are_more_than_a_hundred_and_no_two_are_called_the_same(tmp_path: Path) -> None:
    labels = [label for label, _, _ in broken_configs(tmp_path)]
    assert len(set(labels)) == len(labels) >= 100


def test_every_broken_config_gives_one_screen_that_names_file_and_line(tmp_path: Path) -> None:
    failures = [
        f"{case.label}: {fault}" for case in broken_cases(tmp_path) if (fault := _fault(case))
    ]
    assert not failures, "\n".join(failures)


edits = st.lists(
    st.tuples(
        st.integers(0, len(GOOD)), st.integers(0, 6), st.text(" \n:-[]{}'\"&*!$a1é", max_size=3)
    ),
    min_size=1,
    max_size=3,
)


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(edits)
def test_a_randomly_scrambled_config_loads_or_is_rejected_with_its_file(
    tmp_path: Path, edits: list[tuple[int, int, str]]
) -> None:
    text = GOOD
    for at, removed, added in edits:
        text = text[:at] + added + text[at + removed :]
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        checked_hooks(load_config(path))
    except ConfigError as error:
        assert error.file == str(path)  # noqa: PT017


def _fault(case: Broken) -> str | None:
    """Describe what is missing in the error of a broken config, if anything is."""
    try:
        checked_hooks(load_config(case.path, case.overrides))
    except ConfigError as error:
        message, problems = str(error), error.problems
    else:
        return "no error"
    file = str(case.path) if not case.file else case.file
    lines = message.splitlines()
    found = [problem.line for problem in problems if problem.file == file]
    has_lines = file != "command line" and case.path.suffix != ".txt"
    if not found or (has_lines and set(found) == {None}):
        return f"does not name the file and a line: {message}"
    if case.line is not None and case.line not in found:
        return f"does not name line {case.line}: {message}"
    if case.hint is not None and case.hint not in [
        problem.suggestion.nearest for problem in problems
    ]:
        return f"does not suggest {case.hint}: {message}"
    if len(lines) > 24 or max(map(len, lines)) > 700:
        return f"does not fit on a screen: {message}"
    return None


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("interval: 10", "interval: 0"),
        GOOD.replace("lr: 1e-3", "lr: 1e-3\n  betas: [2.0, 0.9]"),
    ],
)
def test_an_error_of_a_constructor_has_a_line_too(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with raises_problem(file=str(path)) as caught:
        build(load_config(path))
    assert caught.value.line is not None
