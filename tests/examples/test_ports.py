"""The ports give the numbers of their plain loops, also after they were killed."""

from __future__ import annotations

import contextlib
import importlib
import io
import multiprocessing
import re
import signal
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import _pytree

from tests.examples.port_jobs import optimizer_states, outcome, run_in_process, run_port

FOLDER = Path(__file__).parents[2] / "examples" / "ports"


@dataclass(frozen=True)
class Port:
    """A port, a length for it, and the two places at which it is killed."""

    name: str
    length: dict[str, int]
    kills: tuple[dict[str, Any], dict[str, Any]]
    prefix: str = ""  # of the names of the plain loop's weights in the port
    same_lines: bool = False  # whether both print the same result


def kills(first: int, second: int) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"at": first, "save_at": first - 2}, {"at": second, "save_at": second - 3}


PORTS = [
    Port("adder", {"iters": 24, "interval": 8}, kills(6, 18)),
    Port("dcgan", {"epochs": 2}, kills(7, 30)),
    Port("diffusion", {"epochs": 4}, kills(16, 33), same_lines=True),
    Port("distillation", {"epochs": 3}, kills(7, 45), prefix="student."),
    Port("forward_forward", {"epochs": 2}, kills(8, 29)),
    # The second kill is between two folds: the third one has no checkpoint yet.
    Port(
        "k_fold",
        {"epochs": 2},
        ({"at": 20, "save_at": 18, "run": "fold_1"}, {"at": 3, "run": "fold_2"}),
        same_lines=True,
    ),
    Port("moco", {"epochs": 3}, kills(7, 44)),
    Port("reinforce", {"iters": 14}, kills(5, 10)),
    Port("sequence_lbfgs", {"epochs": 6}, kills(2, 4)),
    Port("word_language_model", {"epochs": 2}, kills(9, 70)),
]
each_port = pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)


@cache
def run_plain(name: str) -> tuple[list[tuple[Any, Any, list[float]]], list[str]]:
    """Return models, optimizers and losses of a plain loop, and the lines that it prints."""
    port = next(each for each in PORTS if each.name == name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = importlib.import_module(f"examples.ports.{name}").plain(**port.length)
    return result if isinstance(result, list) else [result], printed.getvalue().splitlines()


def is_equal(one: Any, other: Any) -> bool:
    """Return whether two structures have the same bits."""
    ours, structure = _pytree.tree_flatten(one)
    theirs, expected = _pytree.tree_flatten(other)
    if structure != expected:
        return False
    for a, b in zip(ours, theirs, strict=True):
        same = torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
        if not same:
            return False
    return True


def check(port: Port, runs: list[dict[str, Any]]) -> None:
    """Compare the outcome of a port with that of its plain loop."""
    expected, _ = run_plain(port.name)
    for (model, optimizer, losses), run in zip(expected, runs, strict=True):
        assert run["losses"] == losses
        weights = {name: run["weights"][port.prefix + name] for name in model.state_dict()}
        assert is_equal(weights, dict(model.state_dict()))
        assert is_equal(run["optimizer"], optimizer_states(optimizer))


@each_port
def test_a_port_gives_the_numbers_of_its_plain_loop(port, tmp_path, capsys):
    runners = run_port(port.name, str(tmp_path / port.name), port.length)
    check(port, outcome(runners))
    _, lines = run_plain(port.name)
    if port.same_lines:
        assert lines
        assert set(lines) <= set(capsys.readouterr().out.splitlines())


@pytest.fixture(scope="module")
def processes():
    """Return a context whose processes are forks of one that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    ports = [f"examples.ports.{port.name}" for port in PORTS]
    modules = ["tests.examples.port_jobs", "hookline.runner", "torch._dynamo", *ports]
    context.set_forkserver_preload(modules)
    return context


@pytest.mark.slow
@each_port
def test_a_port_that_is_killed_twice_gives_the_same_numbers(port, tmp_path, processes):
    result = tmp_path / "result.pt"
    ends = []
    for kill in (*port.kills, None):
        arguments = (port.name, str(tmp_path / port.name), port.length, kill, str(result))
        process = processes.Process(target=run_in_process, args=arguments)
        process.start()
        process.join()
        ends.append(process.exitcode)
    assert ends == [-signal.SIGKILL, -signal.SIGKILL, 0]
    check(port, torch.load(result, weights_only=True))
    logs = "".join(path.read_text() for path in tmp_path.rglob("hookline.log"))
    assert "resumed at" in logs


def test_every_port_is_tested_and_in_the_table():
    names = sorted(path.stem for path in FOLDER.glob("*.py"))
    assert names == sorted(port.name for port in PORTS)
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\[(\w+)\.py\]\(\1\.py\)", text) == names
