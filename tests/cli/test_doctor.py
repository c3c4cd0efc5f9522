"""`hookline doctor`: the state of the installation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hookline.cli.doctor import PackageCheck, _module_of, check_packages
from hookline.cli.errors import CommandLineError
from hookline.cli.main import main
from tests.cli.helpers import ROOT


def install(folder: Path, name: str, code: str | None, *headers: str) -> None:
    """Write a package and its metadata as an installer does; without code, only the metadata."""
    about = folder / f"{name}-1.5.dist-info"
    about.mkdir()
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.5", *headers]
    (about / "METADATA").write_text("\n".join(metadata) + "\n")
    if code is not None:
        (folder / f"{name}.py").write_text(code)
        (about / "top_level.txt").write_text(name + "\n")


def install_listed(folder: Path, name: str, module: str, code: str) -> None:
    """Write a package whose metadata lists files, as wheels do, and no modules."""
    install(folder, name, None)
    (folder / module).parent.mkdir(exist_ok=True)
    (folder / module).write_text(code)
    record = f"_private.py,,\n{module},,\nbin/tool.py,,\n{name}-1.5.dist-info/METADATA,,\n"
    (folder / f"{name}-1.5.dist-info" / "RECORD").write_text(record)


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, PackageCheck]:
    """The packages of a distribution, of which some are missing, too old or broken."""
    requires: Sequence[str] = [
        "doctor_good>=1.0",
        "doctor_absent>=1.0",
        "doctor_future>=2.0",
        'doctor_other_python; python_version < "3"',
        'doctor_broken; extra == "plots"',
        'doctor_unwanted; extra == "plots"',
        'doctor_leaving; extra == "plots"',
        'doctor_remains; extra == "plots"',
        "doctor_Modern",
        "doctor_other_name",
    ]
    install(
        tmp_path,
        "doctor_patient",
        None,
        *[f"Requires-Dist: {each}" for each in requires],
        "Provides-Extra: plots",
    )
    install(tmp_path, "doctor_good", "")
    install(tmp_path, "doctor_future", "")
    install(tmp_path, "doctor_broken", "raise RuntimeError('operator does not exist')")
    install(tmp_path, "doctor_leaving", "raise SystemExit(3)")
    install_listed(
        tmp_path, "doctor_Modern", "doctor_modern/__init__.py", "raise RuntimeError('half')"
    )
    install_listed(tmp_path, "doctor_other_name", "another.py", "raise RuntimeError('other')")
    (tmp_path / "doctor_remains-1.5.dist-info").mkdir()  # as an uninstall of other rights leaves it
    monkeypatch.syspath_prepend(str(tmp_path))
    return {each.package: each for each in check_packages("doctor_patient")}


def test_a_package_that_works_has_no_problem(checks: dict[str, PackageCheck]) -> None:
    assert checks["doctor_good"] == PackageCheck("", "doctor_good", "1.5", "")


def test_a_required_package_that_is_missing_is_a_problem(checks: dict[str, PackageCheck]) -> None:
    assert checks["doctor_absent"].version == ""
    assert "pip install doctor_absent" in checks["doctor_absent"].problem


def test_a_version_that_is_too_old_is_a_problem(checks: dict[str, PackageCheck]) -> None:
    assert checks["doctor_future"].version == "1.5"
    assert ">=2.0" in checks["doctor_future"].problem


def test_an_optional_package_that_cannot_be_imported_is_a_problem_with_its_error(
    checks: dict[str, PackageCheck],
) -> None:
    assert checks["doctor_broken"].part == "plots"
    assert "operator does not exist" in checks["doctor_broken"].problem


def test_a_package_that_exits_on_import_is_a_problem(checks: dict[str, PackageCheck]) -> None:
    assert "SystemExit" in checks["doctor_leaving"].problem


def test_the_remains_of_a_package_are_not_installed(checks: dict[str, PackageCheck]) -> None:
    assert checks["doctor_remains"] == PackageCheck("plots", "doctor_remains", "", "")


def test_remains_are_found_too_after_the_backport_of_importlib_was_imported() -> None:
    pytest.importorskip("importlib_metadata")
    tests = ["-q", "-p", "no:cacheprovider", "-k", "test_the_remains_of_a_package", __file__]
    command = [sys.executable, "-c", f"import importlib_metadata, pytest; pytest.main({tests})"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout


def test_modules_are_found_among_the_files_of_a_package(checks: dict[str, PackageCheck]) -> None:
    assert "half" in checks["doctor_Modern"].problem
    assert "other" in checks["doctor_other_name"].problem


def test_the_imported_modules_of_the_required_packages_are_known() -> None:
    names = ["torch", "PyYAML", "lazy-loader", "click"]
    assert [_module_of(name) for name in names] == ["torch", "yaml", "lazy_loader", "click"]


def test_the_part_of_a_package_that_hookline_imports_is_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(tmp_path, "doctor_patient", None, "Requires-Dist: pillow", "Requires-Dist: matplotlib")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "PIL.Image", None)  # importing it is an error
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    problems = [each.problem for each in check_packages("doctor_patient")]
    assert "PIL.Image" in problems[0]
    assert "matplotlib.figure" in problems[1]


def test_an_optional_package_that_is_not_installed_is_no_problem(
    checks: dict[str, PackageCheck],
) -> None:
    assert checks["doctor_unwanted"] == PackageCheck("plots", "doctor_unwanted", "", "")


def test_a_package_for_another_python_is_not_listed(checks: dict[str, PackageCheck]) -> None:
    assert "doctor_other_python" not in checks


def test_the_command_lists_every_required_package(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert code == (0 if result["healthy"] else 1)
    required = {each["package"] for each in result["packages"] if not each["part"]}
    assert {"torch", "numpy", "safetensors"} <= required
    assert "cpu" in result["devices"]


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # importing it is an error
from hookline.cli.doctor import check_packages, describe_devices
(problem,) = (check.problem for check in check_packages("doctor_patient") if check.package == "torch")
print(describe_devices(), problem)
"""


def test_a_torch_that_cannot_be_imported_is_a_problem_and_not_a_crash(tmp_path: Path) -> None:
    install(tmp_path, "doctor_patient", None, "Requires-Dist: torch")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("unknown cannot be imported")


def test_a_package_without_metadata_is_reported() -> None:
    with pytest.raises(CommandLineError, match="pip install"):
        list(check_packages("doctor_never_installed"))
