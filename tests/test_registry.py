"""Names to classes: registering, finding, building, refusing."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import hookline
from hookline import DATASETS, HOOKS, LOSSES, METRICS, MODELS, OPTIMIZERS, SCHEDULERS, WRITERS, BaseHook
from hookline.errors import ConfigError, suggest
from hookline.registry import Registry


class Kind: ...


def test_classes_are_registered_by_their_own_or_a_given_name_in_all_the_usual_ways():
    registry: Registry[Kind] = Registry("thing", Kind)

    @registry.register()
    class One(Kind): ...

    @registry.register("two")
    class Two(Kind): ...

    @registry.register_module()
    class Three(Kind): ...

    @registry.register
    class Four(Kind): ...

    class Five(Kind): ...

    registry.register_module(name="five", module=Five)
    assert registry.names() == ["Four", "One", "Three", "five", "two"]
    assert isinstance(registry.build({"type": "two"}), Two)
    assert isinstance(registry.build("One"), One)
    ready = One()
    assert registry.build(ready) is ready


def test_a_name_is_given_once_unless_forced():
    registry: Registry[Kind] = Registry("thing", Kind)
    registry.register("same")(type("A", (Kind,), {}))
    other = type("B", (Kind,), {})
    with pytest.raises(KeyError, match="registered already"):
        registry.register("same")(other)
    registry.register("same", force=True)(other)
    assert registry.get("same") is other


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown hook 'CheckpiontHook'; did you mean 'CheckpointHook'\?"):
        HOOKS.build({"type": "CheckpiontHook"})


def test_all_problems_of_a_config_come_at_once():
    with pytest.raises(ConfigError) as error:
        HOOKS.build({"type": "LoggerHook", "intervall": 3, "by_epoch": "yes", "priority": "HIGHISH"})
    assert len(error.value.problems) == 3


@pytest.mark.parametrize(
    "path, message",
    [
        ("os.system", "may not be used from a config"),
        ("subprocess.Popen", "may not be used"),
        ("builtins.eval", "may not be used"),
        ("collections.OrderedDict", "is not a hook class"),
        ("torch.save", "is not a hook class"),
        ("no_such_module.Hook", "there is no module 'no_such_module'"),
        ("hookline.hooks.LogerHook", "did you mean 'LoggerHook'"),
    ],
)
def test_a_dotted_path_leads_only_to_classes_of_the_kind(path, message):
    with pytest.raises(ConfigError, match=message):
        HOOKS.build({"type": path})


def test_a_dotted_path_to_a_hook_builds_it():
    assert type(HOOKS.build({"type": "hookline.hooks.logger_hook.LoggerHook", "interval": 3})).__name__ == "LoggerHook"


def test_the_registries_are_there_under_their_names():
    assert hookline.HookRegistry is HOOKS
    assert "cnn" in MODELS
    assert "digits" in DATASETS
    assert "AdamW" in OPTIMIZERS
    assert "StepLR" in SCHEDULERS
    assert "CrossEntropyLoss" in LOSSES
    assert len(METRICS)
    assert "jsonl" in WRITERS
    assert all(getattr(hookline, name) is not None for name in hookline.__all__)
    with pytest.raises(AttributeError):
        hookline.nothing  # noqa: B018


def test_hooks_of_an_installed_package_are_found_and_a_broken_one_hurts_nobody(tmp_path):
    (tmp_path / "plugged.py").write_text("from hookline import BaseHook\nclass Plugged(BaseHook):\n    'A hook.'\n")
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hookline.hooks]\nPlugged = plugged:Plugged\nBroken = plugged:Missing\n")
    code = """
        import hookline
        print(type(hookline.build_hook({"type": "Plugged"})).__module__)
        assert "LoggerHook" in hookline.HOOKS
        assert "Broken" not in hookline.HOOKS
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "plugged\n", done.stderr
    assert "hook 'Broken' of package plugged cannot be used" in done.stderr


def test_importing_the_package_imports_no_torch():
    code = "import sys, hookline; assert 'torch' not in sys.modules; hookline.BaseHook; assert 'torch' in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_hook_class_is_recognised_only_as_a_subclass():
    assert HOOKS.kind is BaseHook


def test_a_name_whose_rest_was_forgotten_is_known_by_its_beginning():
    assert suggest("Cosine", ["CosineRestart", "CosineAnnealing", "Step"]) == "; did you mean 'CosineAnnealing'?"
    assert suggest("metric", ["metric_name", "metrics"]) == "; did you mean 'metrics'?"
    assert suggest("lr", ["lrate", "l2"]) == "; known: l2, lrate"  # too short to be a beginning
