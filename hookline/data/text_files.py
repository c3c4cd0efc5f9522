"""A dataset of tokenized text from local files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

from hookline.batches import IGNORED
from hookline.data import DATASETS
from hookline.data.collators import PackingCollator, PaddingCollator, padding_token
from hookline.errors import ConfigError, Suggestion, suggest

log = logging.getLogger(__name__)

LOADERS = {".txt": "text", ".jsonl": "json", ".json": "json", ".parquet": "parquet"}
INSTALL = Suggestion(advice="pip install 'hookline[finetune]'")
USE_TOKENIZER = Suggestion(
    advice="use {type: transformers.AutoTokenizer.from_pretrained, args: [NAME]}"
)


@DATASETS.register("text")
class TextFiles(Dataset[dict[str, Any]]):
    """Tokenized samples of local files, read with the package `datasets`.

    A sample has `input_ids` and `labels`, which models of transformers take:

    - With `label`, the labels are classes.
    - With `completion`, the model learns to continue `text` with it. Only the tokens of the
      completion count in the loss; the labels of all others are -100.
    - Otherwise the model learns the whole text.

    For the last two, the end token of the tokenizer is added, and samples without a token to learn
    are left out: empty ones, and those whose completion is cut away. `collate_fn` is a
    `PaddingCollator`, or a `PackingCollator` with `packing`.

    Args:
        files: One file or several of the same kind: `.txt` with a sample in each line, `.jsonl`,
            `.json` or `.parquet`.
        tokenizer: A tokenizer of transformers.
        text: The field of the text; the lines of a `.txt` file are called `text`.
        label: The field of the class: a number, or one of `class_names`.
        completion: The field of the text that follows.
        class_names: The names of the classes, in the order of their numbers.
        max_length: Longer samples are cut to this number of tokens.
        packing: Put several samples into one row of at most `max_length` tokens.
    """

    deterministic = True  # It draws no random numbers.

    def __init__(
        self,
        files: str | list[str],
        tokenizer: Any,
        text: str = "text",
        label: str | None = None,
        completion: str | None = None,
        class_names: list[str] | None = None,
        max_length: int | None = None,
        packing: bool = False,
    ) -> None:
        if label is not None and (completion is not None or packing):
            other = "packing" if packing else "completion"
            raise _error(f"{other!r} is not possible together with 'label'", other)
        if packing and max_length is None:
            raise _error("'packing' needs a 'max_length'", "max_length")
        if max_length is not None and max_length < 1:
            raise _error("'max_length' must be at least 1", "max_length", value=max_length)
        _check_class_names(class_names, label)
        if not callable(tokenizer) or not hasattr(tokenizer, "pad_token_id"):
            message = "'tokenizer' must be a tokenizer of transformers"
            raise _error(message, "tokenizer", value=tokenizer, suggestion=USE_TOKENIZER)
        self.tokenizer = tokenizer
        self.class_names = class_names
        pad_id = padding_token(tokenizer)
        self.collate_fn: PaddingCollator | PackingCollator
        if packing:
            assert max_length is not None
            self.collate_fn = PackingCollator(max_length, pad_id)
        else:
            self.collate_fn = PaddingCollator(pad_id, tokenizer.padding_side)
        rows = _read([files] if isinstance(files, str) else files)
        fields = {"text": text, "label": label, "completion": completion}
        for parameter, field in fields.items():
            if field is not None and field not in rows.column_names:
                suggestion = suggest(field, rows.column_names)
                message = f"the files have no field {field!r}"
                raise _error(message, parameter, suggestion=suggestion)
        encode = Encoder(tokenizer, text, label, completion, class_names, max_length)
        self._rows = rows.map(encode, batched=True, remove_columns=rows.column_names)
        self.num_classes: int | None = None
        if label is None:
            self._rows = _without_unlabeled(self._rows)
        else:
            known = len(class_names) if class_names is not None else 0
            self.num_classes = known or max(self._rows["labels"]) + 1

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        sample: dict[str, Any] = self._rows[index]
        return sample

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        columns = self._rows[indices]
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]


@dataclass
class Encoder:
    """Tokenizes rows of files, see `TextFiles`."""

    tokenizer: Any
    text: str
    label: str | None
    completion: str | None
    class_names: Sequence[str] | None
    max_length: int | None

    def __call__(self, rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Return the columns of the samples."""
        texts = self._texts(rows, "text", self.text)
        if self.label is not None:
            cut = {"truncation": self.max_length is not None, "max_length": self.max_length}
            columns = {**self.tokenizer(texts, **cut)}
            columns["labels"] = [self._class_of(value) for value in rows[self.label]]
        else:
            columns = self._with_token_labels(texts, rows)
        longest = max(len(ids) for ids in columns["input_ids"])
        if longest > self.tokenizer.model_max_length:
            raise _error(
                f"a sample has {longest:,} tokens, but the model of the tokenizer takes at most "
                f"{self.tokenizer.model_max_length:,}: set 'max_length'",
                "max_length",
            )
        return columns

    def _with_token_labels(
        self, texts: list[str], rows: dict[str, list[Any]]
    ) -> dict[str, list[Any]]:
        """Return tokens and their labels; those of a text before a completion are -100."""
        samples = self.tokenizer(texts)["input_ids"]
        hidden = [0] * len(samples)
        if self.completion is not None:
            endings = self._texts(rows, "completion", self.completion)
            more = self.tokenizer(endings, add_special_tokens=False)["input_ids"]
            hidden = [len(ids) for ids in samples]
            samples = [[*ids, *rest] for ids, rest in zip(samples, more, strict=True)]
        columns: dict[str, list[Any]] = {"input_ids": [], "labels": []}
        for sample, count in zip(samples, hidden, strict=True):
            ids = self._ended(sample)[: self.max_length]
            columns["input_ids"].append(ids)
            columns["labels"].append([IGNORED] * min(count, len(ids)) + ids[count:])
        return columns

    def _texts(self, rows: dict[str, list[Any]], parameter: str, field: str) -> list[str]:
        for value in rows[field]:
            if not isinstance(value, str):
                raise _error(
                    f"the field {field!r} must be text in each row", parameter, value=value
                )
        return rows[field]

    def _ended(self, ids: list[int]) -> list[int]:
        end = self.tokenizer.eos_token_id
        if end is None or (ids and ids[-1] == end):
            return ids
        return [*ids, end]

    def _class_of(self, value: Any) -> int:
        names = self.class_names
        if isinstance(value, int):
            if value < 0:
                raise _error("the number of a class must not be negative", "label", value=value)
            if names is not None and value >= len(names):
                message = f"'class_names' has no name for the class {value}"
                raise _error(message, "class_names")
            return int(value)
        if not isinstance(value, str):
            raise _error("a class must be a whole number or a name", "label", value=value)
        if names is None:
            raise _error(f"the classes have names, such as {value!r}: list them", "class_names")
        if value not in names:
            suggestion = suggest(value, names)
            raise _error(f"unknown class {value!r}", "class_names", suggestion=suggestion)
        return list(names).index(value)


def _check_class_names(names: Sequence[str] | None, label: str | None) -> None:
    if names is None:
        return
    if label is None:
        raise _error("'class_names' needs a 'label', the field of the class", "label")
    if len(set(names)) < len(names):
        raise _error("'class_names' has a name twice", "class_names", value=names)


def _without_unlabeled(rows: Any) -> Any:
    """Return the samples that have a token to learn; a batch of others would have no loss."""
    kept = rows.filter(_has_label, input_columns="labels")
    missing = len(rows) - len(kept)
    if not len(kept):
        message = "no sample has a token to learn; is 'max_length' too small for a completion?"
        raise _error(message, "max_length")
    if missing:
        log.warning("%d of %d samples are left out: no token to learn", missing, len(rows))
    return kept


def _has_label(labels: list[int]) -> bool:
    """Return whether a label counts. Nothing predicts the first token."""
    return any(label != IGNORED for label in labels[1:])


def _read(files: Sequence[str]) -> Any:
    """Return the rows of local files, without empty lines of `.txt` files."""
    for file in files:
        if not Path(file).is_file():
            raise _error(f"there is no file {file} (working directory: {Path.cwd()})", "files")
    kinds = {Path(file).suffix.lower() for file in files}
    if len(kinds) != 1 or not kinds <= LOADERS.keys():
        raise _error(f"must be files of one kind: {', '.join(LOADERS)}", "files", value=files)
    if not any(Path(file).stat().st_size for file in files):
        raise _error("the files have no samples", value=files)
    try:
        import datasets
    except ImportError as error:
        raise _error("the package 'datasets' is not installed", suggestion=INSTALL) from error

    kind = LOADERS[kinds.pop()]
    try:
        rows = datasets.load_dataset(kind, data_files=list(map(str, files)), split="train")
    except Exception as error:  # The package wraps errors of many kinds.
        reason = str(error.__cause__ or error) or type(error).__name__
        raise _error(f"cannot be read: {reason.splitlines()[0]}", value=files) from error
    if kind == "text":
        rows = rows.filter(_has_text)
    if not len(rows):
        raise _error("the files have no samples", value=files)
    return rows


def _has_text(row: dict[str, Any]) -> bool:
    return bool(row["text"].strip())


def _error(message: str, parameter: str = "files", **about: Any) -> ConfigError:
    return ConfigError(message, component="TextFiles", parameter=parameter, **about)
