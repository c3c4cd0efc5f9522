"""Click classes of the command line: commands with `--debug`, groups with sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from hookline.cli.errors import CommandLineError, ExitCode
from hookline.errors import Suggestion, suggest

DEBUG_KEY = "hookline.debug"
CONFIG_SUFFIXES = (".yaml", ".yml", ".json", ".toml")


def is_debug(context: click.Context) -> bool:
    """Return whether `--debug` was given, before or after the name of the command."""
    return bool(context.meta.get(DEBUG_KEY, False))


class Command(click.Command):
    """A command that accepts `--debug`."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params.append(_debug_option())


class Group(click.Group):
    """A group of commands that suggests the nearest command for an unknown one.

    Args:
        sections: The commands under the headings of the help text, in their order.
        deprecated_names: Old names of commands, and the commands that replaced them.
    """

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Sequence[click.Command]],
        deprecated_names: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections
        self.deprecated_names = deprecated_names or {}
        self.params.append(_debug_option())
        for commands in sections.values():
            for command in commands:
                self.add_command(command)

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Print the help text if there are no arguments."""
        if not args and not context.resilient_parsing:
            click.echo(context.get_help())
            context.exit(ExitCode.USAGE)
        return super().parse_args(context, args)

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names in the order of the sections instead of the alphabet."""
        return list(self.commands)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command. Raise CommandLineError with a suggestion if it is unknown."""
        name, *rest = args
        if name in self.deprecated_names:
            replacement = self.deprecated_names[name]
            old = f"{context.command_path} {name}"
            new = f"{context.command_path} {replacement}"
            if not context.resilient_parsing:
                click.echo(f"warning: `{old}` is deprecated; use `{new}`", err=True)
            name = replacement
        if name not in self.commands and not context.resilient_parsing:
            raise self._unknown_command(name, context)
        return super().resolve_command(context, [name, *rest])

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of each section, aligned over all sections."""
        width = max(len(name) for name in self.commands)
        limit = formatter.width - width - 6
        for title, commands in self.sections.items():
            rows = []
            for command in commands:
                rows.append((f"{command.name:<{width}}", command.get_short_help_str(limit)))
            with formatter.section(title):
                formatter.write_dl(rows)

    def _unknown_command(self, name: str, context: click.Context) -> CommandLineError:
        suggestion = suggest(name, self.commands)
        if name.endswith(CONFIG_SUFFIXES) and "train" in self.commands:
            suggestion = Suggestion(nearest=f"{context.command_path} train {name}")
        return CommandLineError(
            f"unknown command {name!r}",
            component=context.command_path,
            parameter=name,
            suggestion=suggestion,
        )


def _debug_option() -> click.Option:
    return click.Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        callback=_store_debug,
        help="Show the complete traceback of an error.",
    )


def _store_debug(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    # `meta` is shared with the contexts of subcommands, so the option may stand on any level.
    if value:
        context.meta[DEBUG_KEY] = True
