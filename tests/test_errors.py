from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest

from hookline.errors import (
    ConfigError,
    HooklineError,
    Problem,
    Suggestion,
    dotted,
    format_exception,
    parameter_error,
    require_at_least,
    suggest,
)


@dataclass
class Part:
    size: int = 0


def test_an_error_has_the_fields_of_its_first_problem():
    first = Problem(
        "is wrong",
        ("hooks", 2, "size"),
        "config.yaml",
        14,
        component="Part",
        parameter="size",
        value=3,
        site="before_run",
        suggestion=Suggestion("four"),
    )
    error = ConfigError([first, Problem("another")])
    assert (error.path, error.file, error.line) == (("hooks", 2, "size"), "config.yaml", 14)
    assert (error.component, error.parameter, error.value) == ("Part", "size", 3)
    assert (error.site, error.suggestion) == ("before_run", Suggestion("four"))
    assert len(error.problems) == 2


def test_an_error_can_be_made_of_a_message_and_fields():
    error = HooklineError("is wrong", component="Part", parameter="size")
    assert (error.component, error.parameter) == ("Part", "size")
    assert error.problems[0].message == "is wrong"


def test_an_error_keeps_its_fields_when_it_is_pickled():
    error = pickle.loads(pickle.dumps(ConfigError("is wrong", component="Part", value=3)))
    assert (error.component, error.value) == ("Part", 3)


def test_a_value_of_none_is_a_value():
    assert "None" in str(Problem("must be a number", value=None))
    assert "got" not in str(Problem("must be a number"))


def test_a_long_value_is_shortened():
    assert len(str(Problem("must be a number", value="x" * 10_000))) < 400


def test_a_problem_can_be_moved_below_other_keys():
    assert Problem("is wrong", ("size",)).below("hooks", 2).path == ("hooks", 2, "size")


@pytest.mark.parametrize(
    ("path", "text"), [((), ""), (("a",), "a"), (("hooks", 2, "size"), "hooks[2].size")]
)
def test_a_path_is_written_with_dots_and_brackets(path, text):
    assert dotted(path) == text


def test_an_attribute_below_its_minimum_is_rejected():
    require_at_least(Part(1), 1, "size")
    with pytest.raises(ConfigError) as error:
        require_at_least(Part(0), 1, "size")
    assert (error.value.component, error.value.parameter) == ("Part", "size")
    assert (error.value.path, error.value.value) == (("size",), 0)


def test_the_error_of_a_parameter_shows_another_value_if_it_is_given():
    assert parameter_error(Part(3), "size", "is wrong").value == 3
    assert parameter_error(Part(3), "size", "is wrong", value=4).value == 4


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        ("patiance", ["patience", "monitor"], "patience"),
        ("LOGGERHOOK", ["LoggerHook"], "LoggerHook"),
        ("batchsize", ["batch_size"], "batch_size"),
        ("Cosine", ["CosineRestart", "CosineAnnealing", "Step"], "CosineAnnealing"),
        ("metric", ["metric_name", "metrics"], "metrics"),
        ("lr", ["lrate", "l2"], None),  # Two letters are too few for a prefix.
        ("anything", [], None),
    ],
)
def test_the_nearest_name_is_suggested(name, known, nearest):
    suggestion = suggest(name, known)
    assert suggestion.nearest == nearest
    assert suggestion.known == tuple(sorted(known))


def test_only_an_empty_suggestion_is_false():
    assert not Suggestion()
    assert all([Suggestion("a"), Suggestion(known=("a",)), Suggestion(advice="a")])


def test_a_long_list_of_known_names_is_cut():
    names = tuple(f"name_{index}" for index in range(50))
    assert "name_11" in str(Suggestion(known=names))
    assert "name_12" not in str(Suggestion(known=names))


def test_an_exception_is_formatted_with_the_line_that_raised_it():
    def fail() -> None:
        raise RuntimeError("not today\nnor tomorrow")

    with pytest.raises(RuntimeError) as error:
        fail()
    text = format_exception(error.value)
    assert text.startswith("RuntimeError: not today (")
    assert f"{__file__}:{fail.__code__.co_firstlineno + 1}" in text


def test_an_exception_without_a_traceback_is_formatted_in_one_line():
    assert format_exception(ValueError("no")) == "ValueError: no"
