"""Modules are imported on first use. One new process imports more and more, and reports after each step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STEPS = {
    "package": "import hookline",
    "models": "import hookline.models",
    "runner": "from hookline import Runner",
    "metrics": """
from hookline.metrics import build_metrics, check_metric
build_metrics(["accuracy", "top5", "mae", "mse", lambda preds, targets: 0.0])
check_metric({"type": "accuracy", "top_k": 3})
""",
    "a hook": "assert hookline.HOOKS.get('EMAHook').__name__ == 'EMAHook'",
    "other names": """
for name in ("emahook", "TensorboardLoggerHook"):
    assert name in hookline.HOOKS or hookline.HOOKS.get(name)
""",
    "Pillow": """
from hookline.visual.backends import render
from hookline.visual.canvas import Canvas, Text
canvas = Canvas(30, 90)
canvas.add(Text(5, 15, "letters"))
render(canvas, "pillow")
""",
    "matplotlib": "render(canvas, 'matplotlib')",
    "compat": """
import hookline.compat.mmengine
assert not [finder for finder in sys.meta_path if "hookline" in repr(finder)]
""",
}
REPORTED = """
import json, sys
namespace = {"sys": sys}
modules = {}
for name, code in json.loads(sys.argv[1]).items():
    exec(code, namespace)
    modules[name] = sorted(sys.modules)
print(json.dumps(modules))
"""


@pytest.fixture(scope="module")
def modules() -> dict[str, set[str]]:
    """The imported modules after each step."""
    done = subprocess.run(
        [sys.executable, "-c", REPORTED, json.dumps(STEPS)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {step: set(names) for step, names in json.loads(done.stdout).items()}


def test_the_package_alone_does_not_import_torch(modules) -> None:
    assert "hookline" in modules["package"]
    assert "torch" not in modules["package"]


def test_the_registry_of_models_imports_no_model(modules) -> None:
    assert "hookline.models" in modules["models"]
    assert "hookline.models.cnn" not in modules["models"]


def test_a_runner_does_not_import_hooks_that_it_does_not_use(modules) -> None:
    found = modules["runner"]
    assert {"torch", "hookline.engine.runner"} <= found
    hooks = {"hookline.hooks.visualization_hook", "hookline.hooks.ema_hook"}
    assert not found & {"PIL", "matplotlib", *hooks}


def test_torchmetrics_is_imported_on_use_only(modules) -> None:
    assert "hookline.metrics.means" in modules["metrics"]
    assert "torchmetrics" not in modules["metrics"]


def test_the_registry_imports_a_hook_when_its_name_is_looked_up(modules) -> None:
    assert "hookline.hooks.ema_hook" in modules["a hook"]
    assert "hookline.hooks.visualization_hook" not in modules["a hook"]


def test_other_spellings_lead_to_hooks_that_are_not_imported_yet(modules) -> None:
    assert "hookline.hooks.tensorboard_hook" not in modules["a hook"]
    assert "hookline.hooks.tensorboard_hook" in modules["other names"]


def test_matplotlib_is_imported_on_use_and_without_pyplot(modules) -> None:
    assert "PIL" in modules["Pillow"]
    assert "matplotlib" not in modules["Pillow"]
    assert "matplotlib" in modules["matplotlib"]
    assert "matplotlib.pyplot" not in modules["matplotlib"]


def test_other_frameworks_are_not_replaced_unless_asked(modules) -> None:
    assert "hookline.compat.mmengine" in modules["compat"]
    assert "mmengine" not in modules["compat"]
