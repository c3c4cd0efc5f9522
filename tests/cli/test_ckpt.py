"""`hookline ckpt`: every subcommand on real checkpoints."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
import torch

from hookline.checkpoint import CheckpointStore, load_checkpoint, write_checkpoint
from hookline.checkpoint.mirror_manifest import content_key, read_manifest
from hookline.checkpoint.mirror_upload import MirrorUpload
from hookline.cli.main import main
from hookline.remote import RemoteDirectory
from tests.checkpoint.helpers import flip_bit
from tests.cli.helpers import error_of, write_config


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The work directory of a finished run."""
    assert main(["train", write_config(tmp_path)]) == 0
    capsys.readouterr()
    return tmp_path / "run"


def test_ls_lists_names_counters_and_metrics(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ckpt", "ls", str(run)]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "epoch", "iter", "size", "saved", "metrics"]
    assert "last.pth" in row
    assert "accuracy" in row
    assert main(["ckpt", "ls", str(run), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["epoch"], entry["step"]) == (1, 5)
    assert "last.pth" in entry["names"]


def test_ls_of_a_directory_without_checkpoints_succeeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ckpt", "ls", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"no checkpoints in {tmp_path}\n"


def test_ls_needs_a_directory(tmp_path: Path) -> None:
    error_of("ckpt", "ls", str(tmp_path / "nothing"))
    assert main(["ckpt", "ls", str(tmp_path / "nothing")]) == 2


def test_show_prints_the_date_and_the_names_of_recorded_values(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ckpt", "show", str(run)]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", rows["meta.time"])
    assert "loss" in rows["events"]
    assert not re.search(r"\d\.\d", rows["events"])
    assert "meta.config" not in rows


def test_show_prints_json(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ckpt", "show", str(run / "last.pth"), "--json"]) == 0
    assert "state_dict" in json.loads(capsys.readouterr().out)


def test_show_needs_a_good_checkpoint(tmp_path: Path) -> None:
    error_of("ckpt", "show", str(tmp_path))


def test_verify_exits_with_1_if_a_checkpoint_is_damaged(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ckpt", "verify", str(run)]) == 0
    assert "last.pth: good" in capsys.readouterr().out
    path = run / "last.pth"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(content)
    assert main(["ckpt", "verify", str(path)]) == 1
    assert str(path) in capsys.readouterr().out
    assert main(["ckpt", "verify", str(run / "epoch_1.pth")]) == 0


@pytest.mark.parametrize("file_format", ["safetensors", "pth"])
def test_publish_writes_the_weights_alone(
    file_format: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = run / "published"
    options = ["--format", file_format, "-o", str(target)]
    assert main(["ckpt", "publish", str(run / "last.pth"), *options]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert re.fullmatch(rf"published-[0-9a-f]+\.{file_format}", path.name)
    assert path.stat().st_size < (run / "last.pth").stat().st_size


def test_consolidate_writes_one_file_beside_the_checkpoint(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ckpt", "consolidate", str(run / "last.pth")]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path == run / "last_whole.pth"
    assert set(load_checkpoint(path)) == set(load_checkpoint(run / "last.pth"))


def test_a_resumed_run_and_a_straight_one_do_not_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(
        tmp_path, "  - {type: TimeTrackingHook, log_path: '${work_dir}/times.txt'}\n"
    )
    straight, pieces, other = (str(tmp_path / name) for name in ("straight", "pieces", "other"))
    assert main(["train", config, "training.epochs=2", "--work-dir", straight]) == 0
    assert main(["train", config, "--work-dir", pieces]) == 0
    assert main(["train", config, "training.epochs=2", "--work-dir", pieces, "--resume"]) == 0
    assert main(["train", config, "training.epochs=2", "--work-dir", other, "seed=2"]) == 0
    capsys.readouterr()
    assert main(["ckpt", "diff", straight, pieces]) == 0
    *lines, ignored = capsys.readouterr().out.splitlines()
    parts = dict(line.split(maxsplit=1) for line in lines)
    names = {"meta", "state_dict", "optimizer", "hooks", "rng", "loader", "events", "config"}
    assert set(parts) == names
    assert set(parts.values()) == {"equal"}
    assert "work_dir" in ignored

    assert main(["ckpt", "diff", straight, other]) == 1
    *lines, ignored = capsys.readouterr().out.splitlines()
    shown = "\n".join(lines)
    assert re.search(r"^state_dict +\S+: \d+ of \d+ values differ, by up to ", shown, re.MULTILINE)
    assert re.search(r"^config +seed: 1 and 2$", shown, re.MULTILINE)
    assert not re.search("time|memory_mb|wall", shown)


def test_diff_names_a_part_that_only_one_checkpoint_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = {"state_dict": {"weight": torch.ones(2)}}
    write_checkpoint({**weights, "mine": 1}, tmp_path / "one.pth")
    write_checkpoint(
        {**weights, "mine": 2, "ema_state_dict": weights["state_dict"]}, tmp_path / "two.pth"
    )
    assert main(["ckpt", "diff", str(tmp_path / "one.pth"), str(tmp_path / "two.pth")]) == 1
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [
        ["state_dict", "equal"],
        ["mine", "1 and 2"],
        ["ema_state_dict", "only in the second"],
    ]


def test_diff_compares_the_state_of_each_rank_without_its_clocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(name: str, seconds: float, loss: float) -> str:
        events = {
            "time": {"window": [seconds], "smoothed": True},
            "loss": {"window": [loss], "smoothed": True},
        }
        stream = io.BytesIO()
        torch.save({"rng": {"torch": torch.zeros(2)}, "events": events}, stream)
        state = torch.frombuffer(bytearray(stream.getvalue()), dtype=torch.uint8)
        write_checkpoint({"by_rank": [state]}, tmp_path / name)
        return str(tmp_path / name)

    one = write("one.pth", 0.1, 2.0)
    assert main(["ckpt", "diff", one, write("two.pth", 0.2, 2.0)]) == 0
    capsys.readouterr()
    assert main(["ckpt", "diff", one, write("three.pth", 0.1, 3.0)]) == 1
    assert capsys.readouterr().out.startswith("by_rank  [0].events.loss.window[0]: 2.0 and 3.0\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls", "a", "b"],
        ["diff", "a.pth"],
        ["verify", "a.pth", "--json"],
        ["show", "a.pth", "--format", "pth"],
    ],
)
def test_a_subcommand_takes_only_its_own_arguments(arguments: list[str]) -> None:
    assert main(["ckpt", *arguments]) == 2


@pytest.fixture
def mirror(run: Path, tmp_path: Path) -> str:
    """The URL of a mirror of a finished run."""
    remote = RemoteDirectory(f"file://{tmp_path}/mirror")
    MirrorUpload(remote, CheckpointStore(run), run, lambda size: None).run()
    return remote.url


def test_the_commands_take_the_urls_of_a_mirror(
    mirror: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ckpt", "ls", mirror, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["step"] == 5
    for url in (mirror, f"{mirror}/last.pth"):
        assert main(["ckpt", "verify", url]) == 0
        assert "last.pth: good" in capsys.readouterr().out
        assert main(["ckpt", "show", url]) == 0
        assert "meta.iter" in capsys.readouterr().out
    output = str(tmp_path / "weights")
    assert main(["ckpt", "publish", f"{mirror}/last.pth", "-o", output]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()


def test_verify_finds_damage_in_a_mirror(mirror: str, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = read_manifest(RemoteDirectory(mirror))
    assert manifest is not None
    flip_bit(Path(mirror.removeprefix("file://"), content_key(manifest.entries[0])))
    assert main(["ckpt", "verify", mirror]) == 1
    assert "damaged" in capsys.readouterr().out


def test_ls_needs_the_mirror_of_a_run(tmp_path: Path) -> None:
    error_of("ckpt", "ls", f"file://{tmp_path}/nothing")
