"""A tracker that fails: training goes on, nothing is lost, and it is said."""

from __future__ import annotations

import logging
import random
import threading

import pytest
import torch

from hookline.errors import HooklineError
from hookline.events.backlog import Backlog, hand_over
from hookline.events.delivery import Delivery
from hookline.events.outbox import Row
from hookline.events.storage import Record
from hookline.events.writer import Writer
from tests.waiting import LIMIT_S, wait_until


class Service(Writer):
    """Somewhere to write to, which can be down."""

    def __init__(self) -> None:
        self.down = False
        self.got = []
        self.closed = False

    def open(self) -> Service:
        self._check()
        return self

    def write_scalars(self, mode, scalars, *, iter, epoch):
        self._check()
        self.got.append((mode, iter, dict(scalars)))

    def write(self, record):
        self._check()
        self.got.append((record.kind, record.iter, record.value))

    def write_config(self, config):
        self._check()
        self.got.append(("config", 0, dict(config)))

    def close(self):
        self._check()
        self.closed = True

    def _check(self):
        if self.down:
            raise ConnectionError("https://user:hunter2@host is down")


def deliver(service, folder, *, run="r1", fresh=True, iteration=0, **options):
    backlog = Backlog(folder / "undelivered.jsonl", run)
    delivery = Delivery("Service", service.open, backlog, **options)
    delivery.retry_after = 0.0
    delivery.start(fresh=fresh, iteration=iteration)
    return delivery


def report(delivery, iteration):
    delivery.write_scalars(
        "train", {"loss": iteration / 10, "bad": float("nan")}, iter=iteration, epoch=1
    )


def iterations(service):
    return [iteration for kind, iteration, _ in service.got if kind == "train"]


@pytest.mark.parametrize("slow", [False, True])
def test_what_fails_is_kept_in_order_and_delivered_when_the_service_is_back(tmp_path, caplog, slow):
    service = Service()
    delivery = deliver(service, tmp_path, slow=slow)
    delivery.write_config({"lr": 0.1})
    report(delivery, 1)
    settle(delivery)
    service.down = True
    report(delivery, 2)
    delivery.write(Record("image", "picture", torch.rand(4, 4), 2, 0, 0.0))
    report(delivery, 3)
    settle(delivery)
    assert len(Backlog(tmp_path / "undelivered.jsonl", "r1")) == 3
    service.down = False
    report(delivery, 4)
    delivery.close()
    assert iterations(service) == [1, 2, 3, 4]
    assert [kind for kind, _, _ in service.got] == [
        "config",
        "train",
        "train",
        "image",
        "train",
        "train",
    ]
    assert service.closed
    assert not (tmp_path / "undelivered.jsonl").exists()
    assert [text for text in caplog.messages if "hunter2" in text] == []
    assert [text.partition(";")[0] for text in caplog.messages] == [
        "Service fails (ConnectionError: https://***@host is down)",
        "Service failed for a while",
    ]


@pytest.mark.parametrize("slow", [False, True])
def test_the_end_says_what_is_missing_and_a_resumed_run_delivers_it(tmp_path, caplog, slow):
    service = Service()
    delivery = deliver(service, tmp_path, slow=slow)
    report(delivery, 10)
    settle(delivery)
    service.down = True
    for iteration in (20, 30, 40):
        report(delivery, iteration)
    delivery.close()
    assert (
        "3 records were not delivered, reports of iterations 20 to 40 among them"
        in caplog.messages[-1]
    )
    assert "resuming the run delivers them" in caplog.messages[-1]
    service.down = False
    again = deliver(service, tmp_path, slow=slow, fresh=False, iteration=30)  # the last checkpoint
    for iteration in (40, 50):
        report(again, iteration)
    again.close()
    assert iterations(service) == [10, 20, 30, 40, 50]


def test_a_service_that_cannot_be_opened_at_first_gets_everything_later(tmp_path):
    service = Service()
    service.down = True
    delivery = deliver(service, tmp_path)
    delivery.write_config({"lr": 0.1})
    report(delivery, 1)
    service.down = False
    report(delivery, 2)
    delivery.close()
    assert [kind for kind, _, _ in service.got] == ["config", "train", "train"]


def test_after_a_failure_a_service_is_left_alone_for_a_while(tmp_path, clock):
    service = Service()
    delivery = deliver(service, tmp_path, clock=clock)
    delivery.retry_after = 60.0
    service.down = True
    report(delivery, 1)
    service.down = False
    clock.advance(59.0)
    report(delivery, 2)
    assert iterations(service) == []
    clock.advance(1.0)
    report(delivery, 3)
    assert iterations(service) == [1, 2, 3]


def test_the_end_of_a_run_tries_once_more(tmp_path, clock):
    service = Service()
    delivery = deliver(service, tmp_path, clock=clock)
    delivery.retry_after = 60.0
    service.down = True
    report(delivery, 1)
    service.down = False
    delivery.close()
    assert iterations(service) == [1]


def test_a_new_run_does_not_deliver_what_an_earlier_one_left(tmp_path):
    service = Service()
    service.down = True
    first = deliver(service, tmp_path, run="r1")
    report(first, 1)
    first.close()
    service.down = False
    second = deliver(service, tmp_path, run="r2")
    report(second, 5)
    second.close()
    assert iterations(service) == [5]
    assert (tmp_path / "undelivered.1.jsonl").exists()


def test_neither_training_nor_its_end_waits_for_a_service_that_hangs(tmp_path, caplog):
    class Hanging(Service):
        def write_scalars(self, mode, scalars, *, iter, epoch):
            entered.set()
            released.wait(LIMIT_S)

    entered, released = threading.Event(), threading.Event()
    delivery = deliver(Hanging(), tmp_path, slow=True)
    delivery.patience = 0.0
    for iteration in range(100):  # If training waited, the test would hang here.
        report(delivery, iteration)
    assert entered.wait(LIMIT_S)
    delivery.close()  # Or here.
    assert "99 records were not delivered" in caplog.messages[-1]
    released.set()


def test_where_there_is_no_room_to_keep_anything_training_goes_on_and_the_loss_is_told(
    tmp_path, caplog
):
    service = Service()
    delivery = Delivery("Service", service.open, Backlog(tmp_path / "no-folder" / "x.jsonl", "r1"))
    (tmp_path / "no-folder").write_text("a file where a folder should be")
    delivery.start(fresh=True, iteration=0)
    service.down = True
    report(delivery, 1)
    delivery.close()
    assert "1 records are lost" in caplog.text


def test_a_failure_while_the_backlog_is_delivered_leaves_what_is_left_of_it(tmp_path):
    service = Service()
    service.down = True
    delivery = deliver(service, tmp_path)
    for iteration in (1, 2, 3):
        report(delivery, iteration)

    class DownAfterOne(Service):
        def write_scalars(self, mode, scalars, *, iter, epoch):
            super().write_scalars(mode, scalars, iter=iter, epoch=epoch)
            self.down = True

    half = DownAfterOne()
    backlog = Backlog(tmp_path / "undelivered.jsonl", "r1")
    with pytest.raises(ConnectionError):
        backlog.deliver(lambda job: hand_over(job, half))
    assert iterations(half) == [1]
    assert Backlog(tmp_path / "undelivered.jsonl", "r1").iterations() == [2, 3]


@pytest.mark.parametrize("slow", [False, True])
def test_a_tracker_gets_repeated_iterations_once_if_the_process_was_killed(tmp_path, slow):
    service = Service()
    killed = deliver(service, tmp_path, slow=slow)
    for iteration in (1, 2, 3, 4, 5):
        report(killed, iteration)
    killed.write_row(Row("train", {"a": 1.0}, 5, 1, 40, 0.0))
    settle(killed)  # It is never closed.
    resumed = deliver(service, tmp_path, fresh=False, iteration=3, slow=slow)
    for iteration in (4, 5, 6):
        report(resumed, iteration)
    resumed.write_row(Row("train", {"a": 1.0, "b": 2.0}, 5, 1, 40, 0.0))
    resumed.write_row(Row("train", {"a": 3.0}, 5, 1, 40, 0.0))
    resumed.close()
    means = [iteration for _, iteration, values in service.got if "loss" in values]
    points = [values for _, _, values in service.got if "loss" not in values]
    assert means == [1, 2, 3, 4, 5, 6]
    assert points == [{"a": 1.0}, {"b": 2.0}, {"a": 3.0}]


def test_a_writer_that_drops_points_gets_the_repeated_iterations_again(tmp_path):
    class Drops(Service):
        def cut_after(self, iteration):
            self.got = [each for each in self.got if each[1] <= iteration]

    service = Drops()
    killed = deliver(service, tmp_path)
    for iteration in (1, 2, 3):
        report(killed, iteration)
    resumed = deliver(service, tmp_path, fresh=False, iteration=2)
    report(resumed, 3)
    assert iterations(service) == [1, 2, 3]
    assert not (tmp_path / "undelivered.delivered.jsonl").exists()


class Questionable(Service):
    """A service that can be asked for its values, and whose answers can be lost."""

    deaf = False

    def write_scalars(self, mode, scalars, *, iter, epoch):
        super().write_scalars(mode, scalars, iter=iter, epoch=epoch)
        if self.deaf:
            raise TimeoutError

    def holds(self, mode, name, step, value=None):
        stored = [values[name] for _, at, values in self.got if at == step and name in values]
        return bool(stored) if value is None else value in stored


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_tracker_that_can_be_asked_gets_values_once_if_its_answer_was_lost(tmp_path, is_killed):
    service = Questionable()
    delivery = deliver(service, tmp_path)
    report(delivery, 1)
    service.deaf = True
    report(delivery, 2)
    delivery.write_row(Row("train", {"a": 1.0}, 2, 1, 40, 0.0))
    service.deaf = False
    if is_killed:
        (tmp_path / "undelivered.jsonl").unlink()
        delivery = deliver(service, tmp_path, fresh=False, iteration=1)
        report(delivery, 2)
        delivery.write_row(Row("train", {"a": 1.0}, 2, 1, 40, 0.0))
    report(delivery, 3)
    delivery.close()
    assert [(iteration, len(values)) for _, iteration, values in service.got] == [
        (1, 2),
        (2, 2),
        (40, 1),
        (3, 2),
    ]


def test_values_repeated_after_a_rollback_are_delivered_again(tmp_path):
    service = Service()
    delivery = deliver(service, tmp_path)
    for iteration in (1, 2, 3):
        report(delivery, iteration)
    delivery.cut_after(1)
    report(delivery, 2)
    resumed = deliver(service, tmp_path, fresh=False, iteration=1)  # killed after the rollback
    report(resumed, 2)
    report(resumed, 3)
    assert iterations(service) == [1, 2, 3, 2, 3]


def test_receipts_reach_back_to_the_checkpoint_before_the_last(tmp_path):
    service = Service()
    delivery = deliver(service, tmp_path)
    for iteration in range(1, 10):
        report(delivery, iteration)
        if iteration % 3 == 0:
            delivery.sync(iteration)
    resumed = deliver(service, tmp_path, fresh=False, iteration=6)  # the last one is torn
    for iteration in (7, 8, 9):
        report(resumed, iteration)
    assert iterations(service) == list(range(1, 10))
    lines = next(tmp_path.glob("*.delivered.jsonl")).read_text().splitlines()
    assert len(lines) == 3


def test_values_that_wait_for_a_slow_tracker_at_a_save_survive_a_kill(tmp_path):
    class Blocked(Service):
        def __init__(self):
            super().__init__()
            self.free = threading.Event()

        def write_scalars(self, mode, scalars, *, iter, epoch):
            assert self.free.wait(LIMIT_S)
            super().write_scalars(mode, scalars, iter=iter, epoch=epoch)

    blocked = Blocked()
    killed = deliver(blocked, tmp_path, slow=True)
    for iteration in (1, 2):
        report(killed, iteration)
    killed.sync(2)
    report(killed, 3)
    service = Service()
    resumed = deliver(service, tmp_path, fresh=False, iteration=2, slow=True)
    report(resumed, 3)
    resumed.close()
    assert iterations(service) == [1, 2, 3]
    blocked.free.set()
    killed.close()


def test_values_that_a_slow_tracker_got_after_they_were_noted_arrive_once(tmp_path):
    class Stuck(Service):
        """Opens late, and hangs at an iteration."""

        started = threading.Event()
        free = threading.Event()

        def open(self):
            assert self.started.wait(LIMIT_S)
            return super().open()

        def write_scalars(self, mode, scalars, *, iter, epoch):
            if iter == 8:
                assert self.free.wait(LIMIT_S)
                raise ConnectionError
            super().write_scalars(mode, scalars, iter=iter, epoch=epoch)

    stuck = Stuck()
    killed = deliver(stuck, tmp_path, slow=True)
    for iteration in range(1, 13):
        report(killed, iteration)
        if iteration % 3 == 0:
            killed.sync(iteration)
    stuck.started.set()  # All saves are over when the first value is delivered.
    wait_until(lambda: iterations(stuck) == list(range(1, 8)), "the delivery of seven values")
    service = Service()
    resumed = deliver(service, tmp_path, fresh=False, iteration=12, slow=True)
    resumed.close()
    assert iterations(stuck) + iterations(service) == list(range(1, 13))
    stuck.free.set()
    killed.close()


def test_a_package_that_is_not_installed_is_an_error_and_not_a_warning(tmp_path):
    def make():
        raise HooklineError("it is not installed")

    delivery = Delivery("Service", make, Backlog(tmp_path / "x.jsonl", "r"))
    with pytest.raises(HooklineError, match="not installed"):
        delivery.start(fresh=True, iteration=0)


def test_opening_draws_none_of_the_runs_random_numbers(tmp_path):
    class Drawing(Service):
        def open(self):
            random.random()
            torch.rand(3)
            return self

    random.seed(1)
    torch.manual_seed(1)
    expected = random.random(), torch.rand(1).item()
    random.seed(1)
    torch.manual_seed(1)
    deliver(Drawing(), tmp_path)
    assert (random.random(), torch.rand(1).item()) == expected


def test_what_is_no_picture_is_left_out_with_a_warning(tmp_path, caplog):
    service = Service()
    delivery = deliver(service, tmp_path)
    delivery.write(Record("image", "odd", torch.zeros(2, 2, 2, 2), 1, 0, 0.0))
    assert service.got == []
    assert "image 'odd' is left out" in caplog.text


def settle(delivery):
    """Wait until the thread, if there is one, has done all jobs so far."""
    done = threading.Event()
    delivery._put(done.set)
    assert done.wait(LIMIT_S)


@pytest.fixture(autouse=True)
def warnings_of_the_package(caplog):
    caplog.set_level(logging.WARNING, logger="hookline")
