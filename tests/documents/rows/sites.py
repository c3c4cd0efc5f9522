"""Rows about the base class of hooks, the moments of a run and their order."""

from __future__ import annotations

from functools import cache

from hookline.engine import BaseHook, BaseRunner
from hookline.hooks import CheckpointHook, EvalHook
from tests.documents.runs import Notes, bare, new_folder
from tests.documents.table import REQUIREMENTS, Section
from tests.helpers import batches

ORDER = [
    "before_run",
    *[
        "before_epoch",
        "before_train_epoch",
        *["before_train_iter", "after_train_iter"] * 2,
        "after_train_epoch",
        "before_val_epoch",
        *["before_val_iter", "after_val_iter"] * 2,
        "after_val_epoch",
        "after_epoch",
    ]
    * 2,
    "after_run",
]
# Where each method is called in a run of two epochs of two batches, with the epochs completed.
MOMENTS = {
    "before_run": [(0, 0)],
    "after_run": [(2, 4)],
    "before_epoch": [(0, 0), (1, 2)],
    "after_epoch": [(0, 2), (1, 4)],
    "before_train_epoch": [(0, 0), (1, 2)],
    "after_train_epoch": [(0, 2), (1, 4)],
    "before_val_epoch": [(0, 2), (1, 4)],
    "after_val_epoch": [(0, 2), (1, 4)],
    "before_train_iter": [(0, 0), (0, 1), (1, 2), (1, 3)],
    "after_train_iter": [(0, 0), (0, 1), (1, 2), (1, 3)],
    "before_val_iter": [(0, 2), (0, 2), (1, 4), (1, 4)],
    "after_val_iter": [(0, 2), (0, 2), (1, 4), (1, 4)],
}


@cache
def noted() -> list[tuple[str, int, int]]:
    notes = Notes()
    bare(notes, EvalHook(), train_loader=batches(2), val_loader=batches(2))
    return notes.calls


@cache
def saved_and_resumed() -> tuple[list[tuple[str, int, int]], list[tuple[str, int, int]]]:
    folder, first, second = new_folder(), Notes(), Notes()
    bare(first, CheckpointHook(save_best=False), folder=folder, max_epochs=1)
    bare(second, CheckpointHook(save_best=False), folder=folder, resume="auto")
    return first.calls, second.calls


base = Section(REQUIREMENTS, "base hook")
for _site, _expected in MOMENTS.items():
    base.add(
        "moment",
        f"`{_site}(runner)` is called at its moment, with the counters of that moment",
        lambda site=_site, expected=_expected: (
            [call[1:] for call in noted() if call[0] == site] == expected
        ),
    )


@base.row("moment", "`before_save_checkpoint(runner)` is called before a checkpoint is written")
def _() -> None:
    written = []

    class Look(BaseHook):
        def before_save_checkpoint(self, runner: BaseRunner) -> None:
            written.append((runner.epoch, (runner.work_dir / "last.pth").exists()))
            runner.checkpoint["meta"]["seen"] = True

    runner = bare(Look(), CheckpointHook(save_best=False), max_epochs=1)
    assert written == [(1, False)]
    assert runner.checkpointer.load(runner.work_dir / "last.pth")["meta"]["seen"] is True


@base.row("moment", "`after_load_checkpoint(runner)` is called when a checkpoint was loaded")
def _() -> None:
    first, second = saved_and_resumed()
    assert "after_load_checkpoint" not in [call[0] for call in first]
    assert second[:2] == [("before_run", 0, 0), ("after_load_checkpoint", 1, 4)]


@base.row("class", "every method does nothing in the base class, so a hook overrides what it needs")
def _() -> None:
    hook = BaseHook()
    for site in Notes.SITES:
        assert getattr(hook, site)(None) is None
    assert bare(hook, max_epochs=1).iter == 4


@base.row("parameter", "`priority` of a hook can be set in the class, at its creation and later")
def _() -> None:
    class Late(BaseHook):
        priority = "LOW"

    assert Late().priority == "LOW"
    assert Late(priority=3).priority == 3
    runner = bare(max_epochs=1)
    assert runner.register_hook(Late(priority=3), priority="HIGHEST").priority in (0, "HIGHEST")


@base.row("parameter", "`runner` of a hook is the runner that it is registered with")
def _() -> None:
    notes = Notes()
    assert notes.runner is None
    assert bare(notes, max_epochs=1) is notes.runner


class Asks(BaseHook):
    """Notes what the helper methods answer."""

    def __init__(self) -> None:
        self.epochs: list[tuple[bool, bool]] = []
        self.iters: list[tuple[bool, bool]] = []

    def after_train_epoch(self, runner: BaseRunner) -> None:
        self.epochs.append((self.every_n_epochs(runner, 2), self.is_last_epoch(runner)))

    def after_train_iter(self, runner: BaseRunner) -> None:
        self.iters.append((self.every_n_iters(runner, 3), self.is_last_iter(runner)))


@cache
def answers() -> Asks:
    asks = Asks()
    bare(asks, train_loader=batches(2), max_epochs=3)
    return asks


base.add(
    "function",
    "`every_n_epochs(runner, n)` is true in each n-th epoch",
    lambda: [answer[0] for answer in answers().epochs] == [False, True, False],
)
base.add(
    "function",
    "`every_n_iters(runner, n)` is true in each n-th iteration",
    lambda: [answer[0] for answer in answers().iters] == [False, False, True, False, False, True],
)
base.add(
    "function",
    "`is_last_epoch(runner)` is true in the last epoch only",
    lambda: [answer[1] for answer in answers().epochs] == [False, False, True],
)
base.add(
    "function",
    "`is_last_iter(runner)` is true in the last iteration only",
    lambda: [answer[1] for answer in answers().iters] == [False] * 5 + [True],
)
base.add(
    "function",
    "`get_triggered_stages()` names the moments at which the hook does something",
    lambda: (
        Asks().get_triggered_stages() == ["after_train_iter", "after_train_epoch"]
        and BaseHook().get_triggered_stages() == []
    ),
)

order = Section(REQUIREMENTS, "order of calls")
PLACES = {
    "`before_run` comes first, once": ("before_run", 0),
    "`before_epoch` follows, once an epoch": ("before_epoch", 1),
    "`before_train_epoch` follows it": ("before_train_epoch", 2),
    "`before_train_iter` begins an iteration": ("before_train_iter", 3),
    "`after_train_iter` ends it": ("after_train_iter", 4),
    "`after_train_epoch` follows the last iteration": ("after_train_epoch", 7),
    "`before_val_epoch` follows the training epoch": ("before_val_epoch", 8),
    "`before_val_iter` begins a validation batch": ("before_val_iter", 9),
    "`after_val_iter` ends it": ("after_val_iter", 10),
    "`after_val_epoch` follows the last validation batch": ("after_val_epoch", 13),
    "`after_epoch` closes the epoch after its validation": ("after_epoch", 14),
    "`after_run` comes last, once": ("after_run", 29),
}
for _text, (_site, _place) in PLACES.items():
    order.add(
        "moment", _text, lambda site=_site, place=_place: noted()[place][0] == site == ORDER[place]
    )
order.add(
    "moment",
    "the whole run has exactly the calls of the chart",
    lambda: [call[0] for call in noted()] == ORDER,
)


@cache
def by_priority() -> list[tuple[str, str]]:
    log: list[tuple[str, str]] = []
    parts = [Notes("late", log, priority=90), Notes("early", log, priority=10), Notes("b", log)]
    bare(*parts, Notes("c", log), EvalHook(), val_loader=batches(1), max_epochs=1)
    return log


def labels(site: str) -> list[str]:
    found = [label for label, called in by_priority() if called == site]
    return found[:4]


for _site in Notes.SITES[:12]:
    _expected = ["early", "b", "c", "late"]
    _rule = "smaller priority values first"
    if _site.startswith("after"):
        _expected = _expected[::-1]
        _rule = "larger priority values first, the reverse order"
    order.add(
        "moment",
        f"`{_site}` calls hooks with {_rule}",
        lambda site=_site, expected=_expected: labels(site) == expected,
    )
