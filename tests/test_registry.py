"""Names to classes: registering, finding, building, refusing."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import hookline
from hookline import (
    DATASETS,
    HOOKS,
    LOSSES,
    METRICS,
    MODELS,
    OPTIMIZERS,
    SCHEDULERS,
    WRITERS,
    BaseHook,
)
from hookline.errors import ConfigError
from hookline.registry import Registry
from tests.problems import raises_problem


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
    with pytest.raises(KeyError, match="same"):
        registry.register("same")(other)
    registry.register("same", force=True)(other)
    assert registry.get("same") is other


def test_for_an_unknown_name_the_nearest_is_suggested():
    with raises_problem(path=("type",), parameter="type", nearest="CheckpointHook"):
        HOOKS.build({"type": "CheckpiontHook"})


def test_all_problems_of_a_config_are_reported_at_once():
    with pytest.raises(ConfigError) as error:
        HOOKS.build(
            {"type": "LoggerHook", "intervall": 3, "by_epoch": "yes", "priority": "HIGHISH"}
        )
    problems = error.value.problems
    assert [problem.parameter for problem in problems] == ["intervall", "by_epoch", "priority"]
    assert [problem.component for problem in problems] == ["LoggerHook"] * 3


@pytest.mark.parametrize(
    "path, nearest",
    [
        ("os.system", None),
        ("subprocess.Popen", None),
        ("builtins.eval", None),
        ("collections.OrderedDict", None),
        ("torch.save", None),
        ("no_such_module.Hook", None),
        ("hookline.hooks.LogerHook", "LoggerHook"),
    ],
)
def test_a_dotted_path_leads_only_to_classes_of_the_kind(path, nearest):
    with raises_problem(path=("type",), parameter="type", nearest=nearest):
        HOOKS.build({"type": path})


def test_a_dotted_path_to_a_hook_builds_it():
    assert (
        type(HOOKS.build({"type": "hookline.hooks.logger_hook.LoggerHook", "interval": 3})).__name__
        == "LoggerHook"
    )


def test_the_registries_are_there_under_their_names():
    assert type(HOOKS) is hookline.HookRegistry
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


def test_hooks_of_an_installed_package_are_found_and_a_broken_one_is_ignored(tmp_path):
    (tmp_path / "plugged.py").write_text(
        "from hookline import BaseHook\nclass Plugged(BaseHook):\n    'A hook.'\n"
    )
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[hookline.hooks]\nPlugged = plugged:Plugged\nBroken = plugged:Missing\n"
    )
    code = """
        import hookline
        print(type(hookline.build_hook({"type": "Plugged"})).__module__)
        assert "LoggerHook" in hookline.HOOKS
        assert "Broken" not in hookline.HOOKS
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "plugged\n", done.stderr
    assert "'Broken'" in done.stderr


def test_a_hook_class_is_recognised_only_as_a_subclass():
    assert HOOKS.kind is BaseHook
