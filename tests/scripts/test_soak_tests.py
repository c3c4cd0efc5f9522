from __future__ import annotations

from pathlib import Path

from scripts.soak_tests import machine_load, plan, read_report

REPORT = """<testsuites><testsuite>
<testcase file="tests/test_a.py" classname="tests.test_a" name="test_good"/>
<testcase file="tests/test_a.py" classname="tests.test_a" name="test_bad[1]"><failure/></testcase>
<testcase file="tests/test_a.py" classname="tests.test_a" name="test_setup"><error/></testcase>
<testcase file="tests/test_a.py" classname="tests.test_a" name="test_left_out"><skipped/></testcase>
</testsuite></testsuites>"""


def test_the_second_half_of_the_runs_is_under_load() -> None:
    assert [run.under_load for run in plan(5, seed=0, load_only=False)] == [
        False,
        False,
        False,
        True,
        True,
    ]
    assert all(run.under_load for run in plan(3, seed=0, load_only=True))


def test_each_run_has_its_own_order_and_a_seed_repeats_them() -> None:
    seeds = [run.seed for run in plan(10, seed=1, load_only=False)]
    assert len(set(seeds)) == 10
    assert seeds == [run.seed for run in plan(10, seed=1, load_only=False)]


def test_outcomes_and_failed_tests_are_read_from_a_report(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    counts, failures = read_report(path)
    assert counts == {"passed": 1, "failed": 2, "skipped": 1}
    assert failures == ["tests/test_a.py::test_bad[1]", "tests/test_a.py::test_setup"]


def test_the_load_ends_with_its_context() -> None:
    with machine_load() as processes:
        assert all(process.poll() is None for process in processes)
    assert all(process.returncode is not None for process in processes)
