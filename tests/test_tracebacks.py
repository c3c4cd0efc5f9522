from __future__ import annotations

import functools

from hookline.tracebacks import HookMethods


def fail() -> None:
    raise ValueError("no")


class First:
    """An object with a method that fails and one that calls a function."""

    def after_run(self) -> None:
        fail()

    def call(self, function) -> None:
        function()


def error_of(function, *arguments) -> ValueError:
    try:
        function(*arguments)
    except ValueError as error:
        return error
    raise AssertionError("it did not fail")


def notes_of(methods: HookMethods, error: ValueError, when: str = "") -> list[str]:
    methods.annotate(error, when)
    return getattr(error, "__notes__", [])


def test_an_error_names_the_hook_and_its_site() -> None:
    methods = HookMethods()
    methods.add(First().after_run, "One", "after_run")
    (note,) = notes_of(methods, error_of(First().after_run))
    assert "One at after_run" in note
    (note,) = notes_of(methods, error_of(First().after_run), "epoch 2")
    assert "One at after_run (epoch 2)" in note


def test_the_innermost_hook_is_named() -> None:
    methods = HookMethods()
    first = First()
    methods.add(first.call, "Outer", "before_run")
    methods.add(first.after_run, "Inner", "after_run")
    (note,) = notes_of(methods, error_of(first.call, first.after_run))
    assert "Inner at after_run" in note
    (note,) = notes_of(methods, error_of(first.call, fail))
    assert "Outer at before_run" in note


def test_an_error_outside_of_hooks_has_only_its_moment() -> None:
    methods = HookMethods()
    assert notes_of(methods, error_of(fail)) == []
    (note,) = notes_of(methods, error_of(fail), "epoch 2")
    assert "epoch 2" in note


def test_twins_are_both_named() -> None:
    methods = HookMethods()
    for name in ("One", "Two"):
        methods.add(First().after_run, name, "after_run")
    assert methods.owner(First.after_run.__code__) == ("One or Two", "after_run")


def test_a_decorated_method_is_known_by_the_function_inside() -> None:
    @functools.wraps(fail)
    def wrapper() -> None:
        fail()

    methods = HookMethods()
    methods.add(wrapper, "One", "after_run")
    assert methods.owner(fail.__code__) == ("One", "after_run")


def test_methods_can_be_forgotten_and_builtins_have_no_code() -> None:
    methods = HookMethods()
    methods.add(len, "One", "after_run")
    methods.add(fail, "One", "after_run")
    methods.clear()
    assert methods.owner(fail.__code__) is None
