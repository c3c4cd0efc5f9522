"""The export of a language model of Transformers, verified through onnxruntime."""

from __future__ import annotations

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from hookline.export import FORMATS, ExportError, OnnxModel, export_model, verify_onnx

pytest.importorskip("onnxruntime")


def test_a_tiny_gpt2_is_exported_and_a_drift_of_it_is_located(tmp_path):
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 32, "vocab_size": 50, "n_positions": 32}
    model = GPT2LMHeadModel(GPT2Config(**sizes, use_cache=False)).eval()
    inputs = torch.randint(50, (3, 16))
    files = export_model(model, inputs, tmp_path)
    assert sorted(files) == sorted(FORMATS)
    more = torch.randint(50, (7, 16))
    with torch.no_grad():
        expected = model(more).logits
    assert torch.allclose(OnnxModel(files["onnx"])(more), expected, atol=1e-5)
    with torch.no_grad():
        model.transformer.h[1].ln_2.weight.mul_(1.5)
    with pytest.raises(ExportError) as caught:
        verify_onnx(files["onnx"], model, inputs)
    assert caught.value.layer == "transformer.h.1.ln_2"
