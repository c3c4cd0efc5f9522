"""`hookline config`: a config as it will be used."""

from __future__ import annotations

import argparse

import yaml

from hookline.config import check, load_config, mask_secrets
from hookline.config.yaml_marks import Dumper


def run(args: argparse.Namespace) -> int:
    config = load_config(args.config, args.overrides)
    if not args.check:
        print(yaml.dump(mask_secrets(config), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120), end="")
    check(config)
    return 0
