"""The group `ckpt`: commands that show, check and convert checkpoints."""

from __future__ import annotations

from typing import Any

import click

from hookline.cli.commands.options import json_option
from hookline.cli.group import Command, Group

checkpoint_argument = click.argument("path", metavar="PATH", type=click.Path())
output_option = click.option(
    "-o", "--output", metavar="FILE", type=click.Path(), help="The file to write."
)


@click.command(cls=Command)
@click.argument("directory", metavar="DIR", type=click.Path())
@json_option
def ls(**options: Any) -> int:
    """List the checkpoints of a work directory."""
    from hookline.cli.ckpt import list_checkpoints

    return list_checkpoints(**options)


@click.command(cls=Command)
@checkpoint_argument
@json_option
def show(**options: Any) -> int:
    """Show the contents of a checkpoint."""
    from hookline.cli.ckpt import show_checkpoint

    return show_checkpoint(**options)


@click.command(cls=Command)
@checkpoint_argument
@json_option
def verify(**options: Any) -> int:
    """Verify the checksums of one or all checkpoints.

    For a directory, all of its checkpoints are verified. The exit code is 1 if one is damaged.
    """
    from hookline.cli.ckpt import verify_checkpoints

    return verify_checkpoints(**options)


@click.command(cls=Command)
@checkpoint_argument
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["safetensors", "pth", "hf", "peft"]),
    default="safetensors",
    show_default=True,
    help="A file of weights, a folder for transformers (hf), or the adapter alone (peft).",
)
@click.option(
    "--config",
    metavar="CONFIG",
    type=click.Path(),
    help="The config of the run, which hf and peft need to build the model.",
)
@click.option(
    "--shard-size",
    metavar="SIZE",
    default="5GB",
    show_default=True,
    help="The largest file of weights in a folder for transformers.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    help="The file or folder to write. A hash and a suffix are added to the name of a file.",
)
@json_option
def publish(**options: Any) -> int:
    """Write only the weights; the averaged ones if there are any.

    \b
    Examples:
      hookline ckpt publish runs/digits/best_accuracy.pth
      hookline ckpt publish runs/sums/last.pth --format peft --config sums.yaml
    """
    from hookline.cli.ckpt import publish_checkpoint

    return publish_checkpoint(**options)


@click.command(cls=Command)
@click.argument("first", metavar="PATH", type=click.Path())
@click.argument("second", metavar="PATH", type=click.Path())
@json_option
def diff(**options: Any) -> int:
    """Compare two checkpoints part by part.

    Times, memory and other values that differ between any two runs are ignored. The exit code
    is 1 if the checkpoints differ.
    """
    from hookline.cli.ckpt import diff_checkpoints

    return diff_checkpoints(**options)


@click.command(cls=Command)
@checkpoint_argument
@output_option
@json_option
def consolidate(**options: Any) -> int:
    """Merge a sharded checkpoint into one file."""
    from hookline.cli.ckpt import consolidate_checkpoint

    return consolidate_checkpoint(**options)


@click.command("import", cls=Command)
@checkpoint_argument
@output_option
@json_option
def import_(**options: Any) -> int:
    """Convert a checkpoint of MMEngine or MMCV."""
    from hookline.cli.ckpt import import_checkpoint

    return import_checkpoint(**options)


EPILOG = """\b
Examples:
  hookline ckpt ls runs/digits
  hookline ckpt show runs/digits/last.pth
  hookline ckpt verify runs/digits
  hookline ckpt publish runs/digits/best_accuracy.pth
  hookline ckpt diff runs/a/last.pth runs/b/last.pth
  hookline ckpt consolidate runs/large/last.pth
  hookline ckpt import old/epoch_12.pth -o runs/new/last.pth
"""


@click.group(
    cls=Group,
    sections={"Commands": [ls, show, verify, publish, diff, consolidate, import_]},
    epilog=EPILOG,
)
def ckpt() -> None:
    """List, check, compare and convert checkpoints.

    PATH is a checkpoint, or a work directory, which means its newest good checkpoint. Both can be
    URLs in a mirror, such as s3://bucket/run/last.pth.
    """
