from __future__ import annotations

import pytest

from hookline.data import make_loader
from hookline.data.digits import Digits
from hookline.data.options import check_loader
from hookline.errors import ConfigError


def labels_only(samples):
    """A function of a user."""
    return [int(label) for _, label in samples]


def test_a_function_goes_by_its_dotted_path_too():
    ours, given = (make_loader(Digits(), 4, collate_fn=function) for function in ("tests.data.test_options.labels_only", labels_only))
    assert next(iter(ours)) == next(iter(given)) == Digits().targets[:4].tolist()


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
        ({"collate_fn": 3}, "'collate_fn': must be a function or the dotted path of one, got 3"),
        ({"collate_fn": "len"}, "'collate_fn': must be the dotted path of a function, such as my_project.data.collate, got 'len'"),
        ({"collate_fn": "math.pi"}, "'collate_fn': must be a function or the dotted path of one, got 'math.pi', which is of type float"),
        ({"collate_fn": "json.dmps"}, "'collate_fn': module 'json' has no 'dmps'; did you mean 'dumps'?"),
        ({"collate_fn": "no_such.module"}, "'collate_fn': unknown function 'no_such.module': there is no module 'no_such'"),
        ({"collate_fn": "os.getcwd"}, "'collate_fn': 'os.getcwd': module 'os' may not be used from a config"),
    ],
)
def test_a_wrong_option_is_told_with_its_name(options, message):
    (problem,) = check_loader(options)
    assert message in str(problem)
    with pytest.raises(ConfigError, match="loader"):
        make_loader(Digits(), **options)
