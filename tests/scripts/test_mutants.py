from __future__ import annotations

import textwrap

from scripts.mutation.mutants import Mutant, MutatedFile


def mutants(source: str) -> list[Mutant]:
    file = MutatedFile("package/module.py", textwrap.dedent(source))
    found = [file.mutant(index) for index in range(len(file))]
    return [mutant for mutant in found if mutant is not None]


def changed_lines(source: str) -> set[str]:
    """Return the changed versions of lines."""
    lines = set()
    for mutant in mutants(source):
        for line in mutant.change.splitlines():
            if line.startswith("+ "):
                lines.add(line[2:])
    return lines


def test_comparisons_numbers_and_arguments_are_changed() -> None:
    lines = changed_lines("if a < 1:\n    b = call(a, c)\n")
    assert {"if a <= 1:", "if a < 2:", "b = None", "b = call(a, None)", "b = call(a, )"} <= lines


def test_texts_and_code_without_an_effect_on_a_run_are_left_out() -> None:
    source = '''
        """A module."""
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            x = 1
        __all__ = ["Thing"]

        class Thing:
            """A thing."""

            def __repr__(self) -> str:
                return "Thing" + str(1)

            @property
            def size(self) -> "int | None":
                """Return nothing."""
                self.logger.warning("a message %s", 1)
                raise ValueError("unknown" + str(2))
    '''
    assert mutants(source) == []


def test_the_assertion_of_zip_is_left_out_and_its_arguments_are_not() -> None:
    lines = changed_lines("for pair in zip(a + b, c, strict=True):\n    pass\n")
    assert lines == {"for pair in zip(a - b, c, strict=True):"}


def test_a_text_with_a_space_is_left_out_and_a_key_is_not() -> None:
    assert changed_lines('f("key")\n') == {'f("XXkeyXX")', "f(None)"}
    assert changed_lines('f("a message")\n') == {"f(None)"}


def test_a_false_value_is_changed_into_a_true_one_only() -> None:
    assert changed_lines("a = False\n") == {"a = True"}
    assert changed_lines("a = None\n") == set()


def test_the_scope_inside_a_function_is_the_statement_and_outside_the_definition() -> None:
    source = """\
        LIMIT = 3

        class Thing:
            size: int = 4

            def grow(self, by=5):
                if by < 6:
                    by = 7
                return by
    """
    scopes = {}
    for mutant in mutants(source):
        scopes.setdefault(mutant.line, mutant.scope)
    assert scopes == {1: (1, 10), 4: (3, 9), 6: (7, 9), 7: (7, 7), 8: (8, 8)}
