"""fastai's Learner, with its own callbacks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from fastai.callback.core import Callback
from fastai.callback.progress import CSVLogger, ProgressCallback
from fastai.callback.schedule import ParamScheduler, SchedCos
from fastai.callback.tracker import SaveModelCallback
from fastai.callback.training import GradientClip
from fastai.data.core import DataLoaders
from fastai.learner import Learner
from fastai.metrics import accuracy
from fastai.optimizer import OptimWrapper
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from benchmarks.contenders.hand import LR, MAX_NORM, MIN_LR, MOMENTUM
from benchmarks.rounds import Problem, ReadyLoader, TurnLoader


class Average(Callback):
    """An average of the weights, which fastai lacks."""

    def before_fit(self) -> None:
        self.average = AveragedModel(self.learn.model, multi_avg_fn=get_ema_multi_avg_fn(MOMENTUM))

    def after_batch(self) -> None:
        if self.learn.training:
            self.average.update_parameters(self.learn.model)


def minimal(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    _learner(loader, [], problem, ".").fit(epochs)


def typical(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        learner = _learner(loader, ReadyLoader(problem), problem, name, metrics=[accuracy])
        callbacks = [
            GradientClip(MAX_NORM),
            ParamScheduler({"lr": SchedCos(LR, MIN_LR)}),
            Average(),
            CSVLogger(),
        ]
        learner.fit(epochs, cbs=[*callbacks, SaveModelCallback(every_epoch=True, with_opt=True)])


def _learner(
    loader: TurnLoader, validation: Any, problem: Problem, name: str, **options: Any
) -> Learner:
    def optimizer(params: Any, lr: float, **kwargs: Any) -> OptimWrapper:
        return OptimWrapper(params, torch.optim.SGD, lr=lr, momentum=0.9)

    loaders = DataLoaders(loader, validation, device="cpu")
    options |= {"loss_func": torch.nn.CrossEntropyLoss(), "opt_func": optimizer}
    learner = Learner(loaders, problem.model(), lr=LR, path=Path(name), **options)
    learner.remove_cb(ProgressCallback)
    learner.logger = lambda values: None
    return learner
