"""What a hook is: a class with methods named after sites, a name, a priority and perhaps state."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hookline.engine import SITE_NAMES, SITES, BaseHook, Hook, state
from hookline.engine.manager import HookManager
from hookline.engine.sites import OWNED
from hookline.errors import RegistrationError
from hookline.hooks import HOOKS
from tests.helpers import Tracer, batches, make_runner
from tests.problems import raises_problem


def test_every_site_has_a_meaning_a_compiled_tuple_and_an_empty_method():
    for site, meaning in SITES.items():
        assert meaning
        assert HookManager().sites.calls(site) == ()
        assert callable(getattr(BaseHook, site))
    assert Hook is BaseHook


def test_a_hook_that_overrides_nothing_is_called_nowhere():
    host = HookManager()
    host.register_hook(BaseHook())
    assert not any(host.sites.hooks.values())


def test_a_second_hook_of_a_class_gets_a_number_unless_named():
    host = HookManager()
    for config in ({}, {}, {"name": "mine"}, {}):
        host.register_hook({"type": "LoggerHook", **config})
    assert [hook.name for hook in host.hooks] == [
        "LoggerHook",
        "LoggerHook_2",
        "mine",
        "LoggerHook_3",
    ]
    assert host.hook("mine") is host.hooks[2]
    with pytest.raises(KeyError, match="'LoggerHook'"):
        host.hook("LogerHook")


def test_two_hooks_of_one_given_name_are_refused():
    host = HookManager()
    host.register_hook({"type": "LoggerHook", "name": "mine"})
    with raises_problem(RegistrationError, component="mine", parameter="name"):
        host.register_hook({"type": "EvalHook", "name": "mine"})


class AfterTrianIter(BaseHook):
    def after_trian_iter(self, runner): ...


class LightningNames(BaseHook):
    def on_train_epoch_end(self, runner): ...


class GuideNames(BaseHook):
    def after_step(self, runner): ...


@pytest.mark.parametrize(
    "cls, nearest",
    [
        (AfterTrianIter, "after_train_iter"),
        (LightningNames, "after_train_epoch"),
        (GuideNames, "after_train_iter"),
    ],
)
def test_a_method_that_looks_like_a_site_is_rejected_with_a_suggestion(cls, nearest):
    host = HookManager()
    with raises_problem(RegistrationError, component=cls.__name__, nearest=nearest):
        host.register_hook(cls())
    assert host.hooks == []


def test_a_custom_loop_may_declare_sites():
    class Breakfast(BaseHook):
        extra_sites = ("before_breakfast",)

        def before_breakfast(self, runner):
            runner.eaten = True

    host = HookManager()
    host.register_hook(Breakfast())
    host.call_hook("before_breakfast")
    assert host.eaten
    with pytest.raises(ValueError, match="'before_lunch'"):
        host.call_hook("before_lunch")


def test_state_without_dataclass_is_refused_with_what_to_do():
    class Forgot(BaseHook):
        count: int = state(0)

        def after_run(self, runner): ...

    with raises_problem(RegistrationError, component="Forgot", parameter="count"):
        HookManager().register_hook(Forgot())


@dataclass
class Counter(BaseHook):
    by: int = 1
    count: int = state(0)
    seen: list[int] = state([])

    def after_train_iter(self, runner):
        self.count += self.by
        self.seen.append(runner.iter)


def test_state_fields_make_up_the_state_and_are_separate_for_each_instance(tmp_path):
    first, second = Counter(), Counter(by=10)
    make_runner(tmp_path, first, second, max_iters=3).train()
    assert first.state_dict() == {"count": 3, "seen": [0, 1, 2]}
    assert second.state_dict() == {"count": 30, "seen": [0, 1, 2]}
    restored = Counter()
    restored.load_state_dict(first.state_dict())
    assert restored.state_dict() == first.state_dict()


def test_state_cannot_be_configured():
    HOOKS.register("CounterForTest", force=True)(Counter)
    with raises_problem(component="Counter", parameter="count"):
        HOOKS.build({"type": "CounterForTest", "count": 3})


def test_a_plain_class_that_never_calls_super_works(tmp_path):
    class Plain(BaseHook):
        def __init__(self, interval=2):
            self.interval = interval
            self.at = []

        def after_train_iter(self, runner):
            if self.every_n_iters(runner, self.interval):
                self.at.append(runner.iter)

    hook = Plain()
    make_runner(tmp_path, hook, max_iters=5).train()
    assert hook.at == [1, 3]
    assert hook.name == "Plain"
    assert hook.state_dict() == {}


def test_the_helpers_know_when_a_hook_is_due(tmp_path):
    seen = []

    class When(BaseHook):
        def after_train_iter(self, runner):
            flags = {
                "every_n_iters": self.every_n_iters(runner, 3),
                "train_start": self.every_n_train_iters(runner, 3, start=2),
                "inner": self.every_n_inner_iters(runner, 2),
                "end": self.end_of_epoch(runner),
                "last": self.is_last_iter(runner) and self.is_last_train_iter(runner),
                "last_epoch": self.is_last_epoch(runner) and self.is_last_train_epoch(runner),
                "epochs": self.every_n_epochs(runner, 2),
                "never": self.every_n_iters(runner, 0) or self.every_n_epochs(runner, -1),
            }
            seen.append({name for name, flag in flags.items() if flag})

    make_runner(tmp_path, When(), max_epochs=2).train()  # 2 epochs of 4 iterations
    assert [i + 1 for i, s in enumerate(seen) if "every_n_iters" in s] == [3, 6]
    assert [i + 1 for i, s in enumerate(seen) if "train_start" in s] == [2, 5, 8]
    assert [i + 1 for i, s in enumerate(seen) if "inner" in s] == [2, 4, 6, 8]
    assert [i + 1 for i, s in enumerate(seen) if "end" in s] == [4, 8]
    assert [i + 1 for i, s in enumerate(seen) if "last" in s] == [8]
    assert [i + 1 for i, s in enumerate(seen) if "last_epoch" in s] == [5, 6, 7, 8]
    assert [i + 1 for i, s in enumerate(seen) if "epochs" in s] == [5, 6, 7, 8]
    assert not any("never" in s for s in seen)


def test_frequency_counts_iterations_or_epochs_for_a_hook_without_iterations(tmp_path):
    class Step(BaseHook):
        def __init__(self):
            self.at, self.epochs = [], 0

        def after_train_iter(self, iter):
            self.at.append(iter)

        def after_epoch(self):
            self.epochs += 1

    class Epoch(BaseHook):
        def __init__(self):
            self.at = []

        def after_epoch(self, epoch):
            self.at.append(epoch)

    step, epoch = Step(), Epoch()
    step.frequency, epoch.frequency = 3, 2
    make_runner(tmp_path, step, epoch, max_epochs=3).train()
    assert step.at == [0, 3, 6, 9]
    assert step.epochs == 3
    assert epoch.at == [0, 2]


def test_should_trigger_can_be_overridden(tmp_path):
    class FirstTwoThenEveryFourth(BaseHook):
        def __init__(self):
            self.at = []

        def should_trigger(self, step):
            return step < 2 or step % 4 == 0

        def after_train_iter(self, iter):
            self.at.append(iter)

    hook = FirstTwoThenEveryFourth()
    make_runner(tmp_path, hook, max_iters=9).train()
    assert hook.at == [0, 1, 4, 8]


def test_get_triggered_stages_lists_the_sites_that_are_overridden():
    assert Counter().get_triggered_stages() == ["after_train_iter"]
    assert Tracer().get_triggered_stages() == [site for site in SITES if site not in OWNED]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_intervals_are_those_of_the_iteration_at_every_site(tmp_path, n):
    """At each site: the iteration it belongs to, and what the four questions answer there."""
    answers: dict[str, list[tuple[bool, ...]]] = {}

    class Ask(BaseHook):
        def ask(self, site, runner):
            answers.setdefault(site, []).append(
                (
                    self.every_n_iters(runner, n),
                    self.every_n_epochs(runner, n),
                    self.is_last_iter(runner),
                    self.is_last_epoch(runner),
                )
            )

    for site in SITE_NAMES:
        if site not in ("optimize", "cleanup", "on_exception"):
            setattr(Ask, site, lambda self, runner, site=site: self.ask(site, runner))
    hooks = [Ask(), {"type": "EvalHook"}, {"type": "CheckpointHook"}]
    make_runner(
        tmp_path, *hooks, train_loader=batches(2), val_loader=batches(1), max_epochs=3
    ).train()

    def expected(iterations, epochs):
        pairs = zip(iterations, epochs, strict=True)
        return [(bool(i) and i % n == 0, bool(e) and e % n == 0, i >= 6, e >= 3) for i, e in pairs]

    in_iteration = expected([1, 2, 3, 4, 5, 6], [1, 1, 2, 2, 3, 3])
    for site in ("before_train_iter", "after_forward", "after_backward", "after_train_iter"):
        assert answers[site] == in_iteration, site
    for site in ("before_epoch", "before_train_epoch"):
        assert answers[site] == expected([1, 3, 5], [1, 2, 3]), site
    after_epoch = expected([2, 4, 6], [1, 2, 3])
    for site in ("after_train_epoch", "before_val", "before_val_iter", "after_val_iter"):
        assert answers[site] == after_epoch, site
    for site in ("after_val_epoch", "after_val", "after_epoch", "before_save_checkpoint"):
        assert answers[site] == after_epoch, site
    for site in ("before_run", "before_train"):
        assert answers[site] == expected([0], [0]), site
    for site in ("after_train", "after_run"):
        assert answers[site] == expected([6], [3]), site


@pytest.mark.parametrize(
    "site", ["before_epoch", "before_train_epoch", "after_train_epoch", "after_epoch"]
)
def test_frequency_counts_epochs_at_every_site_of_an_epoch(tmp_path, site):
    seen = []
    methods = {site: lambda self, epoch: seen.append(epoch)}
    hook = type("EveryOther", (BaseHook,), methods)()
    hook.frequency = 2
    make_runner(tmp_path, hook, max_epochs=4).train()
    assert seen == [0, 2]


def test_a_hook_gets_services_of_its_runner_by_name(tmp_path):
    hook = BaseHook()
    assert hook.get_service("model") is None
    runner = make_runner(tmp_path, hook)
    assert hook.get_service("model") is runner.model
