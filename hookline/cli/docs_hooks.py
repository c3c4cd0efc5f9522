"""A page for each hook, made from its class, and the index of them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hookline.cli.docs_schedules import has_schedule, schedule_caption
from hookline.cli.docs_words import BY_ITSELF, EXAMPLES, GROUPS, IN_PYTHON, MEANINGS, MORE_STATE, OTHERS, PICTURES, STATE
from hookline.cli.hooks import REQUIRED, default_of, doc_of, example, shown, sites_of, type_of
from hookline.cli.output import priority_label
from hookline.config.hook_list import short_name
from hookline.config.schedules import POLICIES
from hookline.engine import HOOKS, SITES, BaseHook
from hookline.hooks import LrUpdaterHook
from hookline.hooks.builder import DEFAULT_HOOKS
from hookline.signature import parameters

DOCS = Path(__file__).parents[2] / "docs"
RANKS = {
    "all": "on every process",
    "main": "on the first process only",
    "collective": "on every process, at the same moments, for it talks to the others",
}
FITTING = 74  # characters of code beside each other on a page
# Pages on which a mention of a hook is worth a visit, by what they are about.
TASK_PAGES = (
    *("concepts", "recipes", "config", "resume", "optimization", "evaluation", "averaging", "logging", "profiling", "pictures"),
    *("report", "rehearse", "distributed"),
)


@functools.cache
def hook_classes() -> tuple[type[BaseHook], ...]:
    """Hookline's own hooks, without those that stand for another framework's."""
    own = {cls for _, cls in HOOKS.items() if cls.__module__.startswith("hookline.hooks")}
    return tuple(sorted(own, key=lambda cls: cls.__name__))


def page_name(cls: type[BaseHook]) -> str:
    """`early_stopping_hook.md`: as the hook's file is called, where it has one to itself."""
    module = cls.__module__.rpartition(".")[2]
    if module.replace("_", "") == cls.__name__.lower():
        return f"{module}.md"
    return f"{short_name(cls.__name__)}_hook.md"


def groups() -> dict[str, list[type[BaseHook]]]:
    """All hooks by what they are for, in the order of the index."""
    by_name = {cls.__name__: cls for cls in hook_classes()}
    found = {title: [by_name.pop(name) for name in names if name in by_name] for title, names in GROUPS.items()}
    return {title: classes for title, classes in (found | {OTHERS: list(by_name.values())}).items() if classes}


def index_page() -> str:
    """The text of docs/hooks-reference.md."""
    parts = [
        "# All hooks",
        "A page for each hook, by what it is for; its parameters, sites, state and an example are there. The pages are made from the\n"
        "classes by `python -m hookline.cli.docs`; `hookline hooks NAME` prints the same. The **bold** ones are in every run, unless it\n"
        "says otherwise.",
    ]
    for title, classes in groups().items():
        rows = [f"| {_index_name(cls)} | {_first_line(cls)} |" for cls in classes]
        parts += [f"## {title}", "\n".join(["| hook | what it does |", "| --- | --- |", *rows])]
    return "\n\n".join([*parts, "None of them does what you need? [Write one](hooks.md): it is a class with a method.\n"])


def hook_page(cls: type[BaseHook]) -> str:
    """The text of a hook's own page."""
    parts = [f"# {cls.__name__}", _prose(cls), *_picture(cls), _how_it_gets_there(cls), *_examples(cls)]
    parts += ["## Parameters", *_parameters(cls), "## When it acts", *_sites(cls), "## State", _state(cls), *_see_also(cls)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _index_name(cls: type[BaseHook]) -> str:
    link = f"[{cls.__name__}](hooks/{page_name(cls)})"
    others = "".join(f"<br>`{name}`" for name in other_names(cls))
    return (f"**{link}**" if cls.__name__ in DEFAULT_HOOKS else link) + others


def other_names(cls: type[BaseHook]) -> list[str]:
    """Further names under which a config finds the class."""
    return [name for name, each in HOOKS.items() if each is cls and name != cls.__name__]


def _first_line(cls: type[BaseHook]) -> str:
    line = _escaped(doc_of(cls).partition("\n")[0])
    return _with_links(line, cls, "hooks/").replace("|", "\\|")


def _prose(cls: type[BaseHook]) -> str:
    return _with_links(_escaped(doc_of(cls)), cls, "")


def _with_links(text: str, cls: type[BaseHook], folder: str) -> str:
    """The first mention of each other hook in a text, outside of code, is a link to its page."""
    pages = {other.__name__: page_name(other) for other in hook_classes() if other is not cls}

    def link(found: re.Match[str]) -> str:
        page = pages.pop(found[0], None)  # the first time only
        return f"[{found[0]}]({folder}{page})" if page else found[0]

    return re.sub(rf"(?<![\w`\[.])(?:{'|'.join(pages)})(?![\w`(])", link, text)


def _escaped(doc: str) -> str:
    """A docstring as Markdown: `<metric>` outside of code would be taken for a tag."""
    parts = doc.split("`")
    return "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))


def _picture(cls: type[BaseHook]) -> list[str]:
    if has_schedule(cls):
        return [f"![its curve](images/{page_name(cls).removesuffix('.md')}.svg)", schedule_caption(cls)]
    name = PICTURES.get(cls.__name__)
    return [f"![what {cls.__name__} makes](../images/{name})"] if name else []


def _how_it_gets_there(cls: type[BaseHook]) -> str:
    lines = []
    if cls.__name__ in DEFAULT_HOOKS:
        lines.append(f"It is in every run; one that you give replaces it, and `drop_hooks: [{cls.__name__}]` leaves it out.")
    lines += [BY_ITSELF[cls.__name__]] if cls.__name__ in BY_ITSELF else []
    base = next((base for base in cls.__mro__[1:] if base in hook_classes()), None)
    if base is not None:
        lines.append(f"It extends [{base.__name__}]({page_name(base)}): what that does it does too, unless this page says otherwise.")
    if getattr(cls, "extra", ""):
        lines.append(f"It needs one more package: `pip install 'hookline[{cls.extra}]'`.")  # type: ignore[attr-defined]
    if has_schedule(cls):
        key, policy = policy_of(cls)
        lines.append(f"In a config the short form is `{key}: {{policy: {policy}, …}}`.")
    if other_names(cls):
        lines.append(f"It is also registered as {_listed([f'`{name}`' for name in other_names(cls)])}.")
    return "\n".join(lines)


def policy_of(cls: type[BaseHook]) -> tuple[str, str]:
    """The key of a config that stands for a schedule, and what the schedule is called there."""
    key = "lr_config" if issubclass(cls, LrUpdaterHook) else "momentum_config"
    return key, cls.__name__.removesuffix(POLICIES[key])


def _examples(cls: type[BaseHook]) -> Iterator[str]:
    name = cls.__name__
    yield "## Example"
    call = IN_PYTHON.get(name)
    if call is None:
        values = example_values(cls)
        yield f"```yaml\n{example(name, values).rstrip()}\n```"
        yield from _on_the_command_line(cls, values)
        yield "The same in Python, for `Runner(…, hooks=[hook])` or `runner.register_hook(hook)`:"
        call = _call(name, values)
    else:
        yield "It is made in Python, for `Runner(…, hooks=[hook])` or `runner.register_hook(hook)`; a config has no functions."
    yield f"```python\nfrom hookline.hooks import {name}\n\nhook = {call}\n```"


def _on_the_command_line(cls: type[BaseHook], values: dict[str, Any]) -> Iterator[str]:
    plain = next(
        (f"{key}={shown(value).removeprefix('= ')}" for key, value in values.items() if isinstance(value, (bool, int, float))), None
    )
    if plain is not None:
        yield f"On the command line a value is `hooks.{page_name(cls).removesuffix('_hook.md')}.{plain}`."


def _call(name: str, values: dict[str, Any]) -> str:
    """The call that makes a hook, on one line if it fits into the page."""
    given = [f"{key}={value!r}".replace("'", '"') for key, value in values.items()]
    line = f"{name}({', '.join(given)})"
    return line if len(line) <= FITTING else "\n".join([f"{name}(", *(f"    {each}," for each in given), ")"])


def example_values(cls: type[BaseHook]) -> dict[str, Any]:
    """The parameters of a hook's example: those chosen for it, or else its defaults, apart from empty ones."""
    if cls.__name__ in EXAMPLES:
        return EXAMPLES[cls.__name__]
    defaults = {name: default_of(cls, parameter) for name, parameter in parameters(HOOKS.signature_of(cls)).known.items()}
    return {name: value for name, value in defaults.items() if value not in (None, "", REQUIRED)}


def _parameters(cls: type[BaseHook]) -> Iterator[str]:
    found = parameters(HOOKS.signature_of(cls))
    rows = []
    for name, parameter in found.known.items():
        kind = _kind(found.hints.get(name), parameter)
        meaning = _with_links(_escaped(meaning_of(cls, name)), cls, "").replace("|", "\\|")
        rows.append(f"| `{name}` | `{kind}` | {_default(default_of(cls, parameter))} | {meaning} |")
    if rows:
        yield "\n".join(["| parameter | type | default | meaning |", "| --- | --- | --- | --- |", *rows])
    common = [f"`{name}`" for name in HOOKS.COMMON if name not in found.known]
    yield f"{'As every hook it' if rows else 'It has none of its own; as every hook it'} also takes {_listed(common)}."


def meaning_of(cls: type[BaseHook], name: str) -> str:
    """What a parameter means: the words of its class, of the class that it comes from, or else of our table."""
    own = next((MEANINGS[key] for base in cls.__mro__ if (key := f"{base.__name__}.{name}") in MEANINGS), None)
    if own is not None:
        return own
    for base in cls.__mro__[: cls.__mro__.index(BaseHook)]:
        clauses = [clause for clause in _clauses(doc_of(base)) if re.search(rf"`[^`]*(?<![\w.]){name}\b[^`]*`", clause)]
        if clauses:
            telling = next((clause for clause in clauses if clause.startswith(f"`{name}`")), clauses[0])
            return telling[0].upper() + telling[1:].rstrip(".") + "."
    return MEANINGS.get(name, "")


def _clauses(doc: str) -> list[str]:
    """A docstring's sentences, and the parts of them that a semicolon divides, unless it is in code or brackets."""
    text = " ".join(doc.split())
    covered = text
    for piece in (r"`[^`]*`", r"\([^)]*\)"):  # code first, for there may be brackets in it
        covered = re.sub(piece, lambda found: "x" * len(found[0]), covered)
    ends = [0, *(found.end() for found in re.finditer(r"[.;] (?=\S)", covered)), len(text)]
    return [text[start:end].strip().rstrip(";") for start, end in itertools.pairwise(ends)]


def _kind(hint: Any, parameter: inspect.Parameter) -> str:
    """A type as a config sees it: `'min' or 'max'`, `int or null`."""
    if hint is None:
        return type_of(parameter).replace(" | ", " or ").replace("None", "null")
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_kind(each, parameter) for each in typing.get_args(hint))
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(repr(value) for value in typing.get_args(hint))
    if hint is type(None):
        return "null"
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", inspect.formatannotation(hint)).replace(" | ", " or ")


def _default(default: object) -> str:
    """A default in a table: as code, so that Markdown leaves it as it is."""
    return "**required**" if default is REQUIRED else f"`{shown(default).removeprefix('= ')}`"


def _listed(items: list[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def _sites(cls: type[BaseHook]) -> Iterator[str]:
    meanings = {site.name: site.meaning for site in SITES}
    rows = [f"| [`{site}`](../sites.md#{site}) | {meanings[site]} |" for site in sites_of(cls)]
    if rows:
        yield "\n".join(["| site | when |", "| --- | --- |", *rows])
        yield "An instance is called only at those of them at which it has something to do, as it is configured."
    else:
        yield "At the [sites](../sites.md) that it was given functions for."
    where = f"{RANKS[cls.ranks]} (`ranks` is `{cls.ranks}`)"
    yield f"Its [priority](../sites.md#order) is {priority_label(cls.priority)}. In a run of several processes it acts {where}."


def _state(cls: type[BaseHook]) -> str:
    fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    kept = [field for field in fields if field.metadata.get("state")]
    more = MORE_STATE.get(cls.__name__, "")
    if not kept:
        return more or "It has none: nothing of it needs to be in a checkpoint."
    kinds = [str(field.type).replace(" | ", " or ").replace("None", "null") for field in kept]
    rows = [f"| `{field.name}` | `{kind}` | {STATE.get(field.name, '')} |" for field, kind in zip(kept, kinds, strict=True)]
    table = "\n".join(["| field | type | what it holds |", "| --- | --- | --- |", *rows])
    return "\n\n".join(part for part in ("Checkpoints keep of it, and a resumed run gets back:", table, more) if part)


def _see_also(cls: type[BaseHook]) -> list[str]:
    links = [_mention(DOCS / f"{name}.md", cls) for name in TASK_PAGES]
    found = [f"- {link}" for link in links if link]
    return ["## See also", "\n".join(found)] if found else []


def _mention(page: Path, cls: type[BaseHook]) -> str:
    """A link to the first section of a page that names the hook; nothing if none does."""
    title, section, in_code = "", "", False
    policy = rf"|`{policy_of(cls)[1]}`" if has_schedule(cls) else ""
    named = re.compile(rf"\b(?:{'|'.join([cls.__name__, *other_names(cls)])})\b{policy}")
    for line in page.read_text(encoding="utf-8").splitlines():
        in_code ^= line.startswith("```")
        if line.startswith("# ") and not in_code:
            title = title or line.removeprefix("# ")
        elif line.startswith("## ") and not in_code:
            section = line.removeprefix("## ")
        if named.search(line):
            anchor = re.sub(r"[^\w\- ]", "", section.lower()).replace(" ", "-")
            return f"[{title} › {section}](../{page.name}#{anchor})" if section else f"[{title}](../{page.name})"
    return ""
