"""Old names work for one release, with a warning."""

from __future__ import annotations

import pytest

from hookline.deprecation import RUNNER_ATTRIBUTES
from tests.helpers import make_runner


@pytest.mark.parametrize("name", RUNNER_ATTRIBUTES)
def test_an_attribute_is_found_by_its_old_name_with_a_warning(tmp_path, name):
    runner = make_runner(tmp_path)
    with pytest.warns(DeprecationWarning, match=RUNNER_ATTRIBUTES[name]):
        getattr(runner, name)


def test_an_unknown_attribute_is_an_error(tmp_path):
    runner = make_runner(tmp_path)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'") as error:
        runner.nonsense  # noqa: B018
    assert (error.value.name, error.value.obj) == ("nonsense", runner)  # Python suggests a name.


def test_a_switch_of_another_trainer_cannot_be_set_in_vain(tmp_path):
    runner = make_runner(tmp_path)
    assert not hasattr(runner, "should_stop")
    with pytest.raises(AttributeError, match="request_stop"):
        runner.should_stop = True
