"""skorch, with its own callbacks."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, Checkpoint, GradientNormClipping, LRScheduler, PrintLog
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from benchmarks.contenders.hand import LR, MAX_NORM, MIN_LR, MOMENTUM
from benchmarks.rounds import Problem, TurnLoader


class Average(Callback):
    """An average of the weights, which skorch lacks."""

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        self.average = AveragedModel(net.module_, multi_avg_fn=get_ema_multi_avg_fn(MOMENTUM))

    def on_batch_end(self, net: Any, training: bool = False, **kwargs: Any) -> None:
        if training:
            self.average.update_parameters(net.module_)


class Net(NeuralNet):
    """A net that reads the loaders of all contenders."""

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        return self.train_batches if training else self.val_batches


def minimal(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    net = _net(
        problem, epochs, callbacks=[("print_log", None), ("valid_loss", None)], train_split=None
    )
    net.train_batches = loader
    net.fit(loader.dataset, y=None)


def typical(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        schedule = LRScheduler(
            "CosineAnnealingLR", T_max=epochs * len(loader), eta_min=MIN_LR, step_every="batch"
        )
        saver = Checkpoint(dirname=name, monitor=None, f_pickle=None)
        callbacks = [
            schedule,
            GradientNormClipping(MAX_NORM),
            Average(),
            saver,
            PrintLog(sink=lambda text: None),
        ]
        net = _net(
            problem,
            epochs,
            callbacks=callbacks,
            train_split=lambda dataset, y=None: (dataset, dataset),
        )
        net.train_batches, net.val_batches = loader, problem.batches(problem.validation, seed=1)
        net.fit(loader.dataset, y=None)


def _net(problem: Problem, epochs: int, **options: Any) -> Net:
    callbacks = [each for each in options.pop("callbacks") if not isinstance(each, tuple)]
    options["callbacks__print_log"] = None
    if not callbacks:
        options["callbacks__valid_loss"] = None
    return Net(
        problem.model(),
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        lr=LR,
        max_epochs=epochs,
        callbacks=callbacks,
        device="cpu",
        **options,
    )
