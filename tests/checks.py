"""Make many checks of one kind in a single test, and report every one that fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager


@contextlib.contextmanager
def all_failures() -> Iterator[Callable[[str], AbstractContextManager[None]]]:
    """Yield `check(subject)`, a context whose failure is kept; fail at the end with all of them.

    with all_failures() as check:
        for page in PAGES:
            with check(page.name):
                assert page.exists()
    """
    failures: list[str] = []

    @contextlib.contextmanager
    def check(subject: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            failures.append(f"{subject}: {type(error).__name__}: {error}")

    yield check
    if failures:
        raise AssertionError(f"{len(failures)} failed:\n" + "\n".join(failures))
