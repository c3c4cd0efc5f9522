"""Write the pages of the hooks, and the index of them, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hookline.engine import HOOKS, SITES, BaseHook
from hookline.hooks import LrUpdaterHook, MomentumUpdaterHook
from hookline.hooks.builder import DEFAULT_HOOKS
from scripts.docs.hook_docs import HookDoc

MAX_CODE_COLUMNS = 74  # that fit on a page beside the navigation
RANKS = {
    "all": "on every rank",
    "main": "on rank 0 only",
    "collective": "on every rank at the same time, because it communicates",
}
PICTURES = {"ReportHook": "report.png"}  # that are not in images/hooks


class HookPages:
    """The pages of all hooks.

    Args:
        hooks: The hooks.
        docs: The directory of the hand-written pages.
        guides: Names of the hand-written pages to link to if they mention a hook.
    """

    def __init__(self, hooks: Iterable[HookDoc], docs: Path, guides: Iterable[str]) -> None:
        self.hooks = {hook.name: hook for hook in hooks}
        self.docs = docs
        self.guides = {name: (docs / name).read_text(encoding="utf-8") for name in guides}

    def page(self, hook: HookDoc) -> str:
        """Return the page of one hook. It begins with the example."""
        text = self._linked(hook.text, hook)
        summary, _, description = text.partition("\n")
        parts = [
            f"# {hook.name}",
            summary,
            _example(hook),
            self._picture(hook),
            description.strip(),
            self._notes(hook),
            "## Parameters",
            self._parameters(hook),
            "## When it acts",
            _sites(hook),
            "## State",
            _state(hook),
            self._see_also(hook),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def index(self, groups: dict[str, list[str]]) -> str:
        """Return tables of all hooks, one for each group of pages."""
        by_page = {hook.page: hook for hook in self.hooks.values()}
        parts = []
        for title, pages in groups.items():
            rows = []
            for page in pages:
                hook = by_page[page]
                summary = self._linked(hook.summary, hook, "hooks/")
                rows.append((self._index_name(hook), summary))
            parts += [f"## {title}", _table(("hook", "what it does"), rows)]
        return "\n\n".join(parts)

    def _index_name(self, hook: HookDoc) -> str:
        link = f"[{hook.name}](hooks/{hook.page})"
        if hook.name in DEFAULT_HOOKS:
            link = f"**{link}**"
        return "<br>".join([link, *(f"`{name}`" for name in hook.aliases)])

    def _linked(self, text: str, hook: HookDoc, folder: str = "") -> str:
        """Make the first mention of each other hook a link, and escape `<`, except in code."""
        unlinked = set(self.hooks) - {hook.name}

        def link(found: re.Match[str]) -> str:
            name = found[0]
            if name not in unlinked:
                return name
            unlinked.remove(name)
            return f"[{name}]({folder}{self.hooks[name].page})"

        parts = text.split("`")
        for index in range(0, len(parts), 2):  # Every other part is code.
            parts[index] = re.sub(r"\b\w+Hook\b", link, parts[index].replace("<", "&lt;"))
        return "`".join(parts)

    def _picture(self, hook: HookDoc) -> str:
        if is_schedule(hook):
            return f"![the schedule of the example](images/{curve_name(hook)})"
        picture = PICTURES.get(hook.name, f"hooks/{hook.name}.png")
        if (self.docs / "images" / picture).exists():
            return f"![a picture of {hook.name}](../images/{picture})"
        return ""

    def _notes(self, hook: HookDoc) -> str:
        """Return notes on how a run gets the hook, its base class and its other names."""
        lines = []
        if hook.name in DEFAULT_HOOKS:
            lines.append(
                "Every run has this hook. A hook of the same class in the config replaces it, and\n"
                f"`drop_hooks: [{hook.name}]` removes it."
            )
        base = self._base(hook)
        if base is not None:
            lines.append(f"It extends [{base.name}]({base.page}).")
        extra = getattr(hook.cls, "extra", "")
        if extra:
            lines.append(f"It needs another package: `pip install 'hookline[{extra}]'`.")
        if is_schedule(hook):
            key, name = policy(hook)
            lines.append(f"The short form in a config is `{key}: {{policy: {name}, …}}`.")
        if hook.aliases:
            names = ", ".join(f"`{name}`" for name in hook.aliases)
            lines.append(f"It is also registered as {names}.")
        return "\n".join(lines)

    def _base(self, hook: HookDoc) -> HookDoc | None:
        for base in hook.cls.__mro__[1:]:
            if base.__name__ in self.hooks:
                return self.hooks[base.__name__]
        return None

    def _parameters(self, hook: HookDoc) -> str:
        rows = []
        for row in hook.parameters():
            meaning = self._linked(row.meaning, hook)
            value = "required" if row.required else f"default `{row.default}`"
            rows.append((f"`{row.name}`", f"`{row.type}`<br>{value}", meaning))
        common = [f"`{name}`" for name in HOOKS.COMMON if name not in hook.meanings]
        note = f"Like every hook, it also accepts {', '.join(common[:-1])} and {common[-1]}."
        if not rows:
            return note
        table = _table(("parameter", "type", "meaning"), rows)
        return f"{table}\n\n{note}"

    def _see_also(self, hook: HookDoc) -> str:
        links = []
        for name, text in self.guides.items():
            link = _mention(name, text, hook)
            if link:
                links.append(f"- {link}")
        return "\n".join(["## See also", "", *links]) if links else ""


def is_schedule(hook: HookDoc) -> bool:
    """Return whether the hook has a curve that can be drawn in advance."""
    return issubclass(hook.cls, (LrUpdaterHook, MomentumUpdaterHook))


def curve_name(hook: HookDoc) -> str:
    """Return the file name of the curve of a schedule."""
    return hook.page.replace(".md", ".svg")


def policy(hook: HookDoc) -> tuple[str, str]:
    """Return the key of a config that stands for a schedule, and the name of its policy."""
    if issubclass(hook.cls, LrUpdaterHook):
        return "lr_config", hook.name.removesuffix("LrUpdaterHook")
    return "momentum_config", hook.name.removesuffix("MomentumUpdaterHook")


def _example(hook: HookDoc) -> str:
    config = hook.example_config()
    use = "`Runner(…, hooks=[hook])` or `runner.register_hook(hook)`"
    if config is None:
        return f"{hook.example}\n\nPass it to {use}."
    call = _call(hook.name, {key: value for key, value in config.items() if key != "type"})
    code = f"from hookline.hooks import {hook.name}\n\nhook = {call}"
    return f"{hook.example}\n\nThe same in Python, for {use}:\n\n```python\n{code}\n```"


def _call(name: str, arguments: dict[str, Any]) -> str:
    """Write a constructor call, on one line if it fits."""
    given = [f"{key}={value!r}".replace("'", '"') for key, value in arguments.items()]
    line = f"{name}({', '.join(given)})"
    if len(line) <= MAX_CODE_COLUMNS:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in given), ")"])


def _sites(hook: HookDoc) -> str:
    sites = hook.sites()
    where = RANKS[hook.cls.ranks]
    note = f"Its [priority](../sites.md#order) is {hook.priority}. It runs {where}."
    if not sites:
        return f"At the [sites](../sites.md) of its functions. {note}"
    rows = [(f"[`{site}`](../sites.md#{site})", SITES[site]) for site in sites]
    unused = "A site that the configuration does not need is not called."
    return f"{_table(('site', 'when'), rows)}\n\n{note} {unused}"


def _state(hook: HookDoc) -> str:
    rows = [(f"`{row.name}`", f"`{row.type}`", row.meaning) for row in hook.state_fields()]
    parts = [hook.state_note] if hook.state_note else []
    if rows:
        parts.append("A checkpoint keeps these fields, and a resumed run restores them:")
        parts.append(_table(("field", "type", "content"), rows))
    if not parts:
        if hook.cls.state_dict is not BaseHook.state_dict:
            raise ValueError(f"{hook.name}: describe what state_dict() returns, under State:")
        return "None. A checkpoint holds nothing of this hook."
    return "\n\n".join(parts)


def _mention(page: str, text: str, hook: HookDoc) -> str:
    """Return a link to the first section of a page that names the hook, "" if none does."""
    patterns = [rf"\b{name}\b" for name in (hook.name, *hook.aliases)]
    if is_schedule(hook):
        patterns.append(f"`{policy(hook)[1]}`")
    named = re.compile("|".join(patterns))
    if not named.search(text):
        return ""
    title = ""
    section = ""
    in_code = False
    for line in text.splitlines():
        if line.startswith("```"):
            in_code = not in_code
        elif line.startswith("# ") and not in_code:
            title = title or line.removeprefix("# ")
        elif line.startswith("## ") and not in_code:
            section = line.removeprefix("## ")
        if named.search(line):
            if not section:
                return f"[{title}](../{page})"
            return f"[{title} › {section}](../{page}#{anchor(section)})"
    return ""


def anchor(title: str) -> str:
    """Return the anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header)]
    for row in rows:
        lines.append(tuple(_cell(text) for text in row))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
