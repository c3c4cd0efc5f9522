"""What the commands take. Nothing heavy is imported here, so that `--help` is there at once."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from hookline.errors import HooklineError, suggest
from hookline.version import __version__


class Command(NamedTuple):
    """A command: the module whose `run(args)` does it, its help, and its arguments."""

    module: str
    summary: str
    examples: str
    add_arguments: Callable[[argparse.ArgumentParser], None]


class UsageError(HooklineError):
    """The command line itself is wrong."""


def read_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of the command that is meant; UsageError, or argparse's SystemExit, if they make no sense."""
    name = next((arg for arg in argv if not arg.startswith("-")), None)
    if name is not None and name not in COMMANDS:
        is_config = name.endswith((".yaml", ".yml", ".json", ".toml"))
        hint = f"; did you mean 'hookline train {name}'?" if is_config else suggest(name, COMMANDS)
        raise UsageError(f"unknown command {name!r}{hint}")
    parser, commands = _parsers()
    if not argv:
        parser.print_help()
        sys.exit(2)
    args, rest = parser.parse_known_args(_without_ambiguity(argv))
    # argparse takes positional arguments only in one piece: those behind an option arrive here.
    args.overrides = [arg for arg in rest if not arg.startswith("-")]
    for arg in rest:
        if arg.startswith("-"):
            known = re.findall(r"--[\w-]+", commands[args.command].format_help())
            raise UsageError(f"unknown option {arg.partition('=')[0]!r}{suggest(arg.partition('=')[0], known)}")
        if not hasattr(args, "config"):
            raise UsageError(f"hookline {args.command} does not take {arg!r}")
    return args


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser of the whole command line, and those of the commands."""
    parser = argparse.ArgumentParser(
        prog="hookline",
        description="Train PyTorch models; everything beyond the forward pass is a hook.",
        epilog=_EXAMPLES + _EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"hookline {__version__}")
    parser.add_argument("--debug", action="store_true", help=_DEBUG)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        own = commands.add_parser(
            name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            epilog=command.examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(own)
        own.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=_DEBUG)  # it may stand before the command too
    return parser, dict(commands.choices)


def _without_ambiguity(argv: Sequence[str]) -> list[str]:
    """`--resume` may stand alone: an override behind it is an override, not the path of a checkpoint."""
    args = list(argv)
    for index, (option, value) in enumerate(pairwise(argv) if "run-as" not in argv[:2] else ()):
        if option == "--resume" and re.match(r"\+?[\w.\[\]]+=", value) and not os.path.exists(value):
            args[index] = "--resume=auto"
    return args


def _config(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.usage = f"{parser.prog} {'[CONFIG]' if nargs else 'CONFIG'} [KEY=VALUE ...] [options]"
    parser.add_argument(
        "config", metavar="CONFIG", nargs=nargs, help="a YAML, JSON or TOML file; KEY=VALUE changes it: training.epochs=3, hooks.ema=null"
    )


def _train(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("--work-dir", metavar="DIR", help="where checkpoints and logs go")
    parser.add_argument(
        "--resume", nargs="?", const="auto", metavar="auto|PATH", help="continue from the newest good checkpoint, or from PATH"
    )
    parser.add_argument("--device", metavar="DEVICE", help="auto, cpu, cuda, cuda:1, …")
    parser.add_argument("--nproc", type=int, metavar="N", help="train in N processes of this machine, which torchrun starts")
    parser.add_argument(
        "--max-restarts",
        type=int,
        default=0,
        metavar="N",
        help="with --nproc: how many times to start them again, from the last checkpoint, if one fails",
    )


def _test(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument(
        "--checkpoint", metavar="PATH|best|last", help="the weights to test (default: the best of the work directory, or else the last)"
    )
    parser.add_argument("--split", choices=("test", "val"), default="test", help="the data to test on (default: test)")
    parser.add_argument("--work-dir", metavar="DIR", help="where the checkpoints are")
    parser.add_argument("--device", metavar="DEVICE", help="auto, cpu, cuda, cuda:1, …")
    _json(parser)


def _plan(parser: argparse.ArgumentParser) -> None:
    _config(parser, nargs="?")
    parser.add_argument(
        "--cost",
        metavar="RUN",
        help="show beside it what each hook took in a run: its work directory, whose config.yaml is taken if no other",
    )
    _json(parser)


def _lr(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("--plot", metavar="FILE", help="save a picture: lr.png, lr.svg, lr.pdf")
    _json(parser)


def _lr_find(parser: argparse.ArgumentParser) -> None:
    _lr(parser)
    parser.add_argument("--start", type=float, default=1e-7, help="the smallest learning rate to try (default: 1e-7)")
    parser.add_argument("--end", type=float, default=10.0, help="the largest learning rate to try (default: 10)")
    parser.add_argument("--iters", type=int, default=100, metavar="N", help="how many to try (default: 100)")


def _hooks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="a hook, by its name, its short form or its dotted path")


def _show_config(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("--check", action="store_true", help="print nothing but what is wrong")


def _ckpt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("ls", "show", "verify", "publish", "diff", "consolidate", "import"), help="what to do")
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a checkpoint, or a work directory; two of them for diff")
    parser.add_argument("--format", choices=("safetensors", "pth"), default="safetensors", help="to publish in (default: safetensors)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write; a published one gets a hash and a suffix")
    _json(parser)


def _verify_resume(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("--kills", type=int, default=5, metavar="N", help="how often to kill the run (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which it is killed (default: 0)")
    parser.add_argument("--work-dir", metavar="DIR", help="keep both runs here (default: a temporary directory)")


def _log(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} RUN [RUN ...] [--metric NAME] [--plot FILE]"
    parser.add_argument("runs", metavar="RUN", nargs="+", help="the work directory of a run, or its log.jsonl")
    parser.add_argument("--metric", action="append", metavar="NAME", help="what to draw (default: loss); may be given several times")
    parser.add_argument("--plot", metavar="FILE", help="also draw the curves to this file: .png, .svg or .pdf")


def _report(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} RUN [RUN ...] [-o FILE]"
    parser.add_argument("runs", metavar="RUN", nargs="+", help="the work directory of a run; several are laid over each other")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: report.html in the run's folder, or here)")


def _watch(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} [DIR] [options]"
    parser.add_argument("directory", metavar="DIR", nargs="?", default="runs", help="a run, or a folder with runs (default: runs)")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="of the page (default: any that is free)")
    parser.add_argument("--read-only", action="store_true", help="without the buttons that save and stop")
    parser.add_argument("--text", action="store_true", help="in the terminal instead of a browser")


def _rehearse(parser: argparse.ArgumentParser) -> None:
    _config(parser)
    parser.add_argument("--work-dir", metavar="DIR", help="where checkpoints and logs will go")
    parser.add_argument("--device", metavar="DEVICE", help="auto, cpu, cuda, cuda:1, …")
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="when to give up on what hangs (default: 300)")
    _json(parser)


def _new_hook(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the class: SlowDownHook, or slow_down")
    parser.add_argument("--dir", default=".", metavar="DIR", help="of the project (default: this one)")


def _init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", nargs="?", default=".", help="where to start the project (default: here)")


def _run_as(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} mmengine|mmcv SCRIPT [ARGUMENTS ...]"
    parser.add_argument("package", choices=("mmengine", "mmcv"), help="the name that is to mean Hookline's version")
    parser.add_argument("script", metavar="SCRIPT", help="a Python file")
    parser.add_argument("script_args", metavar="ARGUMENTS", nargs=argparse.REMAINDER, help="what the script is given")


def _sites(parser: argparse.ArgumentParser) -> None:
    """It takes none."""


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")


COMMANDS = {
    "train": Command(
        "hookline.cli.train",
        "train a model",
        """examples:
  hookline train configs/digits.yaml
  hookline train configs/digits.yaml training.epochs=3 optimizer.lr=1e-2
  hookline train configs/digits.yaml hooks.logger.interval=10 hooks.checkpoint=null
  hookline train configs/digits.yaml --resume            continue where it was stopped

Ctrl-C or SIGTERM finishes the iteration, saves and stops; a second one stops at once.""",
        _train,
    ),
    "test": Command(
        "hookline.cli.test",
        "evaluate a trained model",
        """examples:
  hookline test configs/digits.yaml
  hookline test configs/digits.yaml --checkpoint last --split val
  hookline test configs/digits.yaml --checkpoint runs/digits/epoch_3.pth --json""",
        _test,
    ),
    "plan": Command(
        "hookline.cli.plan",
        "show which hooks run at which site, in which order and why, without training",
        """examples:
  hookline plan configs/digits.yaml
  hookline plan configs/digits.yaml hooks.logger.priority=LOW hook_order=flat
  hookline plan --cost runs/digits                       what each hook took in a run""",
        _plan,
    ),
    "lr": Command(
        "hookline.cli.lr",
        "show the learning rate and momentum of a whole run, without training",
        """examples:
  hookline lr configs/digits.yaml
  hookline lr configs/digits.yaml lr_config.warmup=linear lr_config.warmup_iters=100 --plot lr.png""",
        _lr,
    ),
    "lr-find": Command(
        "hookline.cli.lr_find",
        "try growing learning rates on the training data, and suggest one",
        """examples:
  hookline lr-find configs/digits.yaml
  hookline lr-find configs/digits.yaml --start 1e-5 --end 1 --iters 200 --plot lr_find.png""",
        _lr_find,
    ),
    "hooks": Command(
        "hookline.cli.hooks",
        "list all hooks, or describe one",
        """examples:
  hookline hooks
  hookline hooks CheckpointHook
  hookline hooks my_project.hooks.MyHook""",
        _hooks,
    ),
    "ckpt": Command(
        "hookline.cli.ckpt",
        "look at checkpoints and convert them: ls, show, verify, publish, diff, consolidate, import",
        """examples:
  hookline ckpt ls runs/digits                           names, epochs, sizes, metrics
  hookline ckpt show runs/digits/last.pth                what a file holds
  hookline ckpt verify runs/digits                       every checksum; exit code 1 if one is wrong
  hookline ckpt publish runs/digits/best_accuracy.pth    the weights alone (averaged ones if there are any)
  hookline ckpt diff runs/a/last.pth runs/b/last.pth     what differs, but for times and the like; exit code 1 if anything does
  hookline ckpt consolidate runs/large/last.pth          one file of a checkpoint whose parts were written by many processes
  hookline ckpt import old/epoch_12.pth -o runs/new/last.pth    a checkpoint of MMEngine or MMCV, to resume from or to load""",
        _ckpt,
    ),
    "verify-resume": Command(
        "hookline.cli.verify_resume",
        "kill a run again and again, and say whether it ends as it would have without",
        """examples:
  hookline verify-resume configs/digits.yaml
  hookline verify-resume configs/digits.yaml training.epochs=3 --kills 20""",
        _verify_resume,
    ),
    "log": Command(
        "hookline.cli.log",
        "show what runs have logged: a table, curves in the terminal, and a picture of them",
        """examples:
  hookline log runs/digits
  hookline log runs/a runs/b --metric loss --metric accuracy --plot curves.png""",
        _log,
    ),
    "report": Command(
        "hookline.cli.report",
        "make one page of what happened in runs: curves, timeline, costs, checkpoints, pictures, configs",
        """examples:
  hookline report runs/digits                            runs/digits/report.html, also of a run that crashed
  hookline report runs/a runs/b -o compare.html          both in the same charts, and how their configs differ""",
        _report,
    ),
    "watch": Command(
        "hookline.cli.watch",
        "follow runs while they go, on a page of this machine or in the terminal",
        """examples:
  hookline watch                                         all runs below runs/
  hookline watch runs/digits --port 8000 --read-only
  hookline watch --text""",
        _watch,
    ),
    "rehearse": Command(
        "hookline.cli.rehearse",
        "go through a run in small, before the hours: what would go wrong, and what it would need",
        """examples:
  hookline rehearse configs/digits.yaml
  hookline rehearse configs/digits.yaml loader.num_workers=4 --json

exit code: 0 nothing would go wrong, 1 something would, 2 the config itself is wrong""",
        _rehearse,
    ),
    "new-hook": Command(
        "hookline.cli.new_hook",
        "start a hook of your own, with its test",
        """examples:
  hookline new-hook SlowDownHook""",
        _new_hook,
    ),
    "init": Command(
        "hookline.cli.init",
        "start a project: a config, a model, data, a hook and their tests",
        """examples:
  hookline init my_project""",
        _init,
    ),
    "run-as": Command(
        "hookline.cli.run_as",
        "run a script for which `import mmengine` (or mmcv) gives Hookline's version of it",
        """examples:
  hookline run-as mmengine tools/train.py configs/my_config.py --work-dir runs/mine""",
        _run_as,
    ),
    "sites": Command("hookline.cli.sites", "list all sites: the moments of a run at which hooks are called", "", _sites),
    "config": Command(
        "hookline.cli.config",
        "check a config, and print it with what it inherits, interpolates and is overridden with",
        """examples:
  hookline config configs/digits.yaml training.epochs=3
  hookline config configs/digits.yaml --check""",
        _show_config,
    ),
}

_DEBUG = "show the whole traceback of an error"

_EXAMPLES = """examples:
  hookline train configs/digits.yaml                     train
  hookline train configs/digits.yaml training.epochs=3   change a value
  hookline test configs/digits.yaml                      evaluate the best checkpoint
  hookline plan configs/digits.yaml                      which hook runs when
  hookline hooks CheckpointHook                          what a hook can do

`hookline COMMAND --help` says more about a command.
"""

_EXIT_CODES = """
exit codes:
  0 done, 1 it failed, 2 a mistake in the config or the command line, 130 and 143 stopped by Ctrl-C and SIGTERM"""
