"""A user's mistake is told in the user's words, before training where it can be."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from hookline import Runner
from hookline.engine.registration import HookHost
from hookline.errors import ConfigError, HooklineError
from hookline.hooks import EarlyStoppingHook, EMAHook, TimeLimitHook
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
