"""`hookline config`: check a config and print it with everything resolved."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from hookline.cli.printing import show
from hookline.config import load_config, mask_secrets
from hookline.config.hooks import checked_hooks
from hookline.config.yaml_marks import Dumper


def run(config: str, overrides: Sequence[str], check: bool) -> int:
    """Raise ConfigError if the config is wrong; otherwise print it, unless `check` is set."""
    resolved = load_config(config, overrides)
    checked_hooks(resolved)
    if not check:
        show(_as_yaml(mask_secrets(resolved)), end="")
    return 0


def _as_yaml(value: object) -> str:
    text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text
