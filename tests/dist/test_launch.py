"""The description of a job in environment variables."""

from __future__ import annotations

import time

import pytest
import torch.distributed as dist

from hookline.dist import World, choose_strategy, find_launch, first_launch_time
from hookline.dist.launch import first_host, torchrun_command
from hookline.errors import HooklineError
from tests.dist import jobs
from tests.dist.processes import run_job
from tests.problems import raises_problem

TORCHRUN = {
    "RANK": "3",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "MASTER_ADDR": "node7",
    "MASTER_PORT": "29500",
}
SRUN = {
    "SLURM_PROCID": "5",
    "SLURM_STEP_NUM_TASKS": "16",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_NODELIST": "gpu[003-004,9]",
    "SLURM_JOB_ID": "70001",
}


def test_torchrun_is_understood():
    assert find_launch(TORCHRUN) == (3, 8, 1, "node7", 29500)


def test_srun_is_understood_without_torchrun():
    assert find_launch(SRUN) == (5, 16, 1, "gpu003", 20000 + 70001 % 20000)
    assert find_launch({**SRUN, "MASTER_ADDR": "other", "MASTER_PORT": "1234"}) == (
        5,
        16,
        1,
        "other",
        1234,
    )


def test_a_batch_script_is_one_process_and_no_rank():
    assert find_launch({"SLURM_PROCID": "0", "SLURM_NTASKS": "16", "SLURM_JOB_ID": "7"}) is None


def test_without_either_there_is_no_job():
    assert find_launch({}) is None


def test_an_incomplete_environment_is_an_error():
    with pytest.raises(HooklineError, match="MASTER_ADDR and MASTER_PORT"):
        find_launch({"RANK": "0", "WORLD_SIZE": "2"})
    with pytest.raises(HooklineError, match="WORLD_SIZE.*'two'"):
        find_launch({**TORCHRUN, "WORLD_SIZE": "two"})


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node1", "node1"),
        ("a,b", "a"),
        ("gpu[003-007,9],cpu1", "gpu003"),
        ("n[12]", "n12"),
        ("r[1-2]-x", "r1-x"),
        ("r[1-2]-x,y", "r1-x"),
    ],
)
def test_the_first_host_of_slurms_lists(nodes, first):
    assert first_host(nodes) == first


def test_torchrun_gets_our_command():
    command = torchrun_command(4, ["train", "c.yaml"], max_restarts=2)
    assert command[1:3] == ["-m", "torch.distributed.run"]
    assert command[-4:] == ["-m", "hookline", "train", "c.yaml"]
    assert "4" in command
    assert "2" in command


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("dpp", {"value": "dpp", "nearest": "ddp"}),
        (
            {"type": "ddp", "find_unused": True},
            {"parameter": "find_unused", "nearest": "find_unused_parameters"},
        ),
        ({"type": "fsdp", "wrapp": []}, {"parameter": "wrapp", "nearest": "wrap"}),
        ({"type": "ddp", "timeout": 0}, {"parameter": "timeout", "value": 0}),
    ],
)
def test_a_wrong_strategy_is_rejected_with_the_nearest_name(given, expected):
    with raises_problem(component="strategy", **expected):
        choose_strategy(given, World(0, 2))


def test_auto_is_what_the_number_of_processes_asks_for():
    assert choose_strategy("auto", World()).kind == "single"
    assert choose_strategy("auto", World(1, 2)).kind == "ddp"
    assert choose_strategy("fsdp", World()).kind == "single"
    with raises_problem(component="strategy"):
        choose_strategy("single", World(0, 2))


def test_one_machines_restart_is_known_to_all(tmp_path):
    first, second = run_job(2, jobs.restarted_on, tmp_path, rank=1)
    assert first == second == 0.0


def test_torchruns_store_remembers_the_first_start_also_on_a_machine_that_is_new(monkeypatch):
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    agent = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    for name, value in {
        **agent,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_RUN_ID": "one",
    }.items():
        monkeypatch.setenv(name, value)
    before = time.time()
    assert first_launch_time(World()) is None
    after = time.time()
    assert before <= first_launch_time(World()) <= after
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "another job that meets at the same place")
    assert first_launch_time(World()) is None
