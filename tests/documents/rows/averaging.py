"""Rows about EMAHook."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import nn

from hookline.engine import BaseHook, BaseRunner
from hookline.hooks import CheckpointHook, EMAHook, EvalHook
from tests.documents.runs import bare, validated
from tests.documents.table import REQUIREMENTS, Section
from tests.helpers import batches

average = Section(REQUIREMENTS, "EMA hook")
average.defaults(
    EMAHook,
    {
        "momentum": 0.9999,
        "interval": 1,
        "warm_up": 100,
        "resume_from": None,
        "update_buffers": False,
    },
)


class Watch(BaseHook):
    """Keeps the weights and the average after each iteration."""

    def __init__(self, key: str = "0.weight") -> None:
        super().__init__(priority=0)  # the last in after_train_iter
        self.key = key
        self.weights: list[torch.Tensor] = []
        self.averages: list[torch.Tensor] = []
        self.momenta: list[float] = []
        self.first: torch.Tensor | None = None

    def before_train(self, runner: BaseRunner) -> None:
        self.first = runner.model.state_dict()[self.key].clone()

    def after_train_iter(self, runner: BaseRunner) -> None:
        hook = runner.hook("EMAHook")
        self.weights.append(runner.model.state_dict()[self.key].clone())
        self.averages.append(hook.average.state_dict()[self.key].clone())
        self.momenta.append(hook.current_momentum)


@cache
def watched(**options: Any) -> Watch:
    watch = Watch()
    bare(EMAHook(**options), watch)
    return watch


def follows(share_at: Any, **options: Any) -> None:
    """Check the average of each iteration against the formula."""
    watch = watched(**options)
    expected = watch.first
    assert expected is not None
    for index, weights in enumerate(watch.weights):
        share = share_at(index)
        expected = share * expected + (1 - share) * weights
        assert torch.allclose(watch.averages[index], expected, atol=1e-6), index


average.add(
    "formula",
    "the average is `momentum * ema + (1 - momentum) * current`",
    lambda: follows(lambda index: 0.7, momentum=0.7, warm_up=0),
)
average.add(
    "formula",
    "the momentum is `min(momentum, (1 + iter) / (warm_up + iter))`",
    lambda: follows(lambda index: min(0.4, (1 + index) / (10 + index)), momentum=0.4, warm_up=10),
)


@average.row("behavior", "the momentum grows during the warm-up, up to `momentum`")
def _() -> None:
    momenta = watched(momentum=0.4, warm_up=10).momenta
    assert momenta == sorted(momenta)
    assert momenta[0] < momenta[3] < momenta[-1] == 0.4


average.add(
    "parameter",
    "`momentum` is the share of the old average",
    lambda: follows(lambda index: 0.2, momentum=0.2, warm_up=0),
)


@average.row("parameter", "`interval` counts the iterations between two updates")
def _() -> None:
    averages = watched(momentum=0.5, warm_up=0, interval=3).averages
    changed = [
        index
        for index in range(1, len(averages))
        if not torch.equal(averages[index], averages[index - 1])
    ]
    assert changed == [2, 5]


@average.row("parameter", "`warm_up` of 0 uses `momentum` from the beginning")
def _() -> None:
    assert set(watched(momentum=0.7, warm_up=0).momenta) == {0.7}


@average.row("parameter", "`resume_from` is a checkpoint whose average the run starts with")
def _() -> None:
    first = bare(EMAHook(momentum=0.5), CheckpointHook(save_best=False))
    path = first.work_dir / "last.pth"
    saved = torch.load(path, weights_only=True)["ema_state_dict"]["0.weight"]
    found = []

    class Look(BaseHook):
        def before_train(self, runner: BaseRunner) -> None:
            found.append(runner.hook("EMAHook").average.state_dict()["0.weight"].clone())

    bare(EMAHook(resume_from=str(path)), Look(), max_epochs=1)
    assert torch.equal(found[0], saved)


@cache
def buffers(update: bool) -> Watch:
    watch = Watch("1.running_mean")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    bare(EMAHook(momentum=0.5, warm_up=0, update_buffers=update), watch, model=model)
    return watch


@average.row("parameter", "`update_buffers` also averages buffers; else the current ones are used")
def _() -> None:
    assert torch.equal(buffers(False).averages[-1], buffers(False).weights[-1])
    assert not torch.equal(buffers(True).averages[-1], buffers(True).weights[-1])
    last, before = buffers(True).averages[-1], buffers(True).averages[-2]
    assert torch.allclose(last, 0.5 * before + 0.5 * buffers(True).weights[-1], atol=1e-6)


class Swaps(BaseHook):
    """Compares the weights in use with those of training and with the average."""

    def __init__(self) -> None:
        super().__init__(priority=100)  # next to the work
        self.during: list[str] = []
        self.raw: torch.Tensor | None = None

    def _which(self, runner: BaseRunner) -> str:
        now = runner.model[0].weight.detach()
        return "raw" if torch.equal(now, self.raw) else "average"

    def after_train_epoch(self, runner: BaseRunner) -> None:
        self.raw = runner.model[0].weight.detach().clone()

    def before_val_iter(self, runner: BaseRunner) -> None:
        self.during.append(self._which(runner))

    def after_epoch(self, runner: BaseRunner) -> None:
        self.during.append(self._which(runner))


@cache
def swapped() -> tuple[Swaps, BaseRunner]:
    swaps = Swaps()
    runner = validated(
        EMAHook(momentum=0.5), swaps, EvalHook(), CheckpointHook(save_best=False), epochs=2
    )
    return swaps, runner


@average.row("moment", "`before_run` makes the average, equal to the weights")
def _() -> None:
    seen = []

    class Look(BaseHook):
        def before_train(self, runner: BaseRunner) -> None:
            found = runner.hook("EMAHook").average.state_dict()
            seen.append(torch.equal(found["0.weight"], runner.model[0].weight))

    bare(EMAHook(), Look(), max_epochs=1)
    assert seen == [True]


average.add(
    "moment",
    "`after_train_iter` updates the average",
    lambda: len({tuple(each.flatten().tolist()) for each in watched(momentum=0.5).averages}) == 8,
)
average.add(
    "moment",
    "`before_val_epoch` switches to the average",
    lambda: swapped()[0].during[:2] == ["average", "average"],
)
average.add(
    "moment",
    "`after_val_epoch` switches back to the weights of training",
    lambda: swapped()[0].during[2] == "raw",
)


@average.row("moment", "`before_save_checkpoint` puts the average into the checkpoint")
def _() -> None:
    runner = swapped()[1]
    saved = torch.load(runner.work_dir / "last.pth", weights_only=True)
    expected = runner.hook("EMAHook").average.state_dict()
    assert torch.equal(saved["ema_state_dict"]["0.weight"], expected["0.weight"])
    assert torch.equal(saved["state_dict"]["0.weight"], runner.model[0].weight)


@average.row("behavior", "validation uses the average, in each epoch")
def _() -> None:
    assert swapped()[0].during == ["average", "average", "raw"] * 2


@average.row("behavior", "training never sees the average: its weights are those without the hook")
def _() -> None:
    plain = bare(max_epochs=2, train_loader=batches())
    averaged = bare(EMAHook(momentum=0.5), max_epochs=2, train_loader=batches())
    assert torch.equal(plain.model[0].weight, averaged.model[0].weight)


@average.row("behavior", "the average can be switched on and off by hand")
def _() -> None:
    runner = swapped()[1]
    raw = runner.model[0].weight.detach().clone()
    hook = runner.hook("EMAHook")
    with hook.averaged():
        assert torch.equal(runner.model[0].weight, hook.average.state_dict()["0.weight"])
        assert not torch.equal(runner.model[0].weight, raw)
    assert torch.equal(runner.model[0].weight, raw)
