"""A hook method names what it needs, and gets just that."""

from __future__ import annotations

from hookline.engine import BaseHook
from hookline.errors import RegistrationError
from tests.helpers import make_runner
from tests.problems import raises_problem


def test_arguments_come_by_name_in_any_order(tmp_path):
    got = {}

    class Picky(BaseHook):
        def after_epoch(self, metrics, epoch, model):
            got["epoch"] = (metrics, epoch, model)

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            got["iter"] = (runner, batch_idx, data_batch, outputs)

        def after_forward(self, loss, *, step):
            got["forward"] = (loss, step)

        def after_run(self):
            got["run"] = ()

        def before_run(self, unknown=7, runner=None, *args, **kwargs):
            got["before"] = (unknown, runner)

        def after_train(self, *args, **kwargs):
            got["train"] = args

        def before_train(self, optimizer):
            got["one"] = optimizer

    runner = make_runner(tmp_path, Picky(), max_iters=1)
    runner.train()
    assert got["epoch"] == (runner.metrics, 0, runner.model)
    assert got["iter"] == (runner, 0, runner.batch, runner.outputs)
    assert got["forward"][0] is runner.outputs["loss"]
    assert got["forward"][1] == 0
    assert got["before"] == (7, runner)
    assert got["train"] == (runner,)
    assert got["one"] is runner.optimizer
    assert got["run"] == ()


def test_an_unknown_argument_is_refused_at_registration_with_the_nearest_name(tmp_path):
    class Wrong(BaseHook):
        def after_epoch(self, epoch, modle): ...

    runner = make_runner(tmp_path)
    with raises_problem(
        RegistrationError, component="Wrong.after_epoch", parameter="modle", nearest="model"
    ):
        runner.register_hook(Wrong())
    assert "Wrong" not in [hook.name for hook in runner.hooks]


def test_services_are_arguments_and_can_be_asked_for(tmp_path):
    class Uses(BaseHook):
        def after_run(self, tracker, epoch):
            tracker.append(
                (
                    epoch,
                    self.get_service("tracker") is tracker,
                    self.get_service("nothing"),
                    self.get_service("model"),
                )
            )

    runner = make_runner(tmp_path, max_iters=1)
    tracker = []
    runner.register_service("tracker", tracker)
    runner.register_hook(Uses())
    runner.train()
    assert tracker == [(0, True, None, runner.model)]


def test_a_service_can_be_replaced_later(tmp_path):
    class Uses(BaseHook):
        def after_run(self, tracker):
            tracker.append(1)

    runner = make_runner(tmp_path, max_iters=1)
    old, new = [], []
    runner.register_service("tracker", old)
    runner.register_hook(Uses())
    runner.register_service("tracker", new)
    runner.train()
    assert (old, new) == ([], [1])
