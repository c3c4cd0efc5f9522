"""Models of which each process holds a part."""

from __future__ import annotations

import shutil
import signal

import pytest
import torch

from hookline.checkpoint import CheckpointError, CheckpointStore, load_whole
from hookline.checkpoint.mirror_manifest import read_manifest
from hookline.cli.main import main
from hookline.remote import RemoteDirectory
from tests.dist import jobs
from tests.dist.processes import Job, run_job
from tests.object_storage import environment

pytestmark = pytest.mark.slow
OPTIONS = {"adam": True, "batch_size": 8, "max_epochs": 2}
SAVE = {"type": "CheckpointHook", "max_keep_ckpts": 1}
EMA = {"type": "EMAHook", "momentum": 0.9}


def close(a, b):
    return all(torch.allclose(a[name], b[name], atol=1e-5) for name in a)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of two processes, stopped after its first epoch, with an average of the weights."""
    folder = tmp_path_factory.mktemp("fsdp")
    hooks = [SAVE, {"type": "EMAHook", "momentum": 0.9}, {"type": "StopAtHook", "epoch": 1}]
    run_job(2, jobs.train, folder, strategy="fsdp", hooks=hooks, **OPTIONS)
    return folder


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The same, never interrupted, by one process that shards nothing."""
    hooks = [SAVE, {"type": "EMAHook", "momentum": 0.9}]
    return run_job(1, jobs.train, tmp_path_factory.mktemp("straight"), hooks=hooks, **OPTIONS)[0]


@pytest.mark.parametrize(("count", "strategy"), [(2, "fsdp"), (1, "auto"), (2, "ddp")])
def test_a_sharded_run_resumes_sharded_or_whole_with_the_same_result(
    tmp_path, folder, straight, count, strategy
):
    shutil.copytree(folder / "run", tmp_path / "run")
    hooks = [SAVE, {"type": "EMAHook", "momentum": 0.9}]
    results = run_job(
        count, jobs.train, tmp_path, strategy=strategy, hooks=hooks, resume="auto", **OPTIONS
    )
    assert results[0]["iter"] == straight["iter"]
    assert close(results[0]["weights"], straight["weights"])
    assert results[0]["metrics"]["val_loss"] == pytest.approx(
        straight["metrics"]["val_loss"], abs=1e-5
    )


def test_a_killed_sharded_run_continues_from_its_mirror_on_an_empty_disk(tmp_path, proxy):
    url = "s3://runs/sharded"
    save = {**SAVE, "by_epoch": False, "interval": 1}
    (straight, _) = run_job(
        2, jobs.train, tmp_path / "straight", strategy="fsdp", hooks=[save, EMA], **OPTIONS
    )
    hooks = [{**save, "mirror": url}, EMA]
    options = {**OPTIONS, "strategy": "fsdp", "environment": environment(proxy.url)}
    killed = Job(2, jobs.train_with_mirror, tmp_path / "first", hooks=hooks, url=url, **options)
    killed.wait()
    assert [process.exitcode for process in killed.processes] == [-signal.SIGKILL] * 2
    newest = read_manifest(RemoteDirectory(url)).newest()
    assert newest.parts
    shutil.rmtree(tmp_path / "first" / "run")
    results = run_job(
        2, jobs.train_with_mirror, tmp_path / "second", hooks=hooks, resume="auto", **options
    )
    assert results[0]["iter"] == straight["iter"]
    for name, value in straight["weights"].items():
        assert torch.equal(results[0]["weights"][name], value), name
    remote = RemoteDirectory(url)
    manifest = read_manifest(remote)
    assert manifest.resumed_from.sha256 == newest.sha256
    assert manifest.keys() == set(remote.list("files"))


def test_an_unsharded_run_resumes_sharded(tmp_path, straight):
    hooks = [SAVE, {"type": "EMAHook", "momentum": 0.9}]
    run_job(1, jobs.train, tmp_path, hooks=[*hooks, {"type": "StopAtHook", "epoch": 1}], **OPTIONS)
    results = run_job(
        2, jobs.train, tmp_path, strategy="fsdp", hooks=hooks, resume="auto", **OPTIONS
    )
    assert close(results[0]["weights"], straight["weights"])


def test_only_the_shards_of_checkpoints_that_are_kept_stay(folder):
    store = CheckpointStore(folder / "run")
    used = {part.name.partition("/")[0] for entry in store.entries() for part in entry.parts}
    assert used == {path.name for path in (folder / "run").glob("shards_*")}
    assert len(used) >= 1


def test_a_flipped_bit_in_a_shard_is_found(tmp_path, folder):
    shutil.copytree(folder / "run", tmp_path / "run")
    store = CheckpointStore(tmp_path / "run")
    assert store.latest() is not None
    for path in (tmp_path / "run").glob("shards_*/*.distcp"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    latest = store.find_latest()
    assert latest.entry is None
    assert all("checksum" in text for text in latest.skipped)
    with pytest.raises(CheckpointError, match=r"shards_\w+/.*\.distcp"):
        load_whole(tmp_path / "run" / "last.pth")


def test_an_average_is_taken_over_and_published_whole_and_what_only_the_main_process_does_waits_for_no_other(
    tmp_path, folder
):
    average = {
        "type": "EMAHook",
        "resume_from": str(folder / "run" / "last.pth"),
        "momentum": 0.999999,
        "warm_up": 0,
    }
    save = {**SAVE, "published_keys": ["state_dict"], "save_best": False, "save_on_exception": True}
    looking = [
        {"type": "GradientFlowHook", "frequency": 2},
        {"type": "HistogramHook", "interval": 2},
    ]
    job = Job(
        2,
        jobs.train,
        tmp_path,
        strategy="fsdp",
        hooks=[save, average, *looking],
        **{**OPTIONS, "max_epochs": 1},
    )
    first, _ = job.results()
    (published,) = (tmp_path / "run").glob("last-*.pth")
    before = load_whole(folder / "run" / "last.pth")["ema_state_dict"]
    assert close(torch.load(published, weights_only=True)["state_dict"], before)
    assert not close(first["weights"], before)
    assert "save_on_exception is ignored for sharded models" in job.output(0)
    drawn = {
        path.relative_to(tmp_path / "run" / "visualizations").parts[1]
        for path in (tmp_path / "run").rglob("*.png")
    }
    assert {"step_000002.png", "histograms", "history", "history_largest"} <= drawn


def test_mixed_precision_and_named_blocks(tmp_path):
    strategy = {"type": "fsdp", "mixed_precision": "bfloat16", "wrap": ["Linear"]}
    results = run_job(2, jobs.train, tmp_path, strategy=strategy, **OPTIONS)
    assert results[0]["weights"]["0.weight"].dtype == torch.float32
    assert results[0]["metrics"]["accuracy"] > 0.7


def test_a_consolidated_checkpoint_is_one_file_to_resume_from(tmp_path, folder, straight, capsys):
    target = tmp_path / "whole.pth"
    assert main(["ckpt", "consolidate", str(folder / "run" / "last.pth"), "-o", str(target)]) == 0
    hooks = [SAVE, {"type": "EMAHook", "momentum": 0.9}]
    (result,) = run_job(1, jobs.train, tmp_path, hooks=hooks, resume=str(target), **OPTIONS)
    assert close(result["weights"], straight["weights"])
    assert main(["ckpt", "verify", str(folder / "run")]) == 0
    assert main(["ckpt", "diff", str(folder / "run" / "last.pth"), str(target)]) == 0
