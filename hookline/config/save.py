"""Write the resolved config of a run next to its results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hookline.checkpoint.files import replace_text
from hookline.config.resolve import escape_interpolations
from hookline.config.yaml_marks import Dumper
from hookline.secrets import mask_secrets


def save_resolved(config: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a config as YAML that `load_config` reads back, atomically and with secrets masked."""
    text = yaml.dump(
        escape_interpolations(mask_secrets(config)),
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=120,
    )
    replace_text(Path(path), text)
