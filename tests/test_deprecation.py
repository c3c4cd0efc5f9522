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
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        make_runner(tmp_path).nonsense  # noqa: B018
