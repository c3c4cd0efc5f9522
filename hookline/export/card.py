"""The model card: a page about an exported model, in Markdown."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hookline.files import replace_file
from hookline.secrets import mask_secrets

NAME = "README.md"
LOADING = {
    "safetensors": """from safetensors.torch import load_file

model.load_state_dict(load_file("{file}"))""",
    "pt2": """import torch

model = torch.export.load("{file}").module()
outputs = model(inputs)""",
    "onnx": """import onnxruntime

session = onnxruntime.InferenceSession("{file}")
outputs = session.run(None, {{session.get_inputs()[0].name: inputs}})""",
}


def write_card(
    directory: Path,
    files: Mapping[str, Path],
    meta: Mapping[str, Any],
    inputs: str,
    checkpoint: str,
) -> Path:
    """Write `README.md` beside exported files, with secrets masked, and return its path.

    Args:
        directory: The directory of the files.
        files: The files by format.
        meta: The `meta` of the checkpoint: config, metrics, versions, counters.
        inputs: The form of the inputs.
        checkpoint: The name of the checkpoint.
    """
    config = meta.get("config") or {}
    model = config.get("model")
    title = model.get("type", "model") if isinstance(model, Mapping) else model or "model"
    lines = [
        f"# {title}",
        "",
        f"Exported from `{checkpoint}` on {time.strftime('%Y-%m-%d')}, after epoch "
        f"{meta.get('epoch')}, iteration {meta.get('iter')}. The files were compared with the "
        "model on a batch of the validation data.",
        "",
        "## How to load it",
        "",
        f"Inputs: {inputs}. The first dimension is the batch and may have any size.",
    ]
    for kind, path in files.items():
        lines += ["", "```python", LOADING[kind].format(file=path.name), "```"]
    lines += ["", "## Metrics", "", *_table(meta.get("metrics") or {})]
    lines += ["", "## Data", "", *_yaml({"dataset": config.get("dataset")})]
    lines += ["", "## Versions", "", *_table(meta.get("versions") or {})]
    lines += ["", "## Config", "", *_yaml(config)]
    path = directory / NAME
    replace_file(path, "\n".join(lines) + "\n")
    return path


def _table(values: Mapping[str, Any]) -> list[str]:
    rows = ["| name | value |", "| --- | --- |"]
    for name, value in mask_secrets(values).items():
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        rows.append(f"| {_cell(str(name))} | {_cell(shown)} |")
    return rows


def _cell(text: str) -> str:
    """Return text that cannot leave its cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def _yaml(values: Mapping[str, Any]) -> list[str]:
    text = yaml.safe_dump(mask_secrets(values), sort_keys=False, allow_unicode=True)
    return ["````yaml", text.rstrip("\n"), "````"]
