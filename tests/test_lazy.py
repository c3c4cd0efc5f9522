from __future__ import annotations

import subprocess
import sys

import pytest

import hookline
import hookline.hooks


def modules_after(code: str) -> set[str]:
    output = subprocess.run([sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True, text=True, check=True)
    return set(output.stdout.split())


@pytest.mark.parametrize("package", [hookline, hookline.hooks], ids=lambda package: package.__name__)
def test_everything_that_a_package_offers_is_there(package):
    assert set(package._HOMES) <= set(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'EmaHook'"):
        package.EmaHook  # noqa: B018


def test_the_package_alone_does_not_even_import_torch():
    assert "torch" not in modules_after("import hookline")


def test_a_runner_comes_without_the_hooks_that_nobody_asked_for():
    found = modules_after("from hookline import Runner")
    assert "hookline.engine.runner" in found
    assert not found & {"PIL", "matplotlib", "hookline.hooks.visualization_hook", "hookline.hooks.ema_hook"}


def test_a_hook_is_imported_when_its_name_is_looked_up_by_itself_and_other_spellings_are_found_as_well():
    modules_after(
        "from hookline import HOOKS\n"
        "assert HOOKS.get('EMAHook').__name__ == 'EMAHook'\n"
        "assert 'hookline.hooks.ema_hook' in sys.modules\n"
        "assert 'hookline.hooks.visualization_hook' not in sys.modules\n"
        "assert all(name in HOOKS or HOOKS.get(name) for name in ('emahook', 'TensorboardLoggerHook'))"
    )
