from __future__ import annotations

import pytest

from hookline.data import make_loader
from hookline.data.digits import Digits
from hookline.data.options import check_loader
from hookline.errors import ConfigError


def test_good_options_have_no_problems():
    assert check_loader({"batch_size": 8, "shuffle": True, "num_workers": 2, "persistent_workers": True, "prefetch_factor": 4}) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batchsize": 8}, "unknown parameter 'batchsize'; did you mean 'batch_size'?"),
        ({"batch_size": 0}, "'batch_size' must be at least 1, got 0"),
        ({"batch_size": "8"}, "'batch_size' must be a whole number, got '8'"),
        ({"num_workers": -1}, "'num_workers' must be at least 0"),
        ({"sampler": [1, 2]}, "'sampler' cannot be set"),
        ({"persistent_workers": True}, "'persistent_workers' is for worker processes"),
    ],
)
def test_a_wrong_option_is_told_with_its_name(options, message):
    (problem,) = check_loader(options)
    assert message in str(problem)
    with pytest.raises(ConfigError, match="loader"):
        make_loader(Digits(), **options)
