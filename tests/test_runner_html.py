"""A runner in a notebook: a table about its run."""

from __future__ import annotations

import re

import torch
from torch import nn

from hookline import BaseHook, Runner
from tests.helpers import batches, small_model


class Named(BaseHook):
    """A hook with markup in its name."""


def test_a_runner_displays_its_position_results_and_hooks(tmp_path):
    model = small_model()
    runner = Runner(
        model,
        train_loader=batches(4),
        val_loader=batches(1),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        metrics=["accuracy"],
        max_epochs=2,
        work_dir=tmp_path,
        hooks=[Named(name="<b>mine</b>")],
    )
    assert "0 of 2 epochs, 0 of 8 iterations" in runner._repr_html_()
    runner.train()
    text = runner._repr_html_()
    assert "2 of 2 epochs, 8 of 8 iterations" in text
    assert re.search(r"<td>accuracy [\d.]+  val_loss [\d.]+</td>", text)
    assert "&lt;b&gt;mine&lt;/b&gt;" in text
    assert "<b>" not in text
