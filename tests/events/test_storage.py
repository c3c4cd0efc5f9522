"""Scalars: what is kept, what is reported, what survives a resume."""

from __future__ import annotations

import math
import pickle
import statistics
import time
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hookline.events import EventStorage
from hookline.events.storage import LONGEST, PENDING, WINDOW
from tests.problems import raises_problem

NUMBERS = st.floats(-1e6, 1e6)


def storage() -> EventStorage:
    return EventStorage(SimpleNamespace(iter=0, epoch=0))


@given(
    values=st.lists(NUMBERS, min_size=1, max_size=40),
    count=st.integers(1, 50),
    flushes=st.sets(st.integers(0, 40)),
)
def test_a_mean_is_that_of_the_last_values_however_often_they_are_fetched(values, count, flushes):
    events = storage()
    for index, value in enumerate(values):
        given = torch.tensor(value, dtype=torch.float64) if index % 2 else value
        events.put_iteration_scalar("x", given)
        if index in flushes:
            events.flush()
    last = values[-count:]
    assert events.means(count)["x"] == sum(last) / len(last)
    assert events.latest()["x"] == values[-1]


@given(
    before=st.lists(NUMBERS, min_size=1, max_size=20),
    after=st.lists(NUMBERS, min_size=1, max_size=20),
    count=st.integers(1, 30),
)
def test_means_after_a_resume_are_bit_identical(before, after, count):
    straight, first, resumed = storage(), storage(), storage()
    for events in (straight, first, resumed):
        for over in (7, "epoch", "global"):
            events.add_mean(f"x_{over}", "x", over)
    for value in before:
        straight.put_iteration_scalar("x", value)
        first.put_iteration_scalar("x", value)
    resumed.load_state_dict(first.state_dict())
    for value in after:
        straight.put_iteration_scalar("x", value)
        resumed.put_iteration_scalar("x", value)
    assert resumed.means(count) == straight.means(count)
    assert [each[:3] for each in resumed.history("x")] == [
        each[:3] for each in straight.history("x")
    ]


def test_means_over_the_epoch_and_the_whole_run():
    clock = SimpleNamespace(iter=0, epoch=0)
    events = EventStorage(clock)
    events.add_mean("loss_epoch", "loss", "epoch")
    events.add_mean("loss_run", "loss", "global")
    events.add_mean("loss", "loss", 2)
    for clock.iter in range(8):
        clock.epoch = clock.iter // 4
        events.put_iteration_scalar("loss", float(clock.iter))
    assert events.means(1) == {"loss_epoch": 5.5, "loss_run": 3.5, "loss": 6.5}


def test_what_is_not_smoothed_is_reported_as_it_was_last():
    events = storage()
    events.put_iteration_scalars({"lr": 0.1}, smoothed=False)
    events.put_iteration_scalars({"lr": 0.2})
    assert events.means(10) == {"lr": 0.2}


def test_every_value_carries_its_moment():
    clock = SimpleNamespace(iter=3, epoch=1)
    events = EventStorage(clock)
    started = time.time()
    events.put_scalar("loss", torch.tensor(0.5, requires_grad=True) * 1)
    clock.iter = 4
    events.put_scalar("loss", 0.25)
    first, second = events.history("loss")
    assert (first.value, first.iter, first.epoch) == (0.5, 3, 1)
    assert (second.value, second.iter) == (0.25, 4)
    assert started <= first.time <= second.time <= time.time()
    assert events.recorded_at("loss") == 4
    assert events.recorded_at("nothing") == -1


def test_a_source_records_its_values_before_they_are_read():
    events = storage()
    noted = [(1.5, (3, 0, 10.0)), (2.5, (4, 1, 11.0))]

    def hand_over():
        values, moments = [value for value, _ in noted], [moment for _, moment in noted]
        noted.clear()
        events.put_history("time", values, moments)

    events.sources.append(hand_over)
    assert events.recorded_at("time") == 4
    assert not noted
    assert [tuple(scalar) for scalar in events.history("time")] == [
        (1.5, 3, 0, 10.0),
        (2.5, 4, 1, 11.0),
    ]
    noted.append((3.5, (5, 1, 12.0)))
    assert events.means(2)["time"] == 3.0


def test_what_was_noted_before_a_run_went_back_is_forgotten_with_the_rest():
    events = storage()
    noted = [1.5]
    events.sources.append(
        lambda: noted and events.put_history("time", [noted.pop()], [(7, 0, 0.0)])
    )
    events.load_state_dict({})
    assert events.history("time") == []
    assert not noted


def test_a_long_unread_history_stays_bounded():
    events = storage()
    for start in range(0, 5000, 100):
        events.put_history("time", [1.0] * 100, [(start, 0, 0.0)] * 100)
    assert len(events._series["time"].pending) < 1024
    assert len(events.history("time")) == 256


def test_reports_can_leave_out_what_is_not_new():
    clock = SimpleNamespace(iter=0, epoch=0)
    events = EventStorage(clock)
    events.put_iteration_scalar("old", 1.0)
    clock.iter = 10
    events.put_iteration_scalar("new", 2.0)
    assert events.means(5, since=10) == {"new": 2.0}


def test_tensors_of_any_kind_come_over_together():
    events = storage()
    values = [
        torch.tensor(1.5),
        torch.tensor([2.5]),
        torch.tensor(3),
        torch.tensor(4.5, dtype=torch.float64),
        torch.tensor(True),
        2**24 + 1,
    ]
    for index, value in enumerate(values):
        events.put_scalar(f"x{index}", value)
    assert list(events.latest().values()) == [1.5, 2.5, 3.0, 4.5, 1.0, 2**24 + 1]


@pytest.mark.parametrize(
    "value, shown", [(torch.zeros(2), "(2,)"), ("much", "'much'"), (None, "None")]
)
def test_a_scalar_that_is_not_a_number_is_rejected_where_it_is_put(value, shown):
    with raises_problem(component="put_scalar", parameter="x") as error:
        storage().put_scalar("x", value)
    assert shown in str(error.value)


def test_nan_is_accepted_as_a_scalar():
    events = storage()
    events.put_iteration_scalar("x", float("nan"))
    assert math.isnan(events.means(1)["x"])


def test_what_is_kept_does_not_grow():
    clock = SimpleNamespace(iter=0, epoch=0)
    events = EventStorage(clock)
    events.add_mean("loss_run", "loss", "global")
    for clock.iter in range(20_000):
        events.put_iteration_scalar("loss", clock.iter)
        if clock.iter == 2000:
            early = len(pickle.dumps(events.state_dict()))
    assert len(pickle.dumps(events.state_dict())) <= early + 16
    assert len(events.history("loss")) == WINDOW
    assert events.means(50)["loss_run"] == pytest.approx(statistics.mean(range(20_000)))


def test_an_interval_longer_than_the_window_makes_the_window_longer():
    events = storage()
    events.put_iteration_scalar("x", 0.0)
    events.keep(1000)
    for value in range(1000):
        events.put_iteration_scalar("x", value)
    assert events.means(1000)["x"] == 499.5
    events.keep(10**9)
    assert events._window == LONGEST


def test_a_mean_over_a_wrong_window_is_rejected():
    for over in (0, -1, "epochs", LONGEST + 1, 1.5):
        with raises_problem(parameter="over", value=over):
            storage().add_mean("x", "loss", over)


def test_records_go_to_the_listeners_with_their_moment():
    events = EventStorage(SimpleNamespace(iter=7, epoch=2))
    seen = []
    events.listeners.append(SimpleNamespace(write=seen.append))
    events.put_text("note", "hello", global_step=3)
    assert seen == []  # the writers are not open yet
    events.outbox.open()
    events.put_artifact("file", "x.txt")
    assert [
        (record.kind, record.name, record.value, record.iter, record.step, record.epoch)
        for record in seen
    ] == [
        ("text", "note", "hello", 7, 3, 3),
        ("artifact", "file", "x.txt", 7, 7, 3),
    ]


def test_tensors_that_wait_for_the_report_are_fetched_with_their_moments():
    events = storage()
    events.put_scalar("mixed", 1.0)
    events.put_scalar(
        "mixed", torch.nn.Parameter(torch.tensor(2.0))
    )  # not a plain tensor: it waits as a device's would
    events.put_scalar("mixed", torch.nn.Parameter(torch.tensor([3], dtype=torch.float64)))
    assert [scalar.value for scalar in events.history("mixed")] == [1.0, 2.0, 3.0]


@given(
    before=st.lists(NUMBERS, max_size=5),
    values=st.lists(NUMBERS, min_size=1, max_size=30),
    after=st.lists(NUMBERS, max_size=5),
)
def test_what_an_evaluation_records_is_its_own(before, values, after):
    events, alone = storage(), storage()
    for value in [*before, *after]:
        alone.put_iteration_scalar("x", value)
    for value in before:
        events.put_iteration_scalar("x", value)
    with events.evaluation_scope():
        for value in values:
            events.put_scalar("x", torch.tensor(value, dtype=torch.float64))
            events.put_scalar("last", value, smoothing_hint=False)
    assert events.evaluation_scalars() == {
        "x": pytest.approx(sum(values) / len(values)),
        "last": values[-1],
    }
    for value in after:
        events.put_iteration_scalar("x", value)
    assert events.means(100) == alone.means(100)
    assert without_times(events.state_dict()) == without_times(alone.state_dict())
    with events.evaluation_scope():
        pass
    assert events.evaluation_scalars() == {}


def test_a_long_evaluation_keeps_no_more_than_a_short_one():
    events = storage()
    with events.evaluation_scope():
        for value in range(5 * PENDING):
            events.put_scalar("x", float(value))
        assert len(events._evaluated["x"].pending) < PENDING
    assert events.evaluation_scalars()["x"] == pytest.approx((5 * PENDING - 1) / 2)
    assert len(events._evaluated["x"].window) == 1


def without_times(state):
    return {
        name: {key: value for key, value in series.items() if key != "times"}
        for name, series in state.items()
    }
