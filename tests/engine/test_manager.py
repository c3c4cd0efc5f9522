"""The order of hooks at a site is the documented one, whatever the priorities and however they were registered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.engine import SITE_NAMES, BaseHook, Priority, get_priority
from hookline.engine.manager import HookManager
from hookline.errors import RegistrationError
from hookline.hooks import OptimizerHook

HOOK_SITES = [site for site in SITE_NAMES if site != "optimize"]
PRIORITIES = st.one_of(
    st.integers(0, 100),
    st.sampled_from(list(Priority)),
    st.sampled_from([p.name for p in Priority] + ["low", "Very_High"]),
)


def hook_with(sites: set[str], log: list[int], number: int) -> BaseHook:
    methods: dict[str, Any] = {site: (lambda self, runner: log.append(number)) for site in sites}
    return type("Generated", (BaseHook,), methods)()


@given(
    st.lists(
        st.tuples(PRIORITIES, st.sets(st.sampled_from(HOOK_SITES), max_size=6), st.booleans()),
        max_size=12,
    ),
    st.sampled_from(["nested", "flat"]),
)
def test_hooks_run_by_priority_then_registration_and_mirrored_outside_of_before_sites(hooks, order):
    host, log = HookManager(order), []
    expected: list[tuple[int, int, set[str]]] = []
    for number, (priority, sites, at_registration) in enumerate(hooks):
        hook = hook_with(sites, log, number)
        if at_registration:
            hook.priority = "LOWEST"  # what is given at registration must win over this
            host.register_hook(hook, priority=priority)
        else:
            hook.priority = priority
            host.register_hook(hook)
        expected.append((get_priority(priority), number, sites))
    for site in HOOK_SITES:
        log.clear()
        host.call_hook(site)
        ascending = [
            number for _, number, sites in sorted(expected, key=lambda e: e[:2]) if site in sites
        ]
        mirrored = order == "nested" and not site.startswith("before_")
        assert log == (ascending[::-1] if mirrored else ascending)
        assert [int(hook in host.sites.hooks[site]) for hook in host.hooks] == [
            int(site in sites) for _, _, sites in expected
        ]


@given(st.lists(PRIORITIES, min_size=1, max_size=8), st.data())
def test_removing_a_hook_leaves_the_order_of_the_others_alone(priorities, data):
    host, log = HookManager("nested"), []
    for number, priority in enumerate(priorities):
        host.register_hook(hook_with({"before_run", "after_run"}, log, number), priority=priority)
    gone = data.draw(st.integers(0, len(priorities) - 1))
    host.unregister_hook(host.hooks[gone].name)
    host.call_hook("before_run")
    assert log == [
        number
        for _, number in sorted((get_priority(p), n) for n, p in enumerate(priorities))
        if number != gone
    ]


class SecondOwner(BaseHook):
    def optimize(self, runner):
        raise AssertionError


@pytest.mark.parametrize(
    "first, second",
    [(OptimizerHook, SecondOwner), (SecondOwner, OptimizerHook), (OptimizerHook, OptimizerHook)],
)
def test_two_owners_of_optimize_are_refused_and_both_are_named(first, second):
    host = HookManager()
    host.register_hook(first())
    with pytest.raises(RegistrationError, match=rf"{second.__name__}.*{first.__name__}"):
        host.register_hook(second())
    assert [type(hook) for hook in host.hooks] == [first]


def test_a_config_priority_wins_over_the_class_and_an_argument_over_both():
    host = HookManager()
    assert host.register_hook({"type": "LoggerHook"}).priority == Priority.NORMAL
    assert (
        get_priority(host.register_hook({"type": "LoggerHook", "priority": "LOW"}).priority) == 70
    )
    assert (
        get_priority(
            host.register_hook({"type": "LoggerHook", "priority": "LOW"}, priority=5).priority
        )
        == 5
    )


@pytest.mark.parametrize("bad", [-1, 101, "HIGHISH", 1.5, True])
def test_a_bad_priority_is_refused_and_nothing_is_registered(bad):
    host = HookManager()
    with pytest.raises((TypeError, ValueError), match="priority"):
        host.register_hook(BaseHook(), priority=bad)
    assert host.hooks == []


def test_the_documented_priorities_of_the_default_hooks_hold():
    host = HookManager()
    documented = {"LoggerHook": 50, "CheckpointHook": 60, "EvalHook": 70}
    for name, value in documented.items():
        assert get_priority(host.register_hook({"type": name}).priority) == value
    assert [priority.value for priority in Priority] == [0, 10, 30, 40, 50, 60, 70, 90, 100]


def test_the_order_can_be_read():
    host = HookManager()
    host.register_hook({"type": "LoggerHook"})
    host.register_hook({"type": "EvalHook", "name": "eval"})
    info = host.get_hooks_info()
    assert "before_run:\n  (NORMAL 50       ) LoggerHook\n  (LOW 70          ) eval" in info
    assert "after_train_epoch:\n  (LOW 70          ) eval\n  (NORMAL 50       ) LoggerHook" in info


@pytest.mark.parametrize("is_main", [True, False])
def test_only_hooks_of_the_main_rank_are_left_out_on_the_other_ranks(is_main):
    host, log = HookManager(), []
    if not is_main:
        host.is_main = False
    for number, ranks in enumerate(["all", "main", "collective"]):
        hook = hook_with({"before_run"}, log, number)
        hook.ranks = ranks
        host.register_hook(hook)
    host.call_hook("before_run")
    assert log == ([0, 1, 2] if is_main else [0, 2])
