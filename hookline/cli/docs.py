"""The pages of the documentation that are made from the code: `python -m hookline.cli.docs` writes them."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

from hookline.cli.hooks import default_of, doc_of, example, shown, sites_of, state_of, type_of
from hookline.cli.output import priority_label
from hookline.engine import HOOKS, SITES, BaseHook, sites
from hookline.engine.arguments import ARGUMENTS
from hookline.signature import parameters


def main() -> None:
    """Write all pages; run from the root of the repository."""
    for path, page in PAGES.items():
        path.write_text(page(), encoding="utf-8")


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


def hooks_page() -> str:
    """The text of docs/hooks-reference.md."""
    own = {cls: name for name, cls in reversed(HOOKS.items()) if cls.__module__.startswith("hookline.hooks")}
    others = {cls: [name for name, each in HOOKS.items() if each is cls and name != cls.__name__] for cls in own}
    classes = sorted(own, key=lambda cls: cls.__name__)
    return (
        "\n\n".join(
            [
                "# All hooks",
                "This page is made from the classes by `python -m hookline.cli.docs`; `hookline hooks NAME` prints the same.\n"
                "Besides its own parameters every hook takes `name`, `priority` and `frequency`. The examples give every parameter its\n"
                "default, and `???` stands where a value must be given: leave out what you do not change. *Sites* are the\n"
                "[moments](sites.md) at which a hook is called, *state* is what checkpoints keep of it.",
                *(_hook_entry(cls, others[cls]) for cls in classes),
            ]
        )
        + "\n"
    )


def _hook_entry(cls: type[BaseHook], other_names: list[str]) -> str:
    known = parameters(HOOKS.signature_of(cls)).known
    defaults = {name: default_of(cls, parameter) for name, parameter in known.items()}
    rows = []
    for name, parameter in known.items():
        kind = type_of(parameter).replace("|", "or")  # a bar would end the cell
        rows.append(f"| `{name}` | `{kind}` | {_cell(defaults[name])} |")
    table = ["| parameter | type | default |", "| --- | --- | --- |", *rows] if rows else ["It takes no parameters of its own."]
    facts = [f"Sites: {', '.join(f'`{site}`' for site in sites_of(cls))}.", f"Priority: {priority_label(cls.priority)}."]
    facts += [f"State: {', '.join(f'`{field}`' for field in state_of(cls))}."] if state_of(cls) else []
    facts += [f"Also known as {', '.join(f'`{name}`' for name in other_names)}."] if other_names else []
    config = ["```yaml", example(cls.__name__, defaults).rstrip(), "```"]
    picture = [f"![what {cls.__name__} draws](images/hooks/{cls.__name__}.png)", ""] if cls.__name__ in PICTURED else []
    return "\n".join([f"## {cls.__name__}", "", _escaped(doc_of(cls)), "", *picture, *table, "", "<br>\n".join(facts), "", *config])


def _cell(default: object) -> str:
    """A default in a table: as code, so that Markdown leaves it as it is."""
    value = shown(default).removeprefix("= ")
    return "**required**" if value == "required" else f"`{value}`"


def _escaped(doc: str) -> str:
    """A docstring as Markdown: `<metric>` outside of code would be taken for a tag."""
    parts = doc.split("`")
    return "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))


# Hooks that draw; docs/images/hooks has a picture by each.
PICTURED = {
    *("AttentionMapHook", "CAMHook", "DetVisualizationHook", "FeatureMapHook", "GradientFlowHook", "SaliencyHook"),
    *("SegVisualizationHook", "VisualizationHook"),
}

PAGES = {Path("docs/sites.md"): sites_page, Path("docs/hooks-reference.md"): hooks_page}

if __name__ == "__main__":
    main()
