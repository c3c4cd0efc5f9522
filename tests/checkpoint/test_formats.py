"""The content of checkpoints, and its form on disk."""

from __future__ import annotations

import collections
import enum
import errno
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch._weights_only_unpickler import _get_allowed_globals, _get_user_allowed_globals

from hookline.checkpoint.diff import diff
from hookline.checkpoint.errors import CheckpointError, UnsafeCheckpoint
from hookline.checkpoint.files import FileSystem, write_temporary
from hookline.checkpoint.formats import (
    FORCE_UNSAFE_LOAD,
    check_plain,
    deserialize,
    is_finite,
    needed_bytes,
    serialize,
)
from hookline.errors import ConfigError
from tests.checkpoint.helpers import Evil
from tests.checkpoint.pickles import naming_file, old_format, reachable_names
from tests.problems import raises_problem

INF = float("inf")


def round_trip(checkpoint: dict[str, Any], directory: Path) -> dict[str, Any]:
    plain = check_plain(checkpoint)
    path = directory / "file.pth"
    write_temporary(FileSystem(), path, lambda stream: serialize(plain, stream))
    with open(path, "rb") as file:
        return deserialize(file, path.name)


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=20,
)


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(st.text(), plain_values))
def test_plain_values_pass_unchanged(checkpoint: dict[str, Any]) -> None:
    plain = check_plain(checkpoint)
    assert plain == checkpoint
    assert plain is not checkpoint


def test_plain_values_and_tensors_survive_a_round_trip(tmp_path: Path) -> None:
    checkpoint = {
        "plain": {
            "a": [1, 2.5, None, True, "text", b"bytes", (1, (2,))],
            3: 10**40,
            "empty": {},
            "none": [],
        },
        "tensors": [
            torch.randn(3, 4),
            torch.zeros(0),
            torch.tensor(3),
            torch.tensor([True]),
            torch.randn(4, 4).t(),
            torch.randn(2).half(),
        ],
        "milestones": collections.Counter({3: 1}),
        "sparse": torch.eye(3).to_sparse(),
        "complex": torch.randn(3, dtype=torch.complex64).conj(),
    }
    assert diff(round_trip(checkpoint, tmp_path), check_plain(checkpoint)) == []


def test_parameters_ordered_dicts_sizes_and_numpy_scalars_become_plain() -> None:
    module = nn.Linear(2, 3)
    plain = check_plain(
        {
            "state_dict": module.state_dict(keep_vars=True),
            "size": torch.Size([1, 2]),
            "numpy": [np.float32(0.5), np.int64(3), np.bool_(True), np.float64(2.0), np.str_("x")],
        }
    )
    assert type(plain["state_dict"]) is dict
    assert type(plain["state_dict"]["weight"]) is torch.Tensor
    assert not plain["state_dict"]["weight"].requires_grad
    assert plain["state_dict"]["weight"].data_ptr() == module.weight.data_ptr()
    assert type(plain["size"]) is tuple
    assert [type(value) for value in plain["numpy"]] == [float, int, bool, float, str]


class Color(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [
        {1},
        object(),
        np.zeros(3),
        Color.RED,
        torch.device("cpu"),
        torch.float32,
        collections.defaultdict(int),
        Path("x"),
    ],
)
def test_any_other_value_is_rejected_with_its_type_and_path(value: object) -> None:
    with raises_problem(path=("hooks", "MyHook", "cache", 3)) as caught:
        check_plain({"hooks": {"MyHook": {"cache": [0, 1, 2, value]}}})
    assert type(value).__name__ in str(caught.value)
    assert caught.value.suggestion.advice


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        check_plain({"a": {1}, "b": {(1, 2): 3}, "c": torch.empty(2, device="meta")})
    assert [problem.path for problem in caught.value.problems] == [("a",), ("b",), ("c",)]


def test_a_list_that_contains_itself_is_rejected() -> None:
    loop: list[object] = []
    loop.append(loop)
    with raises_problem(path=("loop", 0)):
        check_plain({"loop": loop})


def test_a_checkpoint_must_be_a_dict() -> None:
    with raises_problem(path=()):
        check_plain([1])  # type: ignore[arg-type]


def test_the_cause_of_a_failed_write_is_not_hidden_by_torch(tmp_path: Path) -> None:
    class Full(FileSystem):
        writes = 0

        def write(self, descriptor: int, data: memoryview) -> int:
            self.writes += 1
            if self.writes > 5:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(descriptor, data)

    with pytest.raises(OSError, match="No space left"):
        write_temporary(
            Full(), tmp_path / "x", lambda stream: serialize({"w": torch.ones(9)}, stream)
        )


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_with_a_payload_is_rejected_and_not_executed(
    tmp_path: Path, protocol: int, zipped: bool
) -> None:
    stream = io.BytesIO()
    target = tmp_path / "executed"
    if zipped:
        torch.save({"state_dict": Evil(target)}, stream, pickle_protocol=protocol)
    else:
        pickle.dump({"state_dict": Evil(target)}, stream, protocol=protocol)
    stream.seek(0)
    with pytest.raises(UnsafeCheckpoint) as caught:
        deserialize(stream, "evil.pth")
    assert caught.value.file == "evil.pth"
    assert "\n" not in str(caught.value)
    assert not target.exists()


def test_the_variable_that_disables_the_protection_is_ignored_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(FORCE_UNSAFE_LOAD, "1")
    stream = io.BytesIO()
    torch.save({"x": Evil(tmp_path / "executed")}, stream)
    stream.seek(0)
    with raises_problem(UnsafeCheckpoint, file="evil.pth", value="posix.system"):
        deserialize(stream, "evil.pth")
    assert FORCE_UNSAFE_LOAD in caplog.text
    assert not (tmp_path / "executed").exists()


def test_no_name_outside_the_list_of_torch_can_be_resolved() -> None:
    admitted = set(_get_allowed_globals()) | set(_get_user_allowed_globals())
    names = {name for name in reachable_names() if ".".join(name) not in admitted}
    assert ("torch.distributed.checkpoint.filesystem", "os.system") in names
    for module, name in names:
        with pytest.raises(UnsafeCheckpoint):
            deserialize(io.BytesIO(naming_file(module, name)), "x.pth")


@pytest.mark.parametrize(
    "opcodes",
    [
        b"\x8c\x05posix\x8c\x06system\x93",  # STACK_GLOBAL
        b"(iposix\nsystem\n",  # INST
        b"(cposix\nsystem\no",  # OBJ
        b"\x82\x01",  # EXT1
    ],
    ids=["STACK_GLOBAL", "INST", "OBJ", "EXT1"],
)
def test_other_ways_to_name_code_are_rejected(opcodes: bytes) -> None:
    with pytest.raises(CheckpointError):
        deserialize(io.BytesIO(old_format(opcodes)), "x.pth")


@pytest.mark.parametrize("data", [b"", b"garbage", b"PK\x03\x04garbage", b"\x80\x02."])
def test_garbage_is_rejected_in_one_line(data: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"^x\.pth: [^\n]+$"):
        deserialize(io.BytesIO(data), "x.pth")


def test_a_file_without_a_dict_is_rejected() -> None:
    stream = io.BytesIO()
    torch.save(torch.ones(2), stream)
    stream.seek(0)
    with pytest.raises(CheckpointError, match="Tensor"):
        deserialize(stream, "x.pth")


@settings(deadline=None, max_examples=50)
@given(
    st.integers(1, 200_000),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from([float("nan"), INF, -INF]),
    st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64]),
)
def test_one_bad_value_anywhere_is_found(
    size: int, place: float, value: float, dtype: torch.dtype
) -> None:
    tensor = torch.ones(size).to(dtype)
    assert is_finite({"w": tensor})
    tensor[int(place * size)] = value
    assert not is_finite({"a": torch.ones(3), "nested": [{"w": tensor}]})


def test_finite_tensors_of_every_kind_are_finite() -> None:
    extremes = torch.tensor(
        [torch.finfo(torch.float64).max, -torch.finfo(torch.float64).max], dtype=torch.float64
    )
    tensors = [
        extremes,
        torch.zeros(0),
        torch.ones(3, dtype=torch.long),
        torch.full((9,), 65504.0).half(),
        torch.eye(2).to_sparse(),
        torch.zeros(2, 2).to_sparse(),
    ]
    assert is_finite(
        {"tensors": [*tensors, torch.ones(2).to(torch.float8_e4m3fn)], "epoch": float("nan")}
    )
    assert is_finite(None)


def test_an_attention_mask_passes_and_a_weight_with_nan_does_not() -> None:
    assert is_finite(
        {"mask": nn.Transformer.generate_square_subsequent_mask(4), "w": torch.ones(2)}
    )
    assert not is_finite({"w": torch.tensor([[0.0, float("nan")]]).to(torch.float8_e5m2)})
    assert not is_finite(
        {"mask": nn.Transformer.generate_square_subsequent_mask(4), "w": torch.tensor([1.0, -INF])}
    )
    assert not is_finite({"bias": torch.tensor([-INF])})
    assert not is_finite({"bias": torch.tensor([0.0, -INF])})
    assert not is_finite({"w": torch.full((2, 2), -INF)})
    assert not is_finite({"mask": torch.tensor([[0.0, -INF, float("nan")]])})


def test_the_size_of_the_file_is_estimated_before_it_is_written(tmp_path: Path) -> None:
    weights = torch.randn(50_000)
    checkpoint = {
        "state_dict": {"a": weights, "tied": weights, "view": weights[:10]},
        "other": torch.randn(1000),
    }
    path = tmp_path / "x.pth"
    size = write_temporary(FileSystem(), path, lambda stream: serialize(checkpoint, stream)).size
    assert size <= needed_bytes(checkpoint) <= size + 100_000


def test_sparse_tensors_count_with_their_numbers() -> None:
    few, many = (torch.eye(size).to_sparse() for size in (10, 1010))
    assert needed_bytes({"x": many}) - needed_bytes({"x": few}) >= 4 * 1000
