"""A run: its batches and models, its hooks and results."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hookline import Runner
from hookline.checkpoint import load_checkpoint
from hookline.engine import BaseHook, BaseRunner
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook, EvalHook, OptimizerHook
from hookline.metrics import build_metrics
from hookline.metrics.results import UnknownMetric
from tests.helpers import Tracer, batches, make_runner, small_model
from tests.problems import raises_problem

VALIDATION = [
    "before_val",
    "before_val_epoch",
    *["before_val_iter", "after_val_iter"] * 2,
    "after_val_epoch",
    "after_val",
]


def test_testing_and_validating_alone_have_their_own_sites(tmp_path):
    tracer = Tracer()
    runner = make_runner(tmp_path, tracer, val_loader=batches(1), test_loader=batches(1))
    runner.test()
    assert tracer.log == [
        "before_run", "before_test", "before_test_epoch", "before_test_iter", "after_test_iter", "after_test_epoch", "after_test",
        "after_run", "cleanup",
    ]  # fmt: skip
    tracer.log.clear()
    assert runner.validate()["val_loss"] > 0
    assert tracer.log == [
        "before_run",
        *VALIDATION[:2],
        "before_val_iter",
        "after_val_iter",
        "after_val_epoch",
        "after_val",
        "after_run",
        "cleanup",
    ]


def test_each_module_gets_its_own_mode_back_after_validation(tmp_path):
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 3))
    modes = []

    class Freeze(BaseHook):
        def before_train(self, model):
            model[1].eval()

        def after_val_iter(self, model):
            modes.append([m.training for m in model])

        def after_val(self, model):
            modes.append([m.training for m in model])

    make_runner(
        tmp_path, Freeze(), EvalHook(), model=model, val_loader=batches(1), max_epochs=1
    ).train()
    assert modes == [[False] * 4, [True, False, True, True]]


def test_batches_may_be_dicts(tmp_path):
    data = [{"inputs": x, "targets": y} for x, y in batches()]
    runner = make_runner(tmp_path, train_loader=data, max_epochs=1)
    straight = make_runner(tmp_path, max_epochs=1)
    runner.train(), straight.train()
    assert all(
        torch.equal(a, b)
        for a, b in zip(runner.model.parameters(), straight.model.parameters(), strict=True)
    )


def test_a_model_may_define_its_steps(tmp_path):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small_model()

        def train_step(self, batch):
            return {"loss": nn.functional.cross_entropy(self.net(batch[0]), batch[1]), "extra": 1}

        def val_step(self, batch):
            return {
                "predictions": self.net(batch[0]),
                "targets": batch[1],
                "loss": torch.tensor(2.0),
            }

    runner = make_runner(
        tmp_path, EvalHook(), model=Own(), loss_fn=None, val_loader=batches(2), max_epochs=1
    )
    runner.train()
    assert runner.outputs["extra"] == 1
    assert runner.metrics["val_loss"] == 2.0


def test_a_model_that_returns_its_loss_needs_no_loss_fn(tmp_path):
    class Scoring(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small_model()

        def forward(self, inputs, labels):
            logits = self.net(inputs)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    data = [{"inputs": x, "labels": y} for x, y in batches()]
    runner = make_runner(
        tmp_path,
        EvalHook(),
        model=Scoring(),
        loss_fn=None,
        train_loader=data,
        val_loader=data,
        max_epochs=1,
    )
    runner.train()
    assert runner.outputs["predictions"].shape == (8, 3)
    assert runner.metrics["val_loss"] > 0


class NoLoss(nn.Linear):
    def train_step(self, batch):
        return self(batch[0])


@pytest.mark.parametrize(
    "parts, words",
    [
        ({"model": NoLoss(6, 3)}, r"NoLoss\.train_step.*'loss'.*Tensor"),
        ({"train_loader": [torch.zeros(2, 6)]}, "inputs.*Tensor"),
        ({"train_loader": [{"pictures": 1}]}, "'pictures'"),
        ({"train_loader": None}, "train_loader="),
    ],
)
def test_parts_that_cannot_be_trained_are_rejected(tmp_path, parts, words):
    with pytest.raises(HooklineError, match=words):
        make_runner(tmp_path, **parts).train()


def test_a_run_needs_a_length_and_only_one(tmp_path):
    with raises_problem(HooklineError, parameter="max_epochs"):
        BaseRunner(small_model(), train_loader=batches(), work_dir=tmp_path).train()
    with raises_problem(parameter="max_iters"):
        BaseRunner(small_model(), max_epochs=1, max_iters=1)
    with raises_problem(parameter="max_epochs", value=0):
        BaseRunner(small_model(), max_epochs=0)


def test_weights_that_would_never_change_are_an_error(tmp_path):
    model = small_model()
    runner = BaseRunner(
        model,
        batches(),
        optimizer=torch.optim.SGD(model.parameters()),
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=1,
    )
    with raises_problem(HooklineError, parameter="hooks"):
        runner.train()


def test_a_hook_registered_during_the_run_takes_part_from_then_on(tmp_path):
    tracer = Tracer()

    class Recruit(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 1:
                runner.register_hook(tracer)
            if runner.iter == 3:
                runner.unregister_hook(tracer.name)

    make_runner(tmp_path, Recruit(), max_iters=6).train()
    assert tracer.log.count("before_train_iter") == 2


def test_a_hook_that_no_site_calls_gets_a_warning_before_training(tmp_path, caplog):
    class Idle(BaseHook):
        def epoch_is_over(self, runner):
            raise AssertionError("not a site")

    model = small_model()
    runner = Runner(
        model,
        train_loader=batches(),
        val_loader=batches(1),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        hooks=[Idle(), Tracer()],
        max_epochs=1,
        work_dir=tmp_path,
    )
    runner.train()
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.args for record in warnings] == [("Idle",)]


def test_metrics_go_by_all_their_names(tmp_path):
    from hookline.metrics import build_metrics

    runner = make_runner(
        tmp_path,
        EvalHook(),
        val_loader=batches(3),
        metrics=build_metrics(["accuracy"]),
        max_epochs=1,
    )
    runner.train()
    accuracy = runner.metrics["accuracy"]
    assert (
        runner.metrics["val_accuracy"]
        == runner.metrics["val/accuracy"]
        == runner.metrics.get("val_accuracy")
        == accuracy
    )
    assert runner.metrics["val/loss"] == runner.metrics["val_loss"]
    assert "val/accuracy" in runner.metrics
    assert runner.metrics.get("nothing") is None
    with raises_problem(UnknownMetric, parameter="acuracy", nearest="accuracy"):
        runner.metrics["acuracy"]
    assert runner.best["accuracy"]["value"] == accuracy


def test_clipping_limits_the_norm_and_records_it(tmp_path):
    norms = []

    class Look(BaseHook):
        def after_optimizer_step(self, model):
            norms.append(
                torch.norm(torch.stack([p.grad.norm() for p in model.parameters()])).item()
            )

    runner = make_runner(tmp_path, OptimizerHook(grad_clip={"max_norm": 0.01}), Look(), max_iters=3)
    runner.train()
    assert all(norm <= 0.0101 for norm in norms)
    assert runner.events.latest()["grad_norm"] > 0.01


def test_call_hook_serves_a_custom_loop(tmp_path):
    seen = []

    class See(BaseHook):
        def after_train_iter(self, runner, batch_idx, data_batch, outputs):
            seen.append((batch_idx, data_batch, outputs))

    runner = make_runner(tmp_path, See())
    runner.call_hook("after_train_iter", batch_idx=3, data_batch="b", outputs={"loss": 1})
    assert seen == [(3, "b", {"loss": 1})]
    with pytest.raises(ValueError, match="'after_trian_iter'.*'after_train_iter'"):
        runner.call_hook("after_trian_iter")
    with pytest.raises(ValueError, match="'batch_index'.*'batch_idx'"):
        runner.call_hook("after_train_iter", batch_index=3)


def test_one_seed_makes_a_run_and_is_kept_in_its_checkpoints(tmp_path):
    """Random numbers of all three libraries and the order of a plain loader; only what is made before the runner is not its own."""

    class Noise(BaseHook):
        def before_train_iter(self, runner):
            runner.batch = (
                runner.batch[0] + random.random() + np.random.rand() + torch.rand(()),
                runner.batch[1],
            )

    def trained(folder, seed):
        model = small_model()
        inputs, targets = (torch.cat(parts) for parts in zip(*batches(), strict=True))
        torch.manual_seed(folder.name == "other")  # whatever was drawn before
        loader = DataLoader(TensorDataset(inputs, targets), batch_size=8, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        runner = Runner(
            model, train_loader=loader, optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), hooks=[Noise()], max_epochs=1, seed=seed,
            work_dir=folder, drop_hooks=["ReportHook"],
        )  # fmt: skip
        runner.train()
        assert load_checkpoint(folder / "last.pth")["meta"]["seed"] == seed
        return model[0].weight

    one, same, another = (
        trained(tmp_path / "one", 7),
        trained(tmp_path / "other", 7),
        trained(tmp_path / "another", 8),
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, another)


def run_in_parts(folder, *lengths, **parts):
    """Train in several calls, each with its own length; the first is that of the runner."""
    model = small_model()
    runner = Runner(
        model,
        train_loader=DataLoader(
            TensorDataset(*map(torch.cat, zip(*batches(4), strict=True))), 8, shuffle=True
        ),
        optimizer=torch.optim.AdamW(model.parameters(), lr=0.01),
        loss_fn=nn.CrossEntropyLoss(),
        work_dir=folder,
        seed=1,
        **lengths[0],
        **parts,
    )
    runner.train()
    for length in lengths[1:]:
        runner.train(**length)
    return runner


@pytest.mark.parametrize(
    "lengths",
    [
        [{"max_epochs": 1}, {"max_epochs": 3}],
        [{"max_iters": 3}, {"max_iters": 5}, {"max_iters": 12}],
        [{"max_epochs": 1}, {"max_iters": 6}, {"max_epochs": 3}],
    ],
)
def test_a_run_continues_exactly_with_another_length(tmp_path, lengths):
    whole = run_in_parts(tmp_path / "whole", {"max_epochs": 3})
    parts = run_in_parts(tmp_path / "parts", *lengths)
    assert (parts.epoch, parts.iter, parts.max_iters) == (3, 12, 12)
    pairs = zip(parts.model.parameters(), whole.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_a_length_that_was_set_holds_for_the_next_call(tmp_path):
    runner = run_in_parts(tmp_path, {"max_epochs": 1})
    runner.max_epochs = 2
    runner.fit()
    assert (runner.epoch, runner.max_iters) == (2, 8)


def test_two_new_lengths_are_an_error(tmp_path):
    runner = run_in_parts(tmp_path, {"max_epochs": 1})
    with raises_problem(parameter="max_iters"):
        runner.train(max_epochs=2, max_iters=9)


@pytest.mark.parametrize("option", ["load_from", "resume"])
def test_a_second_call_does_not_load_the_first_weights_again(tmp_path, option):
    first = run_in_parts(tmp_path / "first", {"max_epochs": 1})
    file = first.work_dir / "last.pth"
    runner = run_in_parts(
        tmp_path / "second", {"max_epochs": 2}, {"max_epochs": 3}, **{option: file}
    )
    assert (runner.epoch, runner.iter) == (3, 12)
    assert runner.optimizer.state_dict()["state"][0]["step"].item() == 12


def test_the_best_result_of_loaded_weights_is_not_that_of_the_run(tmp_path):
    parts = {"val_loader": batches(1), "metrics": build_metrics(["accuracy"])}
    trained = make_runner(tmp_path / "first", CheckpointHook(), max_epochs=1)
    trained.train()
    own = make_runner(tmp_path / "own", EvalHook(metric="accuracy"), **parts)
    own.validate()
    assert list(own.best) == ["accuracy"]
    file = tmp_path / "first" / "last.pth"
    other = make_runner(tmp_path / "other", EvalHook(metric="accuracy"), load_from=file, **parts)
    other.validate()
    assert list(other.best) == []
