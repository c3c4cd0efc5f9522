"""`hookline config`: a config with all that it inherits, interpolates and is overridden with."""

from __future__ import annotations

import argparse

import yaml

from hookline.config import load_config, mask_secrets
from hookline.config.hooks import checked_hooks
from hookline.config.yaml_marks import Dumper


def run(args: argparse.Namespace) -> int:
    config = load_config(args.config, args.overrides)
    checked_hooks(config)
    if not args.check:
        print(yaml.dump(mask_secrets(config), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120), end="")
    return 0
