"""A table of hostile configs. Each is a change of a small config that works."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

MARKER = "executed"  # the file that code of a hostile config would create
HUGE = "1" + "0" * 5000  # Python refuses to convert so many digits between text and number.
HUGE_HEX = "0x1" + "0" * 5000


@dataclass
class Hostile:
    """A hostile config.

    Attributes:
        lines: Values of top-level keys in YAML, in place of those of the small config.
        more: Text at the end of the file.
        prepare: Creates further files in the folder of the config.
        name: The file name of the config.
        text: The whole file, in place of the small config.
        late: Whether only the commands that start a run can see the problem.
    """

    lines: Mapping[str, str] = field(default_factory=dict)
    more: str = ""
    prepare: Callable[[Path], object] = lambda folder: None
    name: str = "config.yaml"
    text: str | bytes | None = None
    late: bool = False

    def write(self, folder: Path) -> Path:
        """Write the config and its files to a folder, and return its path."""
        self.prepare(folder)
        path = folder / self.name
        if self.text is not None:
            content = self.text if isinstance(self.text, bytes) else self.text.encode()
        else:
            values = {**small_config(folder), **self.lines}
            written = "".join(f"{key}: {value}\n" for key, value in values.items())
            content = (written + self.more).replace("FOLDER", str(folder)).encode()
        path.write_bytes(content)
        return path


def small_config(folder: Path) -> dict[str, str]:
    """Return the values of a config that trains in a fraction of a second."""
    return {
        "work_dir": f"{folder}/run",
        "seed": "1",
        "device": "cpu",
        "model": "{type: cnn, width: 4}",
        "dataset": "{type: digits}",
        "loader": "{batch_size: 512}",
        "training": "{iters: 1}",
        "hooks": "[{type: LoggerHook, interval: 2}]",
    }


def top(**lines: str) -> Hostile:
    return Hostile(lines)


def hook(text: str) -> Hostile:
    return Hostile({"hooks": f"[{text}]"})


def bases(folder: Path) -> None:
    """Write 40 configs, each of which names the next one twice."""
    for level in range(40):
        (folder / f"base{level}.yaml").write_text(
            f"base: [base{level + 1}.yaml, ./base{level + 1}.yaml]\n"
        )
    (folder / "base40.yaml").write_text("seed: 1\n")


def chain(folder: Path) -> None:
    """Write 200 configs, each of which names the next one."""
    for level in range(200):
        (folder / f"base{level}.yaml").write_text(f"base: base{level + 1}.yaml\n")


def loop(folder: Path) -> None:
    (folder / "other.yaml").write_text("base: config.yaml\n")


def link_loop(folder: Path) -> None:
    (folder / "a.yaml").symlink_to("b.yaml")
    (folder / "b.yaml").symlink_to("a.yaml")


def pipe(name: str) -> Callable[[Path], object]:
    return lambda folder: os.mkfifo(folder / name)


def file(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text("x")


def link(name: str, target: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).symlink_to(target)


def module(folder: Path) -> None:
    """Write a module with a class that is no model, and a function that leaves a marker."""
    (folder / "hostile_module.py").write_text(
        f"class Thing:\n    def __init__(self, **k): open({str(folder / MARKER)!r}, 'w')\n"
        f"def leave_marker(*a, **k): open({str(folder / MARKER)!r}, 'w')\n" + HOSTILE_FUNCTIONS
    )


# Functions that no config may call, with the names that attackers would try.
HOSTILE_FUNCTIONS = """
import functools, os, subprocess
from os import system
from torch import nn

def text(*a, **k) -> str: leave_marker()
def maybe(*a, **k) -> nn.Module | None: leave_marker()
def unknown(*a, **k) -> "no.such.Class": leave_marker()
def _private(*a, **k) -> nn.Module: leave_marker()
@functools.wraps(os.system)
def wrapped(*a, **k) -> nn.Module: leave_marker()
shortcut = lambda *a, **k: leave_marker()
shortcut.__annotations__["return"] = nn.Module
prepared = functools.partial(leave_marker, 1)

class Helper:
    os = os
    shell = staticmethod(os.system)
    Popen = subprocess.Popen
    @classmethod
    def run(cls, *a, **k): leave_marker()
    @staticmethod
    def from_config(*a, **k): leave_marker()
    def from_pretrained(self, *a, **k): leave_marker()
    @classmethod
    def _load(cls, *a, **k) -> nn.Module: leave_marker()
    def __call__(self, *a, **k): leave_marker()

class Loader(nn.Module):
    @classmethod
    def load_from_checkpoint(cls, *a, **k): leave_marker()

helper = Helper()
"""
HOSTILE_PATHS = (
    "os.system", "system", "leave_marker", "text", "maybe", "unknown", "_private", "wrapped",
    "shortcut", "prepared", "Helper", "Helper.run", "Helper.shell", "Helper.Popen",
    "Helper.os.system", "Helper._load", "Helper.from_config", "Helper.from_pretrained",
    "Helper.__init__", "Helper.__subclasses__", "helper", "helper.run", "subprocess.Popen",
    "leave_marker.__globals__", "nn.Module.__init__", "nn.Linear._load_from_state_dict",
    "Loader.load_from_checkpoint",
)  # fmt: skip
COMPONENTS = {
    "model": "{{type: {}}}",
    "dataset": "{{type: {}}}",
    "optimizer": "{{type: {}}}",
    "scheduler": "{{type: {}}}",
    "hooks": "[{{type: {}}}]",
    "training": "{{iters: 1, loss: {{type: {}}}}}",
}

# Functions of installed packages that an attacker would call with a list of texts.
OPEN = f"open('FOLDER/{MARKER}', 'w')"
CALLED = {
    "torch.utils.collect_env.run": f"touch, FOLDER/{MARKER}, FOLDER/other",
    "psutil.Popen": f"touch, FOLDER/{MARKER}, FOLDER/other",
    "sympy.sympify": f'"{OPEN}", "{OPEN}", "{OPEN}"',
    "sympy.parsing.sympy_parser.parse_expr": f'"{OPEN}", "{OPEN}", "{OPEN}"',
    "numpy.f2py.run_main": "-m, x, FOLDER/x.f",
    "numpy.load": f"FOLDER/{MARKER}, r, x",
    "yaml.unsafe_load": f"\"!!python/object/apply:os.system ['touch FOLDER/{MARKER}']\", x, x",
    "click.launch": f"FOLDER/{MARKER}, x, x",
    "fsspec.open": f"FOLDER/{MARKER}, w, x",
    "omegaconf.OmegaConf.load": "/etc/passwd, x, x",
    "hookline.cli.main.main": "init, x, x",
    "hookline.files.replace_file": f"FOLDER/{MARKER}, x, x",
    "hookline.imports.import_module": "antigravity, x, x",
}
# Types that execute text or data although they build a model or data set.
EXECUTE = f'{{_code: "{OPEN}", code: "{OPEN}"}}, import_block: "{OPEN}"'
BUILDING = {
    "a function that executes its text": f"torch.fx.graph_module.reduce_graph_module, body: {EXECUTE}",
    "the same by another name": f"torch.fx._lazy_graph_module.reduce_graph_module, body: {EXECUTE}",
    "a function that imports": "torch.fx.graph_module.reduce_package_graph_module, importer: x, "
    "body: {}, generated_module_name: antigravity",
    "a class that executes its graph": "torch.fx.GraphModule, root: {}, graph: x, class_name: 'x: pass'",
    "a class of pickles": "torch.package.PackageImporter, args: [x]",
    "a reader of pickles": "torch.export.load, args: [x]",
    "a class that reads any file": "torch.utils.data.datapipes.iter.FileOpener, args: [[/etc/passwd]]",
    "a class that unpickles files": "torch.utils.data.datapipes.iter.RoutedDecoder, args: [{type: "
    "torch.utils.data.datapipes.iter.FileOpener, args: [{type: "
    "torch.utils.data.datapipes.iter.FileLister, root: FOLDER}], mode: rb}]",
    "a class that starts programs": f"webdataset.WebDataset, urls: 'pipe:touch FOLDER/{MARKER}'",
    "another class that starts programs": f"wids.ShardListDataset, shards: 'pipe:touch FOLDER/{MARKER}'",
    "a program": f"psutil.Popen, args: [[touch, FOLDER/{MARKER}]]",
    "a name with a space": "' os.system'",
    "a name with an invisible character": '"os\\u200b.system"',
    "a name in capitals": "OS.system",
    "a name with a dot at its end": "os.system.",
    "attributes of a method": "torch.nn.Linear.__init__.__globals__",
    "all classes": "torch.nn.Linear.__subclasses__",
    "a module in a module": "torch.nn.functional.torch.load",
    "a class of parts": f"torch.nn.Sequential, args: [{{type: torch.nn.Sequential, args: [{{type: os.system, args: ['touch FOLDER/{MARKER}']}}]}}]",
    "a part in a list in a mapping": f"torch.nn.Identity, x: [{{y: [{{type: subprocess.Popen, args: [[touch, FOLDER/{MARKER}]]}}]}}]",
    "a text as the arguments": "torch.nn.Identity, args: os.system",
    "a mapping as the arguments": f"torch.nn.Identity, args: {{type: os.system, args: ['touch FOLDER/{MARKER}']}}",
    "a number as the arguments": "torch.nn.Identity, args: 3",
}


TOUCH = f"touch FOLDER/{MARKER}"
HOSTILE: dict[str, Hostile] = {
    # Bases.
    "a config that is its own base": Hostile(more="base: config.yaml\n"),
    "bases in a circle": Hostile(more="base: other.yaml\n", prepare=loop),
    "bases that double 40 times": Hostile(more="base: base0.yaml\n", prepare=bases),
    "200 bases in a chain": Hostile(more="base: base0.yaml\n", prepare=chain),
    "a pipe as the base": Hostile(more="base: pipe.yaml\n", prepare=pipe("pipe.yaml")),
    "a device as the base": Hostile(more="base: /dev/zero\n"),
    "a link to a device as the base": Hostile(
        more="base: zero.yaml\n", prepare=link("zero.yaml", "/dev/zero")
    ),
    "a loop of links as the base": Hostile(more="base: a.yaml\n", prepare=link_loop),
    "a base with a null byte": Hostile(more='base: "a\\0.yaml"\n'),
    "a base with a very long name": Hostile(more=f"base: {'a' * 5000}.yaml\n"),
    "a secret file as the base": Hostile(more="base: /etc/shadow\n"),
    "a number as the base": Hostile(more="base: 3\n"),
    # Syntax.
    "a tag that calls a function": top(seed=f"!!python/object/apply:os.system ['{TOUCH}']"),
    "a tag that creates an object": top(model="!!python/object/new:os.system [x]"),
    "a tag that names a module": top(model="!!python/module:os"),
    "aliases that double 40 times": Hostile(
        more="x0: &x0 [y]\n" + "".join(f"x{i + 1}: &x{i + 1} [*x{i}, *x{i}]\n" for i in range(40))
    ),
    "merges that double 40 times": Hostile(
        more="x0: &x0 {y: 1}\n"
        + "".join(f"x{i + 1}: &x{i + 1} {{<<: [*x{i}, *x{i}]}}\n" for i in range(40))
    ),
    "an alias to itself": Hostile(more="x: &x [*x]\n"),
    "a mapping 5000 levels deep": Hostile(more="x: " + "{a: " * 5000 + "1" + "}" * 5000 + "\n"),
    "a list 5000 levels deep in JSON": Hostile(
        name="config.json", text='{"x": ' + "[" * 50_000 + "]" * 50_000 + "}"
    ),
    "a table 5000 levels deep in TOML": Hostile(
        name="config.toml", text="x = " + "[" * 5000 + "]" * 5000
    ),
    "dotted keys in TOML": Hostile(name="config.toml", text=".".join(["a"] * 20_000) + " = 1"),
    "a number with 5000 digits": top(seed=HUGE),
    "a number with 5000 hexadecimal digits": top(seed=HUGE_HEX),
    "a number with 5000 digits in JSON": Hostile(name="config.json", text=f'{{"seed": {HUGE}}}'),
    "a number with 5000 digits in TOML": Hostile(name="config.toml", text=f"seed = {HUGE}"),
    "a large number with 5000 hexadecimal digits in TOML": Hostile(
        name="config.toml", text=f"seed = {HUGE_HEX}"
    ),
    "a large number as a key": Hostile(more=f"{HUGE_HEX}: 1\n"),
    "null bytes": Hostile(text=b"\0" * 100),
    "text in UTF-16": Hostile(text="seed: 1".encode("utf-16")),
    "an unpaired surrogate": Hostile(name="config.json", text='{"seed": "\\ud800"}'),
    "an unpaired surrogate as a key": Hostile(name="config.json", text='{"\\ud800": 1}'),
    "two documents": Hostile(more="---\nseed: 2\n"),
    "a file of 2 MB": Hostile(more="#" * 2_000_000),
    "two equal keys": Hostile(more="seed: 2\n"),
    "keys with escape sequences": Hostile(more='"a\\e]0;title\\a\\e[2J\\r": 1\n'),
    "keys with line separators": Hostile(more='"a\\u2028b\\u0085c\\nd": 1\n'),
    "a key with a direction override": Hostile(more='"a\\u202e\\u2066b": 1\n'),
    "a very long key": Hostile(more=f'"{"k" * 1000}": 1\n'),
    "a very long value": top(device=f'"{"v" * 50_000}"'),
    # Interpolations.
    "a value that refers to itself": top(seed="${seed}"),
    "values that refer to each other": top(seed="${device}", device="${seed}"),
    "the config inside itself": top(model="${.}"),
    "a reference to the root": Hostile(more="x: ${model}\nmodel2: {a: '${x}', b: '${model2}'}\n"),
    "an unknown resolver": top(device="${eval:1+1}"),
    "a resolver that reads a secret": Hostile({"device": "${oc.env:HOSTILE_TOKEN}"}),
    "a decoded number with 5000 digits": top(seed=f"${{oc.decode:{HUGE}}}"),
    "attributes in a reference": top(device="${model.__class__.__mro__}"),
    # Numbers and types.
    **{
        f"{key}: {value}": top(**{key: value})
        for key in (
            "seed", "hook_budget", "device", "work_dir", "resume", "load_from", "hooks", "loader",
            "model", "dataset", "optimizer", "training", "lr_config", "strategy", "compile",
        )
        for value in (".nan", "-1", "[[]]")
    },
    **{
        f"training.{key}: {value}": top(training=f"{{{key}: {value}}}")
        for key in ("epochs", "iters")
        for value in (".nan", ".inf", "-1", "0", "1.5", "'1'", "true", "{}")
    },
    **{
        f"loader.{key}: {value}": top(loader=f"{{num_workers: 1, {key}: {value}}}")
        for key in ("batch_size", "timeout", "prefetch_factor")
        for value in (".nan", ".inf", "-1", "'1'", "[1]")
    },
    **{
        f"optimizer.lr: {value}": top(optimizer=f"{{type: SGD, lr: {value}}}")
        for value in (".nan", ".inf", "-1", "'1'", "true", "1e400", HUGE_HEX)
    },
    # Names of classes and functions.
    **{
        f"{path} as the {key}": top(**{key: f"{{type: {path}}}"})
        for key in ("model", "dataset", "optimizer")
        for path in ("os.system", "builtins.eval", "subprocess.Popen", "importlib.import_module")
    },
    "a shell as a hook": hook(f"{{type: os.system, command: '{TOUCH}'}}"),
    "a shell as the loss": top(training=f"{{iters: 1, loss: {{type: os.popen, cmd: '{TOUCH}'}}}}"),
    "a shell as a metric": top(training=f"{{iters: 1, metrics: [{{type: os.popen, cmd: '{TOUCH}'}}]}}"),
    "a shell as the collate function": top(loader="{batch_size: 8, collate_fn: os.system}"),
    **{
        f"{path} as the {key}": Hostile(
            {
                "dataset": "{type: torch.utils.data.ConcatDataset, "
                f"datasets: [[--no-python, touch, FOLDER/{MARKER}]]}}",
                "loader": f"{{batch_size: 3, shuffle: false, {key}: {path}}}",
            },
            late=key == "sample_weights",
        )
        for key in ("collate_fn", "sample_weights")
        for path in ("torch.distributed.run.main", "setuptools._distutils.spawn.spawn", "pty.spawn")
    },
    "a browser as a metric": top(training="{iters: 1, metrics: [webbrowser.open]}"),
    "a joke of Python as the model": top(model="{type: antigravity.anything}"),
    "a hidden shell as the collate function": top(loader="{batch_size: 8, collate_fn: random._urandom}"),
    **{
        f"hostile_module.{path} in {key}": Hostile(
            {key: form.format(f"hostile_module.{path}")}, prepare=module
        )
        for key, form in COMPONENTS.items()
        for path in HOSTILE_PATHS
    },
    **{
        f"{path} in {key}": top(**{key: form.format(path)})
        for key, form in COMPONENTS.items()
        for path in ("torch.hub.load", "torch.load", "torch.jit.load", "torch.os.system")
    },
    **{
        f"{argument} of the {key}": top(**{key: f"{{type: {name}, {argument}}}"})
        for key, name in {"model": "cnn", "dataset": "digits"}.items()
        for argument in (
            "trust_remote_code: true", "trust_remote_code: 'yes'", "trust_remote_code: 1",
            "options: {trust_remote_code: true}", "options: [{weights_only: false}]",
            "allow_all_kernels: true", "kernel_config: {x: y}", "import_allowlist: [x]",
            "<<: {trust_remote_code: true}", "trust_remote_code: '${seed}'",
        )
    },
    **{
        f"{path} as the collate function": Hostile(
            {
                "dataset": f"{{type: torch.utils.data.ConcatDataset, datasets: [[{texts}]]}}",
                "loader": f"{{batch_size: 3, shuffle: false, collate_fn: {path}}}",
            }
        )
        for path, texts in CALLED.items()
    },
    **{f"{path} as a metric": top(training=f"{{iters: 1, metrics: [{path}]}}") for path in CALLED},
    **{
        f"{path} as a metric of generated text": hook(
            f"{{type: GenerationHook, metrics: [{path}]}}"
        )
        for path in ("subprocess.call", "sympy.sympify", "psutil.Popen")
    },
    **{
        f"{path} as sample weights": Hostile(
            {"loader": f"{{batch_size: 3, sample_weights: {path}}}"}, late=True
        )
        for path in ("psutil.Popen", "sympy.sympify", "hookline.imports.import_module")
    },
    **{
        f"{name} as the {key}": top(**{key: form.format(text)})
        for key, form in COMPONENTS.items()
        for name, text in BUILDING.items()
        if key in ("model", "dataset", "training")
    },
    **{
        f"a program in {option} of the compiler": top(compile=f"{{options: {{{option}: {value}}}}}")
        for option, value in {
            "cpp.cxx": "['', FOLDER/program]",
            "cuda.cuda_cxx": "FOLDER/program",
            "cuda.cutlass_dir": "FOLDER",
        }.items()
    },
    "a misspelled option of the compiler": top(compile="{fulgraph: true}"),
    "options of the compiler as a list": top(compile="{options: [cpp.cxx]}"),
    "a type that is put together": Hostile(
        {"model": f"{{type: '${{first}}.${{second}}', args: ['{TOUCH}']}}"},
        more="first: os\nsecond: system\n",
    ),
    **{
        f"{path} inside the {key}": Hostile(
            {key: f"{{type: {name}, part: [{{type: hostile_module.{path}}}]}}"}, prepare=module
        )
        for key, name in {"model": "cnn", "dataset": "digits"}.items()
        for path in HOSTILE_PATHS
    },
    **{
        f"hostile_module.{path} as a tokenizer": Hostile(
            {"dataset": f"{{type: text, files: a.txt, tokenizer: {{type: hostile_module.{path}}}}}"},
            prepare=module,
        )
        for path in HOSTILE_PATHS
    },
    "trust_remote_code of a tokenizer": top(
        dataset="{type: text, files: a.txt, tokenizer: {type: torch.nn.Identity, trust_remote_code: true}}"
    ),
    "a device as a file of text": Hostile(
        {"dataset": "{type: text, files: /dev/zero, tokenizer: {type: torch.nn.Identity}}"},
        late=True,
    ),
    "a type with a null byte": top(model='{type: "a.b\\0"}'),
    "a type of dots": top(model="{type: ...}"),
    "a relative type": top(model="{type: .os.system}"),
    "a type with 10,000 dots": top(model="{type: '" + "a." * 10_000 + "b'}"),
    "a type that is a list": top(model="{type: [os.system]}"),
    "a relative import": top(custom_imports="[.os]"),
    "an import with a null byte": top(custom_imports='["a\\0"]'),
    "an import that is a path": top(custom_imports="[/etc/passwd]"),
    "a foreign class as the model": Hostile(
        {"model": "{type: hostile_module.Thing}"}, prepare=module
    ),
    "parameters of the interpreter": top(model="{type: cnn, __class__: x, self: 1}"),
    # Files.
    **{
        f"the template {template}": hook(f"{{type: CheckpointHook, filename_tmpl: '{template}'}}")
        for template in (
            "../../{}.pth",
            "/tmp/{}.pth",
            "{0.__class__.__mro__}.pth",
            "{0.__init__.__globals__}{}.pth",
            "{:>999999999}.pth",
            "{0:{0}}.pth",
            "{!r:>9}.pth",
            "{}{}{}.pth",
            "{x}.pth",
            "{",
            "checkpoints.json",
        )
    },
    "a template with an escape sequence": hook(
        '{type: CheckpointHook, filename_tmpl: "a\\e]0;b{}.pth"}'
    ),
    "a file as the work directory": Hostile(
        {"work_dir": "FOLDER/file"}, prepare=file("file"), late=True
    ),
    "a work directory below a file": Hostile(
        {"work_dir": "FOLDER/file/run"}, prepare=file("file"), late=True
    ),
    "a device as the work directory": Hostile({"work_dir": "/dev/null"}, late=True),
    "a pipe as the work directory": Hostile(
        {"work_dir": "FOLDER/pipe"}, prepare=pipe("pipe"), late=True
    ),
    "a broken link as the work directory": Hostile(
        {"work_dir": "FOLDER/link"}, prepare=link("link", "missing/folder"), late=True
    ),
    "a loop of links as the work directory": Hostile(
        {"work_dir": "FOLDER/a.yaml"}, prepare=link_loop, late=True
    ),
    "a work directory with a null byte": Hostile({"work_dir": '"FOLDER/a\\0b"'}, late=True),
    "a work directory with a very long name": Hostile(
        {"work_dir": f"FOLDER/{'a' * 5000}"}, late=True
    ),
    "an empty work directory": top(work_dir="''"),
    "a work directory in /proc": Hostile({"work_dir": "/proc/hostile/run"}, late=True),
    "a pipe to resume from": Hostile(
        {"resume": "FOLDER/pipe.pth"}, prepare=pipe("pipe.pth"), late=True
    ),
    "a device to resume from": Hostile({"resume": "/dev/zero"}, late=True),
    "a pipe to load from": Hostile(
        {"load_from": "FOLDER/pipe.pth"}, prepare=pipe("pipe.pth"), late=True
    ),
    **{
        f"a chain of URLs as {key}": top(**{key: '"reference://run::file://FOLDER/list.json"'})
        for key in ("resume", "load_from", "work_dir")
    },
    "a chain of URLs as the mirror": hook(
        '{type: CheckpointHook, mirror: "reference://run::file://FOLDER/list.json"}'
    ),
    "a path with a null byte to resume from": top(resume='"a\\0b.pth"'),
}  # fmt: skip
