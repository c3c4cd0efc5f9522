"""The result of a dry run: findings with advice, and estimates."""

from __future__ import annotations

import errno
import pickle
import re
import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch

from hookline.errors import HooklineError
from hookline.printable import escaped
from hookline.secrets import mask_text

MAX_TEXT_CHARACTERS = 500

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """A problem that the real run would have.

    Args:
        level: `error` if the run would fail, `warning` if it may be intended.
        where: The phase or the setting that it is about.
        text: The problem.
        advice: How to solve it.
    """

    level: Level
    where: str
    text: str
    advice: str = ""

    def __str__(self) -> str:
        line = f"{self.level}: {self.where}: {escaped(self.text)}"
        return f"{line}\n  → {self.advice}" if self.advice else line


@dataclass
class DryRunResult:
    """Everything that a dry run found and estimated.

    Args:
        findings: Errors and warnings.
        seconds: The estimated time of the whole run, by purpose.
        disk: Bytes of a checkpoint, of all checkpoints, and free bytes.
        memory: Bytes by purpose, the peak, and the total.
        read: How many samples of each split were read.
        done: The phases that succeeded.
    """

    findings: list[Finding] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    disk: dict[str, int] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level == "error"]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level == "warning"]

    def __str__(self) -> str:
        """Return the findings, errors first, and how many there are."""
        found = [str(finding) for finding in [*self.errors, *self.warnings]]
        return "\n".join([*found, f"dry run: {self.summary()}"])

    def summary(self) -> str:
        """Return `2 errors, no warnings`."""
        return f"{_count(self.errors, 'error')}, {_count(self.warnings, 'warning')}"

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings. A text that another phase has found already is not repeated."""
        known = {finding.text for finding in self.findings}
        for finding in findings:
            if finding.text not in known:
                known.add(finding.text)
                self.findings.append(finding)

    def has_error_in(self, where: str) -> bool:
        """Return whether there is an error in a phase or setting."""
        return any(finding.where == where for finding in self.errors)


class DryRunTimeout(Exception):
    """The dry run exceeded its time limit."""


def finding_from_error(
    error: BaseException, phase: str, *, model_finished: bool = False
) -> Finding:
    """Return an exception as a finding, with the line of the user's code that raised it.

    Args:
        error: The exception.
        phase: The phase of the run, such as `validation`.
        model_finished: Whether the model had computed its output for the batch.
    """
    details = list(getattr(error, "__notes__", []))
    location = _user_location(error)
    if location:
        details.append(location)
    text = _describe(error)
    if details:
        text = f"{text} ({'; '.join(details)})"
    advice = _advise(error, phase, model_finished)
    return Finding("error", phase, mask_text(text), advice)


def _count(findings: Sequence[Finding], noun: str) -> str:
    number = len(findings) or "no"
    return f"{number} {noun}" if len(findings) == 1 else f"{number} {noun}s"


def _describe(error: BaseException) -> str:
    text = str(error).strip()
    if "Original Traceback" in text:
        # Torch puts the traceback of a data worker into the message; its last line is the error.
        text = f"in a data worker: {text.splitlines()[-1].strip()}"
    text = re.sub(r"\s+", " ", text)[:MAX_TEXT_CHARACTERS]
    if isinstance(error, HooklineError):
        return text
    return f"{type(error).__name__}: {text}"


def _user_location(error: BaseException) -> str:
    """Return the file and line of the innermost frame that is in no package."""
    location = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if _is_user_file(frame.filename):
            location = f"{frame.filename}:{frame.lineno}"
    return location


def _is_user_file(filename: str) -> bool:
    return Path(filename).is_file() and not filename.startswith(_PACKAGE_DIRECTORIES)


def _advise(error: BaseException, phase: str, model_finished: bool) -> str:
    """Return advice on an error. Errors of Hookline contain their advice."""
    if isinstance(error, HooklineError):
        return ""
    for kinds, advice in _ADVICE_BY_TYPE:
        if isinstance(error, kinds):
            return advice
    if isinstance(error, OSError) and error.errno in _NOT_WRITABLE:
        return "choose a writable directory with --work-dir"
    text = str(error)
    for pattern, advice in _ADVICE_BY_MESSAGE:
        if pattern.search(text):
            return advice
    if _SHAPE_MISMATCH.search(text):
        return _advise_on_shapes(phase, model_finished)
    return ""


def _advise_on_shapes(phase: str, model_finished: bool) -> str:
    if model_finished:
        return "match the model's output and the targets: check the last layer and the data set"
    if phase == "training":
        return "match the model's input and the samples: check their shape and the first layer"
    return "give the samples of this phase the same shape as those of training"


_PACKAGE_DIRECTORIES = (
    str(Path(__file__).parents[1]),
    *{sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")},
)

_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOSPC)

_OUT_OF_MEMORY = "use a smaller loader.batch_size, gradient accumulation, or a smaller model"
_NOT_PICKLABLE = (
    "data workers need a data set without lambdas and local classes; or set loader.num_workers=0"
)

_ADVICE_BY_TYPE: tuple[tuple[type[BaseException], str], ...] = (
    (MemoryError, _OUT_OF_MEMORY),
    (torch.OutOfMemoryError, _OUT_OF_MEMORY),
    (FileNotFoundError, "restore the file, or remove it from the data set"),
    (ModuleNotFoundError, "install the package, or remove the hook from the config"),
    (pickle.PicklingError, _NOT_PICKLABLE),
)

# Python and PyTorch raise these with general types, so only the message separates them. It
# selects the advice and nothing else.
_ADVICE_BY_MESSAGE = (
    (re.compile("out of memory"), _OUT_OF_MEMORY),
    (re.compile("pickle|local object"), _NOT_PICKLABLE),
    (
        re.compile(r"Target .* out of bounds|index .* out of (bounds|range)"),
        "labels must be 0 to num_classes - 1; check the number of classes of the model",
    ),
    (
        re.compile(r"each (tensor|element) .*equal size"),
        "the samples of a batch differ in size; pad them in a loader.collate_fn",
    ),
    (
        re.compile(r"DataLoader worker .* (exited|killed)"),
        "a data worker died; use fewer workers if memory is short, or check its libraries",
    ),
)
_SHAPE_MISMATCH = re.compile(
    "shapes? |same shape|size mismatch|expected .* channels|must match the size"
    "|to match target|target size"
)
