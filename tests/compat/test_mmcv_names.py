"""Names of `import mmcv` without MMCV, and errors that code written for it can catch."""

from __future__ import annotations

import logging

import pytest
import torch

from hookline.compat import mmcv
from hookline.compat.mmcv.runner import (
    CosineRestartLrUpdaterHook,
    CyclicLrUpdaterHook,
    EMAHook,
    EpochBasedRunner,
    EvalHook,
    GradientCumulativeOptimizerHook,
    OptimizerHook,
    StepLrUpdaterHook,
)
from hookline.compat.mmcv.runner.fp16_utils import auto_fp16, cast_tensor_type
from hookline.compat.mmcv.runner.hooks.lr_updater import (
    annealing_cos,
    annealing_linear,
    get_position_from_periods,
)
from hookline.errors import ConfigError
from tests.compat.mmcv_parts import Classifier, loader, make_runner


def test_helpers_of_mmcv_have_their_names():
    assert mmcv.is_filepath("a")
    assert not mmcv.is_filepath(3)
    assert mmcv.list_cast(["1", "2"], int) == [1, 2]
    assert mmcv.tuple_cast([1], str) == ("1",)
    assert list(mmcv.utils.iter_cast([1], float)) == [1.0]
    with pytest.raises(AttributeError, match=r"install MMCV 1\.x itself"):
        _ = mmcv.Config


def test_annealing_functions_go_from_start_to_end():
    assert [annealing_cos(1, 0, factor) for factor in (0, 0.5, 1)] == pytest.approx([1, 0.5, 0])
    assert annealing_cos(1, 0, 0, 0.5) == 0.5
    assert annealing_linear(1, 3, 0.25) == 1.5
    assert annealing_cos(start=1, end=0, factor=0.5, weight=2) == pytest.approx(1)
    assert annealing_linear(start=1, end=3, factor=0.25) == 1.5


@pytest.mark.parametrize(("iteration", "position"), [(0, 0), (99, 0), (100, 1), (210, 2)])
def test_an_iteration_has_its_place_in_a_list_of_periods(iteration, position):
    assert get_position_from_periods(iteration, [100, 200, 300]) == position


def test_an_iteration_after_all_periods_is_refused():
    with pytest.raises(ValueError, match="exceeds"):
        get_position_from_periods(300, [100, 200, 300])


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: StepLrUpdaterHook(-10), "step"),
        (lambda: StepLrUpdaterHook([10, 16, -20]), "step"),
        (lambda: StepLrUpdaterHook(1, warmup="linear", warmup_iters=0), "warmup_iters"),
        (lambda: CyclicLrUpdaterHook(by_epoch=True), "by_epoch"),
        (lambda: CyclicLrUpdaterHook(target_ratio=(10.0, 0.1, 0.2)), "target_ratio"),
        (lambda: CyclicLrUpdaterHook(step_ratio_up=1.4), "step_ratio_up"),
        (lambda: CyclicLrUpdaterHook(gamma=0), "gamma"),
        (lambda: CyclicLrUpdaterHook(anneal_strategy="sin"), "anneal_strategy"),
        (lambda: CosineRestartLrUpdaterHook([5], [1, 0.5], min_lr=0.1), "restart_weights"),
        (lambda: CosineRestartLrUpdaterHook([5], [1]), "min_lr"),
        (lambda: GradientCumulativeOptimizerHook(cumulative_iters="str"), "cumulative_iters"),
        (lambda: EMAHook(interval=0), "interval"),
        (lambda: EMAHook(momentum=1), "momentum"),
        (lambda: EvalHook(loader(), save_best=True), "save_best"),
    ],
)
def test_a_wrong_parameter_raises_an_assertion_error_that_names_it(make, parameter):
    with pytest.raises(AssertionError) as caught:
        make()
    assert isinstance(caught.value, ConfigError)
    assert caught.value.problems[0].parameter == parameter


def test_keys_of_an_evaluation_may_be_none_at_all():
    hook = EvalHook(loader(), save_best="acc", greater_keys=[], less_keys=["acc"])
    assert hook.rule == "less"


def test_an_evaluation_without_results_warns(tmp_path):
    data = loader()
    data.dataset.evaluate = lambda results, logger=None: {}
    runner = make_runner(tmp_path, max_epochs=1)
    runner.register_hook(EvalHook(data, save_best="auto"))
    with pytest.warns(UserWarning, match="`eval_res` is an empty dict"):
        runner.run([loader()], [("train", 1)])


def test_unused_parameters_are_logged_by_name(tmp_path, caplog):
    model = Classifier()
    model.unused = torch.nn.Linear(1, 1)
    runner = make_runner(tmp_path, model=model, max_epochs=1)
    runner.register_hook(OptimizerHook(detect_anomalous_params=True))
    with caplog.at_level(logging.ERROR):
        runner.run([loader()], [("train", 1)])
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert {text.split()[0] for text in errors} == {"unused.weight", "unused.bias"}


def test_stages_are_known_from_methods_alone():
    class Odd(mmcv.runner.Hook):
        def before_run():
            pass

        def after_epoch():
            pass

    assert Odd().get_triggered_stages() == ["before_run", "after_train_epoch", "after_val_epoch"]


def test_half_precision_is_float16_on_every_device():
    class Twice(torch.nn.Module):
        @auto_fp16(apply_to=("x",))
        def forward(self, x, y):
            return x, y

    model = Twice()
    model.fp16_enabled = True
    x, y = model(torch.ones(1), torch.ones(1))
    assert (x.dtype, y.dtype) == (torch.float16, torch.float32)
    nested = cast_tensor_type({"a": [torch.ones(1)], "b": "text"}, torch.float32, torch.int32)
    assert (nested["a"][0].dtype, nested["b"]) == (torch.int32, "text")
    cast = cast_tensor_type(inputs=torch.ones(1), src_type=torch.float32, dst_type=torch.float16)
    assert cast.dtype == torch.float16


def test_hooks_taken_from_the_list_of_a_runner_no_longer_run(tmp_path):
    class Count(mmcv.runner.Hook):
        calls = 0

        def after_train_iter(self, runner):
            self.calls += 1

    kept, removed, added = Count(), Count(), Count()
    runner = make_runner(tmp_path, EpochBasedRunner, max_epochs=1)
    runner.register_hook(kept)
    runner.register_hook(removed)
    runner._hooks.remove(removed)
    runner._hooks.append(added)
    runner.run([loader()], [("train", 1)])
    assert (kept.calls, removed.calls, added.calls) == (6, 0, 6)
