"""Checkpoints and manifests of an attacker, against every command that reads them.

No command may execute anything, write outside its output, or end with a traceback.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.checkpoint import CheckpointStore
from hookline.checkpoint.manifest import Ledger, encode, read_ledger
from hookline.checkpoint.names import MANIFEST
from hookline.cli.main import main
from hookline.errors import HooklineError
from tests.checkpoint.helpers import Evil
from tests.checkpoint.pickles import dotted_call, old_format
from tests.checks import all_failures
from tests.helpers import batches, small_model

COMMANDS = ("show", "diff", "consolidate", "publish", "import")
DCP = "torch.distributed.checkpoint.filesystem"


def make_runner(folder: Path, **parts: Any) -> Runner:
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return Runner(
        model, train_loader=batches(2), optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), max_epochs=2, seed=0, work_dir=folder,
        drop_hooks=["LoggerHook", "ReportHook"], test_loader=batches(1), **parts,
    )  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that is not finished."""
    folder = tmp_path_factory.mktemp("honest")
    runner = make_runner(folder)
    runner.max_epochs = 1
    runner.train()
    return folder


@pytest.fixture(autouse=True)
def _in_own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    yield
    assert not list((tmp_path / "cwd").iterdir()), "a command has written to the current directory"


def run_commands(file: Path, honest: Path, output: Path) -> dict[str, int]:
    """Run each command that reads a checkpoint file, and return the exit codes."""
    last = str(honest / "last.pth")
    arguments = {
        "show": ["show", str(file)],
        "diff": ["diff", str(file), last],
        "consolidate": ["consolidate", str(file), "-o", str(output / "whole.pth")],
        "publish": ["publish", str(file), "-o", str(output / "published")],
        "import": ["import", str(file), "-o", str(output / "imported.pth")],
    }
    return {name: main(["ckpt", *arguments[name]]) for name in COMMANDS}


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def doubled(levels: int) -> list[Any]:
    """Return lists of which each holds the next one twice."""
    value: list[Any] = [1]
    for _ in range(levels):
        value = [value, value]
    return value


def change(*path: str, to: Any) -> Callable[[dict[str, Any]], None]:
    def apply(checkpoint: dict[str, Any]) -> None:
        for key in path[:-1]:
            checkpoint = checkpoint[key]
        checkpoint[path[-1]] = to

    return apply


# Honest files with one part of another form. A run must not resume from any of them.
FORGED = {
    "meta is a list": change("meta", to=[1]),
    "no meta": lambda checkpoint: checkpoint.pop("meta"),
    "text as a counter": change("meta", "iter", to="../../x"),
    "huge counter": change("meta", "iter", to=10**400),
    "negative counter": change("meta", "epoch", to=-5),
    "tensor as a counter": change("meta", "inner_iter", to=torch.ones(3)),
    "weights are a list": change("state_dict", to=[1]),
    "text as a weight": change("state_dict", "0.weight", to="evil"),
    "weight of another shape": change("state_dict", "0.weight", to=torch.ones(1)),
    "optimizer is a list": change("optimizer", to=[]),
    "optimizer without groups": change("optimizer", to={}),
    "text as groups": change("optimizer", "param_groups", to="abc"),
    "hooks are a list": change("hooks", to=[1]),
    "text as a hook's state": change("hooks", to={"CheckpointHook": "evil"}),
    "random numbers of another kind": change("rng", to={"python": 1, "torch": torch.ones(3)}),
    "events are a list": change("events", to=[1, 2]),
    "events of another kind": change("events", to={"loss": "x"}),
    "best is a list": change("meta", "best", to=[1]),
    "unknown parameters": change("meta", "param_groups", to={"": [["a"], ["b"]]}),
    "frozen is a number": change("meta", "frozen", to=7),
    "objects are a list": change("objects", to=[1]),
    "shards elsewhere": change("shards", to="../../etc"),
    "shards are a number": change("shards", to=7),
    "shards are missing": change("shards", to="shards_1_00000000"),
    "nested too deep": change("extra", to=nested(200)),
    "lists that double": change("hooks", to={"CheckpointHook": doubled(40)}),
    "a number repeated to terabytes": change("extra", to=torch.zeros(1).expand(2**20, 2**20)),
    "a sparse weight": change("state_dict", "0.weight", to=torch.eye(3).to_sparse()),
    "a weight without data": change("state_dict", "0.weight", to=torch.ones(1, device="meta")),
    "an empty base": change("base", to={}),
    "a base of text": change("base", to={"tensors": "x", "bytes": 1, "sha256": "", "digests": 1}),
    "time out of range": change("meta", "time", to=1e300),
}
HARMLESS = ("time out of range",)  # Only `show` prints it.


def forge(honest: Path, name: str) -> dict[str, Any]:
    checkpoint = copy.deepcopy(torch.load(honest / "last.pth", weights_only=True))
    FORGED[name](checkpoint)
    return checkpoint


def test_commands_survive_forged_checkpoints(
    honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with all_failures() as check:
        for name in FORGED:
            with check(name):
                file = tmp_path / "forged.pth"
                torch.save(forge(honest, name), file)
                codes = run_commands(file, honest, tmp_path / "output")
                assert set(codes.values()) <= {0, 1, 2}
                assert "Traceback" not in capsys.readouterr().err


def test_a_run_does_not_resume_from_a_forged_checkpoint(honest: Path, tmp_path: Path) -> None:
    with all_failures() as check:
        for name in FORGED:
            with check(name):
                file = tmp_path / "forged.pth"
                torch.save(forge(honest, name), file)
                runner = make_runner(tmp_path / "run", resume=file)
                if name in HARMLESS:
                    runner.train()
                    continue
                error = None
                try:
                    runner.train()
                except HooklineError as raised:
                    error = raised
                assert error is not None, "the run has resumed"
                assert not runner.outputs, "the run has trained"


@pytest.mark.parametrize("name", ["weights are a list", "text as a weight", "text as a counter"])
def test_a_test_with_a_forged_checkpoint_fails_or_ignores_the_forged_part(
    honest: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "forged.pth"
    torch.save(forge(honest, name), file)
    runner = make_runner(tmp_path / "run", load_from=file)
    if name == "text as a counter":
        runner.test()
        assert runner.iter == 0
    else:
        with pytest.raises(HooklineError):
            runner.test()


def test_a_list_of_files_in_a_checkpoint_removes_nothing_that_the_manifest_does_not_list(
    honest: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    precious = [tmp_path / "precious.txt", folder / "precious.pth"]
    for path in precious:
        path.write_text("precious")
    checkpoint = torch.load(honest / "last.pth", weights_only=True)
    names = [str(precious[0]), "../precious.txt", "precious.pth", "log.jsonl", *map(str, range(9))]
    checkpoint["hooks"]["CheckpointHook"] = {"kept": names}
    torch.save(checkpoint, tmp_path / "forged.pth")
    make_runner(folder, resume=tmp_path / "forged.pth").train()
    assert [path.read_text() for path in precious] == ["precious", "precious"]


def payloads(target: Path) -> dict[str, bytes]:
    """Return files that create a file if they are unpickled freely."""
    stream = io.BytesIO()
    torch.save({"state_dict": {}, "meta": Evil(target)}, stream)
    plain = stream.getvalue()
    legacy = io.BytesIO()
    torch.save({"x": Evil(target)}, legacy, _use_new_zipfile_serialization=False)
    command = f"touch {target}"
    swapped = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(plain)) as source, zipfile.ZipFile(swapped, "w") as archive:
        for name in source.namelist():
            is_content = name.endswith("data.pkl")
            archive.writestr(name, dotted_call(DCP, command) if is_content else source.read(name))
    call = b"cposix\nsystem\n(X" + len(command).to_bytes(4, "little") + command.encode() + b"tR"
    return {
        "object": plain,
        "old format": legacy.getvalue(),
        "dotted name": swapped.getvalue(),
        "opcodes": old_format(call),
        "bare pickle": dotted_call(DCP, command),
    }


def test_no_command_executes_code_of_a_checkpoint(
    honest: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    target = tmp_path / "executed"
    with all_failures() as check:
        for name, data in payloads(target).items():
            with check(name):
                file = tmp_path / "evil.pth"
                file.write_bytes(data)
                codes = run_commands(file, honest, tmp_path / "output")
                assert 0 not in codes.values()
                for option in ("resume", "load_from"):
                    with pytest.raises(HooklineError):
                        make_runner(tmp_path / "run", **{option: file}).train()
                with pytest.raises(HooklineError):
                    make_runner(tmp_path / "run", load_from=file).test()
                assert not target.exists()
                assert "Traceback" not in capsys.readouterr().err
    assert os.system(f"touch {target}") == 0  # noqa: S605 - the payload works if executed
    assert target.exists()


def test_a_file_that_unpacks_to_a_thousand_times_its_size_is_refused_before_it_is_unpacked(
    honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bomb.pth"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/data.pkl", b"\x80\x02" + b"N0" * 10_000_000 + b"}.")
    assert file.stat().st_size < 100_000
    codes = run_commands(file, honest, tmp_path / "output")
    assert 0 not in codes.values()
    errors = capsys.readouterr().err
    assert "unpack" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("name", ["checkpoints.json", "last.pth", "epoch_1.pth"])
def test_a_pipe_or_device_in_place_of_a_file_blocks_no_resume(
    name: str, honest: Path, tmp_path: Path
) -> None:
    for number, replace in enumerate([os.mkfifo, lambda path: path.symlink_to("/dev/zero")]):
        folder = tmp_path / str(number)
        shutil.copytree(honest, folder)
        (folder / name).unlink()
        replace(folder / name)
        main(["ckpt", "verify", str(folder)])
        main(["ckpt", "ls", str(folder)])
        runner = make_runner(folder, resume="auto")
        runner.train()
        assert runner.epoch == 2


def test_the_config_of_a_checkpoint_imports_nothing(
    honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "imported"
    (tmp_path / "evil_module.py").write_text(f"open({str(target)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    checkpoint = CheckpointStore(honest).load("last.pth")
    evil = {"type": "evil_module.Evil"}
    checkpoint["meta"]["config"] = {
        "custom_imports": ["evil_module"],
        "model": evil,
        "hooks": [evil],
        "loader": {"collate_fn": "evil_module.collate"},
    }
    file = tmp_path / "evil.pth"
    torch.save(checkpoint, file)
    run_commands(file, honest, tmp_path / "output")
    make_runner(tmp_path / "run", resume=file).train()
    make_runner(tmp_path / "other", load_from=file).test()
    assert not target.exists()
    importlib.import_module("evil_module")
    assert target.exists()


def test_no_command_executes_code_of_a_sharded_checkpoint(
    honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "executed"
    shards = tmp_path / "shards_1_0a1b2c3d"
    shards.mkdir()
    (shards / ".metadata").write_bytes(dotted_call(DCP, f"touch {target}"))
    checkpoint = torch.load(honest / "last.pth", weights_only=True)
    checkpoint["shards"] = shards.name
    checkpoint["state_dict"]["0.weight"] = {"sharded": ["w", [8, 6], "float32"]}
    file = tmp_path / "last.pth"
    torch.save(checkpoint, file)
    codes = run_commands(file, honest, tmp_path / "output")
    assert 0 not in [codes[name] for name in ("show", "diff", "consolidate", "publish")]
    with pytest.raises(HooklineError):
        make_runner(tmp_path / "run", resume=file).train()
    assert not target.exists()
    assert "Traceback" not in capsys.readouterr().err


ENTRY = {
    "names": ["last.pth"],
    "size": 1,
    "sha256": "0",
    "step": 1,
    "epoch": 1,
    "metrics": {},
    "finite": True,
    "time": 0.0,
    "versions": {},
    "tags": [],
    "parts": [],
}
SHARD = {"name": "shards_1_0a1b2c3d/__0_0.distcp", "size": 1, "sha256": "a" * 64}
BODY = {
    "format": 1,
    "number": 5,
    "entries": [],
    "pending": None,
    "token": "",
    "shards": [],
    "removing": [],
}
# Manifests with a valid checksum.
MANIFESTS = {
    "a list": [],
    "no entries": {"entries": None},
    "entries are text": {"entries": "abc"},
    "an entry is a number": {"entries": [1]},
    "a path as a name": {"entries": [{**ENTRY, "names": ["../../etc/passwd"]}]},
    "no names": {"entries": [{**ENTRY, "names": []}]},
    "names are numbers": {"entries": [{**ENTRY, "names": [1]}]},
    "the manifest as a checkpoint": {"entries": [{**ENTRY, "names": [MANIFEST]}]},
    "a size of text": {"entries": [{**ENTRY, "size": "x"}]},
    "a step of text": {"entries": [{**ENTRY, "step": "x"}]},
    "an unknown key": {"entries": [{**ENTRY, "evil": 1}]},
    "metrics are a list": {"entries": [{**ENTRY, "metrics": [1]}]},
    "a metric of text": {"entries": [{**ENTRY, "metrics": {"accuracy": "x"}}]},
    "a time of text": {"entries": [{**ENTRY, "time": "x"}]},
    "a time out of range": {"entries": [{**ENTRY, "time": 1e300}]},
    "tags are numbers": {"entries": [{**ENTRY, "tags": [1]}]},
    "a part elsewhere": {"entries": [{**ENTRY, "parts": [{**ENTRY, "name": "../x"}]}]},
    "shards of another name": {"shards": ["precious"]},
    "shards elsewhere": {"shards": ["../shards_1_0a1b2c3d"]},
    "a number of text": {"number": "x"},
    "a huge number": {"number": 10**30},
    "an infinite number": {"number": float("inf")},
    "a metric of 400 digits": {"entries": [{**ENTRY, "metrics": {"accuracy": 10**400}}]},
    "a time that is not a number": {"entries": [{**ENTRY, "time": float("nan")}]},
    "a name twice": {"entries": [{**ENTRY, "names": ["last.pth", "last.pth"]}]},
    "a part with a size of text": {"entries": [{**ENTRY, "parts": [{**SHARD, "size": "x"}]}]},
    "a part in a folder of the user": {
        "entries": [{**ENTRY, "parts": [{**SHARD, "name": "precious/file"}]}]
    },
    "a token of numbers": {"token": 7},
    "a token of a pattern": {"token": ".*"},
    "pending is text": {"pending": "x"},
    "a removal elsewhere": {"removing": ["../precious"]},
    "removals are a number": {"removing": 1},
    "another format": {"format": 99},
    "escapes in a name": {"entries": [{**ENTRY, "names": ["\x1b[31mred.pth"]}]},
}


def forged_manifest(changes: Any) -> bytes:
    body = {**BODY, **changes} if isinstance(changes, dict) else changes
    honest = json.loads(encode(Ledger()))
    assert set(honest) - {"sha256"} == set(BODY)
    if not isinstance(body, dict):
        return json.dumps(body).encode()
    checksum = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return json.dumps({"sha256": checksum, **body}).encode()


def test_no_command_trusts_a_forged_manifest(
    honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with all_failures() as check:
        for name, changes in MANIFESTS.items():
            with check(name):
                folder = tmp_path / "run"
                shutil.rmtree(folder, ignore_errors=True)
                (folder / "precious").mkdir(parents=True)
                (folder / "precious" / "file").write_text("precious")
                (folder / MANIFEST).write_bytes(forged_manifest(changes))
                shutil.copy(honest / "last.pth", folder)
                for command in ("ls", "verify", "show"):
                    assert main(["ckpt", command, str(folder)]) in (0, 1, 2)
                captured = capsys.readouterr()
                assert "Traceback" not in captured.err
                assert "\x1b" not in captured.out + captured.err
                try:
                    make_runner(folder, resume="auto").train()
                except HooklineError:
                    kept = (folder / "last.pth").read_bytes()
                    assert kept == (honest / "last.pth").read_bytes()
                else:
                    assert CheckpointStore(folder).latest() is not None
                    assert read_ledger(folder).entries
                assert (folder / "precious" / "file").read_text() == "precious"
