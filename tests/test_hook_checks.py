from __future__ import annotations

from types import SimpleNamespace

import pytest

from hookline import state
from hookline.engine import SITE_NAMES, BaseHook
from hookline.errors import RegistrationError
from hookline.hook_checks import check_hook, check_owner, unique_name


class Plain(BaseHook):
    """A hook without a mistake."""

    extra_sites = ("before_lunch",)

    def before_train(self, runner) -> None: ...

    def before_lunch(self, runner) -> None: ...

    def _after_all(self) -> None: ...

    def helper(self) -> None: ...


class Owner(BaseHook):
    """A hook that owns the optimizer step."""

    def optimize(self, runner) -> None: ...


def refusal(hook: BaseHook) -> RegistrationError:
    hook.name = type(hook).__name__
    with pytest.raises(RegistrationError) as caught:
        check_hook(hook, SITE_NAMES, {"runner": None})
    return caught.value


def test_a_hook_without_a_mistake_passes() -> None:
    check_hook(Plain(), SITE_NAMES, {"runner": None})


@pytest.mark.parametrize(
    ("attribute", "value"), [("priority", 101), ("frequency", 0), ("ranks", "some")]
)
def test_an_attribute_that_no_hook_can_have_is_refused(attribute: str, value: object) -> None:
    hook = Plain()
    setattr(hook, attribute, value)
    error = refusal(hook)
    assert (error.component, error.parameter, error.value) == ("Plain", attribute, value)


@pytest.mark.parametrize("ranks", ["all", "main", "collective"])
def test_every_kind_of_ranks_is_accepted(ranks: str) -> None:
    hook = Plain()
    hook.ranks = ranks
    check_hook(hook, SITE_NAMES, {"runner": None})


def test_a_misspelt_site_is_refused_with_the_nearest_one() -> None:
    class Misspelt(BaseHook):
        def before_trian(self, runner) -> None: ...

    error = refusal(Misspelt())
    assert (error.site, error.suggestion.nearest) == ("before_trian", "before_train")


def test_a_site_of_another_framework_is_refused_with_ours() -> None:
    class Foreign(BaseHook):
        def on_train_end(self, runner) -> None: ...

    error = refusal(Foreign())
    assert (error.site, error.suggestion.nearest) == ("on_train_end", "after_train")


def test_state_without_a_dataclass_is_refused() -> None:
    class Stateful(BaseHook):
        count: int = state(0)

    error = refusal(Stateful())
    assert (error.component, error.parameter) == ("Stateful", "count")


def test_an_argument_that_nothing_provides_is_refused() -> None:
    class Demanding(BaseHook):
        def after_run(self, moon) -> None: ...

    assert refusal(Demanding()).parameter == "moon"


def test_a_site_of_the_hook_itself_gets_its_arguments_checked() -> None:
    class Demanding(BaseHook):
        extra_sites = ("before_lunch",)

        def before_lunch(self, moon) -> None: ...

    assert refusal(Demanding()).parameter == "moon"


def test_a_second_owner_of_a_site_is_refused() -> None:
    first, second = Owner(), Owner()
    first.name, second.name = "first", "second"
    check_owner(second, [Plain()], "optimize")
    check_owner(Plain(), [first], "optimize")
    with pytest.raises(RegistrationError) as caught:
        check_owner(second, [Plain(), first], "optimize")
    assert (caught.value.component, caught.value.site) == ("second", "optimize")
    assert "first" in caught.value.suggestion.advice


def test_twins_are_numbered_from_two() -> None:
    twin = Plain()
    assert unique_name(twin, set()) == "Plain"
    assert unique_name(twin, {"Plain"}) == "Plain_2"
    assert unique_name(twin, {"Plain", "Plain_2"}) == "Plain_3"


def test_a_name_that_the_user_gave_is_not_changed() -> None:
    named = Plain()
    named.name = "mine"
    assert unique_name(named, {"Plain"}) == "mine"
    with pytest.raises(RegistrationError) as caught:
        unique_name(named, {"mine"})
    assert (caught.value.component, caught.value.parameter) == ("mine", "name")


def test_a_hook_without_a_name_has_that_of_its_class() -> None:
    assert unique_name(SimpleNamespace(name=""), set()) == "SimpleNamespace"
