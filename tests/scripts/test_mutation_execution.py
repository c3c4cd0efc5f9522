from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.mutation.covering_tests import CoveringTests, MeasuredTest, node_id

ROOT = Path(__file__).parents[2]
# Runs the tests of a tree with a changed module, in a process that pytest does not control.
SCRIPT = """
import sys
from pathlib import Path
from scripts.mutation.execution import Slot

folder, text = Path(sys.argv[1]), sys.argv[2]
slot = Slot(folder / "slot", folder / "tree")
with slot.changed("sizes.py", text):
    steps = slot.run(["test_it.py::test_two", "test_it.py::test_one"], limit_s=float(sys.argv[3]))
    try:
        while True:
            next(steps)
    except StopIteration as end:
        print(end.value.status, end.value.failed_test)
assert (slot.tree / "sizes.py").read_text() == "ONE, TWO = 1, 2\\n"
"""
TESTS = """
import sizes

def test_one(): assert sizes.ONE == 1
def test_two(): assert sizes.TWO == 2
"""


@pytest.fixture
def run(tmp_path: Path):
    """Return a function that runs the tests with another text of `sizes.py`."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "sizes.py").write_text("ONE, TWO = 1, 2\n")
    (tree / "test_it.py").write_text(TESTS)
    (tree / "pytest.ini").write_text("[pytest]\n")

    def run(text: str, limit_s: float = 600.0) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path), text, str(limit_s)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    return run


def test_tests_pass_with_a_change_that_they_do_not_notice(run) -> None:
    assert run("ONE, TWO, THREE = 1, 2, 4") == ["passed"]


def test_the_first_failure_in_the_given_order_is_reported(run) -> None:
    assert run("ONE, TWO = 0, 0") == ["failed", "test_it.py::test_two"]


def test_a_module_that_cannot_be_imported_is_a_failure(run) -> None:
    assert run("ONE = 1 / 0") == ["failed"]


def test_a_process_that_dies_is_a_crash(run) -> None:
    assert run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)") == ["crashed"]


def test_an_endless_loop_ends_at_the_limit(run) -> None:
    assert run("while True: pass", limit_s=0.1) == ["timeout"]


@pytest.fixture
def covering(tmp_path: Path) -> CoveringTests:
    """Four tests: `slow` and `far` execute line 5, `failing` too; line 1 runs at import only."""
    covering = CoveringTests(tmp_path, tmp_path / "tree")
    far = "tests/cli/test_b.py::far"
    slow, failing = "tests/data/test_a.py::slow", "tests/data/test_a.py::failing"
    covering.results = {
        far: MeasuredTest(0.1, passed=True),
        slow: MeasuredTest(2.0, passed=True),
        failing: MeasuredTest(0.1, passed=False),
        "tests/data/test_a.py::other": MeasuredTest(0.1, passed=True),
    }
    covering.tests_by_line["hookline/data/sampler.py"] = {1: set(), 5: {far, slow, failing}}
    covering.tests_by_line["hookline/data/constants.py"] = {1: set()}
    return covering


def test_passing_tests_of_a_line_come_with_those_of_the_package_first(covering) -> None:
    tests = covering.covering("hookline/data/sampler.py", (4, 6))
    assert tests == ["tests/data/test_a.py::slow", "tests/cli/test_b.py::far"]


def test_a_line_that_runs_at_import_has_the_tests_of_its_file_or_package(covering) -> None:
    assert covering.covering("hookline/data/sampler.py", (1, 1)) == (
        covering.covering("hookline/data/sampler.py", (5, 5))
    )
    assert covering.covering("hookline/data/constants.py", (1, 1)) == [
        "tests/data/test_a.py::other",
        "tests/data/test_a.py::slow",
    ]


def test_a_line_that_never_runs_has_no_tests(covering) -> None:
    assert covering.covering("hookline/data/sampler.py", (9, 9)) == []


def test_node_ids_are_read_from_a_report() -> None:
    case = ElementTree.Element(
        "testcase", file="tests/a/test_b.py", classname="tests.a.test_b.TestC", name="test_d[1.5]"
    )
    assert node_id(case) == "tests/a/test_b.py::TestC::test_d[1.5]"
    case.set("classname", "tests.a.test_b")
    assert node_id(case) == "tests/a/test_b.py::test_d[1.5]"
