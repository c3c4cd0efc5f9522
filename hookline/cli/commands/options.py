"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

CONFIG_NOTE = (
    "CONFIG is a YAML, JSON or TOML file. KEY=VALUE changes a value of it: training.epochs=3, "
    "hooks.logger.interval=10, hooks.checkpoint=null, +hooks.mine.type=IterTimerHook."
)

device_option = click.option("--device", metavar="DEVICE", help="auto, cpu, cuda, cuda:1, …")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
plot_option = click.option(
    "--plot", metavar="FILE", type=click.Path(), help="Also draw a picture: .png, .svg or .pdf."
)


def work_dir_option(help: str) -> Callable[[Function], Function]:
    """Declare `--work-dir DIR`."""
    return click.option("--work-dir", metavar="DIR", type=click.Path(), help=help)


def config_arguments(function: Function) -> Function:
    """Declare `CONFIG [KEY=VALUE]...`."""
    return _with_overrides(function, config_required=True)


def optional_config_arguments(function: Function) -> Function:
    """Declare `[CONFIG] [KEY=VALUE]...`."""
    return _with_overrides(function, config_required=False)


def _with_overrides(function: Function, config_required: bool) -> Function:
    metavar = "CONFIG" if config_required else "[CONFIG]"
    config = click.argument("config", metavar=metavar, required=config_required, type=click.Path())
    overrides = click.argument("overrides", metavar="[KEY=VALUE]...", nargs=-1)
    return config(overrides(function))
