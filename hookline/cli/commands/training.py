"""Commands that train, evaluate or export a model."""

from __future__ import annotations

import os
import re
from typing import Any

import click

from hookline.cli.commands.options import (
    CONFIG_NOTE,
    config_arguments,
    device_option,
    json_option,
    work_dir_option,
)
from hookline.cli.group import Command, is_debug

OVERRIDE = re.compile(r"\+?[\w.\[\]]+=")


checkpoint_option = click.option(
    "--checkpoint",
    metavar="PATH|best|last",
    help="The weights. Default: the best of the work directory, or else the last.",
)
split_option = click.option(
    "--split",
    type=click.Choice(["test", "val"]),
    default="test",
    show_default=True,
    help="The data.",
)


class TrainCommand(Command):
    """A command whose `--resume` takes an optional path, which an override never is."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Write `--resume KEY=VALUE` as `--resume=auto KEY=VALUE`."""
        unambiguous = list(args)
        for index, following in enumerate(args[1:]):
            if args[index] == "--resume" and _is_override(following):
                unambiguous[index] = "--resume=auto"
        return super().parse_args(context, unambiguous)


@click.command(cls=TrainCommand, epilog=CONFIG_NOTE)
@config_arguments
@work_dir_option("Directory for checkpoints and logs.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="auto",
    metavar="[auto|PATH]",
    help="Continue from the newest good checkpoint, or from PATH.",
)
@device_option
@click.option(
    "--nproc",
    type=click.IntRange(min=1),
    metavar="N",
    help="Train in N processes on this machine, started by torchrun.",
)
@click.option(
    "--max-restarts",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="With --nproc: how often to restart from the last checkpoint after a failure.",
)
@json_option
@click.pass_context
def train(context: click.Context, /, **options: Any) -> int:
    """Train a model.

    Ctrl-C or SIGTERM finishes the iteration, saves a checkpoint and stops the run. A second
    signal stops it at once.

    \b
    Examples:
      hookline train digits.yaml
      hookline train digits.yaml training.epochs=3 optimizer.lr=1e-2
      hookline train digits.yaml hooks.logger.interval=10 hooks.checkpoint=null
      hookline train digits.yaml --resume
    """
    from hookline.cli.train import run

    return run(**options, debug=is_debug(context))


@click.command(cls=Command, epilog=CONFIG_NOTE)
@config_arguments
@checkpoint_option
@split_option
@work_dir_option("Directory of the checkpoints.")
@device_option
@json_option
def test(**options: Any) -> int:
    """Evaluate a trained model.

    \b
    Examples:
      hookline test digits.yaml
      hookline test digits.yaml --checkpoint last --split val
      hookline test digits.yaml --checkpoint runs/digits/epoch_3.pth --json
    """
    from hookline.cli.test import run

    return run(**options)


@click.command(cls=Command, epilog=CONFIG_NOTE)
@config_arguments
@checkpoint_option
@split_option
@click.option(
    "-o",
    "--out",
    "--output",
    "output",
    metavar="FILE",
    type=click.Path(),
    help="The file to write: .pt, .npy, .npz, .jsonl or .parquet. Default: predictions_SPLIT.pt in "
    "the work directory.",
)
@work_dir_option("Directory of the checkpoints.")
@device_option
@json_option
def predict(**options: Any) -> int:
    """Write the predictions of a trained model to a file.

    The predictions are in the order of the data.

    \b
    Examples:
      hookline predict digits.yaml
      hookline predict digits.yaml --split val -o predictions.jsonl
    """
    from hookline.cli.predict import run

    return run(**options)


@click.command("dry-run", cls=Command, epilog=CONFIG_NOTE)
@config_arguments
@work_dir_option("Directory for the checkpoints and logs of the real run.")
@device_option
@click.option(
    "--limit",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Give up after this time.",
)
@json_option
def dry_run(**options: Any) -> int:
    """Try a run on a few batches before it takes hours.

    Reports errors and warnings, and estimates time, disk space and memory of the whole run.

    \b
    Examples:
      hookline dry-run digits.yaml
      hookline dry-run digits.yaml loader.num_workers=4 --json

    \b
    Exit codes:
      0 no errors, 1 the run would fail, 2 the config is wrong
    """
    from hookline.cli.dry_run import run

    return run(**options)


@click.command("verify-resume", cls=Command, epilog=CONFIG_NOTE)
@click.argument("target", metavar="CONFIG|SCRIPT", type=click.Path())
@click.argument("arguments", metavar="[KEY=VALUE]... | -- [ARGUMENT]...", nargs=-1)
@click.option(
    "--kills",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    metavar="N",
    help="How often to kill the run. Every second kill is inside a save.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed of the times at which the run is killed.",
)
@work_dir_option("Keep both runs here. Default: a temporary directory.")
@json_option
def verify_resume(**options: Any) -> int:
    """Check that a run resumes exactly after it was killed.

    Trains once without interruption, then again with kills, and compares checkpoints and logs.
    SCRIPT is a Python file that trains once, with Runner or drive. The command chooses its work
    directory and has it resume.

    \b
    Examples:
      hookline verify-resume digits.yaml
      hookline verify-resume digits.yaml training.epochs=3 --kills 20
      hookline verify-resume train.py -- --epochs 3
    """
    from hookline.cli.verify_resume import run

    return run(**options)


def _is_override(argument: str) -> bool:
    return OVERRIDE.match(argument) is not None and not os.path.exists(argument)


@click.command(cls=Command, epilog=CONFIG_NOTE)
@config_arguments
@click.option(
    "--checkpoint",
    metavar="NAME",
    help="best, last, a name in the work directory or a path. Default: the best one.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(["safetensors", "pt2", "onnx"]),
    multiple=True,
    help="The format of the file; may be repeated. Default: all of them.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(),
    help="Directory for the files. Default: export, beside the checkpoint.",
)
@work_dir_option("Directory of the run.")
@json_option
def export(**options: Any) -> int:
    """Export a trained model and verify the files.

    A model card is written beside them. The averaged weights are exported if there are any. Each
    file is compared with the model on a batch of the validation data; a difference is an error
    that names the first layer with one.
    """
    from hookline.cli.export import run

    return run(**options)
