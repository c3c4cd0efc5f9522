"""The pages of the documentation that are made from the code: `python -m hookline.cli.docs` writes them."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hookline.cli.docs_hooks import groups, hook_classes, hook_page, index_page, page_name, policy_of
from hookline.cli.docs_schedules import has_schedule, schedule_picture
from hookline.engine import SITES, BaseHook, sites
from hookline.engine.arguments import ARGUMENTS

ROOT = Path(__file__).parents[2]


def main(root: Path = ROOT) -> None:
    """Write all pages, and remove those of hooks that are no more."""
    for path, page in PAGES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(page(), encoding="utf-8")
    for path in (root / "docs" / "hooks").rglob("*.*"):
        if path.relative_to(root) not in PAGES:
            path.unlink()


def reference_page() -> str:
    """The text of docs/hooks-reference.md: the index, and where to find what goes by other words than the names of hooks."""
    pages = {cls.__name__: page_name(cls) for cls in hook_classes()}

    def linked(text: str) -> str:
        return re.sub(r"\b[A-Z]\w+Hook\b", lambda found: f"[{found[0]}](hooks/{pages[found[0]]})", text)

    rows = [f"| {words} | {linked(where)} |" for words, where in BY_WORD.items()]
    return "\n".join([index_page(), "## By other words", "", "| looking for | it is |", "| --- | --- |", *rows, ""])


def sites_page() -> str:
    """The text of docs/sites.md."""
    loop = inspect.cleandoc((sites.__doc__ or "").partition("\n\n")[2].partition("\n\n")[2])
    rows = [f'| <a id="{site.name}"></a>`{site.name}` | {site.meaning}{" (**owned**)" if site.owned else ""} |' for site in SITES]
    names = ", ".join(f"`{name}`" for name in ARGUMENTS)
    return f"""# Sites

A site is a named moment of a run; a hook has methods named after the sites at which it does something.
This page is made from `hookline/engine/sites.py` by `python -m hookline.cli.docs`; `hookline sites` prints the same list.

## The loop

```
{loop}
```

A seam is the gap between two iterations or epochs. What hooks asked for is done there, in this order: validate, save, stop.
A save is the snapshot, `before_save_checkpoint`, the writers, `after_save_checkpoint`. After an error every hook's `on_exception` comes,
then its `cleanup`, and neither `after_train` nor `after_run`. `runner.test()` has no training in it:

```
before_run
before_test, before_test_epoch, (before_test_iter, after_test_iter)*, after_test_epoch, after_test
after_run
cleanup
```

![the loop with its sites and seams](images/loop.svg)

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


def navigation() -> str:
    """The text of mkdocs.yml, with the pages of the hooks in it."""
    before, begin, rest = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition(NAVIGATION[0])
    _, end, after = rest.partition(NAVIGATION[1])
    lines = []
    for title, classes in groups().items():
        lines += [f"      - {title}:", *(f"          - {_label(cls)}: hooks/{page_name(cls)}" for cls in classes)]
    return f"{before}{begin}{chr(10).join(lines)}\n{end}{after}"


def _label(cls: type[BaseHook]) -> str:
    """A name that fits into the navigation: schedules are under a heading that says the rest."""
    return policy_of(cls)[1] if has_schedule(cls) else cls.__name__


def _picture_of(cls: type[BaseHook]) -> Path:
    return Path("docs/hooks/images") / page_name(cls).replace(".md", ".svg")


# What people look for, by words that no hook is named after.
BY_WORD = {
    "accumulation of gradients": "GradientCumulativeOptimizerHook: `cumulative_iters`",
    "averaging of weights, Polyak, SWA": "EMAHook",
    "best model": "CheckpointHook: `save_best`, `best_metric`",
    "clipping of gradients (clip, max norm)": "OptimizerHook, and all others that step: `grad_clip`",
    "CSV file": "PeriodicWriterHook: `writers: [csv]`",
    "JSON lines, console, progress bar": "LoggerHook",
    "mixed precision (AMP, bf16, fp16)": "AmpOptimizerHook",
    "NaN, infinite or diverging loss": "CheckInvalidLossHook stops, RollbackHook goes back and goes on",
    "time left (ETA)": "IterTimerHook, TimeTrackingHook",
    "wall time, limit of a queue": "TimeLimitHook",
    "warm-up (warmup) of the learning rate": "every schedule of the learning rate: `warmup`, `warmup_iters`, `warmup_ratio`; "
    "FixedLrUpdaterHook has nothing else",
}

# What is made from the code in mkdocs.yml lies between these lines.
NAVIGATION = ("      # made by python -m hookline.cli.docs\n", "      # until here\n")

PAGES: dict[Path, Callable[[], str]] = {
    Path("docs/sites.md"): sites_page,
    Path("docs/hooks-reference.md"): reference_page,
    **{Path("docs/hooks") / page_name(cls): partial(hook_page, cls) for cls in hook_classes()},
    **{_picture_of(cls): partial(schedule_picture, cls) for cls in hook_classes() if has_schedule(cls)},
    Path("mkdocs.yml"): navigation,
}

if __name__ == "__main__":
    main()
