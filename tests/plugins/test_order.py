from __future__ import annotations

import itertools

import pytest

pytest_plugins = ["pytester"]

TESTS = "import pytest\n@pytest.mark.parametrize('n', range(8))\ndef test_it(n): pass\n"


@pytest.fixture
def order(pytester: pytest.Pytester):
    """Return a function that collects 24 tests in 3 modules with a seed, and returns their names."""
    pytester.makepyfile(test_a=TESTS, test_b=TESTS, test_c=TESTS)

    def collect(*options: str) -> list[str]:
        result = pytester.runpytest("--collect-only", "-q", "-p", "tests.plugins.order", *options)
        return [line for line in result.outlines if "::" in line]

    return collect


def test_the_order_is_that_of_the_files_without_a_seed(order) -> None:
    assert order() == sorted(order())


def test_a_seed_determines_the_order(order) -> None:
    first = order("--order-seed", "1")
    assert first == order("--order-seed", "1")
    assert first != order("--order-seed", "2")
    assert sorted(first) == order()


def test_tests_of_a_module_stay_together(order) -> None:
    modules = [name.partition("::")[0] for name in order("--order-seed", "5")]
    changes = sum(before != after for before, after in itertools.pairwise(modules))
    assert changes == 2
