"""Modules by class name or by a pattern, and what is done with them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from hookline.dist.modules import select_modules
from hookline.errors import ConfigError
from tests.helpers import make_runner, small_model


def test_modules_are_chosen_by_class_or_whole_name() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.LayerNorm(2), nn.ReLU()))
    assert list(select_modules(["LayerNorm", "0"], model, "modules", "Hook")) == ["1.0", "0"]
    with pytest.raises(ConfigError) as caught:
        select_modules("LayerNorn", model, "modules", "Hook")
    assert caught.value.suggestion.nearest == "LayerNorm"


def test_only_chosen_regions_are_compiled(tmp_path: Path) -> None:
    model = small_model()
    options = {"regions": "Linear", "backend": "eager"}
    make_runner(tmp_path, model=model, compile=options, max_iters=1).train()
    compiled = [module._compiled_call_impl is not None for module in model.modules()]
    assert compiled == [False, True, False, True]
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    with pytest.raises(ConfigError):
        make_runner(tmp_path, model=small_model(), compile={"regions": "Liner"})
    assert torch.isfinite(model[0].weight).all()
