"""Commands that show configs and hooks, and finders: config, plan, hooks, sites, lr, *-find."""

from __future__ import annotations

from typing import Any

import click

from hookline.cli.commands.options import (
    CONFIG_NOTE,
    config_arguments,
    device_option,
    json_option,
    optional_config_arguments,
    plot_option,
)
from hookline.cli.group import Command


@click.command(cls=Command, epilog=CONFIG_NOTE)
@optional_config_arguments
@click.option("--check", is_flag=True, help="Print only errors.")
@click.option(
    "--schema",
    is_flag=True,
    help="Print a JSON Schema for editors instead, with the classes that CONFIG imports.",
)
@json_option
def config(**options: Any) -> int:
    """Check a config and print it with everything resolved.

    The output includes inherited, interpolated and overridden values.

    \b
    Examples:
      hookline config digits.yaml training.epochs=3
      hookline config digits.yaml --check
      hookline config config.yaml --schema > config.schema.json
    """
    from hookline.cli.config import run

    return run(**options)


@click.command(cls=Command, epilog=CONFIG_NOTE)
@optional_config_arguments
@click.option(
    "--cost",
    metavar="RUN",
    type=click.Path(),
    help="Also show the time of each hook in a finished run. Without CONFIG, the config of the "
    "run is used; without that, the costs are printed alone.",
)
@json_option
def plan(**options: Any) -> int:
    """Show which hooks run at which site, and in which order.

    \b
    Examples:
      hookline plan digits.yaml
      hookline plan digits.yaml hooks.logger.priority=LOW hook_order=flat
      hookline plan --cost runs/digits
    """
    from hookline.cli.plan import run

    return run(**options)


@click.command(cls=Command)
@click.argument("name", required=False)
@json_option
def hooks(**options: Any) -> int:
    """List all hooks, or describe one.

    NAME is a class (CheckpointHook), its short form (checkpoint) or a dotted path.

    \b
    Examples:
      hookline hooks
      hookline hooks CheckpointHook
      hookline hooks my_project.hooks.MyHook
    """
    from hookline.cli.hooks import run

    return run(**options)


@click.command(cls=Command)
@json_option
def sites(**options: Any) -> int:
    """List all sites: the moments of a run at which hooks run."""
    from hookline.cli.sites import run

    return run(**options)


@click.command(cls=Command, epilog=CONFIG_NOTE)
@config_arguments
@plot_option
@json_option
def lr(**options: Any) -> int:
    """Show learning rate and momentum over a whole run.

    Nothing is trained.

    \b
    Examples:
      hookline lr digits.yaml
      hookline lr digits.yaml lr_config.warmup=linear --plot lr.png
    """
    from hookline.cli.lr import run

    return run(**options)


@click.command("lr-find", cls=Command, epilog=CONFIG_NOTE)
@config_arguments
@click.option(
    "--start", type=float, default=1e-7, show_default=True, help="The smallest learning rate."
)
@click.option(
    "--end", type=float, default=10.0, show_default=True, help="The largest learning rate."
)
@click.option(
    "--iters", type=int, default=200, show_default=True, metavar="N", help="How many rates to try."
)
@plot_option
@json_option
def lr_find(**options: Any) -> int:
    """Try growing learning rates, and suggest one.

    Takes one step on the training data with each rate. The model is not kept.

    \b
    Examples:
      hookline lr-find digits.yaml
      hookline lr-find digits.yaml --start 1e-5 --end 1 --iters 100 --plot lr_find.png
    """
    from hookline.cli.lr_find import run

    return run(**options)


@click.command("batch-find", cls=Command, epilog=CONFIG_NOTE)
@config_arguments
@device_option
@click.option(
    "--max",
    "limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="The largest batch size to try. Required on a CPU.",
)
@json_option
def batch_find(**options: Any) -> int:
    """Find the largest batch that fits into memory.

    Trains two iterations with each size. The model is not kept.

    \b
    Examples:
      hookline batch-find digits.yaml
      hookline batch-find digits.yaml --max 512 --json
    """
    from hookline.cli.batch_find import run

    return run(**options)
