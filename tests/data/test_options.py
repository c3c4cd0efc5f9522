from __future__ import annotations

import pytest

from hookline.data import make_loader
from hookline.data.digits import Digits
from hookline.data.options import check_loader
from tests.problems import fields, raises_problem


def labels_only(samples):
    """A user's function."""
    return [int(label) for _, label in samples]


def test_a_function_goes_by_its_dotted_path_too():
    ours, given = (
        make_loader(Digits(), 4, collate_fn=function)
        for function in ("tests.data.test_options.labels_only", labels_only)
    )
    assert next(iter(ours)) == next(iter(given)) == Digits().targets[:4].tolist()


def test_good_options_have_no_problems():
    assert (
        check_loader(
            {
                "batch_size": 8,
                "shuffle": True,
                "num_workers": 2,
                "persistent_workers": True,
                "prefetch_factor": 4,
            }
        )
        == []
    )


@pytest.mark.parametrize(
    ("parameter", "value", "nearest"),
    [
        ("batchsize", 8, "batch_size"),
        ("batch_size", 0, None),
        ("batch_size", "8", None),
        ("num_workers", -1, None),
        ("shuffle_method", "feistle", "feistel"),
        ("sampler", [1, 2], None),
        ("persistent_workers", True, None),
        ("prefetch_factor", 4, None),
        ("multiprocessing_context", "fork", None),
        ("timeout", 2.5, None),
        ("collate_fn", 3, None),
        ("collate_fn", "len", None),
        ("collate_fn", "torch.pi", None),
        ("collate_fn", "torch.utils.data.default_colate", "default_collate"),
        ("collate_fn", "no_such.module", None),
        ("collate_fn", "os.getcwd", None),
        ("sample_weights", "balance", "balanced"),
        ("sample_weights", "no_such.module", None),
    ],
)
def test_a_wrong_option_is_reported_with_its_name(parameter, value, nearest):
    (problem,) = check_loader({parameter: value})
    assert fields(problem, "component", "parameter", "path", "nearest") == {
        "component": "loader",
        "parameter": parameter,
        "path": (parameter,),
        "nearest": nearest,
    }
    assert f"'{parameter}'" in problem.message
    with raises_problem(component="loader", parameter=parameter):
        make_loader(Digits(), **{parameter: value})


@pytest.mark.parametrize(("parameter", "value"), [("timeout", -1.0), ("prefetch_factor", 0)])
def test_an_option_for_workers_has_a_minimum(parameter, value):
    (problem,) = check_loader({"num_workers": 2, parameter: value})
    assert (problem.parameter, problem.value) == (parameter, value)


def test_the_type_of_a_function_that_is_none_is_named():
    (problem,) = check_loader({"collate_fn": 3})
    assert problem.message.endswith("not a int")


def test_a_shuffle_method_needs_a_random_order():
    assert check_loader({"shuffle_method": "feistel"}) == []  # the default of shuffle is not known
    assert check_loader({"shuffle": True, "shuffle_method": "feistel"}) == []
    assert check_loader({"shuffle": False, "shuffle_method": "auto"}) == []
    with raises_problem(component="loader", parameter="shuffle_method"):
        make_loader(Digits(), shuffle_method="feistel")
