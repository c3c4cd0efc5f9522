"""The loop: which sites come when, what the counters are, and where a run ends."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from hookline.engine import BaseHook
from hookline.errors import HooklineError
from hookline.hooks import EvalHook
from tests.helpers import Tracer, batches, make_runner, small_model

ITERATION = [
    "before_train_iter",
    "after_forward",
    "after_backward",
    "after_optimizer_step",
    "after_train_iter",
]
VALIDATION = [
    "before_val",
    "before_val_epoch",
    *["before_val_iter", "after_val_iter"] * 2,
    "after_val_epoch",
    "after_val",
]


class Unsized:
    """A loader without a length."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


def test_the_sites_come_in_the_order_of_the_flow_chart(tmp_path):
    tracer = Tracer()
    make_runner(
        tmp_path, tracer, EvalHook(), train_loader=batches(2), val_loader=batches(2), max_epochs=2
    ).train()
    epoch = [
        "before_epoch",
        "before_train_epoch",
        *ITERATION * 2,
        "after_train_epoch",
        *VALIDATION,
        "after_epoch",
    ]
    assert tracer.log == [
        "before_run",
        "before_train",
        *epoch * 2,
        "after_train",
        "after_run",
        "cleanup",
    ]


def test_counters_grow_after_the_hooks_of_their_site(tmp_path):
    seen = []

    class Look(BaseHook):
        def after_train_iter(self, runner):
            seen.append(
                (
                    "iter",
                    runner.epoch,
                    runner.iter,
                    runner.inner_iter,
                    runner.batch_idx,
                    runner.optimizer_steps,
                )
            )

        def after_val_epoch(self, runner):
            seen.append(("val", runner.epoch, runner.iter))

        def after_epoch(self, runner):
            seen.append(("epoch", runner.epoch, runner.iter))

    runner = make_runner(
        tmp_path, Look(), EvalHook(), train_loader=batches(2), val_loader=batches(1), max_epochs=2
    )
    runner.train()
    assert seen == [
        ("iter", 0, 0, 0, 0, 1), ("iter", 0, 1, 1, 1, 2), ("val", 0, 2), ("epoch", 0, 2),
        ("iter", 1, 2, 0, 0, 3), ("iter", 1, 3, 1, 1, 4), ("val", 1, 4), ("epoch", 1, 4),
    ]  # fmt: skip
    assert (runner.epoch, runner.iter, runner.optimizer_steps) == (2, 4, 4)
    assert runner.stop_reason.details == {"max_epochs": 2}


def test_training_equals_the_loop_written_by_hand(tmp_path):
    data = batches(5)
    runner = make_runner(tmp_path, train_loader=data, max_epochs=3)
    runner.train()
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in data * 3:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    for ours, theirs in zip(runner.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("wrap", [list, Unsized])
@pytest.mark.parametrize(
    "length, iterations, epochs",
    [({"max_epochs": 2}, 8, 2), ({"max_iters": 6}, 6, 1), ({"max_iters": 8}, 8, 2)],
)
def test_loops_by_epoch_and_by_iteration_over_sized_and_unsized_loaders(
    tmp_path, wrap, length, iterations, epochs
):
    tracer = Tracer()
    runner = make_runner(tmp_path, tracer, train_loader=wrap(batches(4)), **length)
    runner.train()
    assert runner.iter == tracer.log.count("after_train_iter") == iterations
    assert tracer.log.count("before_epoch") == tracer.log.count("after_epoch") == 2
    if wrap is list:
        assert runner.epoch == epochs


def test_an_endless_loader_is_cut_at_max_iters(tmp_path):
    tracer = Tracer()
    runner = make_runner(
        tmp_path, tracer, train_loader=Unsized(itertools.cycle(batches(2))), max_iters=5
    )
    runner.train()
    assert runner.iter == 5
    assert tracer.log.count("before_epoch") == 1


def test_an_empty_loader_is_an_error_and_not_an_endless_loop(tmp_path):
    with pytest.raises(HooklineError, match="train_loader"):
        make_runner(tmp_path, train_loader=[], max_iters=3).train()


def test_before_train_iter_may_replace_the_batch_and_after_forward_the_loss(tmp_path):
    class Change(BaseHook):
        def before_train_iter(self, runner):
            inputs, targets = runner.batch
            runner.batch = (inputs * 0, targets)

        def after_forward(self, runner):
            assert not runner.batch[0].any()
            runner.outputs["loss"] = runner.outputs["loss"] * 0

    runner = make_runner(tmp_path, Change(), max_iters=2)
    before = [p.clone() for p in runner.model.parameters()]
    runner.train()
    assert all(torch.equal(a, b) for a, b in zip(before, runner.model.parameters(), strict=True))
