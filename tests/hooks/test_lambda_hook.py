"""Functions as hooks."""

from __future__ import annotations

import pytest

from hookline.engine import HOOKS
from hookline.errors import ConfigError, RegistrationError
from hookline.hooks import LambdaHook
from tests.helpers import make_runner
from tests.problems import raises_problem


def test_functions_are_called_at_their_sites_with_what_they_name(tmp_path):
    seen = []
    hook = LambdaHook(
        after_epoch=lambda epoch, iter: seen.append((epoch, iter)),
        before_run=lambda runner: seen.append(runner.iter),
    )
    make_runner(tmp_path, hook).train()
    assert seen == [0, (0, 4), (1, 8)]
    assert hook.get_triggered_stages() == ["before_run", "after_epoch"]


def test_a_closure_hook_is_the_same_with_a_site_and_a_function(tmp_path):
    seen = []
    hook = HOOKS.get("ClosureHook")("after_train_iter", lambda runner: seen.append(runner.iter))
    make_runner(tmp_path, hook, max_iters=3).train()
    assert seen == [0, 1, 2]


def test_wrong_sites_and_arguments_are_rejected_at_once(tmp_path):
    with raises_problem(component="LambdaHook", parameter="after_epok", nearest="after_epoch"):
        LambdaHook(after_epok=print)
    with pytest.raises(ConfigError, match="unknown site 'after_epok'"):
        LambdaHook(after_epok=print)
    with raises_problem(component="LambdaHook", parameter="after_epoch", value=3):
        LambdaHook(after_epoch=3)
    with raises_problem(component="LambdaHook"):
        LambdaHook("after_epoch")
    with pytest.raises(RegistrationError, match="'epok'.*'epoch'"):
        make_runner(tmp_path, LambdaHook(after_epoch=lambda epok: None))
