"""`--order-seed N`: run the tests in a random order that N determines.

The order depends on the seed and the collected tests alone, so every xdist worker has the same one. Modules are shuffled, and
the tests inside each module; tests of one module stay together, because module fixtures are expensive.
"""

from __future__ import annotations

import random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--order-seed",
        type=int,
        default=None,
        help="run the tests in the random order of this seed",
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("order_seed")
    return None if seed is None else f"random order: --order-seed {seed}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("order_seed")
    if seed is not None:
        items[:] = shuffle(items, seed)


def shuffle(items: list[pytest.Item], seed: int) -> list[pytest.Item]:
    """Return the items in the random order of a seed, with those of a module next to each other."""
    by_module: dict[str, list[pytest.Item]] = {}
    for item in items:
        by_module.setdefault(item.nodeid.partition("::")[0], []).append(item)
    generator = random.Random(seed)
    modules = sorted(by_module)
    generator.shuffle(modules)
    shuffled: list[pytest.Item] = []
    for module in modules:
        tests = sorted(by_module[module], key=lambda item: item.nodeid)
        generator.shuffle(tests)
        shuffled += tests
    return shuffled
