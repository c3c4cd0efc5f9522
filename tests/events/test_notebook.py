"""Runs in the cells of a notebook, with a real kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.notebooks import Notebook, html_of, open_notebook, text_of

pytestmark = pytest.mark.slow

SET_UP = """
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hookline import HOOKS, BaseHook, Runner
from hookline.hooks import LoggerHook
from tests.waiting import wait_until

generator = torch.Generator().manual_seed(0)
data = TensorDataset(torch.randn(40, 6, generator=generator), torch.arange(40) % 3)


@HOOKS.register()
class Noise(BaseHook):
    '''Adds noise to the inputs, and may wait for an interrupt.'''

    def __init__(self, wait_at=None):
        self.wait_at = wait_at

    def before_train_iter(self, runner):
        inputs, targets = runner.batch
        runner.batch = inputs + 0.1 * torch.randn_like(inputs), targets
        if runner.iter == self.wait_at:
            Path("waiting").touch()
            wait_until(lambda: runner.loop.requests.due_at == 0, "the interrupt")


def make_runner(folder, *hooks, **parts):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.Linear(8, 3))
    parts = {"max_epochs": 3, **parts}
    return Runner(
        model,
        train_loader=DataLoader(data, 4, shuffle=True),
        val_loader=DataLoader(data, 20),
        optimizer=torch.optim.AdamW(model.parameters(), lr=0.01),
        loss_fn=nn.CrossEntropyLoss(),
        metrics=["accuracy"],
        work_dir=folder,
        seed=3,
        hooks=hooks,
        **parts,
    )


def weights(runner):
    return [value.double().sum().item() for value in runner.model.state_dict().values()]
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    pytest.importorskip("ipykernel")
    with open_notebook(tmp_path_factory.mktemp("notebook")) as notebook:
        notebook.run(SET_UP)
        yield notebook


def test_an_interrupted_cell_ends_normally_and_training_continues_with_an_edited_hook(
    notebook: Notebook,
) -> None:
    notebook.run("whole = make_runner('whole', Noise()); whole.train()")
    notebook.run("runner = make_runner('parts', Noise(wait_at=13))")
    notebook.run("runner.train()", interrupt_at="waiting")
    assert notebook.value("[runner.iter, runner.stop_reason.details]") == [14, {"signal": "SIGINT"}]
    # Something else draws random numbers in between.
    notebook.run("torch.rand(5)")
    notebook.run(
        """
@HOOKS.register()
class Noise(BaseHook):
    '''Adds noise to the inputs, and counts.'''

    calls = 0

    def before_train_iter(self, runner):
        inputs, targets = runner.batch
        runner.batch = inputs + 0.1 * torch.randn_like(inputs), targets
        self.calls += 1


runner.unregister_hook("Noise")
runner.register_hook({"type": "Noise"})
"""
    )
    notebook.run("runner.train()")
    assert notebook.value("[runner.iter, runner.hook('Noise').calls]") == [30, 16]
    assert notebook.value("weights(runner)") == notebook.value("weights(whole)")
    assert notebook.value(
        "all(torch.equal(a, b) for a, b in zip(runner.model.parameters(), whole.model.parameters()))"
    )
    assert notebook.value("runner.optimizer.state_dict()['state'][0]['step'].item()") == 30


def test_a_cell_has_one_live_table_with_a_row_for_each_epoch_and_validation(
    notebook: Notebook,
) -> None:
    outputs = notebook.run("_ = make_runner('table', max_epochs=2).train()")
    (shown,) = html_of(outputs)
    assert 'max="20" value="20"' in shown
    assert "epoch 2/2" in shown
    rows = shown.partition("<table>")[2].split("<tr>")[1:]
    heads = [row.partition("</t")[0].partition(">")[2] for row in rows]
    assert heads == ["", "train", "val", "train", "val"]
    assert "<th>loss</th>" in rows[0]
    assert "<th>accuracy</th>" in rows[0]
    text = text_of(outputs)
    assert "stopped: reached max_epochs=2" in text
    assert "train  epoch" not in text
    assert "val  epoch" not in text


def test_the_log_file_has_the_lines_that_the_table_replaces(notebook: Notebook) -> None:
    notebook.run("_ = make_runner('lines', max_epochs=1).train()")
    lines = notebook.value("Path('lines/hookline.log').read_text().splitlines()")
    assert sum("train  epoch 1/1" in line for line in lines) == 1
    assert sum("val  epoch 1" in line for line in lines) == 1


def test_pictures_are_shown_in_the_cell_each_in_place_of_the_earlier_one(
    notebook: Notebook,
) -> None:
    outputs = notebook.run(
        """
class Draw(BaseHook):
    def after_train_iter(self, runner):
        runner.events.put_image("<noise>", torch.rand(3, 8, 8))


_ = make_runner("pictures", Draw(), max_epochs=1).train()
"""
    )
    _, picture = html_of(outputs)
    assert "&lt;noise&gt;, step 10" in picture
    assert picture.count("data:image/png;base64,") == 1


def test_a_runner_and_its_report_display_themselves(notebook: Notebook) -> None:
    (shown,) = html_of(notebook.run("whole = make_runner('show', max_epochs=1)\nwhole"))
    assert "0 of 1 epochs" in shown
    notebook.run("_ = whole.train()")
    (shown,) = html_of(notebook.run("whole.report"))
    assert shown.startswith("<iframe")


def test_ten_thousand_iterations_fill_less_than_50_kilobytes(notebook: Notebook) -> None:
    before = notebook.size()
    options = "max_epochs=1000, drop_hooks=['CheckpointHook']"
    notebook.run(f"_ = make_runner('long', LoggerHook(interval=10), {options}).train()")
    assert notebook.size() - before < 50_000


def test_lines_of_the_users_own_logging_replace_the_table(notebook: Notebook) -> None:
    outputs = notebook.run(
        """
import logging, sys
handler = logging.StreamHandler(sys.stdout)
logging.getLogger("hookline").addHandler(handler)
_ = make_runner("own", max_epochs=1).train()
logging.getLogger("hookline").removeHandler(handler)
"""
    )
    assert html_of(outputs) == []
