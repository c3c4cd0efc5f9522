"""`hookline sites`: the moments of a run at which hooks are called."""

from __future__ import annotations

import argparse

from hookline.cli.output import print_table
from hookline.engine import SITES


def run(args: argparse.Namespace) -> int:
    print_table([(site.name, site.meaning) for site in SITES], ("site", "when"))
    return 0
