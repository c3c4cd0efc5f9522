"""The thread that keeps a mirror up to date, and its patience with a storage that fails."""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import replace

import pytest

from hookline.checkpoint import CheckpointError
from hookline.checkpoint.mirror import Limits, Mirror
from hookline.checkpoint.mirror_manifest import read_manifest
from hookline.remote import RemoteDirectory, RemoteError
from tests.checkpoint.helpers import content, opened, saved
from tests.clock import FakeClock
from tests.problems import logged

LIMITS = Limits(first_delay_s=1, max_delay_s=8, restore_s=20, final_s=30, final_attempts=4)


class Broken(RemoteDirectory):
    """A storage that fails a number of times."""

    failures = 0

    def _requests(self, action, key):
        if self.failures:
            self.failures -= 1
            raise RemoteError("cannot do it", file="s3://user:hunter2@host/run")
        return super()._requests(action, key)


class Flaky(RemoteDirectory):
    """A storage of which every content arrives at the fourth attempt."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.attempts: Counter[str] = Counter()

    def download(self, key, write, expected=None):
        self.attempts[key] += 1
        if self.attempts[key] < 4:
            raise RemoteError("the connection was lost", file=key)
        super().download(key, write, expected)


class Waits:
    """Waiting that takes no time but moves the clock."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.delays: list[float] = []

    def __call__(self, event: threading.Event, seconds: float) -> bool:
        self.delays.append(seconds)
        self.clock.advance(seconds)
        return event.is_set()


@pytest.fixture
def remote(tmp_path) -> Broken:
    return Broken(f"file://{tmp_path}/mirror")


def make(remote, store) -> tuple[Mirror, Waits]:
    clock = FakeClock()
    waits = Waits(clock)
    return Mirror(remote, store.directory, LIMITS, clock, waits), waits


def steps(remote) -> list[int]:
    return [entry.step for entry in read_manifest(remote).entries]


def status(store) -> dict:
    return json.loads((store.directory / "mirror.json").read_text())


def test_the_final_state_is_complete_after_the_end(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    mirror, _ = make(remote, store)
    mirror.start(store, None)
    store.save(content(2), "last.pth", step=2, epoch=2)
    (store.directory / "report.html").write_text("page")
    mirror.close()
    assert steps(remote) == [1, 2]
    assert "report.html" in [part.name for part in read_manifest(remote).files]
    assert status(store)["only_local"] == []


def test_failures_are_retried_with_growing_delays_and_logged_once(remote, tmp_path, caplog):
    caplog.set_level("INFO")
    store = saved(tmp_path / "run", 1)
    remote.failures = 5
    mirror, waits = make(remote, store)
    mirror.start(store, None)
    while not waits.clock.now >= 23:
        threading.Event().wait(0.001)
    mirror.close()
    assert waits.delays[:5] == [1, 2, 4, 8, 8]
    assert steps(remote) == [1]
    warnings = logged(caplog)
    assert len(warnings) == 1
    assert "hunter2" not in caplog.text
    assert logged(caplog, "5 failures", level="INFO")


def test_a_storage_that_never_works_ends_the_run_after_some_attempts(remote, tmp_path, caplog):
    store = saved(tmp_path / "run", 1)
    remote.failures = 10**6
    mirror, _ = make(remote, store)
    mirror.start(store, None)
    mirror.close()
    assert status(store)["only_local"] == ["epoch_1.pth"]
    assert status(store)["failures"] >= 1
    assert "hunter2" not in json.dumps(status(store))
    assert logged(caplog, "epoch_1.pth")


def test_a_storage_that_hangs_ends_the_run_after_the_limit(remote, tmp_path, caplog):
    released = threading.Event()
    clock = FakeClock()

    class Hanging(Broken):
        def _requests(self, action, key):
            clock.advance(1000)  # The run ends while this request hangs.
            hanging.set()
            released.wait()
            return super()._requests(action, key)

    hanging = threading.Event()
    store = saved(tmp_path / "run", 1)
    mirror = Mirror(Hanging(remote.url), store.directory, LIMITS, clock)
    mirror.start(store, None)
    hanging.wait()
    closing = threading.Thread(target=mirror.close)
    closing.start()
    while closing.is_alive():
        clock.advance(10)
        closing.join(0.01)
    released.set()
    assert logged(caplog, "epoch_1.pth")


def test_the_state_at_the_end_is_known_before_the_last_files_are_written(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    mirror, _ = make(remote, store)
    mirror.start(store, None)
    store.save(content(2), "last.pth", step=2, epoch=2)
    mirror.settle()
    assert status(store)["only_local"] == []
    assert steps(remote) == [1, 2]
    (store.directory / "report.html").write_text("page")
    mirror.close()
    assert "report.html" in [part.name for part in read_manifest(remote).files]


def test_the_end_does_not_wait_twice_for_a_storage_that_hangs(remote, tmp_path, caplog):
    released = threading.Event()
    clock = FakeClock()

    class Hanging(Broken):
        def _requests(self, action, key):
            hanging.set()
            released.wait()
            return super()._requests(action, key)

    hanging = threading.Event()
    store = saved(tmp_path / "run", 1)
    mirror = Mirror(Hanging(remote.url), store.directory, LIMITS, clock)
    mirror.start(store, None)
    hanging.wait()
    settling = threading.Thread(target=mirror.settle)
    settling.start()
    while settling.is_alive():
        clock.advance(10)
        settling.join(0.01)
    assert status(store)["only_local"] == ["epoch_1.pth"]
    mirror.close()
    released.set()
    assert logged(caplog, "epoch_1.pth")


@pytest.mark.parametrize("action", ["remove", "abort_uploads"])
def test_a_storage_that_forbids_deleting_is_kept_up_to_date(remote, tmp_path, caplog, action):
    class Forbidding(RemoteDirectory): ...

    def refuse(self, keys):
        raise RemoteError("cannot delete: access denied")

    setattr(Forbidding, action, refuse)
    for folder in ("first", "second"):
        store = saved(tmp_path / folder, 1)
        mirror, _ = make(Forbidding(remote.url), store)
        mirror.start(store, None)
        store.save(content(2), "last.pth", step=2, epoch=2)
        mirror.settle()
        mirror.close()
        assert steps(remote)[-2:] == [1, 2]
        assert status(store)["only_local"] == []
        assert len(logged(caplog)) == 1, "logged once in a run"
        caplog.clear()


def test_an_interrupted_run_does_not_wait(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    remote.failures = 10**6
    mirror, _ = make(remote, store)
    mirror.start(store, None)
    mirror.close(wait=False)


def test_another_process_ends_the_mirroring_and_nothing_else(remote, tmp_path, caplog):
    store = saved(tmp_path / "run", 1)
    first, _ = make(remote, store)
    first.start(store, None)
    while not (store.directory / "mirror.json").exists():
        threading.Event().wait(0.001)
    second, _ = make(remote, store)
    second.start(store, None)
    second.close()
    store.save(content(2), "last.pth", step=2, epoch=2)
    first.close()
    assert steps(remote) == [1]
    assert len(logged(caplog, level="ERROR")) == 1


def test_a_start_waits_for_a_storage_that_recovers(remote, tmp_path):
    source, _ = make(remote, saved(tmp_path / "run", 3))
    source.start(saved(tmp_path / "run2", 3), None)
    source.close()
    remote.failures = 3
    store = opened(tmp_path / "new")
    mirror, waits = make(remote, store)
    assert mirror.restore(store)
    assert waits.delays == [1, 2, 4]
    assert store.latest().step == 3


def test_a_start_on_an_empty_disk_fails_if_the_mirror_cannot_be_read(remote, tmp_path):
    remote.failures = 10**6
    store = opened(tmp_path / "new")
    mirror, _ = make(remote, store)
    with pytest.raises(CheckpointError) as caught:
        mirror.restore(store)
    assert "hunter2" not in str(caught.value)


def test_a_start_with_a_local_checkpoint_continues_without_the_mirror(remote, tmp_path):
    remote.failures = 10**6
    store = saved(tmp_path / "run", 1)
    mirror, _ = make(remote, store)
    assert not mirror.restore(store)


def test_the_attempts_after_the_end_of_a_run_are_limited(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    clock = FakeClock()
    limits = replace(LIMITS, final_s=10**6)
    mirror = Mirror(remote, store.directory, limits, clock, Waits(clock))
    mirror.start(store, None)
    while not (store.directory / "mirror.json").exists():
        threading.Event().wait(0.001)
    store.save(content(2), "epoch_2.pth", step=2, epoch=2)
    remote.failures = 50
    mirror.close()
    assert remote.failures == 50 - LIMITS.final_attempts
    assert status(store)["only_local"] == ["epoch_2.pth"]


def test_a_restore_that_makes_progress_is_not_given_up(remote, tmp_path):
    store = saved(tmp_path / "run", 1, 2, 3)
    (store.directory / "log.jsonl").write_text("row\n")
    first, _ = make(remote, store)
    first.start(store, None)
    first.close()
    empty = opened(tmp_path / "new")
    flaky = Flaky(remote.url)
    mirror, waits = make(flaky, empty)
    assert mirror.restore(empty)
    assert empty.latest().step == 3
    assert sum(waits.delays) > LIMITS.restore_s
    assert set(flaky.attempts.values()) == {4}, "no content is copied twice"
