"""Commands for projects and the installation: demo, init, new-hook, run-as, doctor."""

from __future__ import annotations

from typing import Any

import click

from hookline.cli.commands.options import json_option
from hookline.cli.group import Command, is_debug


@click.command(cls=Command)
@json_option
@click.pass_context
def demo(context: click.Context, /, **options: Any) -> int:
    """Train a small CNN on handwritten digits, in a few seconds.

    Writes the config of the run, digits.yaml, into the current directory. Needs no download: the
    digits come with the package.
    """
    from hookline.cli.demo import run

    return run(**options, debug=is_debug(context))


@click.command(cls=Command)
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path())
@json_option
def init(**options: Any) -> int:
    """Start a project: a config, a model, data, a hook and tests.

    DIR is the directory of the project. Default: the current one.

    \b
    Example:
      hookline init my_project
    """
    from hookline.cli.init import run

    return run(**options)


@click.command("new-hook", cls=Command)
@click.argument("name")
@click.option(
    "--dir",
    "directory",
    default=".",
    metavar="DIR",
    type=click.Path(),
    help="The directory of the project. Default: the current one.",
)
@json_option
def new_hook(**options: Any) -> int:
    """Write a new hook and its test.

    NAME is the name of the class: SlowDownHook, or slow_down.

    \b
    Example:
      hookline new-hook SlowDownHook
    """
    from hookline.cli.new_hook import run

    return run(**options)


# Everything after the first argument belongs to the script, including options.
@click.command("run-as", cls=Command, context_settings={"allow_interspersed_args": False})
@click.argument("package", metavar="mmengine|mmcv", type=click.Choice(["mmengine", "mmcv"]))
@click.argument("script", type=click.Path())
@click.argument("arguments", nargs=-1)
def run_as(**options: Any) -> int:
    """Run a script with Hookline's version of mmengine or mmcv.

    \b
    Example:
      hookline run-as mmengine tools/train.py configs/my_config.py --work-dir runs/mine
    """
    from hookline.cli.run_as import run

    return run(**options)


@click.command(cls=Command)
@json_option
def doctor(**options: Any) -> int:
    """Check versions, devices and optional packages.

    The exit code is 1 if a package is missing, too old or cannot be imported.
    """
    from hookline.cli.doctor import run

    return run(**options)
