"""A user's mistake is told in the user's words, before training where it can be."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from hookline import BaseHook, Runner
from hookline.engine.registration import HookHost
from hookline.errors import ConfigError, HooklineError
from hookline.hooks import EarlyStoppingHook, EMAHook, EvalHook, TimeLimitHook
from tests.helpers import Tracer, batches, make_runner, small_model


def runner_of(tmp_path, **parts):
    model = parts.pop("model", None) or small_model()
    given = {"train_loader": batches(2), "loss_fn": nn.CrossEntropyLoss(), "max_epochs": 1, "work_dir": tmp_path, "device": "cpu"}
    return Runner(model, **{**given, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), **parts})


class Steps(nn.Linear):
    def train_step(self, batch):
        return {"loss": self(batch[0]).sum()}


def test_without_an_optimizer_there_is_no_training_unless_the_model_steps_itself(tmp_path):
    with pytest.raises(HooklineError, match="there is no optimizer: pass optimizer=…"):
        runner_of(tmp_path, optimizer=None).train()
    model = small_model()
    with pytest.raises(HooklineError, match=r"nobody steps the 1 optimizers: give the model a train_step"):
        runner_of(tmp_path, model=model, optimizer={"net": torch.optim.SGD(model.parameters(), lr=0.1)}).train()
    assert runner_of(tmp_path, model=Steps(6, 3), optimizer=None).train().iter == 2


def test_what_is_no_hook_is_named_by_its_number(tmp_path):
    with pytest.raises(ConfigError) as error:
        runner_of(tmp_path, hooks=[EMAHook, TimeLimitHook, "EMAHok", 3])
    assert str(error.value).splitlines() == [
        "hooks[0]: EMAHook is a class; pass an object: EMAHook()",
        "hooks[1]: TimeLimitHook is a class; pass an object: TimeLimitHook(limit=…)",
        "hooks[2]: unknown hook 'EMAHok'; did you mean 'EMAHook'?",
        "hooks[3]: a hook is an instance of BaseHook or a config with a 'type', got 3",
    ]
    with pytest.raises(ConfigError, match="hooks: must be a list of hooks"):
        runner_of(tmp_path, hooks=EMAHook())
    with pytest.raises(TypeError, match=r"EMAHook is a class; pass an object: EMAHook\(\)"):
        HookHost().register_hook(EMAHook)


def test_an_unknown_argument_of_a_runner_has_the_nearest_name(tmp_path):
    with pytest.raises(TypeError, match=r"^Runner: unknown argument 'max_epoch'; did you mean 'max_epochs'\?"):
        runner_of(tmp_path, max_epoch=3)
    with pytest.raises(ConfigError, match=r"'ReprotHook' is not a default hook; did you mean 'ReportHook'\?"):
        runner_of(tmp_path, drop_hooks=["ReprotHook"])


@pytest.mark.parametrize("name", ["train_loader", "val_loader"])
def test_a_data_set_is_no_loader(tmp_path, name):
    tracer = Tracer()
    data = TensorDataset(torch.zeros(4, 6), torch.zeros(4, dtype=torch.long))
    with pytest.raises(HooklineError, match=rf"{name} is a Dataset \(TensorDataset\), which gives single samples: make_loader\("):
        make_runner(tmp_path, tracer, **{name: data}).train()
    assert "before_run" not in tracer.log
    with pytest.raises(HooklineError, match="test_loader is a Dataset"):
        make_runner(tmp_path, test_loader=data).test()


def test_a_model_that_cannot_take_the_whole_batch_needs_a_loss_fn(tmp_path):
    with pytest.raises(HooklineError, match=r"there is no loss_fn.*a tuple of 2.*forward takes \(input.*: pass loss_fn=…") as error:
        make_runner(tmp_path, model=nn.Linear(6, 3), loss_fn=None).train()
    assert isinstance(error.value.__cause__, TypeError)

    class Wrong(nn.Linear):
        def forward(self, inputs, labels):
            return len(3)

    with pytest.raises(TypeError, match="has no len"):  # a mistake within the model stays what it is
        make_runner(tmp_path, model=Wrong(6, 3), loss_fn=None).train()


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
        ((torch.zeros(8, 5), torch.zeros(8)), nn.MSELoss(), nn.Linear(6, 3), "the model got [8, 5] (float32)"),
        ((("warm",) * 8, torch.zeros(8)), nn.MSELoss(), Stacks(6, 3), "the model got a tuple of 8: a str, a str, a str, a str, …"),
        ({"x": torch.zeros(8, 5), "y": [1]}, None, Scores(6, 3), "the model got a dict: 'x' [8, 5] (float32), 'y' a list of 1"),
    ],
)
def test_a_model_that_fails_tells_what_it_was_given(tmp_path, batch, loss_fn, model, note):
    with pytest.raises((RuntimeError, TypeError)) as error:
        make_runner(tmp_path, model=model, train_loader=[batch], loss_fn=loss_fn).train()
    assert error.value.__notes__[0] == f"hookline: {note}"


@pytest.mark.parametrize(
    "loss_fn, message",
    [
        (nn.MSELoss, r"^loss_fn: MSELoss is a class; pass an object: MSELoss\(\)$"),
        ("mse", r"^loss_fn must be a function of predictions and targets, such as nn.MSELoss\(\) or .*, got 'mse'; names are for configs$"),
        (0.5, r"^loss_fn must be a function of predictions and targets, such as .*, got 0.5$"),
    ],
)
def test_what_is_no_loss_function_is_refused_before_training(tmp_path, loss_fn, message):
    tracer = Tracer()
    with pytest.raises(HooklineError, match=message):
        make_runner(tmp_path, tracer, loss_fn=loss_fn).train()
    assert "before_run" not in tracer.log


class Pair(nn.Linear):
    def forward(self, inputs):
        return super().forward(inputs), inputs


@pytest.mark.parametrize(
    "model, loss_fn, note",
    [
        (Pair(6, 3), nn.CrossEntropyLoss(), r"predictions that are a tuple of 2 and targets \[8\] \(int64\); .* needs a train_step"),
        (nn.Linear(6, 3), nn.MSELoss(), r"predictions \[8, 3\] \(float32\) and targets \[8\] \(int64\)$"),
    ],
)
def test_a_loss_that_fails_tells_what_it_was_given(tmp_path, model, loss_fn, note):
    with pytest.raises((TypeError, AttributeError, RuntimeError)) as error:
        make_runner(tmp_path, model=model, loss_fn=loss_fn).train()
    assert re.search(note, error.value.__notes__[0])


def test_a_hook_takes_name_priority_and_frequency_in_python_too():
    hook = EMAHook(momentum=0.5, name="average", priority="HIGH", frequency=2)
    assert (hook.momentum, hook.name, hook.priority, hook.frequency) == (0.5, "average", "HIGH", 2)
    with pytest.raises(TypeError, match=r"^EarlyStoppingHook: unknown parameter 'patiance'; did you mean 'patience'\?"):
        EarlyStoppingHook(patiance=3)
    with pytest.raises(TypeError, match=r"unknown parameter 'priorty'; did you mean 'priority'\?"):
        EMAHook(priorty=3)
    with pytest.raises(ValueError, match="EMAHook: 'frequency' must be a whole number of at least 1, got 0"):
        EMAHook(frequency=0)


class Silent(nn.Linear):
    def val_step(self, batch):
        return {"loss": self(batch[0]).sum()}


def test_a_metric_that_has_nothing_to_measure_says_so(tmp_path):
    with pytest.raises(HooklineError, match=r"val_step gave no 'predictions' and no 'targets' to measure 'accuracy' with: return 'predic"):
        runner_of(tmp_path, model=Silent(6, 3), val_loader=batches(1), metrics=["accuracy"]).validate()


class Generates(nn.Module):
    """A model with steps of its own for training, and no forward."""

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
    message = (
        r"^Generates has neither val_step nor forward, so it cannot be evaluated on the val_loader: give it a val_step\(batch\), or leave"
    )
    with pytest.raises(HooklineError, match=message):
        make_runner(tmp_path, tracer, EvalHook(), model=Generates(), val_loader=batches(1)).train()
    assert "before_train_iter" not in tracer.log
    for name, model, hook, loader in [
        ("own", Validates(), EvalHook(), batches(1)),
        ("function", Generates(), EvalHook(test_fn=lambda model, loader: {"score": 1.0}), batches(1)),
        ("none", Generates(), EvalHook(), None),
    ]:
        assert make_runner(tmp_path / name, hook, model=model, val_loader=loader).train().epoch == 2


def sgd(*modules):
    return torch.optim.SGD([parameter for module in modules for parameter in module.parameters()], lr=0.1)


class Weighted(nn.Module):
    """A loss with a weight to be learnt."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, predictions, targets):
        return nn.functional.cross_entropy(predictions, targets) * self.weight


class Steppers(Generates):
    def train_step(self, batch, optimizers):
        return {"loss": self.net(batch[0]).sum()}


def test_an_optimizer_of_another_model_is_told(tmp_path, caplog):
    make_runner(tmp_path, optimizer=sgd(small_model()), max_epochs=1).train()
    assert caplog.messages == [
        "the optimizer has no parameter of the model (Sequential) and will not change it: was it made for another one?"
    ]
    caplog.clear()
    model = small_model()
    make_runner(tmp_path, model=nn.DataParallel(model), optimizer=sgd(model[2]), max_epochs=1).train()  # a part of one that is wrapped
    assert caplog.messages == []


def test_of_several_optimizers_the_one_of_another_model_is_named_and_a_loss_may_have_its_own(tmp_path, caplog):
    model, loss_fn = Steppers(), Weighted()
    optimizers = {"net": sgd(model), "loss": sgd(loss_fn), "critic": sgd(small_model())}
    runner_of(tmp_path, model=model, optimizer=optimizers, loss_fn=loss_fn).train()
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert told == ["the optimizer 'critic' has no parameter of the model (Steppers) and will not change it: was it made for another one?"]


class Brings(BaseHook):
    def before_run(self, runner):
        runner.val_loader = batches(1)


@pytest.mark.parametrize(
    "parts, told",
    [
        ({}, ["there is neither a val_loader nor a test_loader, so these metrics are never measured: accuracy, top2"]),
        ({"metrics": None}, []),
        ({"val_loader": batches(1)}, []),
        ({"test_loader": batches(1)}, []),
        ({"hooks": [EvalHook(batches(1))]}, []),
        ({"hooks": [Brings()]}, []),
    ],
)
def test_metrics_that_nothing_is_measured_on_are_told(tmp_path, caplog, parts, told):
    runner_of(tmp_path, **{"metrics": ["accuracy", "top2"], **parts}).train()
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == told
