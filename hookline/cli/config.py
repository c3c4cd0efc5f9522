"""`hookline config`: check a config and print it with everything resolved."""

from __future__ import annotations

import json
from collections.abc import Sequence

import yaml

from hookline import Runner
from hookline.cli.errors import CommandLineError
from hookline.cli.output import only_json, print_json
from hookline.cli.printing import show
from hookline.config import load_config, mask_secrets
from hookline.config.hooks import checked_hooks
from hookline.config.json_schema import config_schema
from hookline.config.validate import import_custom
from hookline.config.yaml_marks import Dumper


def run(
    config: str | None, overrides: Sequence[str], check: bool, schema: bool, as_json: bool
) -> int:
    """Raise ConfigError if the config is wrong; otherwise print it, unless `check` is set.

    With `schema`, print the JSON Schema of configs instead, with the classes that the config's
    `custom_imports` register.
    """
    if schema:
        show(_schema_text(config, overrides), end="")
        return 0
    if config is None:
        raise CommandLineError("missing argument 'CONFIG'")
    with only_json(as_json):
        resolved = load_config(config, overrides)
        checked_hooks(resolved)
    if as_json and not check:
        print_json(resolved)
    elif not check:
        show(_as_yaml(mask_secrets(resolved)), end="")
    return 0


def _schema_text(config: str | None, overrides: Sequence[str]) -> str:
    if config is not None:  # It may have mistakes, which the editor shows with this schema.
        import_custom(load_config(config, overrides))
    return json.dumps(config_schema(Runner), ensure_ascii=False) + "\n"


def _as_yaml(value: object) -> str:
    text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text
