"""`hookline sites`: list the sites, where hooks are called."""

from __future__ import annotations

from hookline.cli.output import print_table
from hookline.engine import SITES


def run() -> int:
    """Print every site with its meaning."""
    print_table(list(SITES.items()), ("site", "when"))
    return 0
