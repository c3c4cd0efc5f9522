"""Every Python block of MMCV's document on hooks runs, with only the package in its import lines replaced."""

from __future__ import annotations

import copy
import json
import logging
import math
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from hookline.compat.mmcv.runner import (
    BaseRunner,
    Fp16OptimizerHook,
    Hook,
    IterLoader,
    OptimizerHook,
    auto_fp16,
    force_fp32,
    master_only,
)
from tests.compat.document_blocks import execute, fill, read_blocks
from tests.compat.mmcv_parts import Classifier, Points, assert_same, loader, make_runner, weights
from tests.waiting import LIMIT_S

BLOCKS = read_blocks("mmcv")
CASES: dict[str, Any] = {}


def case(*names):
    """Say which blocks a function runs: it is given the block's text and a folder."""

    def register(function):
        CASES.update(dict.fromkeys(names, function))
        return function

    return register


@pytest.mark.parametrize("name", BLOCKS)
def test_the_block_under_the_heading_runs(name, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    CASES[name](BLOCKS[name], SimpleNamespace(path=tmp_path, log=caplog, name=name))


def run_block(text: str, at: Any, holes: dict[str, str] | None = None, **names: Any) -> Any:
    """Execute a block whose `EpochBasedRunner(...)` is filled in with a small model's parts."""
    runner = make_runner(
        at.path / "work", max_epochs=names.pop("max_epochs", 2), model=names.pop("model", None)
    )
    text = fill(text, {"EpochBasedRunner(...)": "runner_of_the_test", **(holes or {})})
    return execute(text, "mmcv", {"runner_of_the_test": runner, **names})


def train(runner: Any) -> Any:
    """Run to the end, with an optimizer hook if the block has registered none."""
    if not any(isinstance(hook, OptimizerHook) for hook in runner.hooks):
        runner.register_optimizer_hook({})
    runner.run([loader()], [("train", 1)])
    return runner


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.pth")}


# What a hook is. ------------------------------------------------------------------------------------------------------


@case("钩子是什么 / 钩子介绍")
def the_loops_of_both_runners(text, at):
    forwards = iter([
        "self.run_iter(data_batch, train_mode=True)", "self.run_iter(data_batch, train_mode=False)",
        "self.run_iter(next(iter_loaders[0]), train_mode=True)", "self.run_iter(next(iter_loaders[1]), train_mode=False)",
    ])  # fmt: skip
    names = execute(
        re.sub("# model forward", lambda _: next(forwards), text),
        "mmcv",
        {"BaseRunner": BaseRunner, "IterLoader": IterLoader},
    )
    assert next(forwards, None) is None
    calls: list[str] = []

    class Count(Hook):
        """The counters, which the block leaves out, and all ten sites."""

        def after_train_iter(self, runner):
            calls.append("after_train_iter")

        def after_val_iter(self, runner):
            runner._iter += 1

        def after_val_epoch(self, runner):
            runner._epoch += 1

    for site in (
        "before_run",
        "after_run",
        "before_train_epoch",
        "after_train_epoch",
        "before_epoch",
        "after_epoch",
    ):
        setattr(Count, site, lambda self, runner, site=site: calls.append(site))
    epochs = make_runner(at.path, names.EpochBasedRunner, max_epochs=2)
    epochs.train_dataloader, epochs.val_dataloader = loader(), loader(shuffle=False)
    for runner in (epochs, make_runner(at.path, names.IterbasedRunner, max_iters=3)):
        runner.register_optimizer_hook({})
        runner.register_hook(Count())
        runner.run([loader(), loader()], [("train", 1), ("val", 1)])
        calls.append("|")
    one_epoch = [
        "before_train_epoch",
        *["after_train_iter"] * 6,
        "after_train_epoch",
        "before_epoch",
    ]  # that of validation
    assert calls[: calls.index("|")] == ["before_run", *one_epoch * 2, "after_run"]
    assert calls[calls.index("|") + 1 :] == [
        "before_run",
        "before_epoch",
        *["after_train_iter"] * 3,
        "after_epoch",
        "after_run",
        "|",
    ]


@case("钩子是什么 / 钩子介绍 (2)")
def a_hook_by_its_methods(text, at):
    text = re.sub(
        r"(?m)^(        #.*)\n(?=\n|\Z)", r"\1\n        done.append(1)\n", text
    )  # bodies of comments only
    done: list[int] = []
    hook = execute(
        text, "mmcv", {"Hook": Hook, "master_only": master_only, "done": done}
    ).CheckpointHook(interval=1)
    assert hook.get_triggered_stages() == ["before_run", "after_train_iter", "after_train_epoch"]
    runner = make_runner(at.path)
    runner.register_hook(hook)
    train(runner)
    assert len(done) == 1 + 1 + 12 + 2  # constructor, before_run, iterations, epochs
    hook._save_checkpoint(runner)
    assert len(done) == 17


# EvalHook. ------------------------------------------------------------------------------------------------------------


class Judged(Points):
    def __init__(self):
        super().__init__()
        self.scores: list[float] = []

    def evaluate(self, results, logger=None):
        self.scores.append(super().evaluate(results)["acc"])
        return {"acc": self.scores[-1]}


def evaluated(text, at, max_epochs, resume=None):
    names = run_block(
        text,
        at,
        {"val_dataloader = ...": "val_dataloader = given"},
        given=val_loader(),
        max_epochs=max_epochs,
    )
    if resume:
        names.runner.resume(resume)
    train(names.runner)
    return names.runner, names.val_dataloader.dataset.scores


def val_loader():
    return torch.utils.data.DataLoader(Judged(), batch_size=4)


@case("EvalHook / 最简用法", "EvalHook / 间隔 5 个 epoch 验证一次")
def evaluation_at_intervals(text, at):
    runner, scores = evaluated(text, at, max_epochs=10)
    assert len(scores) == (2 if "interval=5" in text else 10)
    assert runner.metrics == {"acc": scores[-1]}
    assert scores[-1] > 0.7


@case("EvalHook / 恢复训练时先验证再训练")
def evaluation_before_a_resumed_run_goes_on(text, at):
    first = make_runner(at.path / "first", max_epochs=5)
    first.register_checkpoint_hook({"interval": 5})
    train(first)
    _, scores = evaluated(text, at, 7, resume=str(at.path / "first" / "epoch_5.pth"))
    assert len(scores) == 3  # before epoch 6, after it, and after epoch 7
    assert "Evaluated before training" in at.log.text
    _, scores = evaluated(text, SimpleNamespace(path=at.path / "new"), 7)
    assert len(scores) == 3  # a run from the beginning: after epochs 5, 6 and 7


@case("EvalHook / 保存最优的模型")
def the_best_model(text, at):
    for key in ("acc", "auto"):
        there = SimpleNamespace(path=at.path / key)
        runner, scores = evaluated(text.replace("save_best='acc'", f"save_best={key!r}"), there, 6)
        best = scores.index(max(scores)) + 1
        assert files(there.path) == {f"best_acc_epoch_{best}.pth"}
        assert runner.meta["hook_msgs"]["best_score"] == max(scores)
        content = torch.load(runner.meta["hook_msgs"]["best_ckpt"], weights_only=True)
        assert content["meta"]["epoch"] == best


# CheckPointHook. ------------------------------------------------------------------------------------------------------


@case("CheckPointHook / 最简用法", "CheckPointHook / 同步 buffer")
def checkpoints_every_five_epochs(text, at):
    names = run_block(text, at, max_epochs=12)
    train(names.runner)
    assert files(at.path / "work") == {"epoch_5.pth", "epoch_10.pth", "epoch_12.pth", "latest.pth"}
    assert names.runner.hooks[-1].sync_buffer is ("sync_buffer" in text)


@case("CheckPointHook / 保存最新的 n 个 权重")
def the_newest_checkpoints(text, at):
    train(run_block(text, at, max_epochs=35).runner)
    assert files(at.path / "work") == {
        *(f"epoch_{number}.pth" for number in (15, 20, 25, 30, 35)),
        "latest.pth",
    }


@case("CheckPointHook / 将权重保存至指定的路径")
def checkpoints_elsewhere(text, at):
    train(
        run_block(
            text,
            at,
            {"'out_dir': '/path/of/expected_directory'": f"'out_dir': {str(at.path / 'there')!r}"},
            max_epochs=5,
        ).runner
    )
    assert files(at.path / "there" / "work") == {"epoch_5.pth", "latest.pth"}
    assert files(at.path / "work") == set()


# OptimizerHook. -------------------------------------------------------------------------------------------------------


@case("OptimizerHook / 最简用法", "OptimizerHook / 梯度截断")
def plain_and_clipped_steps(text, at):
    norms = []

    class Norm(Hook):
        def after_backward(self, runner):
            norms.append(
                math.sqrt(sum(float(p.grad.norm()) ** 2 for p in runner.model.parameters()))
            )

    runner = run_block(text, at).runner
    runner.register_hook(Norm())
    before = weights(runner)
    train(runner)
    assert not torch.equal(before["net.0.weight"], runner.model.net[0].weight)
    logged = runner.log_buffer.val_history.get("grad_norm", [])
    assert logged == (pytest.approx(norms, rel=1e-4) if "max_norm" in text else [])
    hook = next(hook for hook in runner.hooks if isinstance(hook, OptimizerHook))
    runner.model.net[0].weight.grad.fill_(1e6)
    assert hook.grad_clip is None or hook.clip_grads(runner.model.parameters()) > 35


@case("OptimizerHook / 检测异常的模型参数")
def parameters_outside_of_the_graph(text, at):
    model = Classifier()
    model.unused = nn.Linear(2, 2)
    train(run_block(text, at, model=model).runner)
    assert "unused.weight is not in the computational graph" in at.log.text
    assert "net.0.weight is not" not in at.log.text


@case("OptimizerHook / 梯度累积")
def accumulated_gradients(text, at):
    runner = train(run_block(text, at).runner)
    assert (runner.iter, runner.optimizer_steps) == (12, 3)
    model = Classifier().eval()  # without dropout four batches are one
    whole = copy.deepcopy(model.net)
    first = list(loader(shuffle=False))[:4]
    small = make_runner(at.path / "small", model=model, max_iters=None, max_epochs=1)
    small.register_optimizer_hook(execute(text.split("runner =")[0], "mmcv").optimizer_config)
    small.model.train = lambda mode=True: small.model  # it stays in evaluation mode
    small.run([first], [("train", 1)])
    batch = {key: torch.cat([each[key] for each in first]) for key in first[0]}
    optimizer = torch.optim.SGD(whole.parameters(), lr=0.1, momentum=0.9)
    nn.functional.cross_entropy(whole(batch["x"]), batch["y"]).backward()
    optimizer.step()
    assert torch.allclose(whole[0].weight, small.model.net[0].weight, atol=1e-6)


@case("OptimizerHook / 混合精度训练")
def mixed_precision(text, at):
    class Config(dict):
        __getattr__ = dict.__getitem__

    class Half(Classifier):
        @auto_fp16(apply_to=("x",))
        def forward(self, x, y=None, return_loss=True):
            seen.append((x.dtype, self.net(x).dtype))
            return super().forward(x, y, return_loss)

    seen: list[Any] = []
    model = Half()
    runner = make_runner(at.path, model=model)
    cfg = Config(
        lr_config={"policy": "step", "step": [1]},
        optimizer_config={"grad_clip": {"max_norm": 5}},
        checkpoint_config={"interval": 1},
        log_config={"interval": 2, "hooks": [{"type": "TextLoggerHook"}]},
        momentum_config={"policy": "cyclic"},
    )
    given = {
        "cfg": cfg,
        "fp16_cfg": {"loss_scale": 512.0},
        "distributed": False,
        "model": model,
        "runner": runner,
        "nn": nn,
    }
    names = execute(
        text,
        "mmcv",
        {
            **given,
            "auto_fp16": auto_fp16,
            "force_fp32": force_fp32,
            "Fp16OptimizerHook": Fp16OptimizerHook,
        },
    )
    assert names.ExampleModule()._forward(1, 2) is None
    assert model.fp16_enabled is True
    runner.run([loader()], [("train", 1)])
    assert set(seen) == {(torch.float16, torch.float16)}
    assert all(parameter.dtype is torch.float32 for parameter in model.parameters())
    assert runner.meta["fp16"]["loss_scaler"]["scale"] == 512.0
    assert runner.optimizer_steps == 12


# EMAHook. -------------------------------------------------------------------------------------------------------------


@case("EMAHook / 最简用法", "EMAHook / 设置更新 ema 参数的间隔数")
def averages(text, at):
    interval = 4 if "interval=4" in text else 1
    expected: dict[str, torch.Tensor] = {}

    class ByHand(Hook):
        def before_run(self, runner):
            expected["weight"] = runner.model.net[0].weight.detach().clone()

        def after_train_iter(self, runner):
            if runner.iter % interval == 0:
                momentum = min(0.0002**interval, (1 + runner.iter) / (100 + runner.iter))
                expected["weight"] = (1 - momentum) * expected[
                    "weight"
                ] + momentum * runner.model.net[0].weight.detach()

    runner = run_block(text, at).runner
    assert int(runner.hooks[0].priority) == 50
    runner.register_hook(ByHand(), "LOW")
    train(runner)
    assert torch.allclose(
        runner.model.net[0].weight, expected["weight"], atol=1e-6
    )  # the epoch is over: the model holds it
    assert not torch.allclose(runner.model.ema_net_0_weight, expected["weight"], atol=1e-4)


@case("EMAHook / 恢复训练")
def averages_are_resumed(text, at):
    whole = make_runner(at.path / "whole")
    for config in ({"type": "EMAHook"}, {"type": "CheckpointHook", "interval": 1}):
        whole.register_hook(config)
    train(whole)
    resumed = run_block(
        text, at, {"/path/of/your/checkpoint.pth": str(at.path / "whole" / "epoch_1.pth")}
    ).runner
    train(resumed)
    assert (resumed.epoch, resumed.iter) == (2, 12)
    assert_same(weights(whole), weights(resumed))


# LrUpdaterHook. -------------------------------------------------------------------------------------------------------


@case("LrUpdaterHook / 等间隔调整学习率", "LrUpdaterHook / 余弦退火调整学习率")
def learning_rates(text, at):
    rates = []

    class Rate(Hook):
        def after_train_epoch(self, runner):
            rates.append(runner.current_lr()[0])

    runner = run_block(text, at, max_epochs=21).runner
    runner.register_hook(Rate())
    train(runner)
    if "step" in text:
        assert rates == pytest.approx([0.1] * 16 + [0.01] * 3 + [0.001] * 2)
    else:
        assert rates == pytest.approx(
            [0.01 + 0.5 * 0.09 * (math.cos(math.pi * epoch / 21) + 1) for epoch in range(21)]
        )


# LoggerHook. ----------------------------------------------------------------------------------------------------------


def long_loader():
    return torch.utils.data.DataLoader(Points(200), batch_size=1)


def json_rows(folder):
    (path,) = folder.glob("*.log.json")
    return [json.loads(line) for line in path.read_text().splitlines()]


@case("LoggerHook / 输出到文件")
def lines_every_hundred_iterations(text, at):
    runner = run_block(text, at, max_epochs=1).runner
    runner.register_training_hooks({"policy": "fixed"}, {})
    runner.run([long_loader()], [("train", 1)])
    rows = json_rows(at.path / "work")
    assert rows[0] == {}  # the runner's meta
    assert [(row["mode"], row["epoch"], row["iter"], row["lr"]) for row in rows[1:]] == [
        ("train", 1, 100, 0.1),
        ("train", 1, 200, 0.1),
    ]
    assert rows[1]["loss"] != rows[2]["loss"]
    assert re.search(
        r"Epoch \[1\]\[100/200\]\tlr: 1\.000e-01, eta: \d:\d\d:\d\d, time: \d\.\d{3}, data_time: \d\.\d{3}, loss: \d+\.\d{4}",
        at.log.text,
    )


@case("LoggerHook / 输出到文件 (2)")
def logs_are_copied(text, at):
    target = at.path / "there"
    runner = run_block(text, at, {"/path/of/expected_directory": str(target)}).runner
    (at.path / "work" / "mine.log").write_text("said")
    (at.path / "work" / "notes.txt").write_text("not a log")
    train(runner)
    copies = {path.name for path in (target / "work").iterdir()}
    assert copies == {"mine.log", f"{runner.timestamp}.log.json"}


@case("LoggerHook / 输出到 TensorBoard")
def scalars_in_tensorboard(text, at):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    runner = make_runner(at.path / "work", max_epochs=1)
    runner.register_training_hooks(
        {"policy": "fixed"}, {}, log_config=execute(text, "mmcv").log_config
    )
    runner.run([long_loader()], [("train", 1)])
    board = EventAccumulator(
        str(at.path / "work" / "tf_logs"), size_guidance={"scalars": 0}
    ).Reload()
    assert [event.step for event in board.Scalars("train/loss")] == [100, 200]
    assert any(tag.endswith("learning_rate") for tag in board.Tags()["scalars"])


@case("LoggerHook / 上传至 Neptune")
def scalars_in_neptune(text, at):
    config = execute(text, "mmcv").log_config
    runner = make_runner(at.path / "work", max_epochs=1)
    runner.register_training_hooks({"policy": "fixed"}, {}, log_config=config)
    hook = runner.hooks[-1]
    assert (type(hook).__name__, hook.init_kwargs) == (
        "NeptuneLoggerHook",
        {"project": "<YOUR_WORKSPACE/YOUR_PROJECT>"},
    )
    if not installed("neptune"):
        with pytest.raises(Exception, match=r"pip install 'hookline\[neptune\]'"):
            runner.run([loader()], [("train", 1)])
        return
    runner.run([long_loader()], [("train", 1)])
    (records,) = (at.path / "work" / "neptune").rglob("data-1.log")
    assert '"train", "loss"' in records.read_text()


EXAMPLE = """\
import logging, sys, torch
sys.path.insert(0, {root!r})
from hookline.compat.mmcv.runner import EpochBasedRunner
from tests.compat.mmcv_parts import Classifier, loader

{log_config}
if __name__ == "__main__":
    model = Classifier()
    runner = EpochBasedRunner(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), work_dir="work_dirs",
                              logger=logging.getLogger("example"), max_epochs=2)
    runner.register_training_hooks(lr_config=dict(policy="step", step=[1]), optimizer_config=dict(grad_clip=None),
                                   checkpoint_config=dict(interval=1), log_config=log_config)
    runner.run([loader()], [("train", 1)])
"""


@case("LoggerHook / 上传至 Neptune (2)")
def the_command_that_trains(text, at):
    """It is a command line, which the document shows twice, for TensorBoard and for Neptune."""
    log_config = BLOCKS[
        "LoggerHook / 上传至 Neptune" if installed("neptune") else "LoggerHook / 输出到 TensorBoard"
    ]
    (at.path / "examples").mkdir()
    (at.path / "examples" / "train.py").write_text(
        EXAMPLE.format(root=str(Path(__file__).parents[2]), log_config=log_config)
    )
    program, script = text.split()
    assert program == "python"
    subprocess.run([sys.executable, script], cwd=at.path, check=True, timeout=LIMIT_S)
    assert files(at.path / "work_dirs") == {"epoch_1.pth", "epoch_2.pth", "latest.pth"}


# A custom hook. -------------------------------------------------------------------------------------------------


@case("钩子 / 实现自己的钩子")
def a_custom_hook(text, at):
    from hookline.compat.mmcv.runner.hooks import HOOKS

    names = execute(text, "mmcv")
    try:
        runner = make_runner(at.path / "good")
        runner.register_hook({"type": "CheckInvalidLossHook", "interval": 1})
        assert type(runner.hooks[0]) is names.CheckInvalidLossHook
        train(runner)

        class Bad(Classifier):
            def train_step(self, data, optimizer):
                return {
                    "loss": super().train_step(data, optimizer)["loss"] * math.inf,
                    "num_samples": 4,
                }

        runner = make_runner(at.path / "bad", model=Bad())
        runner.register_hook({"type": "CheckInvalidLossHook", "interval": 3})
        with pytest.raises(AssertionError):
            train(runner)
        assert runner.iter == 2
        assert "loss become infinite or NaN!" in at.log.text
    finally:
        del HOOKS.module_dict["CheckInvalidLossHook"]


def installed(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None


def test_not_even_the_import_line_need_change(tmp_path):
    from hookline.compat import install, uninstall
    from hookline.compat.mmcv.runner.hooks import HOOKS

    already = "mmcv" in sys.modules
    install("mmcv")
    try:
        names: dict[str, Any] = {}
        exec(BLOCKS["钩子 / 实现自己的钩子"], names)  # noqa: S102
        runner = make_runner(tmp_path)
        runner.register_custom_hooks(
            {"type": "CheckInvalidLossHook", "interval": 1, "priority": "LOW"}
        )
        train(runner)
        assert type(runner.hooks[-1]) is names["CheckInvalidLossHook"]
    finally:
        HOOKS.module_dict.pop("CheckInvalidLossHook", None)
        if not already:
            uninstall("mmcv")
