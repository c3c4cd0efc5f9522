"""Code written for OpenMMLab changes the list of a runner's hooks. Each change counts."""

from __future__ import annotations

import pytest

from hookline.compat.mmcv.runner import Hook as MMCVHook
from hookline.compat.mmengine.hooks import Hook
from hookline.compat.mmengine.registry import HOOKS
from hookline.compat.mmengine.runner import Runner, get_priority
from tests.compat import mmcv_parts
from tests.compat.mmengine_parts import parts


class Noted(MMCVHook):
    """Notes its label after each training iteration."""

    def __init__(self, label: str, notes: list[str]) -> None:
        self.label = label
        self.notes = notes

    def after_train_iter(self, runner):
        self.notes.append(self.label)


def notes_of(tmp_path, change, labels="ab") -> list[str]:
    """Train for six iterations with noted hooks, after a change of their list."""
    notes: list[str] = []
    runner = mmcv_parts.make_runner(tmp_path, max_epochs=1)
    for label in labels:
        runner.register_hook(Noted(label, notes))
    change(runner, lambda label: Noted(label, notes))
    runner.run([mmcv_parts.loader()], [("train", 1)])
    return notes


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda runner, make: runner._hooks.append(make("c")), ["a", "b", "c"]),
        (lambda runner, make: runner.hooks.insert(0, make("c")), ["c", "a", "b"]),
        (lambda runner, make: runner._hooks.insert(1, make("c")), ["a", "c", "b"]),
        (lambda runner, make: runner._hooks.pop(0), ["b"]),
        (lambda runner, make: runner._hooks.clear(), []),
        (lambda runner, make: runner._hooks.reverse(), ["b", "a"]),
        (lambda runner, make: runner._hooks.__setitem__(0, make("c")), ["c", "b"]),
        (lambda runner, make: runner._hooks.__delitem__(slice(1)), ["b"]),
        (lambda runner, make: setattr(runner, "_hooks", [make("c")]), ["c"]),
    ],
)
def test_a_change_of_the_list_counts(tmp_path, change, expected):
    assert notes_of(tmp_path, change) == expected * 6


def test_a_hook_that_is_added_during_a_run_is_called_from_then_on(tmp_path):
    notes: list[str] = []

    class Adding(MMCVHook):
        def before_train_iter(self, runner):
            if runner.iter == 1:
                runner._hooks.append(Noted(f"from {runner.iter}", notes))

    runner = mmcv_parts.make_runner(tmp_path, max_epochs=1)
    runner.register_hook(Adding())
    runner.run([mmcv_parts.loader()], [("train", 1)])
    assert notes == ["from 1"] * 5


def test_what_is_not_a_hook_is_refused(tmp_path):
    with pytest.raises(TypeError, match="instance of Hook"):
        mmcv_parts.make_runner(tmp_path, max_epochs=1)._hooks.append("CheckpointHook")


def test_a_runner_may_register_hooks_as_the_document_does(tmp_path):
    class Documented(Runner):
        def register_hook(self, hook, priority=None):
            if isinstance(hook, dict):
                hook = HOOKS.build(hook)
            if priority is not None:
                hook.priority = priority
            for index in range(len(self._hooks) - 1, -1, -1):
                before = self._hooks[index]
                if get_priority(hook.priority) >= get_priority(before.priority):
                    self._hooks.insert(index + 1, hook)
                    return
            self._hooks.insert(0, hook)

    class Indices(Hook):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            seen.append(batch_idx)

    orders = []
    for cls in (Runner, Documented):
        seen: list[int] = []
        runner = cls(**parts(tmp_path / cls.__name__, custom_hooks=[Indices()]))
        runner.train()
        assert seen == [0, 1, 2, 3] * 2
        assert (tmp_path / cls.__name__ / "epoch_2.pth").exists()
        orders.append([(type(hook), get_priority(hook.priority)) for hook in runner.hooks])
    assert orders[0] == orders[1]
