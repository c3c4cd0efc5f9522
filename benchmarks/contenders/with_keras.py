"""Keras on torch, with its own layers, schedule, average and callbacks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from benchmarks.contenders.hand import LR, MAX_NORM, MIN_LR, MOMENTUM
from benchmarks.rounds import Problem, TurnLoader


def minimal(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    model = _model(problem)
    model.compile(optimizer=keras.optimizers.SGD(LR, momentum=0.9), loss=_loss())
    _fit(model, loader, epochs)


def typical(loader: TurnLoader, problem: Problem, epochs: int) -> None:
    model = _model(problem)
    decay = keras.optimizers.schedules.CosineDecay
    schedule = decay(LR, epochs * len(loader), alpha=MIN_LR / LR)
    optimizer = keras.optimizers.SGD(
        schedule, momentum=0.9, global_clipnorm=MAX_NORM, use_ema=True, ema_momentum=MOMENTUM
    )
    model.compile(optimizer=optimizer, loss=_loss(), metrics=["accuracy"])
    batches = problem.batches(problem.validation, seed=1)
    inputs, targets = (
        np.concatenate([_layout(part).numpy() for part in parts])
        for parts in zip(*batches, strict=True)
    )
    with tempfile.TemporaryDirectory() as name:
        callbacks = [
            keras.callbacks.SwapEMAWeights(),
            keras.callbacks.CSVLogger(f"{name}/log.csv"),
            keras.callbacks.ModelCheckpoint(f"{name}/last.keras"),
        ]
        _fit(
            model,
            loader,
            epochs,
            callbacks=callbacks,
            validation_data=(inputs, targets),
            validation_batch_size=problem.batch_size,
        )


def _fit(model: Any, loader: TurnLoader, epochs: int, **options: Any) -> None:
    model.fit(
        _forever(loader, epochs), epochs=epochs, steps_per_epoch=len(loader), verbose=0, **options
    )


def _forever(loader: TurnLoader, epochs: int) -> Iterator[Any]:
    for _ in range(epochs + 1):  # Keras reads one batch more, to inspect its shape
        for inputs, targets in loader:
            yield _layout(inputs), targets


def _layout(tensor: Any) -> Any:
    return tensor.permute(0, 2, 3, 1) if tensor.ndim == 4 else tensor


def _loss() -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _model(problem: Problem) -> Any:
    layers = keras.layers
    if len(problem.shape) == 1:
        return keras.Sequential(
            [keras.Input(problem.shape), layers.Dense(64, "relu"), layers.Dense(10)]
        )
    channels, height, width = problem.shape
    net: list[Any] = [keras.Input((height, width, channels))]
    for filters in (8, 16):
        net += [
            layers.Conv2D(filters, 3, strides=2, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
        ]
    return keras.Sequential([*net, layers.GlobalAveragePooling2D(), layers.Dense(10)])
