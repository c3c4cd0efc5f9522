"""MMCV's hooks and helpers beyond what its document shows."""

from __future__ import annotations

import json
import logging
import math

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

from hookline.compat.mmcv import (
    Registry,
    build_from_cfg,
    get_logger,
    is_list_of,
    is_tuple_of,
    mkdir_or_exist,
    print_log,
    scandir,
)
from hookline.compat.mmcv.engine import collect_results_cpu, multi_gpu_test, single_gpu_test
from hookline.compat.mmcv.parallel import (
    MMDataParallel,
    MMDistributedDataParallel,
    is_module_wrapper,
)
from hookline.compat.mmcv.runner import (
    HOOKS,
    ClosureHook,
    CosineAnnealingLrUpdaterHook,
    CosineRestartLrUpdaterHook,
    CyclicLrUpdaterHook,
    DistEvalHook,
    EMAHook,
    EmptyCacheHook,
    EvalHook,
    Hook,
    IterBasedRunner,
    LogBuffer,
    LrUpdaterHook,
    OneCycleMomentumUpdaterHook,
    ProfilerHook,
    StepLrUpdaterHook,
    StepMomentumUpdaterHook,
    build_optimizer,
    get_dist_info,
    get_priority,
    init_dist,
    master_only,
    set_random_seed,
)
from hookline.errors import ConfigError
from tests.compat.mmcv_parts import Classifier, Points, assert_same, loader, make_runner, weights


class Scored(Points):
    """Has a score for each evaluation to give."""

    def __init__(self, scores, name="acc"):
        super().__init__(8)
        self.scores, self.name, self.calls = list(scores), name, []

    def evaluate(self, results, logger=None, **kwargs):
        self.calls.append(kwargs)
        return {self.name: self.scores[len(self.calls) - 1]}


def scored(scores, name="acc"):
    return DataLoader(Scored(scores, name), batch_size=4)


def run(runner, *hooks, epochs_of=None, **config):
    runner.register_training_hooks(None, {"grad_clip": None}, **config)
    for hook in hooks:
        runner.register_hook(hook, "LOW")
    runner.run([epochs_of or loader()], [("train", 1)])
    return runner


# Evaluation. ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "name", "options", "best"),
    [
        ([0.1, 0.3, 0.2], "acc", {"save_best": "auto"}, 2),
        ([0.0, 0.0, 0.0], "acc", {"save_best": "acc"}, 1),  # a score of zero is one
        ([3.0, 1.0, 2.0], "val_loss", {"save_best": "val_loss"}, 2),
        ([3.0, 1.0, 2.0], "mine", {"save_best": "mine", "rule": "less"}, 2),
        ([1.0, 3.0, 2.0], "mine", {"save_best": "mine", "greater_keys": ["mine"]}, 2),
        ([1.0, 3.0, 2.0], "segm/mAP", {"save_best": "auto"}, 2),
    ],
)
def test_the_best_checkpoint_follows_the_rule_of_its_metric(tmp_path, scores, name, options, best):
    runner = run(make_runner(tmp_path, max_epochs=3), EvalHook(scored(scores, name), **options))
    assert {path.name for path in tmp_path.glob("*.pth")} == {
        f"best_{name.replace('/', '_')}_epoch_{best}.pth"
    }
    assert runner.meta["hook_msgs"]["best_score"] == scores[best - 1]


def test_the_best_and_the_epochs_checkpoint_are_one_file_on_disk(tmp_path):
    run(
        make_runner(tmp_path, max_epochs=1),
        EvalHook(scored([0.5]), save_best="acc"),
        checkpoint_config={"interval": 1},
    )
    names = ("epoch_1.pth", "latest.pth", "best_acc_epoch_1.pth")
    assert len({(tmp_path / name).stat().st_ino for name in names}) == 1


def test_the_best_score_is_kept_across_a_resume(tmp_path):
    run(
        make_runner(tmp_path, max_epochs=2),
        EvalHook(scored([0.9, 0.1]), save_best="acc"),
        checkpoint_config={"interval": 1},
    )
    runner = make_runner(tmp_path, max_epochs=4)
    runner.resume(str(tmp_path / "epoch_2.pth"))
    run(runner, EvalHook(scored([0.5, 0.95]), save_best="acc"), checkpoint_config={"interval": 1})
    assert {path.name for path in tmp_path.glob("best*")} == {"best_acc_epoch_4.pth"}
    assert runner.meta["hook_msgs"]["best_score"] == 0.95


def test_a_resumed_run_starts_the_workers_of_its_evaluation_without_random_numbers(tmp_path):
    def train(folder, resumed_from=None):
        runner = make_runner(tmp_path / folder, max_epochs=3)
        if resumed_from is not None:
            runner.resume(str(tmp_path / resumed_from / "epoch_1.pth"))
        workers = {"num_workers": 1, "persistent_workers": True}
        evaluation = EvalHook(loader(shuffle=False, **workers))
        return run(runner, evaluation, checkpoint_config={"interval": 1})

    whole = train("whole")
    assert_same(weights(train("resumed", "whole")), weights(whole))


def test_evaluation_by_iteration_leaves_the_mode_and_the_log_of_training_in_order(tmp_path):
    modes = []
    hook = EvalHook(scored(range(9)), by_epoch=False, interval=4, scale=3)
    watch = ClosureHook("before_train_iter", lambda runner: modes.append(runner.model.training))
    log = {"interval": 2, "hooks": [{"type": "TextLoggerHook", "by_epoch": False}]}
    runner = make_runner(tmp_path, IterBasedRunner)
    run(runner, hook, watch, log_config=log)
    assert modes == [True] * 12
    assert hook.dataloader.dataset.calls == [{"scale": 3}] * 3
    (path,) = tmp_path.glob("*.log.json")
    rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert [(row["mode"], row["iter"]) for row in rows][:3] == [
        ("train", 2),
        ("train", 4),
        ("val", 2),
    ]
    assert [row["acc"] for row in rows if row["mode"] == "val"] == [0, 1, 2]


def test_wrong_arguments_of_an_evaluation_are_rejected():
    for arguments, match in [
        ({"dataloader": [1]}, "must be a pytorch DataLoader"),
        ({"interval": 0}, "positive"),
        ({"start": -1}, "smaller than 0"),
        ({"save_best": "mine"}, "Cannot infer the rule for key mine"),
        ({"save_best": "acc", "rule": "larger"}, "rule must be greater, less"),
        ({"save_best": True}, "'save_best' must be the name of a metric"),
    ]:
        with pytest.raises((TypeError, ValueError, KeyError), match=match):
            EvalHook(**{"dataloader": scored([1]), **arguments})


def test_evaluation_of_several_processes_works_with_one(tmp_path):
    hook = DistEvalHook(scored([0.2, 0.4]), save_best="auto")
    run(make_runner(tmp_path), hook)
    assert {path.name for path in tmp_path.glob("*.pth")} == {"best_acc_epoch_2.pth"}
    model = Classifier()
    assert (
        len(multi_gpu_test(model, loader(shuffle=False)))
        == len(single_gpu_test(model, loader()))
        == 24
    )
    assert collect_results_cpu([1, 2, 3], 2) == [1, 2]


# Checkpoints. ---------------------------------------------------------------------------------------------------------


def test_a_checkpoint_by_epoch_waits_for_the_step_that_its_gradients_belong_to(tmp_path):
    def make(folder):
        runner = make_runner(tmp_path / folder, max_epochs=2)
        runner.register_training_hooks(
            None,
            {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": 4},
            {"interval": 1},
        )
        return runner

    whole = make("whole")
    whole.run([loader()], [("train", 1)])
    content = torch.load(tmp_path / "whole" / "epoch_1.pth", weights_only=True)
    assert (content["meta"]["iter"], content["meta"]["inner_iter"]) == (8, 2)  # an epoch has six
    resumed = make("resumed")
    resumed.resume(str(tmp_path / "whole" / "epoch_1.pth"))
    resumed.run([loader()], [("train", 1)])
    assert_same(weights(whole), weights(resumed))


def test_the_rest_of_a_run_that_fills_no_group_is_a_smaller_group(tmp_path):
    runner = make_runner(tmp_path, IterBasedRunner, max_iters=7)
    runner.register_optimizer_hook(
        {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": 3}
    )
    runner.run([loader()], [("train", 1)])
    assert runner.optimizer_steps == 3
    hook = runner.hooks[0]
    assert (hook.divisible_iters, hook.remainder_iters) == (6, 1)


def test_a_subclass_may_save_in_its_own_way(tmp_path):
    cls = HOOKS.get("CheckpointHook")

    class Twice(cls):
        def _save_checkpoint(self, runner):
            super()._save_checkpoint(runner)
            runner.save_checkpoint(self.out_dir, filename_tmpl="copy_{}.pth")

    run(make_runner(tmp_path), Twice(interval=2, filename_tmpl="mine_{}.pth"))
    assert {path.name for path in tmp_path.glob("*.pth")} == {
        "mine_2.pth",
        "copy_2.pth",
        "latest.pth",
    }


def test_a_checkpoint_without_the_optimizer_and_without_a_latest(tmp_path):
    run(
        make_runner(tmp_path, max_epochs=1),
        checkpoint_config={"interval": 1, "save_optimizer": False, "create_symlink": False},
    )
    assert {path.name for path in tmp_path.glob("*.pth")} == {"epoch_1.pth"}
    assert "optimizer" not in torch.load(tmp_path / "epoch_1.pth", weights_only=True)
    with pytest.raises(ValueError, match="has no work_dir"):
        run(make_runner(None, max_epochs=1), checkpoint_config={"interval": 1})


# Optimizers, mixed precision, averages. -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Fp16OptimizerHook", "GradientCumulativeFp16OptimizerHook"])
def test_a_dynamic_loss_scale_continues_after_a_resume(tmp_path, kind):
    options = {
        "loss_scale": {"init_scale": 8.0, "growth_interval": 2},
        **({"cumulative_iters": 2} if "Cumulative" in kind else {}),
    }

    def make(folder):
        runner = make_runner(tmp_path / folder)
        runner.register_training_hooks(
            {"policy": "fixed"}, {"type": kind, **options}, {"interval": 1}
        )
        return runner

    whole = make("whole")
    whole.run([loader()], [("train", 1)])
    assert whole.meta["fp16"]["loss_scaler"]["scale"] > 8
    resumed = make("resumed")
    resumed.resume(str(tmp_path / "whole" / "epoch_1.pth"))
    resumed.run([loader()], [("train", 1)])
    assert resumed.meta["fp16"]["loss_scaler"] == whole.meta["fp16"]["loss_scaler"]
    assert_same(weights(whole), weights(resumed))


def test_averages_are_resumed_without_resume_from_too(tmp_path):
    def make(folder):
        runner = make_runner(tmp_path / folder)
        runner.register_training_hooks(
            None, {}, {"interval": 1}, custom_hooks_config=[{"type": "EMAHook", "momentum": 0.2}]
        )
        return runner

    whole, resumed = make("whole"), make("resumed")
    whole.run([loader()], [("train", 1)])
    resumed.resume(str(tmp_path / "whole" / "epoch_1.pth"))
    resumed.run([loader()], [("train", 1)])
    assert_same(weights(whole), weights(resumed))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: EMAHook(momentum=1.0), "between 0 and 1"),
        (lambda: EMAHook(interval=0), "at least 1"),
        (lambda: ClosureHook("after_trian_iter", print), "did you mean 'after_train_iter'"),
        (lambda: ProfilerHook(profile_iters=0), "greater than 0"),
        (lambda: ProfilerHook(activities=["gpu"]), "'cpu' or 'cuda'"),
        (lambda: ProfilerHook(on_trace_ready={"type": "x"}), "log_trace"),
    ],
)
def test_wrong_parameters_raise(make, match):
    with pytest.raises((ValueError, TypeError), match=match):
        make()


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: StepLrUpdaterHook(step=[0]), "step"),
        (lambda: StepLrUpdaterHook(step=1, warmup="cubic", warmup_iters=1), "warmup"),
        (lambda: StepLrUpdaterHook(step=1, warmup="linear"), "warmup_iters"),
        (lambda: CyclicLrUpdaterHook(by_epoch=True), "by_epoch"),
        (lambda: OneCycleMomentumUpdaterHook(by_epoch=True), "by_epoch"),
    ],
)
def test_wrong_parameters_of_a_schedule_are_refused(make, parameter):
    with pytest.raises(ConfigError) as caught:
        make()
    assert caught.value.parameter == parameter


def test_a_custom_policy_passes_the_timing_by_position():
    class Half(LrUpdaterHook):
        def __init__(self, by_epoch=False, **kwargs):
            super().__init__(by_epoch, **kwargs)

    hook = Half(warmup="linear", warmup_iters=3, warmup_by_epoch=True)
    assert (hook.by_epoch, hook.warmup_iters, hook.warmup_epochs) == (False, None, 3)
    with pytest.raises(ConfigError):
        Half(warmup="linear")


def test_a_warm_up_of_the_momentum_begins_near_it():
    assert StepMomentumUpdaterHook(step=1).warmup_ratio == 0.9
    assert StepLrUpdaterHook(step=1).warmup_ratio == 0.1


def test_policies_take_the_positional_parameters_of_mmcv():
    assert CyclicLrUpdaterHook(False, (5, 0.1), 2).cyclic_times == 2
    assert CosineAnnealingLrUpdaterHook(0.01).target(0.5) == 0.01
    assert CosineRestartLrUpdaterHook([2, 3], [1, 0.5], None, 0.1).target(0.5) == 0.05
    assert StepLrUpdaterHook((2, 4), 0.5, 0.01).minimum() == 0.01


def test_a_schedule_by_epoch_needs_a_number_of_epochs_only_if_its_policy_does(tmp_path):
    runner = make_runner(tmp_path, IterBasedRunner, max_iters=4)
    assert StepLrUpdaterHook(step=[2], gamma=0.5).get_lr(runner, 1.0) == 1.0
    with pytest.raises(ConfigError) as caught:
        CosineAnnealingLrUpdaterHook(min_lr=0.0).get_lr(runner, 1.0)
    assert caught.value.parameter == "by_epoch"


def test_optimizers_are_built_from_configs():
    optimizer = build_optimizer(MMDataParallel(nn.Linear(2, 2)), {"type": "AdamW", "lr": 0.3})
    assert (type(optimizer), optimizer.param_groups[0]["lr"]) == (torch.optim.AdamW, 0.3)
    with pytest.raises(ValueError, match="'paramwise_cfg' is not covered"):
        build_optimizer(
            nn.Linear(2, 2), {"type": "SGD", "lr": 0.1, "paramwise_cfg": {"bias_lr_mult": 2}}
        )


# The other hooks. -----------------------------------------------------------------------------------------------------


def test_the_profiler_writes_a_trace_and_a_table(tmp_path, caplog):
    trace = tmp_path / "trace.json"
    hook = ProfilerHook(
        by_epoch=False,
        profile_iters=2,
        on_trace_ready={"type": "log_trace", "row_limit": 3},
        json_trace_path=str(trace),
    )
    with caplog.at_level(logging.INFO):
        run(make_runner(tmp_path), hook)
    assert "traceEvents" in json.loads(trace.read_text())
    assert "Self CPU" in caplog.text
    with pytest.raises(ValueError, match="should not be greater than 2"):
        run(make_runner(tmp_path), ProfilerHook(profile_iters=3))


def test_a_distributed_sampler_gets_the_epoch(tmp_path):
    sampler = DistributedSampler(Points(), num_replicas=2, rank=0)
    data = DataLoader(Points(), batch_size=4, sampler=sampler)
    runner = run(
        make_runner(tmp_path), custom_hooks_config=[{"type": "DistSamplerSeedHook"}], epochs_of=data
    )
    assert (sampler.epoch, runner.iter) == (1, 6)
    runner = make_runner(tmp_path, IterBasedRunner, max_iters=7)
    runner.register_optimizer_hook({})
    runner.run([data], [("train", 1)])
    assert sampler.epoch == 2


def test_hooks_for_several_processes_and_gpus_do_no_harm(tmp_path):
    run(
        make_runner(tmp_path),
        EmptyCacheHook(True, True, True),
        custom_hooks_config=[{"type": "SyncBuffersHook"}],
    )
    assert get_dist_info() == (0, 1)
    assert master_only(lambda: 3)() == 3
    with pytest.raises(ValueError, match="launcher 'slurm' is not covered.*install MMCV"):
        init_dist("slurm")


def test_validation_rows_come_from_the_workflow_too(tmp_path):
    runner = make_runner(tmp_path, max_epochs=2)
    runner.register_training_hooks(
        None, {}, log_config={"interval": 3, "hooks": [{"type": "TextLoggerHook"}]}
    )
    runner.run([loader(), loader(shuffle=False)], [("train", 1), ("val", 1)])
    (path,) = tmp_path.glob("*.log.json")
    rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert [(row["mode"], row["epoch"]) for row in rows] == [
        ("train", 1),
        ("train", 1),
        ("val", 1),
        ("train", 2),
        ("train", 2),
        ("val", 2),
    ]
    assert all(math.isfinite(row["loss"]) for row in rows)


@pytest.mark.parametrize(
    "config",
    [
        {"type": "DvcliveLoggerHook"},
        {"type": "MlflowLoggerHook", "exp_name": "points"},
        {"type": "WandbLoggerHook", "init_kwargs": {"project": "points", "mode": "offline"}},
    ],
    ids=lambda config: config["type"],
)
@pytest.mark.slow
def test_trackers_get_the_scalars(tmp_path, config, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    pytest.importorskip(config["type"].removesuffix("LoggerHook").lower())
    run(make_runner(tmp_path), log_config={"interval": 2, "hooks": [config]})
    if config["type"].startswith("Dvc"):
        assert (tmp_path / "dvclive" / "plots" / "metrics" / "train" / "loss.tsv").is_file()
    elif config["type"].startswith("Wandb"):
        assert list((tmp_path / "wandb").glob("offline-run-*/run-*.wandb"))
    else:
        from mlflow import MlflowClient

        client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
        (experiment,) = [each for each in client.search_experiments() if each.name == "points"]
        (tracked,) = client.search_runs([experiment.experiment_id])
        assert "train/loss" in tracked.data.metrics


# Helpers. -------------------------------------------------------------------------------------------------------------


def test_a_log_buffer_averages_by_samples():
    buffer = LogBuffer()
    buffer.update({"loss": 1.0}, 1)
    buffer.update({"loss": torch.tensor(4.0)}, 2)
    assert not buffer.ready
    buffer.average()
    assert (buffer.output["loss"], buffer.ready) == (3.0, True)
    buffer.average(1)
    assert buffer.output["loss"] == 4.0
    for _ in range(30_000):
        buffer.update({"loss": 0.0})
    assert len(buffer.val_history["loss"]) <= 20_000
    buffer.clear()
    assert (buffer.output, buffer.val_history, buffer.ready) == ({}, {}, False)


def test_a_registry_builds_from_names_and_classes():
    parent = Registry("thing")
    child = Registry("thing", parent=parent)

    @parent.register_module()
    class One:
        def __init__(self, a=1):
            self.a = a

    @child.register_module(name=["Two", "Zwei"])
    class Two(One):
        pass

    assert child.build({"type": "One", "a": 3}).a == 3
    assert build_from_cfg({"type": Two}, child, {"a": 5}).a == 5
    assert child.get("Zwei") is Two
    assert ("One" in child, len(child), child.get("Three")) == (True, 2, None)
    with pytest.raises(KeyError, match="Two is already registered"):
        child.register_module(module=Two)
    child.register_module(module=Two, force=True)
    with pytest.raises(KeyError, match="Twoo is not in the thing registry; did you mean 'Two'"):
        child.build({"type": "Twoo"})
    with pytest.raises(KeyError, match='must contain the key "type"'):
        child.build({})
    with pytest.raises(TypeError, match="unknown parameter 'b'"):
        child.build({"type": "One", "b": 1})


def test_wrapped_models_train_and_are_saved_without_their_wrapper(tmp_path):
    model = MMDataParallel(Classifier(), device_ids=[0])
    assert is_module_wrapper(model)
    runner = make_runner(tmp_path, model=model)
    runner.register_training_hooks(
        {"policy": "fixed"}, {}, {"interval": 1}, custom_hooks_config=[{"type": "EMAHook"}]
    )
    runner.run([loader()], [("train", 1)])
    state = torch.load(tmp_path / "epoch_1.pth", weights_only=True)["state_dict"]
    assert "net.0.weight" in state
    resumed = make_runner(tmp_path / "again", model=MMDataParallel(Classifier()))
    resumed.register_training_hooks(
        {"policy": "fixed"}, {}, custom_hooks_config=[{"type": "EMAHook"}]
    )
    resumed.resume(str(tmp_path / "epoch_1.pth"))
    resumed.run([loader()], [("train", 1)])
    assert_same(weights(runner), weights(resumed))
    with pytest.raises(ValueError, match="MMDataParallel is for one device"):
        MMDataParallel(Classifier(), device_ids=[0, 1])


def test_ddp_follows_the_training_step(tmp_path):
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    try:
        calls = []
        model = MMDistributedDataParallel(Classifier())
        model.register_forward_pre_hook(lambda *_: calls.append(1))
        runner = make_runner(tmp_path, model=model)
        runner.register_training_hooks({"policy": "fixed"}, {}, {"interval": 1})
        runner.run([loader(), loader()], [("train", 1), ("val", 1)])
        assert len(calls) == 12
        assert (
            "net.0.weight" in torch.load(tmp_path / "epoch_2.pth", weights_only=True)["state_dict"]
        )
    finally:
        torch.distributed.destroy_process_group()


def test_small_helpers(tmp_path, capsys, caplog):
    assert is_list_of([1, 2], int)
    assert not is_tuple_of((1, "a"), int)
    mkdir_or_exist(tmp_path / "a" / "b")
    (tmp_path / "a" / "b" / "x.LOG").write_text("")
    assert list(scandir(tmp_path, ".log", recursive=True, case_sensitive=False)) == ["a/b/x.LOG"]
    logger = get_logger(
        "of.this.test", str(tmp_path / "run.log")
    )  # not one below `mmcv`, which another test may have made
    print_log("one", logger)
    print_log("two", "of.this.test")
    print_log("three")
    print_log("four", "silent")
    assert "three" in capsys.readouterr().out
    assert [
        line.rsplit(" - ", 1)[1] for line in (tmp_path / "run.log").read_text().splitlines()
    ] == ["one", "two"]
    assert get_priority("VERY_LOW") == 90
    set_random_seed(3)
    first = torch.rand(1)
    set_random_seed(3, deterministic=False)
    assert torch.equal(first, torch.rand(1))
    assert isinstance(Hook(), Hook)
