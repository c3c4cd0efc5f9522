"""A store of checkpoints in one directory."""

from __future__ import annotations

import os
import resource
import signal
import stat
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.checkpoint.diff import diff
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.manifest import INEXACT, read_ledger
from hookline.checkpoint.names import JOURNAL, LEDGER_TEMPORARIES, MANIFEST, temporary_name
from hookline.checkpoint.store import CheckpointStore
from tests.checkpoint.helpers import (
    NoLinks,
    Unsynced,
    content,
    files,
    flip_bit,
    listed,
    opened,
    saved,
)
from tests.problems import logged, raises_problem


def test_a_hidden_manifest_is_read_as_any_other_and_only_hidden_files_are_written(
    tmp_path: Path,
) -> None:
    store = CheckpointStore(tmp_path, hidden=True)
    store.prepare()
    store.save(content(1), "epoch_1.pth", step=1, epoch=1)
    store.save(content(2), "epoch_1.pth", step=2, epoch=1)
    store.unlock()
    visible = [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")]
    assert visible == ["epoch_1.pth"]
    again = opened(tmp_path, FileSystem())  # a visible manifest, which continues the hidden one
    assert [entry.step for entry in again.entries()] == [2]
    again.save(content(3), "epoch_2.pth", step=3, epoch=2)
    again.unlock()
    hidden = CheckpointStore(tmp_path, hidden=True)
    hidden.prepare()
    assert [entry.step for entry in hidden.entries()] == [2, 3]
    hidden.remove("epoch_1.pth")
    assert [entry.step for entry in CheckpointStore(tmp_path).entries()] == [3]


def test_a_saved_checkpoint_is_listed_and_loaded(tmp_path: Path) -> None:
    store = opened(tmp_path / "a" / "b", FileSystem())
    before = time.time()
    entry = store.save(
        content(7), "epoch_1.pth", step=7, epoch=1, metrics={"accuracy": 0.5}, tags=["first"]
    )
    assert diff(store.load("epoch_1.pth"), content(7)) == []
    assert diff(store.load(entry), content(7)) == []
    assert store.entries() == [entry]
    assert store.latest() == entry
    assert store.verify("epoch_1.pth") == entry
    assert (entry.name, entry.step, entry.epoch, entry.metrics, entry.tags, entry.finite) == (
        "epoch_1.pth",
        7,
        1,
        {"accuracy": 0.5},
        ("first",),
        True,
    )
    assert before <= entry.time <= time.time()
    assert entry.versions["torch"] == torch.__version__
    assert entry.size == (store.directory / entry.name).stat().st_size
    assert stat.S_IMODE((store.directory / entry.name).stat().st_mode) == 0o600


def test_an_empty_directory_has_no_latest_checkpoint(tmp_path: Path) -> None:
    assert CheckpointStore(tmp_path).latest() is None
    assert CheckpointStore(tmp_path / "absent").entries() == []
    assert opened(tmp_path).find_latest() == (None, [])


@pytest.mark.parametrize("fs", [Unsynced(), NoLinks()])
def test_links_lead_to_the_same_content_and_move_to_the_next_checkpoint(
    tmp_path: Path, fs: FileSystem
) -> None:
    store = opened(tmp_path, fs)
    for step in (1, 2):
        store.save(
            content(step),
            f"epoch_{step}.pth",
            links=["last.pth", "best.pth", "last.pth"],
            step=step,
            epoch=step,
        )
    store.save(content(3), "epoch_3.pth", links=["last.pth"], step=3, epoch=3)
    assert [entry.names for entry in store.entries()] == [
        ("epoch_1.pth",),
        ("epoch_2.pth", "best.pth"),
        ("epoch_3.pth", "last.pth"),
    ]
    assert [
        store.load(name)["meta"]["step"] for name in ("last.pth", "best.pth", "epoch_1.pth")
    ] == [3, 2, 1]
    assert os.path.samefile(tmp_path / "last.pth", tmp_path / "epoch_3.pth") is not isinstance(
        fs, NoLinks
    )


def test_prepare_removes_the_temporary_files_of_a_killed_run(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2).unlock()
    token = read_ledger(tmp_path).token
    for name in (temporary_name(token), *LEDGER_TEMPORARIES):
        (tmp_path / name).write_bytes(b"torn")
    opened(tmp_path)
    assert files(tmp_path) == {"epoch_1.pth", "epoch_2.pth", "last.pth"}


def test_prepare_keeps_temporary_files_of_users_and_of_other_processes(tmp_path: Path) -> None:
    saved(tmp_path, 1).unlock()
    others = {"mine.tmp", temporary_name(), temporary_name("0123456789abcdef")}
    for name in others:
        (tmp_path / name).write_bytes(b"in use")
    opened(tmp_path)
    assert others <= files(tmp_path)


def test_prepare_drops_and_logs_the_names_of_files_that_the_user_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "hookline")
    saved(tmp_path, 1, 2).unlock()
    (tmp_path / "epoch_1.pth").unlink()
    store = opened(tmp_path)
    assert [entry.names for entry in store.entries()] == [("epoch_2.pth", "last.pth")]
    assert "epoch_1.pth" in caplog.text


class KillsAfterUnlink(FileSystem):
    """A file system whose process is killed right after it deleted one file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        if path.name == self.name:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("killed_at", ["epoch_1.pth", "epoch_2.pth"])
def test_files_that_a_killed_removal_deleted_are_not_reported_as_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, killed_at: str
) -> None:
    caplog.set_level("INFO", "hookline")
    saved(tmp_path, 1, 2, 3, 4).unlock()
    child = os.fork()
    if child == 0:
        opened(tmp_path, KillsAfterUnlink(killed_at)).remove("epoch_1.pth", "epoch_2.pth")
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    left = {"epoch_2.pth", "epoch_3.pth", "epoch_4.pth", "last.pth"} - {killed_at}
    assert files(tmp_path) == left
    assert listed(CheckpointStore(tmp_path)) == left
    (tmp_path / "epoch_3.pth").unlink()
    store = opened(tmp_path)
    assert listed(store) == left - {"epoch_3.pth"}
    assert "epoch_3.pth" in caplog.text
    assert "epoch_1.pth" not in caplog.text
    assert killed_at not in caplog.text


def test_a_moved_directory_works(tmp_path: Path) -> None:
    saved(tmp_path / "old", 1, 2).unlock()
    (tmp_path / "old").rename(tmp_path / "new")
    store = opened(tmp_path / "new")
    entry = store.latest()
    assert entry is not None
    assert store.load(entry)["meta"]["step"] == 2


def test_an_invalid_checkpoint_is_rejected_before_anything_is_written(
    tmp_path: Path,
) -> None:
    store = saved(tmp_path, 1)
    before = files(tmp_path)
    with raises_problem(path=("hooks",)):
        store.save({"hooks": {1}}, "epoch_2.pth", step=2, epoch=2)
    with raises_problem(value="../x.pth"):
        store.save(content(2), "../x.pth", step=2, epoch=2)
    with raises_problem(value="/tmp/x.pth"):
        store.save(content(2), "epoch_2.pth", links=["/tmp/x.pth"], step=2, epoch=2)
    assert files(tmp_path) == before
    assert not (tmp_path.parent / "x.pth").exists()


def test_a_symbolic_link_at_the_target_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    directory = tmp_path / "run"
    directory.mkdir()
    for name in ("epoch_1.pth", "last.pth", MANIFEST + ".x"):
        (directory / name).symlink_to(victim)
    store = saved(directory, 1)
    assert victim.read_text() == "mine"
    assert not (directory / "epoch_1.pth").is_symlink()
    assert store.load("last.pth")["meta"]["step"] == 1


def test_saving_and_removing_need_preparation(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2).unlock()
    with pytest.raises(AssertionError, match="prepare"):
        CheckpointStore(tmp_path).save(content(1), "x.pth", step=1, epoch=1)
    with pytest.raises(AssertionError, match="prepare"):
        CheckpointStore(tmp_path).remove("epoch_1.pth")


def test_a_directory_that_is_writable_for_all_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened(tmp_path).unlock()
    assert not caplog.text
    tmp_path.chmod(0o777)
    opened(tmp_path)
    assert logged(caplog, str(tmp_path), "o-w")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.chown(tmp_path, 12345, -1)
    opened(tmp_path)
    assert logged(caplog, str(tmp_path), "another user")


def test_the_error_for_an_unknown_name_suggests_the_nearest_one(tmp_path: Path) -> None:
    store = saved(tmp_path, 1)
    for use in (store.load, store.verify):
        with raises_problem(CheckpointError, parameter="epoc_1.pth", nearest="epoch_1.pth"):
            use("epoc_1.pth")


def test_a_disk_with_too_little_space_is_detected_before_anything_is_written(
    tmp_path: Path,
) -> None:
    class Small(Unsynced):
        def free_bytes(self, directory: Path) -> int:
            return 4096

        def create(self, path: Path) -> int:
            created.append(path)
            return super().create(path)

    created: list[Path] = []
    store = opened(tmp_path, Small())
    created.clear()
    with raises_problem(CheckpointError, file=str(tmp_path / "epoch_1.pth")) as caught:
        store.save(content(1), "epoch_1.pth", step=1, epoch=1)
    assert "\n" not in str(caught.value)
    assert "4,096" in str(caught.value)
    assert created == []
    assert files(tmp_path) == set()


def test_a_file_size_limit_of_the_system_leaves_the_previous_checkpoint_intact(
    tmp_path: Path,
) -> None:
    saved(tmp_path, 1).unlock()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            opened(tmp_path).save(
                {"state_dict": {"w": torch.ones(100_000)}}, "epoch_2.pth", step=2, epoch=2
            )
        except CheckpointError as error:
            os._exit(0 if error.file == str(tmp_path / "epoch_2.pth") else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert files(tmp_path) == {"epoch_1.pth", "last.pth"}
    assert opened(tmp_path).load("last.pth")["meta"]["step"] == 1


def test_weights_that_are_not_finite_never_become_last_or_best_and_are_skipped(
    tmp_path: Path,
) -> None:
    store = saved(tmp_path, 1)
    entry = store.save(
        content(2, float("nan")), "epoch_2.pth", links=["last.pth", "best.pth"], step=2, epoch=2
    )
    assert (entry.finite, entry.names) == (False, ("epoch_2.pth",))
    found, skipped = store.find_latest()
    assert found is not None
    assert found.step == 1
    assert [text.partition(":")[0] for text in skipped] == ["epoch_2.pth"]
    assert store.load("last.pth")["meta"]["step"] == 1
    assert store.remove("epoch_1.pth", "last.pth") == ["last.pth"]


def test_weights_that_are_not_finite_take_no_name_from_a_good_checkpoint(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for step, value in enumerate((float("nan"), None, float("nan"), float("inf"))):
        store.save(content(step, value), "last.pth", step=step, epoch=step)
    assert [(entry.name, entry.step) for entry in store.entries()] == [
        ("last.pth", 1),
        ("not_finite_last.pth", 3),
    ]
    assert store.remove("last.pth") == []


def test_an_inexact_checkpoint_does_not_replace_one_to_resume_from(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.save(content(1), "epoch_1.pth", step=1, epoch=1)
    store.save(content(2), "exception.pth", step=2, epoch=2, tags=[INEXACT])
    assert store.remove("epoch_1.pth") == []
    found, skipped = store.find_latest()
    assert found is not None
    assert found.step == 1
    assert [text.partition(":")[0] for text in skipped] == ["exception.pth"]


def test_a_damaged_file_is_skipped_and_another_intact_name_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(tmp_path, NoLinks())
    for step in (1, 2):
        store.save(content(step), f"epoch_{step}.pth", links=["last.pth"], step=step, epoch=step)
    flip_bit(tmp_path / "epoch_2.pth")
    found, skipped = store.find_latest()
    assert found is not None
    assert found.name == "last.pth"
    assert [text.partition(":")[0] for text in skipped] == ["epoch_2.pth"]
    with open(tmp_path / "last.pth", "ab") as file:
        file.write(b"!")
    latest = store.latest()
    assert latest is not None
    assert latest.name == "epoch_1.pth"
    assert logged(caplog, "last.pth", "damaged")


def test_only_files_of_the_store_are_removed(tmp_path: Path) -> None:
    store = saved(tmp_path, 1, 2)
    (tmp_path / "other.pth").write_text("mine")
    assert store.remove("other.pth", "epoch_1.pth", "../x", "absent.pth") == ["epoch_1.pth"]
    assert files(tmp_path) == {"other.pth", "epoch_2.pth", "last.pth"}
    (tmp_path / JOURNAL).unlink()  # The manifest alone is complete.
    assert [entry.names for entry in CheckpointStore(tmp_path).entries()] == [
        ("epoch_2.pth", "last.pth")
    ]


def test_the_last_good_checkpoint_is_kept_even_if_it_is_named(tmp_path: Path) -> None:
    store = saved(tmp_path, 1, 2)
    flip_bit(tmp_path / "epoch_2.pth")
    assert store.remove("epoch_1.pth", "epoch_2.pth", "last.pth") == ["epoch_2.pth", "last.pth"]
    assert store.remove("epoch_1.pth") == []
    assert files(tmp_path) == {"epoch_1.pth"}


def test_of_checkpoints_that_are_all_not_finite_the_newest_is_kept(
    tmp_path: Path,
) -> None:
    store = opened(tmp_path)
    for step in (1, 2):
        store.save(content(step, float("inf")), f"epoch_{step}.pth", step=step, epoch=step)
    assert store.remove("epoch_1.pth", "epoch_2.pth") == ["epoch_1.pth"]


actions = st.one_of(
    st.tuples(st.just("save"), st.integers(1, 4), st.booleans()),
    st.tuples(
        st.just("remove"),
        st.sets(
            st.sampled_from(
                ["epoch_1.pth", "epoch_2.pth", "epoch_3.pth", "epoch_4.pth", "last.pth"]
            )
        ),
    ),
    st.tuples(st.just("damage"), st.integers(0)),
    st.tuples(st.just("reopen")),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(actions, max_size=12))
def test_no_sequence_of_operations_removes_the_last_good_checkpoint(
    steps: list[Any],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        store = opened(directory)
        for number, (action, *arguments) in enumerate(steps):
            good = store.find_latest().entry
            if action == "save":
                epoch, finite = arguments
                value = None if finite else float("nan")
                store.save(
                    content(number, value),
                    f"epoch_{epoch}.pth",
                    links=["last.pth"],
                    step=number,
                    epoch=epoch,
                )
                good = good or (store.entries()[-1] if finite else None)
            elif action == "remove":
                store.remove(*arguments[0])
            elif action == "damage" and files(directory):
                flip_bit(directory / sorted(files(directory))[arguments[0] % len(files(directory))])
                good = None
            elif action == "reopen":
                store.unlock()
                store = opened(directory)
            if good is not None:
                found = store.find_latest().entry
                assert found is not None
                assert store.load(found)["meta"]["step"] == found.step
            assert files(directory) == listed(store)


@given(st.integers(1, 4), st.lists(st.booleans(), min_size=1, max_size=8))
@settings(deadline=None, max_examples=40)
def test_retention_always_leaves_a_finite_checkpoint(keep: int, finite: list[bool]) -> None:
    with tempfile.TemporaryDirectory() as name:
        store = opened(Path(name))
        for step, fine in enumerate(finite):
            store.save(
                content(step, None if fine else float("nan")),
                f"epoch_{step}.pth",
                step=step,
                epoch=step,
            )
            store.remove(*(f"epoch_{old}.pth" for old in range(step + 1 - keep)))
            steps = [entry.step for entry in store.entries()]
            newest = set(range(max(0, step + 1 - keep), step + 1))
            assert newest <= set(steps)
            assert len(steps) <= len(newest) + 1
            found = store.find_latest().entry
            assert (found is not None) is any(finite[: step + 1])
            if found is not None:
                assert found.step == max(old for old, fine in enumerate(finite[: step + 1]) if fine)


@pytest.mark.parametrize("name", ["epoch_{}.pth", "only.pth"])
def test_a_process_that_is_killed_while_saving_leaves_a_good_checkpoint(
    tmp_path: Path, name: str
) -> None:
    saved(tmp_path, 0).unlock()
    for attempt in range(8):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            store = opened(tmp_path, FileSystem())
            for step in range(attempt * 1000 + 1, (attempt + 1) * 1000):
                store.save(
                    content(step), name.format(step), links=["last.pth"], step=step, epoch=step
                )
                os.write(writer, step.to_bytes(4, "big"))
                store.remove(*(entry.name for entry in store.entries()[:-1]))
            os._exit(0)
        os.close(writer)
        reported = b""
        for _ in range(attempt + 1):  # The kill lands anywhere in the saves that follow.
            reported += os.read(reader, 4)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        reported += b"".join(iter(lambda: os.read(reader, 4096), b""))  # noqa: B023
        os.close(reader)
        found = CheckpointStore(tmp_path).latest()
        assert found is not None
        assert found.step >= int.from_bytes(reported[-4:], "big")
        store = opened(tmp_path)
        assert store.load(found.name)["meta"]["step"] == found.step
        assert files(tmp_path) == listed(store)
        store.unlock()


def test_a_file_that_the_store_did_not_write_is_never_overwritten(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "last.pth").write_bytes(b"precious")
    (tmp_path / "last.1.pth").write_bytes(b"also precious")
    saved(tmp_path, 1, 2)
    assert (tmp_path / "last.2.pth").read_bytes() == b"precious"
    assert (tmp_path / "last.1.pth").read_bytes() == b"also precious"
    assert files(tmp_path) == {
        "epoch_1.pth", "epoch_2.pth", "last.pth", "last.1.pth", "last.2.pth"
    }  # fmt: skip
    assert len(logged(caplog, "last.2.pth")) == 1


def test_a_link_in_the_way_of_a_checkpoint_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(b"precious")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "last.pth").symlink_to(target)
    saved(folder, 1)
    assert target.read_bytes() == b"precious"
    assert (folder / "last.1.pth").is_symlink()


def test_a_new_run_does_not_resume_from_the_checkpoints_of_an_earlier_one(tmp_path: Path) -> None:
    store = saved(tmp_path, 1, 2)
    store.begin_new_run()
    store.begin_new_run()
    entry, skipped = store.find_latest()
    assert entry is None
    assert len(skipped) == 2
    assert store.load("epoch_2.pth")["meta"]["step"] == 2
    store.save(content(1), "epoch_1.pth", links=["last.pth"], step=1, epoch=1)
    latest = store.latest()
    assert latest is not None
    assert latest.names == ("epoch_1.pth", "last.pth")
    flip_bit(tmp_path / "last.pth")
    assert store.find_latest().entry is None
