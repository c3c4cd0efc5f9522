"""MMCV's runners: the order of calls, workflows, registration, and resuming."""

from __future__ import annotations

import logging
import signal

import pytest
import torch
from torch import nn

from hookline import engine
from hookline.checkpoint import CheckpointError
from hookline.compat import mmcv
from hookline.compat.mmcv.runner import (
    HOOKS,
    BaseRunner,
    EpochBasedRunner,
    Hook,
    IterBasedRunner,
    LrUpdaterHook,
    OptimizerHook,
    build_runner,
    load_checkpoint,
    save_checkpoint,
)
from hookline.engine import Interrupted
from hookline.errors import RegistrationError
from tests.compat.mmcv_parts import LOGGER, Classifier, assert_same, loader, make_runner, weights
from tests.problems import raises_problem

PARTS = {
    "optimizer_config": {"grad_clip": {"max_norm": 5}},
    "log_config": {"interval": 2, "hooks": [{"type": "TextLoggerHook"}]},
}


class Probe(Hook):
    """Writes down what it is called with."""

    def __init__(self, calls):
        self.calls = calls

    def before_run(self, runner):
        self.calls.append("before_run")

    def after_run(self, runner):
        self.calls.append("after_run")

    def before_epoch(self, runner):
        self.calls.append(f"before_epoch {runner.mode} {runner.epoch}")

    def after_epoch(self, runner):
        self.calls.append(f"after_epoch {runner.mode} {runner.epoch}")

    def before_iter(self, runner):
        self.calls.append(f"before_iter {runner.mode} {runner.inner_iter} {runner.iter}")

    def after_iter(self, runner):
        self.calls.append(f"after_iter {runner.mode} {runner.inner_iter} {runner.iter}")


def test_a_workflow_runs_epochs_of_training_and_validation_in_turn(tmp_path):
    calls = []
    runner = make_runner(tmp_path, max_epochs=3)
    runner.register_hook(OptimizerHook())
    runner.register_hook(Probe(calls))
    runner.run([loader(), loader(shuffle=False)], [("train", 2), ("val", 1)])
    epochs = [call for call in calls if "epoch" in call or "run" in call]
    assert epochs == [
        "before_run",
        "before_epoch train 0", "after_epoch train 0", "before_epoch train 1", "after_epoch train 1",
        "before_epoch val 2", "after_epoch val 2",
        "before_epoch train 2", "after_epoch train 2",
        "before_epoch val 3", "after_epoch val 3",
        "after_run",
    ]  # fmt: skip
    assert calls[2:4] == ["before_iter train 0 0", "after_iter train 0 0"]
    assert calls.count("before_iter val 5 12") == 1
    assert (runner.epoch, runner.iter, runner.max_iters) == (3, 18, 18)


def test_an_iteration_runner_calls_epoch_sites_once_and_begins_its_loaders_again(tmp_path):
    calls = []
    runner = make_runner(tmp_path, IterBasedRunner, max_iters=8)
    runner.register_hook(OptimizerHook())
    runner.register_hook(Probe(calls))
    runner.run([loader(), loader(shuffle=False)], [("train", 3), ("val", 1)])
    assert [call for call in calls if "epoch" in call] == [
        "before_epoch None 0",
        "after_epoch val 1",
    ]
    train = [call for call in calls if call.startswith("before_iter train")]
    assert train[:4] == [
        "before_iter train 0 0",
        "before_iter train 1 1",
        "before_iter train 2 2",
        "before_iter train 0 3",
    ]
    assert (len(train), runner.iter, runner.epoch) == (8, 8, 1)
    assert [call for call in calls if call.startswith("before_iter val")] == [
        f"before_iter val 0 {at}" for at in (3, 6, 8)
    ]


def test_hooks_run_in_flat_order_of_priority_and_registration(tmp_path):
    calls = []

    def hook(label):
        class Named(Hook):
            def before_train_epoch(self, runner):
                calls.append(label)

            def after_train_epoch(self, runner):
                calls.append(label)

        return Named()

    runner = make_runner(tmp_path, max_epochs=1)
    runner.register_hook(hook("normal"))
    runner.register_hook(hook("low"), "LOW")
    runner.register_hook(hook("high"), priority="HIGH")
    runner.register_hook(hook("normal too"), priority=50)
    runner.register_hook(OptimizerHook())
    runner.run([loader()], [("train", 1)])
    assert calls == ["high", "normal", "normal too", "low"] * 2
    assert [type(each).__name__ for each in runner.hooks] == [
        "Named",
        "Named",
        "Named",
        "OptimizerHook",
        "Named",
    ]


def test_training_hooks_get_mmcvs_priorities(tmp_path):
    runner = make_runner(tmp_path)
    runner.register_training_hooks(
        {"policy": "step", "step": [1]},
        checkpoint_config={"interval": 1},
        momentum_config={"policy": "cyclic"},
        custom_hooks_config=[{"type": "EMAHook", "priority": 49}, Probe([])],
        **PARTS,
    )
    assert [(type(hook).__name__, engine.get_priority(hook.priority)) for hook in runner.hooks] == [
        ("StepLrUpdaterHook", 10), ("CyclicMomentumUpdaterHook", 30), ("OptimizerHook", 40), ("EMAHook", 49), ("CheckpointHook", 50),
        ("Probe", 50), ("IterTimerHook", 70), ("TextLoggerHook", 90),
    ]  # fmt: skip
    info = runner.get_hook_info()
    assert info.startswith("before_run:\n(VERY_HIGH   ) StepLrUpdaterHook")
    runner.run([loader()], [("train", 1)])


def test_configs_are_not_changed(tmp_path):
    config = {"policy": "step", "step": [1]}
    make_runner(tmp_path).register_lr_hook(config)
    make_runner(tmp_path, IterBasedRunner).register_training_hooks(config)
    assert config == {"policy": "step", "step": [1]}


def test_an_iteration_runner_counts_iterations_in_all_its_hooks(tmp_path):
    runner = make_runner(tmp_path, IterBasedRunner)
    runner.register_training_hooks({"policy": "poly"}, checkpoint_config={"interval": 5}, **PARTS)
    runner.run([loader()], [("train", 1)])
    assert not any(getattr(hook, "by_epoch", False) for hook in runner.hooks)
    assert {path.name for path in tmp_path.glob("*.pth")} == {
        "iter_5.pth",
        "iter_10.pth",
        "iter_12.pth",
        "latest.pth",
    }


def test_two_hooks_that_would_both_run_backward_are_refused(tmp_path):
    runner = make_runner(tmp_path)
    runner.register_optimizer_hook({"grad_clip": None})
    runner.register_optimizer_hook(
        {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": 4}
    )
    with pytest.raises(RegistrationError, match="OptimizerHook.*GradientCumulativeOptimizerHook"):
        runner.run([loader()], [("train", 1)])


# Resuming. ------------------------------------------------------------------------------------------------------------


def configure(runner, **checkpoint):
    runner.register_training_hooks(
        {
            "policy": "CosineAnnealing",
            "min_lr": 0.0,
            "by_epoch": False,
            "warmup": "linear",
            "warmup_iters": 3,
        },
        checkpoint_config=checkpoint,
        custom_hooks_config=[{"type": "EMAHook", "momentum": 0.1}],
        **PARTS,
    )
    return runner


WORKERS = {"num_workers": 2, "persistent_workers": True}


@pytest.mark.parametrize(
    ("cls", "length", "workflow", "saved", "workers"),
    [
        (EpochBasedRunner, {"max_epochs": 4}, [("train", 1)], ["epoch_1", "epoch_3"], [{}]),
        (
            EpochBasedRunner,
            {"max_epochs": 4},
            [("train", 2), ("val", 1)],
            ["epoch_1", "epoch_2", "epoch_3"],
            [{}, {}],
        ),
        (
            EpochBasedRunner,
            {"max_epochs": 3},
            [("train", 1), ("val", 1)],
            ["iter_4", "iter_6", "iter_8", "iter_16"],
            [{}, {}],
        ),
        (
            EpochBasedRunner,
            {"max_epochs": 2},
            [("train", 1)],
            ["iter_4", "iter_8"],
            [{"num_workers": 1}],
        ),
        (
            EpochBasedRunner,
            {"max_epochs": 3},
            [("train", 1), ("val", 1)],
            ["iter_8", "iter_12"],
            [WORKERS, WORKERS],
        ),
        (
            IterBasedRunner,
            {"max_iters": 20},
            [("train", 3), ("val", 2)],
            ["iter_2", "iter_6", "iter_14"],
            [{}, {}],
        ),
        (
            IterBasedRunner,
            {"max_iters": 20},
            [("train", 3), ("val", 2)],
            ["iter_14"],
            [WORKERS, WORKERS],
        ),
    ],
)
def test_a_resumed_run_ends_with_the_same_weights_bit_for_bit(
    tmp_path, cls, length, workflow, saved, workers
):
    def loaders():
        return [
            loader(noisy=True, shuffle=mode == "train", **options)
            for (mode, _), options in zip(workflow, workers, strict=True)
        ]

    interval = {"interval": 1} if "epoch" in saved[0] else {"interval": 2, "by_epoch": False}
    whole = configure(make_runner(tmp_path / "whole", cls, **length), **interval)
    whole.run(loaders(), workflow)
    for name in saved:
        resumed = configure(make_runner(tmp_path / name, cls, seed=77, **length), **interval)
        resumed.resume(str(tmp_path / "whole" / f"{name}.pth"))
        resumed.run(loaders(), workflow)
        assert_same(weights(whole), weights(resumed))
        assert (resumed.epoch, resumed.iter) == (whole.epoch, whole.iter)
        momenta = [
            [state["momentum_buffer"] for state in runner.optimizer.state.values()]
            for runner in (whole, resumed)
        ]
        assert all(torch.equal(one, other) for one, other in zip(*momenta, strict=True))


def test_a_checkpoint_has_mmcvs_layout_and_meta(tmp_path):
    runner = configure(make_runner(tmp_path, meta={"seed": 3, "exp_name": "try"}), interval=1)
    runner.run([loader()], [("train", 1)])
    content = torch.load(tmp_path / "epoch_2.pth", weights_only=True)
    assert {"meta", "state_dict", "optimizer"} <= content.keys()
    about = content["meta"]
    assert (about["epoch"], about["iter"], about["seed"], about["exp_name"]) == (2, 12, 3, "try")
    assert about["mmcv_version"] == mmcv.__version__
    assert about["hook_msgs"]["last_ckpt"] == str(tmp_path / "epoch_2.pth")
    assert "ema_net_0_weight" in content["state_dict"]
    assert (tmp_path / "latest.pth").read_bytes() == (tmp_path / "epoch_2.pth").read_bytes()


def test_a_plain_checkpoint_as_mmcv_writes_it_is_resumed(tmp_path):
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    torch.save(
        {"meta": {"epoch": 1, "iter": 6, "mmcv_version": "1.7.0", "time": "now", "hook_msgs": {"best_score": 0.5}},
         "state_dict": {f"module.{key}": value for key, value in model.state_dict().items()}, "optimizer": optimizer.state_dict()},
        tmp_path / "old.pth",
    )  # fmt: skip
    runner = make_runner(tmp_path / "new", seed=5)
    runner.register_training_hooks(None, **PARTS)
    runner.resume(str(tmp_path / "old.pth"))
    assert_same(weights(runner), dict(model.state_dict()))
    assert (runner.epoch, runner.iter, runner.current_lr(), runner.meta["hook_msgs"]) == (
        1,
        6,
        [0.03],
        {"best_score": 0.5},
    )
    runner.run([loader()], [("train", 1)])
    assert (runner.epoch, runner.iter) == (2, 12)


def test_weights_alone_cannot_be_resumed(tmp_path):
    torch.save(Classifier().state_dict(), tmp_path / "weights.pth")
    runner = make_runner(tmp_path)
    runner.load_checkpoint(str(tmp_path / "weights.pth"))
    with pytest.raises(Exception, match="load_checkpoint"):
        runner.resume(str(tmp_path / "weights.pth"))


def test_a_file_with_a_class_in_it_is_refused(tmp_path):
    torch.save({"state_dict": {}, "meta": LOGGER}, tmp_path / "bad.pth")
    with raises_problem(CheckpointError, file=str(tmp_path / "bad.pth")):
        load_checkpoint(Classifier(), str(tmp_path / "bad.pth"))


def test_save_and_load_checkpoint_by_hand(tmp_path, caplog):
    model, other = Classifier(), Classifier()
    model.CLASSES = ("a", "b")
    save_checkpoint(
        model,
        str(tmp_path / "sub" / "model.pth"),
        torch.optim.SGD(model.parameters(), lr=0.1),
        meta={"epoch": 3},
    )
    content = load_checkpoint(
        other, str(tmp_path / "sub" / "model.pth"), map_location="cpu", strict=True
    )
    assert_same(dict(other.state_dict()), dict(model.state_dict()))
    assert (content["meta"]["CLASSES"], content["meta"]["epoch"], set(content)) == (
        ("a", "b"),
        3,
        {"meta", "state_dict", "optimizer"},
    )
    with caplog.at_level(logging.WARNING, "mmcv"):
        load_checkpoint(
            nn.Linear(4, 2),
            str(tmp_path / "sub" / "model.pth"),
            logger=logging.getLogger("mmcv"),
            revise_keys=[(r"^net\.0\.", "")],
        )
    assert "size mismatch for weight" in caplog.text
    with pytest.raises(RuntimeError, match="unexpected key"):
        load_checkpoint(nn.Linear(4, 2), str(tmp_path / "sub" / "model.pth"), strict=True)
    with pytest.raises(ValueError, match="from-mmcv"):
        load_checkpoint(model, "open-mmlab://resnet50")


def test_a_user_can_save_at_any_time_and_resume_from_it(tmp_path):
    class SaveHere(Hook):
        def after_train_iter(self, runner):
            if runner.iter == 7:
                runner.save_checkpoint(
                    str(tmp_path / "here"),
                    filename_tmpl="mine.pth",
                    create_symlink=False,
                    meta={"why": "I want"},
                )

    def run(folder, *hooks, resume=None):
        runner = make_runner(tmp_path / folder)
        runner.register_training_hooks({"policy": "fixed"}, {}, custom_hooks_config=list(hooks))
        if resume:
            runner.resume(resume)
        runner.run([loader(noisy=True)], [("train", 1)])
        return runner

    whole = run("whole", SaveHere())
    content = torch.load(tmp_path / "here" / "mine.pth", weights_only=True)
    assert (content["meta"]["iter"], content["meta"]["epoch"], content["meta"]["why"]) == (
        8,
        1,
        "I want",
    )
    assert_same(weights(whole), weights(run("resumed", resume=str(tmp_path / "here" / "mine.pth"))))
    whole.save_checkpoint(str(tmp_path / "end"))
    assert (tmp_path / "end" / "epoch_3.pth").is_file()


def test_a_signal_saves_and_stops_and_the_rest_is_the_same(tmp_path):
    class Interrupt(Hook):
        def after_train_iter(self, runner):
            if runner.iter == 3:
                signal.raise_signal(signal.SIGTERM)

    whole = configure(make_runner(tmp_path / "whole"), interval=1)
    whole.run([loader()], [("train", 1)])
    runner = configure(make_runner(tmp_path / "cut"), interval=1)
    runner.register_hook(Interrupt())
    with pytest.raises(Interrupted):
        runner.run([loader()], [("train", 1)])
    resumed = configure(make_runner(tmp_path / "cut", seed=3), interval=1)
    resumed.resume(str(tmp_path / "cut" / "iter_4.pth"))
    resumed.run([loader()], [("train", 1)])
    assert_same(weights(whole), weights(resumed))


# What a runner accepts. -----------------------------------------------------------------------------------------------


def test_a_runner_is_built_from_a_config(tmp_path):
    model = Classifier()
    arguments = {
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "work_dir": str(tmp_path),
        "logger": LOGGER,
    }
    runner = build_runner({"type": "EpochBasedRunner", "max_epochs": 3}, default_args=arguments)
    assert (type(runner), runner.max_epochs, runner.model_name) == (
        EpochBasedRunner,
        3,
        "Classifier",
    )
    with pytest.raises(KeyError, match="EpochBasdRunner.*'EpochBasedRunner'"):
        build_runner({"type": "EpochBasdRunner"}, arguments)
    with pytest.raises(TypeError, match="'max_epoch'.*'max_epochs'"):
        build_runner({"type": "EpochBasedRunner", "max_epoch": 3}, arguments)


def test_wrong_arguments_of_a_runner_are_rejected(tmp_path):
    with pytest.raises(AssertionError, match="train_step"):
        EpochBasedRunner(nn.Linear(1, 1), logger=logging.getLogger("mmcv.test"))
    with pytest.raises(TypeError, match="logger"):
        EpochBasedRunner(Classifier())
    with pytest.raises(TypeError, match="work_dir"):
        EpochBasedRunner(Classifier(), work_dir=1, logger=logging.getLogger("mmcv.test"))
    with (
        pytest.raises(RuntimeError, match="cannot be both"),
        pytest.warns(DeprecationWarning, match="batch_processor"),
    ):
        EpochBasedRunner(Classifier(), print, logger=logging.getLogger("mmcv.test"))
    with pytest.raises(TypeError, match="meta"):
        make_runner(tmp_path).save_checkpoint(str(tmp_path), meta=[])
    with pytest.raises(ValueError, match="Only one of"):
        make_runner(tmp_path, max_epochs=1, max_iters=1)
    with pytest.raises(TypeError, match="logger"):
        make_runner(tmp_path, logger="x")
    with pytest.raises(ValueError, match='no method named "trian"'):
        make_runner(tmp_path).run([loader()], [("trian", 1)])
    with pytest.raises(KeyError, match="'EMAHook'"):
        make_runner(tmp_path).register_hook({"type": "EMHook"})


def test_several_optimizers_are_scheduled_and_saved_by_name(tmp_path):
    class Gan(nn.Module):
        def __init__(self):
            super().__init__()
            self.g, self.d = nn.Linear(4, 2), nn.Linear(4, 2)

        def train_step(self, data, optimizer):
            for name, part in (("g", self.g), ("d", self.d)):
                optimizer[name].zero_grad()
                nn.functional.cross_entropy(part(data["x"]), data["y"]).backward()
                optimizer[name].step()
            return {"log_vars": {"loss": 1.0}, "num_samples": 4}

    def run(folder, resume=None):
        torch.manual_seed(0)
        model = Gan()
        optimizers = {
            "g": torch.optim.SGD(model.g.parameters(), lr=0.1),
            "d": torch.optim.Adam(model.d.parameters(), lr=0.2),
        }
        runner = make_runner(tmp_path / folder, model=model, optimizer=optimizers)
        runner.register_training_hooks(
            {"policy": "step", "step": [1]}, None, {"interval": 1}, PARTS["log_config"]
        )
        if resume:
            runner.resume(resume)
        runner.run([loader()], [("train", 1)])
        return runner

    whole = run("whole")
    assert whole.current_lr() == {"g": [pytest.approx(0.01)], "d": [pytest.approx(0.02)]}
    assert whole.current_momentum() == {"g": [0], "d": [0.9]}
    assert_same(weights(whole), weights(run("again", str(tmp_path / "whole" / "epoch_1.pth"))))


def test_a_custom_runner_may_override_its_parts(tmp_path):
    calls = []

    class Mine(EpochBasedRunner):
        def run_iter(self, data_batch, train_mode, **kwargs):
            calls.append(kwargs)
            super().run_iter(data_batch, train_mode)

        def train(self, data_loader, **kwargs):
            self.call_hook("before_something")
            super().train(data_loader, **kwargs)

    class Something(Hook):
        def before_something(self, r):
            calls.append(r)

        def after_train_iter(self, r):  # whatever it calls its argument
            calls.append("iter")

    runner = make_runner(tmp_path, Mine, max_epochs=1)
    runner.register_hook(Something())
    runner.run([loader()], [("train", 1)], extra=1)
    assert calls == [runner, *[{"extra": 1}, "iter"] * 6]


def test_a_custom_learning_rate_policy_and_a_custom_optimizer_hook_work(tmp_path):
    @HOOKS.register_module(force=True)
    class HalfLrUpdaterHook(LrUpdaterHook):
        def get_lr(self, runner, base_lr):
            return base_lr / 2**runner.epoch

    class Twice(OptimizerHook):
        def after_train_iter(self, runner):
            runner.optimizer.zero_grad()
            runner.outputs["loss"].backward()
            if self.grad_clip is not None:
                grad_norm = self.clip_grads(runner.model.parameters())
                runner.log_buffer.update(
                    {"grad_norm": float(grad_norm)}, runner.outputs["num_samples"]
                )
            runner.optimizer.step()

    runner = make_runner(tmp_path, max_epochs=3)
    runner.register_training_hooks({"policy": "half"}, Twice(grad_clip={"max_norm": 1}))
    runner.run([loader()], [("train", 1)])
    assert runner.current_lr() == [0.1 / 4]
    assert "grad_norm" in runner.log_buffer.val_history


def test_a_batch_processor_takes_the_place_of_train_step(tmp_path):
    model = nn.Linear(4, 2)

    def process(model, data, train_mode):
        return {"loss": nn.functional.cross_entropy(model(data["x"]), data["y"])}

    with pytest.warns(DeprecationWarning, match="batch_processor"):
        runner = EpochBasedRunner(
            model,
            process,
            torch.optim.SGD(model.parameters(), lr=0.1),
            str(tmp_path),
            LOGGER,
            max_epochs=1,
        )
    runner.register_optimizer_hook({})
    before = weights(runner)
    runner.run([loader()], [("train", 1)])
    assert not torch.equal(before["weight"], runner.model.weight)


def test_hooks_of_hookline_may_be_registered_too(tmp_path):
    from hookline.hooks import CheckInvalidLossHook, StopAtHook

    runner = make_runner(tmp_path)
    runner.register_optimizer_hook({})
    runner.register_hook(CheckInvalidLossHook(interval=1))
    runner.register_hook(StopAtHook(iter=3))
    runner.run([loader()], [("train", 1)])
    assert runner.iter == 3


def test_cleanup_runs_after_a_failure_and_the_hook_is_named(tmp_path):
    cleaned = []

    class Fails(Hook):
        def after_train_iter(self, runner):
            raise ZeroDivisionError

        def cleanup(self, runner):
            cleaned.append(runner.exception)

    runner = make_runner(tmp_path)
    runner.register_hook(Fails())
    with pytest.raises(ZeroDivisionError) as caught:
        runner.run([loader()], [("train", 1)])
    assert cleaned == [caught.value]
    assert "Fails at after_train_iter" in caught.value.__notes__[0]


def test_attributes_that_a_hook_calls_its_own_do_not_mean_ours(tmp_path):
    class Own(Hook):
        def __init__(self):
            self.frequency, self.calls = 100, 0

        def after_train_iter(self, runner):
            self.calls += 1

    hook = Own()
    runner = make_runner(tmp_path)
    runner.register_hook(hook)
    runner.run([loader()], [("train", 1)])
    assert hook.calls == 12


@pytest.mark.parametrize(
    ("module", "name", "hint"),
    [
        ("hookline.compat.mmcv", "imread", ""),
        ("hookline.compat.mmcv", "ops", "install MMCV 1.x itself"),
        ("hookline.compat.mmcv.runner", "IterBasedRuner", "did you mean 'IterBasedRunner'"),
        ("hookline.compat.mmcv.runner.hooks", "EvalHok", "did you mean 'EvalHook'"),
        ("hookline.compat.mmcv.runner", "BaseModule", "torch.nn.Module"),
        ("hookline.compat.mmcv.parallel", "DataContainer", "return tensors"),
        ("hookline.compat.mmcv.utils", "Registri", "did you mean 'Registry'"),
        ("hookline.compat.mmcv.engine", "single_gpu_tst", "did you mean 'single_gpu_test'"),
    ],
)
def test_a_name_that_is_not_covered_gets_the_nearest_one(module, name, hint, caplog):
    import importlib

    original = module.removeprefix("hookline.compat.")
    with pytest.raises(AttributeError, match=rf"{original}\.{name} is not covered.*{hint}"):
        getattr(importlib.import_module(module), name)
    caplog.clear()
    with pytest.raises(ImportError):
        exec(f"from {module} import {name}")  # noqa: S102
    assert hint in caplog.text


def test_a_runner_without_loops_raises(tmp_path):
    with pytest.raises(NotImplementedError, match="BaseRunner has no 'run'"):
        make_runner(tmp_path, BaseRunner, max_epochs=1).run([], [])
