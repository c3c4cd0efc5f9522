"""The parts of the documentation site that are generated from the code, for mkdocs.

mkdocs calls the `on_` functions. The pages of the hooks are generated while the site is built.
Hand-written pages may have markers such as `<!-- made: hooks -->` on a line, which are replaced by
the result of `Site.part`.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import yaml

from hookline.arguments import ARGUMENTS
from hookline.engine import SITES, sites
from scripts.docs.hook_docs import HookDoc, all_hooks
from scripts.docs.hook_pages import HookPages, curve_name, is_schedule

ROOT = Path(__file__).parents[2]
MARKER = re.compile(r"^<!-- made: (\w+) -->$", re.MULTILINE)
OTHER_HOOKS = "Other hooks"
REPOSITORY = "https://github.com/hookline/hookline/blob/main"
# Links to files that are not part of the site: tests, results of benchmarks, examples.
OUTSIDE = re.compile(r"\]\((?:\.\./)+((?:benchmarks|examples|hookline|scripts|tests)/[^)\s]*)\)")

Nav = list[Any]


class Site:
    """The generated parts of the site.

    Args:
        docs: The directory of the hand-written pages.
        nav: The navigation of mkdocs.yml. Its section "Hooks" groups the hooks by purpose. Pages of
            hooks link to the pages of "Guide" and "Tasks" that mention them.
        hooks: The hooks.
    """

    def __init__(self, docs: Path, nav: Nav, hooks: list[HookDoc]) -> None:
        self.docs = docs
        self.nav = nav
        self.hooks = hooks
        guides = [*_section(nav, "Guide"), *_section(nav, "Tasks")]
        self._pages = HookPages(hooks, docs, [page for entry in guides for page in entry.values()])

    @functools.cached_property
    def hook_pages(self) -> dict[str, str]:
        """The page of each hook by its path in the site."""
        return {f"hooks/{hook.page}": self._pages.page(hook) for hook in self.hooks}

    def curves(self) -> dict[str, HookDoc]:
        """Return the schedules by the paths of their pictures."""
        schedules = [hook for hook in self.hooks if is_schedule(hook)]
        return {f"hooks/images/{curve_name(hook)}": hook for hook in schedules}

    def groups(self) -> dict[str, list[str]]:
        """Return the file names of the hooks' pages by purpose."""
        groups: dict[str, list[str]] = {}
        for entry in _section(self.nav, "Hooks"):
            ((title, pages),) = entry.items()
            if isinstance(pages, list):
                groups[title] = [Path(*page.values()).name for page in pages]
        grouped = {page for pages in groups.values() for page in pages}
        others = [hook.page for hook in self.hooks if hook.page not in grouped]
        if others:
            groups[OTHER_HOOKS] = others
        return groups

    def complete_nav(self) -> None:
        """Add the hooks that the navigation does not list."""
        others = self.groups().get(OTHER_HOOKS, [])
        if others:
            names = {hook.page: hook.name for hook in self.hooks}
            pages = [{names[page]: f"hooks/{page}"} for page in others]
            _section(self.nav, "Hooks").append({OTHER_HOOKS: pages})

    def fill(self, markdown: str) -> str:
        """Replace the markers of a hand-written page."""
        return MARKER.sub(lambda marker: self.part(marker[1]), markdown)

    def part(self, name: str) -> str:
        """Return the text that replaces a marker."""
        if name == "hooks":
            return self._pages.index(self.groups())
        if name == "loop":
            return f"```\n{_loop()}\n```"
        if name == "sites":
            return _sites_table()
        if name == "arguments":
            names = ", ".join(f"`{argument}`" for argument in ARGUMENTS)
            return textwrap.fill(names, 100)
        raise ValueError(f"unknown marker {name!r}")


@functools.cache
def read_site() -> Site:
    """Return the site of this repository."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return Site(ROOT / "docs", config["nav"], all_hooks())


def on_config(config: Any) -> Any:
    """Add the hooks that the navigation does not list, and keep Chinese letters in anchors."""
    from markdown.extensions.toc import slugify_unicode

    Site(Path(config.docs_dir), config.nav, read_site().hooks).complete_nav()
    config.mdx_configs["toc"]["slugify"] = slugify_unicode
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the hooks and the curves of the schedules."""
    from mkdocs.structure.files import File

    from scripts.docs.schedule_curves import draw_curve  # matplotlib is slow to import

    site = read_site()
    for path, text in site.hook_pages.items():
        files.append(File.generated(config, path, content=text))
    for path, hook in site.curves().items():
        files.append(File.generated(config, path, content=draw_curve(hook)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the markers of a page, and links to files of the repository."""
    return OUTSIDE.sub(rf"]({REPOSITORY}/\1)", read_site().fill(markdown))


def _section(nav: Nav, title: str) -> Nav:
    for entry in nav:
        if isinstance(entry, dict) and title in entry:
            section: Nav = entry[title]
            return section
    raise ValueError(f"mkdocs.yml: nav has no section {title!r}")


def _loop() -> str:
    """Return the loop from the docstring of `hookline.engine.sites`."""
    lines = inspect.cleandoc(sites.__doc__ or "").splitlines()
    return textwrap.dedent("\n".join(line for line in lines if line.startswith("    ")))


def _sites_table() -> str:
    rows = ["| site | when |", "| --- | --- |"]
    for site, meaning in SITES.items():
        owned = " (**owned**)" if site in sites.OWNED else ""
        rows.append(f'| <a id="{site}"></a>`{site}` | {meaning}{owned} |')
    return "\n".join(rows)
