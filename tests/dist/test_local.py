"""`hookline.launch`: a function in several processes, from a script, a test or a notebook."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp

from hookline import HooklineError, launch
from tests.cli.helpers import command
from tests.dist import jobs
from tests.notebooks import open_notebook
from tests.problems import raises_problem
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.slow


def gathered(scale: float, more: float = 0.0) -> dict[str, Any]:
    """Return a sum over the ranks."""
    from hookline.dist import connect

    world = connect()
    return {"sum": world.sum([scale * (world.rank + 1) + more]), "size": world.size}


def failing() -> None:
    raise RuntimeError("boom")


def unpicklable() -> Any:
    return Path("x")


def test_a_function_of_a_module_runs_on_all_ranks_and_returns_the_result_of_rank_0() -> None:
    assert launch(gathered, 10.0, nproc=2, more=1.0) == {"sum": [32.0], "size": 2}


def test_two_processes_train_as_one_does_with_twice_the_batch(tmp_path: Path) -> None:
    alone = launch(jobs.train, tmp_path / "one", nproc=1)
    both = launch(jobs.train, tmp_path / "two", nproc=2)
    assert both["iter"] == alone["iter"]
    for name, value in alone["weights"].items():
        torch.testing.assert_close(both["weights"][name], value, rtol=1e-5, atol=1e-5)


def test_an_error_of_a_rank_is_raised() -> None:
    with pytest.raises(mp.ProcessRaisedException, match="boom"):
        launch(failing, nproc=2)


def test_a_result_that_is_no_plain_value_is_an_error() -> None:
    with raises_problem(HooklineError, component="launch"):
        launch(unpicklable, nproc=1)


def test_no_processes_are_an_error() -> None:
    with raises_problem(HooklineError, parameter="nproc"):
        launch(gathered, 1.0, nproc=0)


SCRIPT = """
import sys
from pathlib import Path

from hookline import BaseHook, launch
from tests.dist import jobs


class Announce(BaseHook):
    def after_train_iter(self, runner):
        Path(sys.argv[1], f"rank_{runner.world.rank}").touch()


def train():
    jobs.runner(Path(sys.argv[1]), max_epochs=100_000, hooks=[Announce()]).train()


if __name__ == "__main__":
    launch(train, nproc=2)
"""


def test_a_signal_stops_all_ranks_of_a_script_with_a_checkpoint(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = command(str(script), str(tmp_path), start=())
    for rank in range(2):
        wait_until((tmp_path / f"rank_{rank}").exists, f"the first iteration of rank {rank}")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, errors
    assert (tmp_path / "run" / "last.pth").exists()


CELL = """
import torch
from torch import nn
from torch.utils.data import TensorDataset
from hookline import Runner, launch, make_loader


def train(epochs):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    data = TensorDataset(torch.randn(32, 4), torch.randint(2, (32,)))
    runner = Runner(
        model,
        train_loader=make_loader(data, batch_size=4, shuffle=True),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=epochs,
        work_dir="runs/launched",
    ).train()
    return {"iter": runner.iter, "size": runner.world.size}


nn.Linear(4, 2)(torch.randn(2, 4)).sum().backward()  # This process has trained before.
launched = launch(train, 2, nproc=2)
"""


def test_a_function_of_a_cell_trains_in_forked_processes(tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    with open_notebook(tmp_path) as notebook:
        notebook.run(CELL)
        assert notebook.value("launched") == {"iter": 8, "size": 2}
