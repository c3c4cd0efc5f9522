"""Shard directories: the store deletes its own and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.manifest import Ledger, read_ledger, write_ledger
from hookline.checkpoint.names import MANIFEST
from hookline.checkpoint.store import CheckpointStore
from hookline.cli.main import main
from tests.checkpoint.helpers import Unsynced, content, files, opened
from tests.problems import logged


def save_shards(store: CheckpointStore, step: int) -> str:
    """Save a sharded checkpoint and return the name of its directory."""
    directory = store.claim_shards(step)
    (store.directory / directory / "__0_0.distcp").write_bytes(bytes(10))
    parts = store.describe_shards(directory)
    checkpoint = {**content(step), "shards": directory}
    store.save(checkpoint, f"epoch_{step}.pth", step=step, epoch=step, parts=parts)
    return directory


def make_directories_of_a_user(root: Path) -> list[Path]:
    """Make directories whose names look like those of the store."""
    paths = []
    for name in ("shards_of_my_dataset", "shards_1", "shards_12_0a1b2c3d"):
        (root / name).mkdir(parents=True)
        (root / name / "data.bin").write_text("mine")
        paths.append(root / name / "data.bin")
    return paths


def test_directories_of_a_user_survive_the_start_the_saves_and_the_removals_of_a_run(
    tmp_path: Path,
) -> None:
    precious = make_directories_of_a_user(tmp_path)
    store = opened(tmp_path)
    save_shards(store, 1)
    save_shards(store, 2)
    store.remove("epoch_1.pth")
    store.unlock()
    opened(tmp_path)
    assert [path.read_text() for path in precious] == ["mine"] * 3


def test_directories_of_a_user_survive_an_import(tmp_path: Path) -> None:
    precious = make_directories_of_a_user(tmp_path)
    golden = Path(__file__).parents[1] / "golden" / "mmengine_0.10.7_epoch_2.pth"
    assert main(["ckpt", "import", str(golden), "-o", str(tmp_path / "last.pth")]) == 0
    assert [path.read_text() for path in precious] == ["mine"] * 3


def test_the_shards_of_a_removed_checkpoint_are_removed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    save_shards(store, 1)
    second = save_shards(store, 2)
    store.remove("epoch_1.pth")
    assert files(tmp_path) == {"epoch_2.pth", second}
    assert read_ledger(tmp_path).shards == (second,)


def test_the_shards_of_an_overwritten_checkpoint_are_removed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    save_shards(store, 1)
    second = save_shards(store, 1)
    assert files(tmp_path) == {"epoch_1.pth", second}


def test_the_shards_of_a_killed_save_are_removed_at_the_next_start(tmp_path: Path) -> None:
    store = opened(tmp_path)
    directory = store.claim_shards(1)
    (tmp_path / directory / "__0_0.distcp").write_bytes(bytes(10))
    store.unlock()  # as a kill does
    opened(tmp_path)
    assert files(tmp_path) == set()
    assert read_ledger(tmp_path).shards == ()


def test_shards_that_are_being_written_survive_other_saves(tmp_path: Path) -> None:
    store = opened(tmp_path)
    directory = store.claim_shards(1)
    store.save(content(2), "epoch_2.pth", step=2, epoch=2)
    assert (tmp_path / directory).is_dir()


def test_the_shards_of_a_failed_save_are_removed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    directory = store.claim_shards(1)
    (tmp_path / directory / "__0_0.distcp").write_bytes(bytes(10))
    store.abandon_shards(directory)
    assert files(tmp_path) == set()


def test_a_directory_that_cannot_be_made_is_an_error_with_its_path(tmp_path: Path) -> None:
    class ReadOnly(Unsynced):
        def create_directory(self, path: Path) -> None:
            raise PermissionError(13, "Permission denied")

    store = opened(tmp_path, ReadOnly())
    with pytest.raises(CheckpointError) as caught:
        store.claim_shards(1)
    assert str(caught.value.file).startswith(str(tmp_path / "shards_1_"))


def test_a_manifest_cannot_claim_any_other_directory(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("mine")
    write_ledger(Unsynced(), tmp_path, MANIFEST, Ledger(1, shards=("src",)))
    with pytest.raises(CheckpointError):
        opened(tmp_path)
    assert (tmp_path / "src" / "main.py").read_text() == "mine"


def test_a_link_in_place_of_a_shard_directory_is_not_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "data.bin").write_text("mine")
    store = opened(tmp_path / "run")
    directory = store.claim_shards(1)
    (tmp_path / "run" / directory).rmdir()
    (tmp_path / "run" / directory).symlink_to(victim)
    store.unlock()
    opened(tmp_path / "run")
    assert (victim / "data.bin").read_text() == "mine"
    assert logged(caplog, directory)
