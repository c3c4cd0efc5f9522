"""`hookline sites`: list the sites, where hooks are called."""

from __future__ import annotations

from hookline.cli.output import print_json, print_table
from hookline.engine import SITES


def run(as_json: bool) -> int:
    """Print every site with its meaning."""
    if as_json:
        print_json(SITES)
        return 0
    print_table(list(SITES.items()), ("site", "when"))
    return 0
