"""The config of a run, kept beside its results."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import yaml

from hookline.checkpoint.files import replace_text
from hookline.config.yaml_marks import Dumper
from hookline.secrets import mask_secrets


def save_resolved(config: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a config as YAML that `load_config` reads back, secrets masked; the file is there whole or not at all."""
    text = yaml.dump(_literal(mask_secrets(config)), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
    replace_text(FilePath(path), text)


def _literal(value: Any) -> Any:
    """`${` in a resolved value is just text, and is escaped so that it stays so."""
    if isinstance(value, dict):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", value) if isinstance(value, str) else value
