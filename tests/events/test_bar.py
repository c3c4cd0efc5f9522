"""The progress bar, drawn into a file."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hookline.events.bar import ProgressBar


@pytest.mark.parametrize(
    ("epoch", "max_epochs", "shown"),
    [(0, 2, "epoch 1/2"), (1, 2, "epoch 2/2"), (2, 2, "epoch 2/2"), (4, None, "epoch 5")],
)
def test_the_bar_names_the_epoch_and_none_after_the_last(epoch, max_epochs, shown):
    bar = ProgressBar(SimpleNamespace(iter=5, epoch=epoch, max_epochs=max_epochs, max_iters=10))
    list(bar.get_renderables())
    bar.stop()
    assert [task.description for task in bar.tasks] == [shown]
