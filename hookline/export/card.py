"""The model card: a page about an exported model, in Markdown."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hookline.checkpoint.structure import restoring
from hookline.files import replace_file
from hookline.secrets import mask_secrets, mask_text

NAME = "README.md"
LOADING = {
    "safetensors": """from safetensors.torch import load_file

model.load_state_dict(load_file("{file}"))""",
    "pt2": """import torch

model = torch.export.load("{file}").module()
outputs = model({arguments})""",
    "onnx": """import onnxruntime

session = onnxruntime.InferenceSession("{file}")
outputs = session.run(None, {arrays})""",
}
# The inputs in this code: one tensor, or a mapping of them.
POSITIONAL = {"arguments": "inputs", "arrays": "{session.get_inputs()[0].name: inputs}"}
BY_NAME = {"arguments": "**inputs", "arrays": "inputs"}
LOADING_PRETRAINED = {
    "hf": """from transformers import {loader}

model = {loader}.from_pretrained("{folder}")""",
    "peft": """from peft import PeftModel
from transformers import {loader}

base = {loader}.from_pretrained({base})
model = PeftModel.from_pretrained(base, "{folder}")""",
}


def write_card(
    directory: Path,
    files: Mapping[str, Path],
    meta: Mapping[str, Any],
    inputs: Mapping[str, str],
    checkpoint: str,
) -> Path:
    """Write `README.md` beside exported files, with secrets masked, and return its path.

    Args:
        directory: The directory of the files.
        files: The files by format.
        meta: The `meta` of the checkpoint: config, metrics, versions, counters.
        inputs: The forms of the inputs by name; the name of a single one is empty.
        checkpoint: The name of the checkpoint.
    """
    with restoring("meta"):
        config = meta.get("config") or {}
        model = config.get("model")
        title = model.get("type", "model") if isinstance(model, Mapping) else model or "model"
        facts = _facts(meta)
    checked = " The files were compared with the model on a batch of the validation data."
    lines = _heading(str(title), meta, checkpoint)
    lines[-1] += checked
    lines += ["", "## How to load it", ""]
    lines += [f"Inputs: {_list_inputs(inputs)}. N, the size of the batch, may have any value."]
    words = POSITIONAL if "" in inputs else BY_NAME
    for kind, path in files.items():
        lines += ["", "```python", LOADING[kind].format(file=path.name, **words), "```"]
    return _write(directory, [*lines, *facts])


def write_pretrained_card(
    directory: Path, kind: str, loader: str, base: str, meta: Mapping[str, Any], checkpoint: str
) -> Path:
    """Write `README.md` for a folder that transformers or peft loads, and return its path.

    Args:
        directory: The folder.
        kind: `hf` or `peft`.
        loader: The class that loads the model, or the base model of an adapter.
        base: The name or folder of the base model.
        meta: The `meta` of the checkpoint.
        checkpoint: The name of the checkpoint.
    """
    with restoring("meta"):
        facts = _facts(meta)
    lines = _heading(loader, meta, checkpoint)
    if base:
        lines += ["", f"Fine-tuned from `{_line(base)}`."]
    literal = json.dumps(base, ensure_ascii=False)
    example = LOADING_PRETRAINED[kind].format(loader=loader, folder="FOLDER", base=literal)
    lines += ["", "## How to load it", "", *_block("python", example)]
    return _write(directory, [*lines, *facts])


def _list_inputs(inputs: Mapping[str, str]) -> str:
    return ", ".join(f"`{_line(name)}` {form}" if name else form for name, form in inputs.items())


def _heading(title: str, meta: Mapping[str, Any], checkpoint: str) -> list[str]:
    return [
        f"# {_line(title)}",
        "",
        f"Exported from `{_line(checkpoint)}` on {time.strftime('%Y-%m-%d')}, after epoch "
        f"{_line(str(meta.get('epoch')))}, iteration {_line(str(meta.get('iter')))}.",
    ]


def _facts(meta: Mapping[str, Any]) -> list[str]:
    """Return the sections about metrics, data, versions and config, with secrets masked."""
    config = meta.get("config") or {}
    lines = ["", "## Metrics", "", *_table(meta.get("metrics") or {})]
    lines += ["", "## Data", "", *_yaml({"dataset": config.get("dataset")})]
    lines += ["", "## Versions", "", *_table(meta.get("versions") or {})]
    lines += ["", "## Config", "", *_yaml(config)]
    return lines


def _write(directory: Path, lines: list[str]) -> Path:
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
    return _line(text).replace("|", "\\|")


def _line(text: str) -> str:
    """Return text that stays in its line, without secrets, HTML and ends of code spans."""
    return " ".join(mask_text(text).split()).replace("`", "'").replace("<", "&lt;")


def _yaml(values: Mapping[str, Any]) -> list[str]:
    text = yaml.safe_dump(mask_secrets(values), sort_keys=False, allow_unicode=True)
    return _block("yaml", text.rstrip("\n"))


def _block(language: str, text: str) -> list[str]:
    """Return a code block whose fence is longer than every one in its text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(4, longest + 1)
    return [f"{fence}{language}", text, fence]
