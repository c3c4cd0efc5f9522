"""The report of a run in the cell of a notebook."""

from __future__ import annotations

import html
import re

import torch
from torch import nn

from hookline import Runner
from tests.helpers import batches, small_model


def test_a_report_displays_its_page_in_a_frame(tmp_path):
    model = small_model()
    runner = Runner(
        model,
        train_loader=batches(4),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=1,
        work_dir=tmp_path / "digits",
    )
    assert "<iframe" not in runner.report._repr_html_()
    runner.train()
    shown = runner.report._repr_html_()
    source = re.fullmatch(r'<iframe srcdoc="([^"]*)" [^>]*></iframe>', shown)
    assert source is not None
    page = html.unescape(source[1])
    assert page.startswith("<!doctype html>")
    assert '"name":"digits"' in page
    assert "digits" in repr(runner.report)
