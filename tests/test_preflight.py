"""A user's mistake is reported in the user's words, if possible before training."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from hookline import BaseHook, Runner
from hookline.engine.manager import HookManager
from hookline.errors import ConfigError, HooklineError, RegistrationError
from hookline.hooks import (
    CheckpointHook,
    EarlyStoppingHook,
    EMAHook,
    EvalHook,
    ManualOptimizationHook,
    TimeLimitHook,
)
from tests.helpers import Tracer, batches, make_runner, small_model
from tests.problems import logged, raises_problem


def runner_of(tmp_path, **parts):
    model = parts.pop("model", None) or small_model()
    given = {
        "train_loader": batches(2),
        "loss_fn": nn.CrossEntropyLoss(),
        "max_epochs": 1,
        "work_dir": tmp_path,
        "device": "cpu",
    }
    return Runner(
        model, **{**given, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), **parts}
    )


class Steps(nn.Linear):
    def train_step(self, batch):
        return {"loss": self(batch[0]).sum()}


def test_without_an_optimizer_there_is_no_training_unless_the_model_steps_itself(tmp_path):
    with raises_problem(HooklineError, parameter="optimizer"):
        runner_of(tmp_path, optimizer=None).train()
    model = small_model()
    optimizers = {"net": torch.optim.SGD(model.parameters(), lr=0.1)}
    with raises_problem(HooklineError, component="ManualOptimizationHook"):
        manual = ManualOptimizationHook()
        runner_of(tmp_path, model=model, optimizer=optimizers, hooks=[manual]).train()
    assert runner_of(tmp_path, model=Steps(6, 3), optimizer=None).train().iter == 2


class Lightning(nn.Linear):
    def training_step(self, batch, batch_idx):
        return self(batch[0]).sum()


class Renamed(Steps):
    def train_step(self, batch, batch_idx):
        return super().train_step(batch)


@pytest.mark.parametrize("model", [Lightning(6, 3), Renamed(6, 3)])
def test_a_training_step_of_lightning_is_refused(tmp_path, model):
    with raises_problem(HooklineError, parameter="train_step"):
        runner_of(tmp_path, model=model, loss_fn=None).train()


def test_a_training_step_of_lightning_is_not_needed_with_a_loss(tmp_path):
    assert runner_of(tmp_path, model=Lightning(6, 3)).train().iter == 2


def test_an_object_that_is_not_a_hook_is_reported_by_its_number(tmp_path):
    with pytest.raises(ConfigError) as error:
        runner_of(tmp_path, hooks=[EMAHook, TimeLimitHook, "EMAHok", 3])
    problems = error.value.problems
    assert [problem.path[:2] for problem in problems] == [("hooks", n) for n in range(4)]
    assert "EMAHook()" in problems[0].message
    assert "TimeLimitHook(limit=…)" in problems[1].message
    assert problems[2].suggestion.nearest == "EMAHook"
    with raises_problem(path=("hooks",)):
        runner_of(tmp_path, hooks=EMAHook())
    with pytest.raises(TypeError, match=r"EMAHook\(\)"):
        HookManager().register_hook(EMAHook)


def test_an_unknown_argument_of_a_runner_is_an_error(tmp_path):
    with pytest.raises(TypeError, match="'max_epoch'"):
        runner_of(tmp_path, max_epoch=3)


def test_an_unknown_default_hook_is_an_error_with_the_nearest_name(tmp_path):
    with raises_problem(path=("drop_hooks",), value="ReprotHook", nearest="ReportHook"):
        runner_of(tmp_path, drop_hooks=["ReprotHook"])


@pytest.mark.parametrize("name", ["train_loader", "val_loader"])
def test_a_data_set_is_no_loader(tmp_path, name):
    tracer = Tracer()
    data = TensorDataset(torch.zeros(4, 6), torch.zeros(4, dtype=torch.long))
    with raises_problem(HooklineError, parameter=name):
        make_runner(tmp_path, tracer, **{name: data}).train()
    assert "before_run" not in tracer.log
    with raises_problem(HooklineError, parameter="test_loader"):
        make_runner(tmp_path, test_loader=data).test()


def test_a_model_that_cannot_take_the_whole_batch_needs_a_loss_fn(tmp_path):
    with pytest.raises(HooklineError, match="loss_fn=") as error:
        make_runner(tmp_path, model=nn.Linear(6, 3), loss_fn=None).train()
    assert isinstance(error.value.__cause__, TypeError)

    class Wrong(nn.Linear):
        def forward(self, inputs, labels):
            return len(3)

    with pytest.raises(
        TypeError, match="has no len"
    ):  # a mistake within the model stays what it is
        make_runner(tmp_path, model=Wrong(6, 3), loss_fn=None).train()


class ComputesLoss(nn.Linear):
    def forward(self, inputs, labels=None):
        return {"loss": super().forward(inputs).sum()}


def test_parts_of_a_batch_that_a_model_does_not_take_are_named(tmp_path):
    batch = {"inputs": torch.zeros(2, 6), "labels": torch.zeros(2), "text": ["a", "b"]}
    with raises_problem(HooklineError, parameter="train_loader") as caught:
        runner_of(tmp_path, model=ComputesLoss(6, 3), loss_fn=None, train_loader=[batch]).train()
    assert "take text of" in str(caught.value)


class Stacks(nn.Linear):
    """A model that calls its own layers by what it gets, and so does not take everything."""

    def forward(self, inputs):
        return super().forward(torch.stack(inputs) if isinstance(inputs, (list, tuple)) else inputs)


class Scores(nn.Linear):
    def forward(self, x, y):
        return {"loss": super().forward(x).sum()}


@pytest.mark.parametrize(
    "batch, loss_fn, model, note",
    [
        (
            (torch.zeros(8, 5), torch.zeros(8)),
            nn.MSELoss(),
            nn.Linear(6, 3),
            "[8, 5] (float32)",
        ),
        (
            (("warm",) * 8, torch.zeros(8)),
            nn.MSELoss(),
            Stacks(6, 3),
            "a tuple of 8: a str, a str, a str, a str, …",
        ),
        (
            {"x": torch.zeros(8, 5), "y": [1]},
            None,
            Scores(6, 3),
            "a dict: 'x' [8, 5] (float32), 'y' a list of 1",
        ),
    ],
)
def test_the_error_of_a_model_has_a_note_about_its_input(tmp_path, batch, loss_fn, model, note):
    with pytest.raises((RuntimeError, TypeError)) as error:
        make_runner(tmp_path, model=model, train_loader=[batch], loss_fn=loss_fn).train()
    assert error.value.__notes__[0].endswith(note)


@pytest.mark.parametrize(
    "loss_fn, word", [(nn.MSELoss, "MSELoss()"), ("mse", "'mse'"), (0.5, "0.5")]
)
def test_an_object_that_is_not_a_loss_function_is_rejected_before_training(tmp_path, loss_fn, word):
    tracer = Tracer()
    with raises_problem(HooklineError, parameter="loss_fn") as error:
        make_runner(tmp_path, tracer, loss_fn=loss_fn).train()
    assert word in str(error.value)
    assert "before_run" not in tracer.log


class Pair(nn.Linear):
    def forward(self, inputs):
        return super().forward(inputs), inputs


@pytest.mark.parametrize(
    "model, loss_fn, words",
    [
        (Pair(6, 3), nn.CrossEntropyLoss(), ["a tuple of 2", "[8] (int64)", "train_step"]),
        (nn.Linear(6, 3), nn.MSELoss(), ["[8, 3] (float32)", "[8] (int64)"]),
    ],
)
def test_the_error_of_a_loss_has_a_note_about_its_input(tmp_path, model, loss_fn, words):
    with pytest.raises((TypeError, AttributeError, RuntimeError)) as error:
        make_runner(tmp_path, model=model, loss_fn=loss_fn).train()
    assert all(word in error.value.__notes__[0] for word in words)


def test_a_hook_takes_name_priority_and_frequency_in_python_too():
    hook = EMAHook(momentum=0.5, name="average", priority="HIGH", frequency=2)
    assert (hook.momentum, hook.name, hook.priority, hook.frequency) == (0.5, "average", "HIGH", 2)
    with pytest.raises(TypeError, match="EarlyStoppingHook.*'patiance'"):
        EarlyStoppingHook(patiance=3)
    with pytest.raises(TypeError, match="EMAHook.*'priorty'"):
        EMAHook(priorty=3)
    with raises_problem(RegistrationError, component="EMAHook", parameter="frequency", value=0):
        Runner(nn.Linear(1, 1), hooks=[EMAHook(frequency=0)])


class Silent(nn.Linear):
    def val_step(self, batch):
        return {"loss": self(batch[0]).sum()}


def test_a_metric_without_predictions_is_an_error(tmp_path):
    with pytest.raises(HooklineError, match="val_step.*'accuracy'"):
        runner_of(
            tmp_path, model=Silent(6, 3), val_loader=batches(1), metrics=["accuracy"]
        ).validate()


class Generates(nn.Module):
    """A model with a train_step and without a forward."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 3)

    def train_step(self, batch):
        return {"loss": self.net(batch[0]).sum()}


class Validates(Generates):
    def val_step(self, batch):
        return self.train_step(batch)


def test_a_model_with_neither_val_step_nor_forward_is_not_trained_until_its_validation(tmp_path):
    tracer = Tracer()
    with pytest.raises(HooklineError, match="Generates.*val_step"):
        make_runner(tmp_path, tracer, EvalHook(), model=Generates(), val_loader=batches(1)).train()
    assert "before_train_iter" not in tracer.log
    for name, model, hook, loader in [
        ("own", Validates(), EvalHook(), batches(1)),
        (
            "function",
            Generates(),
            EvalHook(test_fn=lambda model, loader: {"score": 1.0}),
            batches(1),
        ),
        ("none", Generates(), EvalHook(), None),
    ]:
        assert make_runner(tmp_path / name, hook, model=model, val_loader=loader).train().epoch == 2


def sgd(*modules):
    return torch.optim.SGD(
        [parameter for module in modules for parameter in module.parameters()], lr=0.1
    )


class Weighted(nn.Module):
    """A loss with a weight to be learnt."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, predictions, targets):
        return nn.functional.cross_entropy(predictions, targets) * self.weight


class Steppers(Generates):
    def train_step(self, batch, optimizers):
        loss = self.net(batch[0]).sum()
        loss.backward()
        optimizers["net"].step()
        return {"loss": loss}


def test_parameters_that_none_of_several_optimizers_has_are_listed(tmp_path, caplog):
    model = nn.Sequential(*(nn.Linear(6, 6) for _ in range(3)))
    optimizers = {"first": sgd(model[0]), "second": sgd(model[1])}
    make_runner(tmp_path, model=model, optimizer=optimizers, max_epochs=1).train()
    assert len(logged(caplog, "2.weight", "2.bias")) == 1


def test_an_optimizer_that_only_the_model_has_is_reported(tmp_path, caplog):
    class Alone(Steps):
        def __init__(self):
            super().__init__(6, 3)
            self.inner = torch.optim.SGD(self.parameters(), lr=0.1)

    runner_of(tmp_path, model=Alone(), optimizer=None).train()
    assert len(logged(caplog, "'inner'", "ManualOptimizationHook()")) == 1
    caplog.clear()
    model = Alone()
    manual = ManualOptimizationHook()
    runner_of(tmp_path, model=model, optimizer=model.inner, hooks=[manual]).train()
    assert not logged(caplog, "'inner'")


def test_an_optimizer_of_another_model_is_reported(tmp_path, caplog):
    make_runner(tmp_path, optimizer=sgd(small_model()), max_epochs=1).train()
    assert len(logged(caplog, "optimizer", "Sequential")) == 1
    caplog.clear()
    model = small_model()
    make_runner(
        tmp_path, model=nn.DataParallel(model), optimizer=sgd(model[2]), max_epochs=1
    ).train()  # a part of one that is wrapped
    assert caplog.messages == []


def test_of_several_optimizers_the_one_of_another_model_is_named_and_a_loss_may_have_its_own(
    tmp_path, caplog
):
    model, loss_fn = Steppers(), Weighted()
    optimizers = {"net": sgd(model), "loss": sgd(loss_fn), "critic": sgd(small_model())}
    runner = runner_of(
        tmp_path,
        model=model,
        optimizer=optimizers,
        loss_fn=loss_fn,
        drop_hooks=["CheckpointHook"],
    )
    runner.train()
    (warning,) = logged(caplog)
    assert "'critic'" in warning.getMessage()


class Brings(BaseHook):
    def before_run(self, runner):
        runner.val_loader = batches(1)


@pytest.mark.parametrize(
    "parts, is_reported",
    [
        ({}, True),
        ({"metrics": None}, False),
        ({"val_loader": batches(1)}, False),
        ({"test_loader": batches(1)}, False),
        ({"hooks": [EvalHook(batches(1))]}, False),
        ({"hooks": [Brings()]}, False),
    ],
)
def test_metrics_without_any_data_are_reported(tmp_path, caplog, parts, is_reported):
    runner_of(tmp_path, **{"metrics": ["accuracy", "top2"], **parts}).train()
    assert bool(logged(caplog, "accuracy, top2")) == is_reported
    assert len(logged(caplog)) == is_reported


def test_a_loader_that_cannot_be_resumed_exactly_is_reported(tmp_path, caplog):
    runner_of(tmp_path, train_loader=(batch for batch in batches(1))).train()
    assert logged(caplog, "train_loader", "generator")


class Stream(IterableDataset):
    """Batches without a length."""

    def __iter__(self):
        return iter(batches(2))


@pytest.mark.parametrize(
    ("hook", "is_reported"),
    [
        (EvalHook(interval=2), True),
        (EvalHook(interval=2, by_epoch=False), False),
        (CheckpointHook(max_keep_ckpts=2), True),
        (CheckpointHook(every="15min"), False),
        (CheckpointHook(interval=2, by_epoch=False), False),
    ],
)
def test_a_hook_that_counts_epochs_of_a_stream_is_reported(tmp_path, caplog, hook, is_reported):
    stream = DataLoader(Stream(), batch_size=None)
    length = {"max_epochs": None, "max_iters": 3}
    runner_of(tmp_path, train_loader=stream, val_loader=batches(1), hooks=[hook], **length).train()
    assert len(logged(caplog, hook.name, "by_epoch=False")) == is_reported


def test_a_metric_that_no_default_hook_adds_is_refused_before_training(tmp_path):
    hook = CheckpointHook(best_metric="quux")
    runner = runner_of(tmp_path, val_loader=batches(1), metrics=["accuracy"], hooks=[hook])
    with raises_problem(component="CheckpointHook", parameter="best_metric"):
        runner.train()
    assert runner.iter == 0
