"""Good configs broken in more than a hundred ways, with the expected place of each error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

GOOD = """\
work_dir: runs/good
seed: 7
device: cpu
resume: null
custom_imports: [json]
model:
  type: cnn
  width: 8
dataset:
  type: digits
  augment: true
loader:
  batch_size: 64
  num_workers: 0
  drop_last: false
  val:
    batch_size: 128
optimizer:
  type: AdamW
  lr: 1e-3
  weight_decay: 0.01
training:
  epochs: 2
  loss:
    type: CrossEntropyLoss
    label_smoothing: 0.1
  metrics: [accuracy]
hook_order: nested
hooks:
  - type: LoggerHook
    interval: 10
  - type: CheckpointHook
    name: saver
    priority: LOW
    max_keep_ckpts: 2
  - type: EvalHook
    interval: 1
"""
GOOD_TOML = """\
seed = 7

[model]
type = "cnn"
width = 8

[dataset]
type = "digits"

[training]
epochs = 2

[[hooks]]
type = "LoggerHook"
interval = 10

[[hooks]]
type = "EvalHook"
interval = 1
"""
GOOD_JSON = json.dumps(
    {
        "model": {"type": "cnn"},
        "dataset": {"type": "digits"},
        "training": {"epochs": 2},
        "hooks": [{"type": "EvalHook", "interval": 1}],
    },
    indent="\t",
)


class Broken(NamedTuple):
    """A broken config, how to load it, and the expected fields of its error."""

    label: str
    path: Path
    overrides: tuple[str, ...] = ()
    line: int | None = None  # of the file named `file`
    hint: str | None = None  # the name that the error must suggest
    file: str | None = None  # the file at fault, if it is not `path` itself


def broken_configs(tmp_path: Path) -> list[tuple[str, Path, tuple[str, ...]]]:
    """Write all broken configs below `tmp_path`; return label, file and overrides of each."""
    return [(case.label, case.path, case.overrides) for case in broken_cases(tmp_path)]


def broken_cases(tmp_path: Path) -> list[Broken]:
    """Write all broken configs below `tmp_path`; return them with the expected errors."""
    writer = _Writer(tmp_path)
    makers = (
        _misspelled_keys,
        _replaced_lines,
        _removed_parts,
        _bad_syntax,
        _bad_overrides,
        _bad_bases,
        _other_formats,
    )
    return [case for maker in makers for case in maker(writer)]


class _Writer:
    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def write(self, text: str | bytes, suffix: str = ".yaml") -> Path:
        self.count += 1
        path = self.folder / f"config_{self.count}{suffix}"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def case(
        self,
        label: str,
        text: str | bytes,
        line: int | None = None,
        hint: str | None = None,
        suffix: str = ".yaml",
    ) -> Broken:
        return Broken(label, self.write(text, suffix), (), line, hint)


def _misspelled_keys(writer: _Writer) -> Iterator[Broken]:
    lines = GOOD.splitlines()
    for index, line in enumerate(lines):
        key = re.match(r"\s*(?:- )?(\w+):", line)
        assert key is not None
        word = key[1]
        for how, wrong in (
            ("swapped", word[:-2] + word[-1] + word[-2]),
            ("doubled", word[0] + word),
        ):
            if wrong == word:
                continue
            text = "\n".join(
                [*lines[:index], line.replace(f"{word}:", f"{wrong}:", 1), *lines[index + 1 :]]
            )
            hint = None if len(wrong) == 2 else word  # too short to look like anything
            yield writer.case(f"{word} on line {index + 1}, letters {how}", text, index + 1, hint)


_REPLACED: tuple[tuple[str, str, str | None], ...] = (
    ("work_dir: runs/good", "work_dir: [runs]", None),
    ("seed: 7", "seed: seven", None),
    ("seed: 7", "seed: 1.5", None),
    ("seed: 7", "seed: -1", None),
    ("seed: 7", "seed: ${devise}", "device"),
    ("seed: 7", "seed: ${oc.env:HOOKLINE_NO_SUCH_VARIABLE}", None),
    ("seed: 7", "seed: ${unclosed", None),
    ("seed: 7", "seed: ${seed}", None),
    ("seed: 7", "seed: ???", None),
    ("seed: 7", "experiment_dir: elsewhere", None),
    ("device: cpu", "device: 3", None),
    ("device: cpu", "device: cpuu", "cpu"),
    ("resume: null", "resume: true", None),
    ("resume: null", "resume: atuo", "auto"),
    ("resume: null", "load_from: no/such/file.pth", None),
    ("custom_imports: [json]", "custom_imports: json", None),
    ("custom_imports: [json]", "custom_imports: [no_such_module_at_all]", None),
    ("custom_imports: [json]", "custom_imports: [.relative]", None),
    ("type: cnn", "type: cnnn", "cnn"),
    ("type: cnn", "type: os.system", None),
    ("type: cnn", "type: subprocess.Popen", None),
    ("type: cnn", "type: builtins.eval", None),
    ("type: cnn", "type: torch.optim.SGD", None),
    ("type: cnn", "type: torch.nn.Liner", "Linear"),
    ("type: cnn", "type: no_such_module.Model", None),
    ("type: cnn", "type: ..", None),
    ("type: cnn", "type: [cnn]", None),
    ("width: 8", "width: wide", None),
    ("width: 8", "width: [8]", None),
    ("type: digits", "type: digitz", "digits"),
    ("augment: true", "augment: perhaps", None),
    ("batch_size: 64", "batch_size: 0", None),
    ("batch_size: 64", "batch_size: many", None),
    ("num_workers: 0", "num_workers: -1", None),
    ("num_workers: 0", "sampler: random", None),
    ("drop_last: false", "drop_last: 3", None),
    ("    batch_size: 128", "    batch_size: -128", None),
    ("type: AdamW", "type: AdamWW", "AdamW"),
    ("lr: 1e-3", "lr: 0", None),
    ("lr: 1e-3", "lr: -1e-3", None),
    ("lr: 1e-3", "lr: fast", None),
    ("weight_decay: 0.01", "weight_decay: [0.01]", None),
    ("weight_decay: 0.01", "betas: [0.9]", None),
    ("epochs: 2", "epochs: 0", None),
    ("epochs: 2", "epochs: two", None),
    ("epochs: 2", "epochs: 2.5", None),
    ("type: CrossEntropyLoss", "type: CrosEntropyLoss", "CrossEntropyLoss"),
    ("label_smoothing: 0.1", "label_smoothing: much", None),
    ("metrics: [accuracy]", "metrics: accuracy", None),
    ("metrics: [accuracy]", "metrics: [acuracy]", "accuracy"),
    ("metrics: [accuracy]", "metrics: [3]", None),
    ("hook_order: nested", "hook_order: nestd", "nested"),
    ("hook_order: nested", "drop_hooks: [LogerHook]", "LoggerHook"),
    ("hook_order: nested", "drop_hooks: LoggerHook", None),
    ("type: LoggerHook", "type: LogerHook", "LoggerHook"),
    ("type: LoggerHook", "type: torch.nn.Linear", None),
    ("type: LoggerHook", "type: hookline.hooks.LogerHook", "LoggerHook"),
    ("interval: 10", "interval: often", None),
    ("name: saver", "name: 3", None),
    ("priority: LOW", "priority: LOWW", "LOW"),
    ("priority: LOW", "priority: 101", None),
    ("priority: LOW", "priority: -1", None),
    ("priority: LOW", "priority: [1]", None),
    ("priority: LOW", "frequency: 0", None),
    ("max_keep_ckpts: 2", "rule: graeter", None),
    ("  - type: EvalHook", "  - EvalHok\n  - type: EvalHook", "EvalHook"),
    ("  - type: EvalHook", "  - 3\n  - type: EvalHook", None),
)


def _replaced_lines(writer: _Writer) -> Iterator[Broken]:
    for old, new, hint in _REPLACED:
        at = GOOD.index(old)
        line = GOOD.count("\n", 0, at) + 1
        yield writer.case(f"{new.strip()} for {old.strip()}", GOOD.replace(old, new, 1), line, hint)
    lines = GOOD.count("\n") + 1
    yield writer.case(
        "two hooks of one name", GOOD + "  - {type: IterTimerHook, name: saver}\n", lines
    )
    yield writer.case(
        "epochs and iters",
        GOOD.replace("  epochs: 2", "  epochs: 2\n  iters: 3"),
        _line_of("training:"),
    )
    yield writer.case(
        "hooks are a number", GOOD[: GOOD.index("hooks:")] + "hooks: 3\n", _line_of("hooks:")
    )
    yield writer.case("model is a number", _without("model", "model: 3"), _line_of("model:"))
    yield writer.case(
        "a data set with a misspelled split",
        _without("dataset", "dataset: {trian: {type: digits}}"),
        _line_of("dataset:"),
        "train",
    )
    yield writer.case(
        "a data set without train",
        _without("dataset", "dataset: {val: {type: digits}}"),
        _line_of("dataset:"),
    )
    yield writer.case(
        "a split is a number", _without("dataset", "dataset: {train: 3}"), _line_of("dataset:")
    )
    yield writer.case(
        "training is a list", _without("training", "training: [epochs, 2]"), _line_of("training:")
    )


def _removed_parts(writer: _Writer) -> Iterator[Broken]:
    for part in ("model", "dataset", "training"):
        yield writer.case(f"no {part}", _without(part, ""))
        yield writer.case(f"{part} is empty", _without(part, f"{part}:\n"))
    for line in ("  type: cnn\n", "  type: digits\n", "  epochs: 2\n"):
        yield writer.case(f"no {line.strip()}", GOOD.replace(line, "", 1))
    yield writer.case(
        "a hook without type", GOOD.replace("type: EvalHook\n    ", ""), _line_of("type: EvalHook")
    )


def _bad_syntax(writer: _Writer) -> Iterator[Broken]:
    end = GOOD.count("\n") + 1
    tails = {
        "unclosed list": ("extra: [1, 2\n", None),
        "unclosed quote": ("extra: 'text\n", None),
        "tab": ("extra:\n\tkey: 1\n", end + 1),
        "stray colon": ("extra: a: b\n", end),
        "bad indentation": ("extra: 1\n   more: 2\n", end + 1),
        "unknown alias": ("extra: *nowhere\n", end),
        "duplicate key": ("seed: 8\n", end),
        "duplicate key below": ("loader: {batch_size: 3, batch_size: 4}\n", None),
        "python tag": ("extra: !!python/object/apply:os.system [ls]\n", end),
        "own tag": ("extra: !secret x\n", end),
        "binary": ("extra: !!binary aGVsbG8=\n", end),
        "set": ("extra: !!set {a, b}\n", end),
        "alias of itself": ("extra: &a [*a]\n", None),
        "alias bomb": (_bomb(), None),
        "second document": ("---\nseed: 8\n", None),
        "key that is no text": ("? [a, b]\n: 1\n", end),
        "key that is a truth value": ("yes: 1\n", end),
        "control character": ("extra: \x07\n", end),
        "wrong number": ("extra: !!int seven\n", end),
        "merge of no mapping": ("extra: {<<: 3}\n", end),
        "too deep": (f"extra: {'[' * 200}{']' * 200}\n", end),
        "far too deep": (f"extra: {'[' * 5000}\n", end),
    }
    for label, (tail, line) in tails.items():
        yield writer.case(label, GOOD + tail, line)
    yield writer.case("empty", "", 1)
    yield writer.case("only comments", "# nothing\n", 1)
    yield writer.case("a list", "- 1\n- 2\n", 1)
    yield writer.case("a word", "config\n", 1)
    yield writer.case("not UTF-8", GOOD.encode() + b"extra: \xff\xfe\n", end)
    yield writer.case("larger than a megabyte", GOOD + "#" * 1_000_001, 1)


def _bad_overrides(writer: _Writer) -> Iterator[Broken]:
    path = writer.write(GOOD)
    for text, hint in {
        "training.epoch=3": "epochs",
        "trainnig.epochs=3": "training",
        "loader.batchsize=3": "batch_size",
        "loader.train.shufle=true": "shuffle",
        "hooks.loger.interval=3": "logger",
        "hooks.savr=null": "saver",
        "hooks.7.interval=3": None,
        "hooks.saver.max_keep_ckpt=3": "max_keep_ckpts",
        "+hooks.x.type=LogerHook": "LoggerHook",
        "+hooks.x.interval=3": None,
        "+extra=1": None,
        "model.widht=3": "width",
        "model.width=wide": None,
        "training.epochs=[1": None,
        "training.epochs=0": None,
        "training.iters=5": None,
        "training.metrics.4=f1": None,
        "work_dir.x=3": None,
        "optimizer.lr=-1": None,
        "epochs": None,
        "=3": None,
        "training..epochs=3": None,
        "seed=!!python/name:os.system": None,
        "model=": None,
    }.items():
        yield Broken(
            f"override {text}",
            path,
            (text,),
            None,
            hint,
            "" if text == "training.iters=5" or text == "model=" else "command line",
        )


def _bad_bases(writer: _Writer) -> Iterator[Broken]:
    good = writer.write(GOOD)
    bad = writer.write(GOOD.replace("epochs: 2", "epochs: 0"))
    unreadable = writer.write("model: [\n")
    yield writer.case("base is missing", f"seed: 1\nbase: {good.stem}x.yaml\n", 2, good.name)
    yield writer.case("base is a number", "base: 3\n", 1)
    yield writer.case("base has another ending", "base: weights.pth\n", 1)
    yield writer.case("base is a folder", "base: ..\n", 1)
    itself = writer.folder / f"config_{writer.count + 1}.yaml"
    yield writer.case("its own base", f"base: {itself.name}\n", 1)
    inherited = Broken(
        "mistake in the base",
        writer.write(f"base: {bad.name}\n"),
        (),
        _line_of("epochs: 2"),
        None,
        str(bad),
    )
    yield inherited
    yield Broken(
        "base with bad syntax",
        writer.write(f"base: {unreadable.name}\n"),
        (),
        None,
        None,
        str(unreadable),
    )
    yield writer.case("mistake over a base", f"base: {good.name}\ntraining:\n  epochs: -1\n", 3)
    yield writer.case(
        "unknown hook to drop", f"base: {good.name}\nhooks:\n  savr: null\n", 3, "saver"
    )


def _other_formats(writer: _Writer) -> Iterator[Broken]:
    yield writer.case("JSON: syntax", GOOD_JSON.replace("2", "2,", 1), None, None, ".json")
    yield writer.case(
        "JSON: misspelled",
        GOOD_JSON.replace("epochs", "epoch"),
        _line_of('"epochs"', GOOD_JSON),
        "epochs",
        ".json",
    )
    yield writer.case(
        "JSON: duplicate",
        GOOD_JSON.replace('"hooks"', '"model"'),
        _line_of('"hooks"', GOOD_JSON),
        None,
        ".json",
    )
    yield writer.case("JSON: a list", "[1, 2]", 1, None, ".json")
    yield writer.case(
        "TOML: syntax",
        GOOD_TOML.replace("width = 8", "width = "),
        _line_of("width", GOOD_TOML),
        None,
        ".toml",
    )
    yield writer.case(
        "TOML: misspelled",
        GOOD_TOML.replace("width", "widht"),
        _line_of("width", GOOD_TOML),
        "width",
        ".toml",
    )
    yield writer.case(
        "TOML: second hook",
        GOOD_TOML.replace("interval = 1\n", "intreval = 1\n"),
        GOOD_TOML.count("\n"),
        "interval",
        ".toml",
    )
    yield writer.case(
        "TOML: duplicate", GOOD_TOML.replace("[dataset]", "[model]"), None, None, ".toml"
    )
    yield writer.case(
        "TOML: a date", GOOD_TOML.replace("seed = 7", "seed = 2024-01-01"), 1, None, ".toml"
    )
    yield writer.case("unknown format", GOOD, None, None, ".txt")


def _line_of(text: str, within: str = GOOD) -> int:
    return within.count("\n", 0, within.index(text)) + 1


def _without(part: str, replacement: str) -> str:
    return re.sub(rf"^{part}:\n(?:  .*\n)+", f"{replacement}\n", GOOD, flags=re.MULTILINE)


def _bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    return "\n".join(lines) + "\n"
