"""Every Python block of MMEngine's document on hooks runs, with only the package in its import lines replaced."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from hookline.compat.mmengine import hooks as ours
from hookline.compat.mmengine.hooks import Hook
from hookline.compat.mmengine.registry import HOOKS
from hookline.compat.mmengine.runner import Priority, Runner, get_priority
from tests.compat.document_blocks import execute, fill, read_blocks
from tests.compat.mmengine_parts import Net, data, loader, make_runner, parts

BLOCKS = read_blocks("mmengine")
TEXT = (Path(__file__).parent / "blocks" / "mmengine.txt").read_text(encoding="utf-8")
EXAMPLES = "钩子（HOOK）示例 / "
DESIGN = "MMEngine 中的钩子 / "
BUILT_IN = "MMEngine 中的内置 Hook / "
OWN = "钩子（HOOK） / 自定义钩子"
TYPES = {name: getattr(typing, name) for name in ("Optional", "Dict", "List", "Union")}
CHECKS: dict[str, Callable[..., None]] = {}


def block(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def register(check: Callable[..., None]) -> Callable[..., None]:
        CHECKS[name] = check
        return check

    return register


@pytest.mark.parametrize("name", BLOCKS)
def test_the_block_runs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    CHECKS[name](tmp_path, capsys)


def test_every_block_of_the_document_is_run() -> None:
    assert list(CHECKS) == list(BLOCKS)


def run(name: str, holes: dict[str, str] | None = None, **names: Any) -> Any:
    return execute(fill(BLOCKS[name], holes or {}), "mmengine", names)


def shell_output(number: int) -> list[str]:
    return TEXT.split("```shell\n")[number].split("\n```")[0].splitlines()


def saved(directory: Path) -> set[str]:
    return {path.name for path in directory.glob("*.pth")}


@block(EXAMPLES + "钩子示例一")
def _(tmp_path: Path, capsys: Any) -> None:
    run(EXAMPLES + "钩子示例一")
    assert capsys.readouterr().out == BLOCKS[EXAMPLES + "钩子示例一 (2)"]


@block(EXAMPLES + "钩子示例一 (2)")  # not a program: what the one before it prints
def _(tmp_path: Path, capsys: Any) -> None:
    assert BLOCKS[EXAMPLES + "钩子示例一 (2)"] == "hello\ndo something here\ngoodbye\n"


@block(EXAMPLES + "钩子示例二")
def _(tmp_path: Path, capsys: Any) -> None:
    run(EXAMPLES + "钩子示例二").WorkingHOOK().after_dinner(None)
    assert capsys.readouterr().out == "after_dinner:晚饭之后工作60分钟\n"


@block(EXAMPLES + "钩子示例二 (2)")
def _(tmp_path: Path, capsys: Any) -> None:
    run(EXAMPLES + "钩子示例二 (2)").Runner().run()
    assert capsys.readouterr().out == "开始启动我的一天\n---睡觉---\n"


@block(EXAMPLES + "钩子示例二 (3)")
def _(tmp_path: Path, capsys: Any) -> None:
    """The timetable: its output is the document's, but for the line whose text the document's own code has otherwise."""
    whole = "".join(BLOCKS[EXAMPLES + f"钩子示例二{number}"] for number in ("", " (2)", " (3)"))
    execute(whole, "mmengine", {"__name__": "__main__"})
    printed, expected = capsys.readouterr().out.splitlines(), shell_output(1)
    assert expected[-2] == "after_finish_work: 去睡觉了！！！"
    assert printed == [*expected[:-2], "after_finish_work: 洗漱上床睡觉！！！", expected[-1]]


@block(EXAMPLES + "Hooks in PyTorch")
def _(tmp_path: Path, capsys: Any) -> None:
    run(
        EXAMPLES + "Hooks in PyTorch", {"{module.name}": "{module}"}
    )  # a Linear has no name, and the output shows the module
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == shell_output(2)[0]
    assert [line.split(":")[0] for line in lines[1:]] == ["weight", "bias", "input", "output"]


@block(DESIGN + "钩子的设计")
def _(tmp_path: Path, capsys: Any) -> None:
    transforms: Any = types.ModuleType("torchvision.transforms")
    transforms.ToTensor = lambda: torch.as_tensor
    package: Any = types.ModuleType("torchvision")
    package.transforms = transforms
    holes = {
        "class CustomDataset(Dataset):\n    pass": "CustomDataset = dataset_class",
        "class Net(nn.Module):\n    pass": "Net = lambda: nn.Linear(4, 3)",
        "(transform=transform, ...)": "(transform=transform)",
        "_dataset, ...)": "_dataset, batch_size=8)",
    }
    with pytest.MonkeyPatch.context() as patch:  # the product does without torchvision
        patch.setitem(sys.modules, "torchvision", package)
        patch.setitem(sys.modules, "torchvision.transforms", transforms)
        run(DESIGN + "钩子的设计", holes, dataset_class=Points, max_epochs=2).main()


class Points(torch.utils.data.Dataset[Any]):
    """A data set that takes a transform, as the document's does."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> Any:
        return self.transform([float(index % 3 == each) for each in range(4)]), index % 3


@block(DESIGN + "钩子的设计 (2)")
def _(tmp_path: Path, capsys: Any) -> None:
    batches = torch.utils.data.DataLoader(Points(torch.as_tensor), batch_size=8)
    net, calls = nn.Linear(4, 3), list[str]()
    names = {f"{mode}_dataloader": batches for mode in ("train", "val", "test")}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    module = run(
        DESIGN + "钩子的设计 (2)",
        {"    ...\n    call_hooks('before_run'": "    call_hooks('before_run'"},
        **{
            **names,
            "max_epochs": 1,
            "net": net,
            "criterion": nn.CrossEntropyLoss(),
            "optimizer": optimizer,
            "torch": torch,
            "hooks": [],
        },
        call_hooks=lambda site, hooks: calls.append(site),
    )
    module.main()
    assert set(calls) <= set(Hook.stages)
    assert calls[:5] == [
        "before_run",
        "after_load_checkpoint",
        "before_train",
        "before_train_epoch",
        "before_train_iter",
    ]
    assert calls[-1] == "after_run"


@block(DESIGN + "Hook 基类")
def _(tmp_path: Path, capsys: Any) -> None:
    text = BLOCKS[DESIGN + "Hook 基类"].replace(
        "     def ", "    def "
    )  # the document's indentation is no Python
    text = "\n".join(
        "        pass" if line.strip() == "pass" else line.rstrip() for line in text.splitlines()
    )
    documented = execute(text, "mmengine").Hook
    stages = {name for name in vars(documented) if name in Hook.stages}
    assert len(stages) == 21
    assert set(Hook.stages) - stages == {"before_test_iter"}
    renamed = {
        name: f"_{name}" for name in ("before_epoch", "after_epoch", "before_iter", "after_iter")
    }  # since the document was written
    assert all(
        callable(getattr(Hook, renamed.get(name, name)))
        for name in vars(documented)
        if not name.startswith("__")
    )
    runner = SimpleNamespace(epoch=3, iter=9, max_epochs=4, max_iters=10)
    theirs, mine = documented(), Hook()
    for n in (-1, 0, 2, 3, 5):
        assert theirs.every_n_epochs(runner, n) == mine.every_n_epochs(runner, n)
        assert theirs.every_n_train_iters(runner, n, 1) == mine.every_n_train_iters(runner, n, 1)
        assert theirs.every_n_iters(runner, n) == mine.every_n_iters(runner, n)
    assert theirs.is_last_train_epoch(runner)
    assert mine.is_last_train_epoch(runner)
    assert theirs.is_last_train_iter(runner)
    assert mine.is_last_train_iter(runner)


def bare_runner(tmp_path: Path) -> Runner:
    names = ("runtime_info", "timer", "sampler_seed", "logger", "param_scheduler", "checkpoint")
    return make_runner(tmp_path, default_hooks=dict.fromkeys(names))


@block(DESIGN + "Hook 注册")
def _(tmp_path: Path, capsys: Any) -> None:
    runner = bare_runner(tmp_path)
    assert runner.hooks == []
    run(DESIGN + "Hook 注册", self=runner, default_hooks=None, custom_hooks=[{"type": "EMAHook"}])
    names = [type(hook).__name__ for hook in runner.hooks]
    expected = [
        "RuntimeInfoHook",
        "IterTimerHook",
        "DistSamplerSeedHook",
        "EMAHook",
        "LoggerHook",
        "ParamSchedulerHook",
        "CheckpointHook",
    ]
    assert names == expected


@block(DESIGN + "Hook 注册 (2)")
def _(tmp_path: Path, capsys: Any) -> None:
    holes = {
        "self.register_custom_hooks(custom_hooks\n": "self.register_custom_hooks(custom_hooks)\n"
    }  # a bracket is missing
    module = run(DESIGN + "Hook 注册 (2)", holes, Hook=Hook, **TYPES)
    runner = bare_runner(tmp_path)
    module.register_hooks(runner, {"logger": None}, [{"type": "EmptyCacheHook"}])
    assert "LoggerHook" not in runner.get_hooks_info()
    assert "EmptyCacheHook" in runner.get_hooks_info()


@block(DESIGN + "Hook 注册 (3)")
def _(tmp_path: Path, capsys: Any) -> None:
    module = run(
        DESIGN + "Hook 注册 (3)",
        Hook=Hook,
        HOOKS=HOOKS,
        Priority=Priority,
        get_priority=get_priority,
        **TYPES,
    )
    runner, documented = bare_runner(tmp_path), SimpleNamespace(_hooks=[])
    given = [
        ("LoggerHook", None),
        ("EMAHook", "LOWEST"),
        ("IterTimerHook", 10),
        ("RuntimeInfoHook", None),
        ("EmptyCacheHook", None),
    ]
    for kind, priority in given:
        module.register_hook(documented, {"type": kind}, priority)
        runner.register_hook({"type": kind}, priority)
    assert [type(hook) for hook in documented._hooks] == [type(hook) for hook in runner.hooks]


@block(DESIGN + "HOOK函数调用")
def _(tmp_path: Path, capsys: Any) -> None:
    calls: list[Any] = []

    class Watcher(Hook):
        def _after_iter(
            self,
            runner: Any,
            batch_idx: int,
            data_batch: Any = None,
            outputs: Any = None,
            mode: str = "train",
        ) -> None:
            calls.append((batch_idx, outputs, mode))

    runner = bare_runner(tmp_path)
    runner.register_hook(Watcher())
    run(DESIGN + "HOOK函数调用").call_hook(runner, "after_val_iter", batch_idx=3, outputs=[1])
    runner.call_hook("after_val_iter", batch_idx=3, outputs=[1])
    assert calls == [(3, [1], "val")] * 2


@block(DESIGN + "HOOK函数调用 (2)")
def _(tmp_path: Path, capsys: Any) -> None:
    steps: list[str] = []
    scheduler = SimpleNamespace(by_epoch=True, step=lambda: steps.append("step"))
    documented = run(DESIGN + "HOOK函数调用 (2)").after_train_epoch
    assert documented(ours.ParamSchedulerHook(), SimpleNamespace(param_schedulers=None)) is None
    documented(ours.ParamSchedulerHook(), SimpleNamespace(param_schedulers=[scheduler]))
    assert steps == []  # as it is indented there, what calls `step` is inside of it
    ours.ParamSchedulerHook().after_train_epoch(SimpleNamespace(param_schedulers=[scheduler]))
    assert steps == ["step"]


@block(DESIGN + "HOOK函数调用 (3)")
def _(tmp_path: Path, capsys: Any) -> None:
    module = run(
        DESIGN + "HOOK函数调用 (3)",
        {"self._save_checkpoint(runner\n": "self._save_checkpoint(runner)\n"},
    )  # a bracket is missing
    hook = type(
        "Documented", (ours.CheckpointHook,), {"after_train_epoch": module.after_train_epoch}
    )(interval=1)
    make_runner(tmp_path, default_hooks={"checkpoint": hook}).train()
    assert saved(tmp_path) == {"epoch_1.pth", "epoch_2.pth"}


def train(
    tmp_path: Path, epochs: int, name: str, holes: dict[str, str] | None = None, **changes: Any
) -> set[str]:
    """The files that a run with a block's `default_hooks` or `custom_hooks` leaves."""
    module = run(name, holes)
    given = {
        key: getattr(module, key)
        for key in ("default_hooks", "custom_hooks")
        if hasattr(module, key)
    }
    make_runner(tmp_path / "run", epochs, **given, **changes).train()
    return saved(tmp_path / "run")


@block("钩子（HOOK） / MMEngine 中的内置 Hook")
def _(tmp_path: Path, capsys: Any) -> None:
    module = run(
        "钩子（HOOK） / MMEngine 中的内置 Hook", {", ...)": ", **parts)"}, parts=parts(tmp_path)
    )
    assert module.runner.iter == 8
    assert saved(tmp_path) == {"epoch_1.pth", "epoch_2.pth"}


@block(BUILT_IN + "CheckpointHook")
def _(tmp_path: Path, capsys: Any) -> None:
    assert train(tmp_path, 20, BUILT_IN + "CheckpointHook") == {
        f"epoch_{number}.pth" for number in (5, 10, 15, 20)
    }


@block(BUILT_IN + "CheckpointHook (2)")
def _(tmp_path: Path, capsys: Any) -> None:
    assert train(tmp_path, 3, BUILT_IN + "CheckpointHook (2)") == {
        f"iter_{number}.pth" for number in (5, 10, 12)
    }


@block(BUILT_IN + "CheckpointHook (3)")
def _(tmp_path: Path, capsys: Any) -> None:
    assert train(tmp_path, 20, BUILT_IN + "CheckpointHook (3)") == {"epoch_15.pth", "epoch_20.pth"}


@block(BUILT_IN + "CheckpointHook (4)")
def _(tmp_path: Path, capsys: Any) -> None:
    files = train(tmp_path, 4, BUILT_IN + "CheckpointHook (4)")
    assert len([name for name in files if name.startswith("best_accuracy_epoch_")]) == 1


@block(BUILT_IN + "CheckpointHook (5)")
def _(tmp_path: Path, capsys: Any) -> None:
    train(
        tmp_path,
        5,
        BUILT_IN + "CheckpointHook (5)",
        {"/path/of/directory": str(tmp_path / "elsewhere")},
    )
    assert saved(tmp_path / "elsewhere" / "run") == {"epoch_5.pth"}
    assert saved(tmp_path / "run") == set()


@block(BUILT_IN + "CheckpointHook (6)")
def _(tmp_path: Path, capsys: Any) -> None:
    published = [
        name for name in train(tmp_path, 2, BUILT_IN + "CheckpointHook (6)") if "-" in name
    ]
    assert sorted(name.split("_epoch_")[0] for name in published if name.startswith("best")) == [
        "best_accuracy"
    ]
    assert len(published) == 2
    for name in published:
        assert set(torch.load(tmp_path / "run" / name, weights_only=True)) == {"meta", "state_dict"}


@block(BUILT_IN + "CheckpointHook (7)")
def _(tmp_path: Path, capsys: Any) -> None:
    files = train(tmp_path, 10, BUILT_IN + "CheckpointHook (7)")
    assert files == {
        f"epoch_{number}.pth" for number in (5, 7, 9, 10)
    }  # the last one by `save_last`, which is on unless switched off


@block(BUILT_IN + "LoggerHook")
def _(tmp_path: Path, capsys: Any) -> None:
    train(
        tmp_path, 1, BUILT_IN + "LoggerHook", log_level="INFO", train_dataloader=loader(data(400))
    )
    lines = [line for line in capsys.readouterr().out.splitlines() if "Epoch(train)" in line]
    assert [line.split("[")[2].split("/")[0] for line in lines] == ["20", "40"]


def _trains_as_it_stands(name: str) -> Callable[..., None]:
    def check(tmp_path: Path, capsys: Any) -> None:
        assert (
            run(name, {", ...)": ", **parts)"}, parts=parts(tmp_path), Runner=Runner).runner.epoch
            == 2
        )

    return check


block(BUILT_IN + "EMAHook")(_trains_as_it_stands(BUILT_IN + "EMAHook"))


@block(BUILT_IN + "EMAHook (2)")
def _(tmp_path: Path, capsys: Any) -> None:
    train(tmp_path, 2, BUILT_IN + "EMAHook (2)")
    assert "ema_state_dict" in torch.load(tmp_path / "run" / "epoch_2.pth", weights_only=True)


block(BUILT_IN + "EmptyCacheHook")(_trains_as_it_stands(BUILT_IN + "EmptyCacheHook"))
block(BUILT_IN + "SyncBuffersHook")(_trains_as_it_stands(BUILT_IN + "SyncBuffersHook"))


class Exploding(Net):
    """A model whose loss is infinite."""

    def forward(self, inputs: Any, labels: Any = None, mode: str = "tensor") -> Any:
        result = super().forward(inputs, labels, mode)
        return {"loss": result["loss"] * torch.inf} if mode == "loss" else result


@block(OWN)
def _(tmp_path: Path, capsys: Any) -> None:
    hook_class = run(OWN).CheckInvalidLossHook
    make_runner(tmp_path / "good", custom_hooks=[hook_class(interval=2)]).train()
    with pytest.raises(AssertionError):
        make_runner(
            tmp_path / "bad",
            custom_hooks=[hook_class(interval=2)],
            model=Exploding(),
        ).train()


@block(OWN + " (2)")
def _(tmp_path: Path, capsys: Any) -> None:
    run(OWN)  # registers it
    runner = run(OWN + " (2)", {", ...)": ", **parts)"}, parts=parts(tmp_path)).runner
    assert [
        hook.interval for hook in runner.hooks if type(hook).__name__ == "CheckInvalidLossHook"
    ] == [50]


def _position(tmp_path: Path, custom_hooks: list[Any]) -> int:
    names = [type(hook).__name__ for hook in make_runner(tmp_path, custom_hooks=custom_hooks).hooks]
    return names.index("CheckInvalidLossHook") - names.index("IterTimerHook")


@block(OWN + " (3)")
def _(tmp_path: Path, capsys: Any) -> None:
    run(OWN)
    assert _position(tmp_path / "later", [{"type": "CheckInvalidLossHook"}]) > 0
    assert _position(tmp_path / "sooner", run(OWN + " (3)").custom_hooks) < 0


@block(OWN + " (4)")
def _(tmp_path: Path, capsys: Any) -> None:
    run(OWN + " (4)", HOOKS=HOOKS, Hook=Hook)
    assert _position(tmp_path, [{"type": "CheckInvalidLossHook"}]) < 0
