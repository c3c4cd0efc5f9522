"""What a rehearsal finds, and what to do about it."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from hookline.secrets import mask_text

PACKAGE = str(Path(__file__).parents[1])
LONGEST = 500

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """Something that would go wrong in the run (`error`) or may be meant (`warning`)."""

    level: Level
    where: str
    text: str
    advice: str = ""


class TooLong(Exception):
    """The rehearsal was given up, because something hangs or is much too slow."""


def from_error(error: BaseException, where: str) -> Finding:
    """An error of the user's code or of a hook, with the line that raised it."""
    text = str(error).strip()
    first = re.sub(r"\s+", " ", text)[:LONGEST] if "Original Traceback" not in text else _original(text)
    kind = "" if type(error).__name__ in ("ConfigError", "HooklineError") else f"{type(error).__name__}: "
    notes = [note.removeprefix("hookline: ") for note in getattr(error, "__notes__", [])]
    place = [_place(error)] if _place(error) else []
    about = "; ".join([*notes, *place])
    return Finding("error", where, mask_text(f"{kind}{first}{f' ({about})' if about else ''}"), _advice(error, where))


def _original(text: str) -> str:
    """The last line of a data worker's own traceback, which torch puts into its message."""
    lines = [line for line in text.splitlines() if line.strip()]
    return f"in a data worker: {lines[-1].strip()}"[:LONGEST]


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(PACKAGE) and "site-packages" not in frame.filename]
    own = [frame for frame in own if Path(frame.filename).is_file() and "/lib/python" not in frame.filename]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else ""


def _advice(error: BaseException, where: str) -> str:
    text = f"{type(error).__name__}: {error}"
    for pattern, advice in _ADVICE:
        if re.search(pattern, text, re.IGNORECASE):
            return advice
    if re.search(_SHAPES, text, re.IGNORECASE):
        compared = " ".join([text, *getattr(error, "__notes__", [])])  # by the loss or a metric, when the model was through
        if "predictions" in compared and "targets" in compared:
            return "the model's output must fit the targets: look at its last layer, and at the targets that the data set gives"
        if where == "training":
            return "the model must fit the samples: look at their shape, and at the sizes of its layers"
        return "make the samples of this phase the same shape as those of training"
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return "a smaller loader.batch_size, gradient accumulation, or a smaller model"
    return f"correct it: the {where} of the run would fail in the same way"


_SHAPES = r"shapes? |same shape|size mismatch|expected .* channels|must match the size|to match target|target size"
_ADVICE = (
    (r"out of memory", "a smaller loader.batch_size, gradient accumulation, or a smaller model"),
    (r"no metric|metric .* (is|was) not", "name a metric that is measured: training.metrics, or val_loss"),
    (
        r"pickl|can't get local object",
        "workers need what can be pickled: no lambdas or local classes in the data set; or loader.num_workers=0",
    ),
    (r"No such file|FileNotFound", "restore the file, or take it out of the data set's list"),
    (r"target .* out of bounds|index .* out of (bounds|range)", "labels must be 0 to num_classes - 1: check the model's number of classes"),
    (r"each (tensor|element) .*equal size", "samples of one batch differ in size: pad them in a function of yours, loader.collate_fn"),
    (r"is not installed|No module named", "install it, or take the hook out of the config"),
    (r"no layer is named", "name a layer that the model has"),
    (r"plain|cannot be stored|weights_only|unsupported type", "a hook's state may hold numbers, text, lists, dicts and tensors only"),
    (r"DataLoader worker .* (exited|killed)", "a data worker died: too little memory (fewer workers), or a crash in a library"),
    (r"permission|read-only file system|not a directory|no space left", "choose a folder that can be written to, with --work-dir"),
)
