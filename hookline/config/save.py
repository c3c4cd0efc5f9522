"""Write the resolved config of a run next to its results."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hookline.checkpoint.files import replace_text
from hookline.config.yaml_marks import Dumper
from hookline.secrets import mask_secrets


def save_resolved(config: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a config as YAML that `load_config` reads back, atomically and with secrets masked."""
    text = yaml.dump(
        _escape(mask_secrets(config)),
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=120,
    )
    replace_text(Path(path), text)


def _escape(value: Any) -> Any:
    """Escape `${` in resolved values, which are not interpolations."""
    if isinstance(value, dict):
        return {key: _escape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escape(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", value)
    return value
