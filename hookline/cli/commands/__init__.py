"""The declarations of all commands.

A declaration imports its implementation when it is called. Nothing here imports torch, so help
and shell completion are fast.
"""

from __future__ import annotations

import click

from hookline.cli.commands.checkpoints import ckpt
from hookline.cli.commands.configs import batch_find, config, hooks, lr, lr_find, plan, sites
from hookline.cli.commands.projects import demo, doctor, init, new_hook, run_as
from hookline.cli.commands.runs import log, report, watch
from hookline.cli.commands.training import dry_run, export, predict, test, train, verify_resume
from hookline.cli.group import Group
from hookline.version import __version__

SECTIONS = {
    "Train": [train, test, predict, export, dry_run, verify_resume],
    "Look at configs and hooks": [config, plan, hooks, sites, lr, lr_find, batch_find],
    "Look at runs": [log, report, watch, ckpt],
    "Start a project": [demo, init, new_hook, run_as, doctor],
}

EPILOG = """\b
Examples:
  hookline demo                                  write digits.yaml and train it
  hookline train digits.yaml training.epochs=3   change a value of the config
  hookline test digits.yaml                      evaluate the best checkpoint
  hookline plan digits.yaml                      show which hook runs when
  hookline hooks CheckpointHook                  describe a hook

\b
Exit codes:
  0 success, 1 failure, 2 a mistake in the config or the command line,
  130 and 143 stopped by Ctrl-C and SIGTERM
"""


@click.group(
    "hookline",
    cls=Group,
    sections=SECTIONS,
    deprecated_names={"rehearse": "dry-run"},
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="hookline %(version)s")
def cli() -> None:
    """Train PyTorch models; everything beyond the forward pass is a hook."""
