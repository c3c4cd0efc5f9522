"""The page of the documentation that is made from the code: `python -m hookline.cli.docs` writes docs/sites.md."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

from hookline.engine import SITES, sites
from hookline.engine.arguments import ARGUMENTS

PAGE = Path("docs/sites.md")


def sites_page() -> str:
    """The text of docs/sites.md."""
    loop = inspect.cleandoc((sites.__doc__ or "").partition("\n\n")[2].partition("\n\n")[2])
    rows = [f"| `{site.name}` | {site.meaning}{' (**owned**)' if site.owned else ''} |" for site in SITES]
    names = ", ".join(f"`{name}`" for name in ARGUMENTS)
    return f"""# Sites

A site is a named moment of a run; a hook has methods named after the sites at which it does something.
This page is made from `hookline/engine/sites.py` by `python -m hookline.cli.docs`; `hookline sites` prints the same list.

## The loop

```
{loop}
```

A seam is the gap between two iterations or epochs. What hooks asked for is done there, in this order: validate, save, stop.

## All sites

| site | when |
| --- | --- |
{chr(10).join(rows)}

An **owned** site does the work itself, so exactly one hook may have it.

## Order

With `hook_order: nested` (the default) `before_*` sites call the hooks by ascending priority, hooks of the same priority in
the order of their registration; every other site calls them in exactly the opposite order, as context managers unwind.
With `hook_order: flat` the ascending order holds everywhere. `hookline plan CONFIG` prints the order for a config.

## Arguments

A method gets `runner`, or just what it names: `def after_epoch(self, epoch, metrics)`. There is every service of the runner, and:
{textwrap.fill(names, 120)}.
"""


if __name__ == "__main__":
    PAGE.write_text(sites_page(), encoding="utf-8")
