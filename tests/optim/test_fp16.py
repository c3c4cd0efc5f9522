"""`auto_fp16` and `force_fp32`, with bfloat16 on the CPU."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import nn

from hookline.optim.fp16 import auto_fp16, cast, enable_fp16, force_fp32


class Pair(NamedTuple):
    a: torch.Tensor
    b: str


class Example(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.types: dict[str, torch.dtype] = {}

    @auto_fp16(apply_to=("x",))
    def forward(self, x, y):
        self.types.update(x=x.dtype, y=y.dtype)
        features = self.net(x)
        self.types["features"] = features.dtype
        return self._loss(features, y)

    @force_fp32(apply_to=("features",))
    def _loss(self, features, labels):
        self.types["loss"] = features.dtype
        self.types["inside"] = self.net(torch.ones(1, 4)).dtype
        return (features - labels).square().mean()

    @force_fp32(apply_to=("x",))
    def part(self, x, y):
        self.types.update(x=x.dtype, y=y.dtype)

    @auto_fp16(out_fp32=True)
    def back(self, x, *, more):
        self.types["more"] = more["deep"][0].dtype
        return {"out": self.net(x), "text": "kept"}

    @force_fp32(out_fp16=True)
    def down(self, x):
        self.types["down"] = x.dtype
        return x


def test_without_fp16_enabled_the_decorators_do_nothing():
    model = Example()
    model(torch.ones(3, 4), torch.ones(3, 2))
    assert set(model.types.values()) == {torch.float32}


def test_the_documents_example_runs_in_half_precision_but_for_its_loss():
    model = Example()
    model.fp16_enabled = True
    loss = model(torch.ones(3, 4), torch.ones(3, 2))
    half, full = torch.bfloat16, torch.float32
    assert model.types == {"x": half, "y": full, "features": half, "loss": full, "inside": full}
    assert loss.dtype is full
    loss.backward()
    assert model.net.weight.grad.dtype is full


def test_only_the_named_arguments_are_cast_back():
    model = Example()
    model.fp16_enabled = True
    half = torch.ones(1, dtype=torch.bfloat16)
    model.part(half, half)
    assert model.types == {"x": torch.float32, "y": torch.bfloat16}


def test_results_are_cast_inside_containers():
    model = Example()
    model.fp16_enabled = True
    result = model.back(torch.ones(1, 4), more={"deep": [torch.ones(1)]})
    assert (result["out"].dtype, result["text"], model.types["more"]) == (
        torch.float32,
        "kept",
        torch.bfloat16,
    )
    assert model.down(torch.ones(1, dtype=torch.bfloat16)).dtype is torch.bfloat16
    assert model.types["down"] is torch.float32
    pair = cast(Pair(torch.ones(1), "b"), torch.float32, torch.bfloat16)
    assert (type(pair), pair.a.dtype, pair.b) == (Pair, torch.bfloat16, "b")
    assert (
        cast(torch.ones(1, dtype=torch.int64), torch.float32, torch.bfloat16).dtype is torch.int64
    )


def test_all_modules_with_decorated_methods_are_enabled_and_no_others():
    model = nn.Sequential(Example(), nn.Linear(2, 2), Example())
    assert enable_fp16(model) == 2
    assert model[0].fp16_enabled
    assert not hasattr(model[1], "fp16_enabled")


def test_a_wrong_use_of_the_decorators_is_refused():
    with pytest.raises(ValueError, match="apply_to.*forward.*z"):

        class Wrong(nn.Module):
            @auto_fp16(apply_to=("z",))
            def forward(self, x):
                return x

    class NoModule:
        @auto_fp16()
        def forward(self, x):
            return x

    with pytest.raises(TypeError, match="forward"):
        NoModule().forward(1)
