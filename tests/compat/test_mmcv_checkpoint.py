"""Checkpoints under MMCV's interface: where they come from, versions of modules, edited files."""

from __future__ import annotations

import http.server
import logging
import shutil
import threading
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from hookline.checkpoint import CheckpointError, CheckpointStore
from hookline.compat.mmcv.runner import (
    CheckpointHook,
    CheckpointLoader,
    Hook,
    _load_checkpoint_with_prefix,
    load_checkpoint,
    save_checkpoint,
)
from hookline.compat.mmcv.runner.checkpoint import get_state_dict, load_from_local
from tests.compat.mmcv_parts import Classifier, assert_same, loader, make_runner


@pytest.fixture
def _schemes(monkeypatch):
    monkeypatch.setattr(CheckpointLoader, "_schemes", dict(CheckpointLoader._schemes))


@pytest.mark.usefixtures("_schemes")
def test_a_project_registers_its_own_source_of_checkpoints():
    @CheckpointLoader.register_scheme("store://")
    def load_from_store(filename, map_location=None):
        return {"state_dict": {"from": filename}}

    assert (
        CheckpointLoader.load_checkpoint("store://a.pth")["state_dict"]["from"] == "store://a.pth"
    )
    with pytest.raises(KeyError, match="already registered"):
        CheckpointLoader.register_scheme("store://", load_from_local)
    CheckpointLoader.register_scheme("store://", load_from_local, force=True)
    with pytest.raises(FileNotFoundError, match="a.pth can not be found"):
        CheckpointLoader.load_checkpoint("store://a.pth")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def test_a_checkpoint_is_downloaded_once_and_nothing_in_it_is_executed(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "cache"))
    model = Classifier()
    save_checkpoint(model, str(tmp_path / "served" / "model.pth"))
    victim = tmp_path / "victim"
    torch.save({"state_dict": {}, "meta": _Evil(victim)}, tmp_path / "served" / "evil.pth")
    handler = partial(_Quiet, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        try:
            other = Classifier()
            load_checkpoint(other, f"{address}/model.pth")
            with pytest.raises(CheckpointError, match="refused"):
                load_checkpoint(other, f"{address}/evil.pth")
        finally:
            server.shutdown()
            thread.join()
    assert_same(dict(other.state_dict()), dict(model.state_dict()))
    assert not victim.exists()
    load_checkpoint(Classifier(), f"{address}/model.pth")  # The server is gone.


class _Evil:
    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self):
        return open, (str(self.victim), "w")


def test_weights_with_a_prefix_are_selected(tmp_path):
    model = Classifier()
    torch.save(model.state_dict(), tmp_path / "model.pth")
    weights = _load_checkpoint_with_prefix("net.0", str(tmp_path / "model.pth"))
    assert_same(weights, dict(model.net[0].state_dict()))
    with pytest.raises(AssertionError, match="head"):
        _load_checkpoint_with_prefix("head", str(tmp_path / "model.pth"))


class Renamed(nn.Module):
    """A module that renames the weights of its first version."""

    _version = 2

    def __init__(self) -> None:
        super().__init__()
        self.new = nn.Linear(2, 2)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args):
        self.loaded_version = local_metadata.get("version", 1)
        if self.loaded_version < 2:
            for key in list(state_dict):
                state_dict[key.replace("old", "new")] = state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


def test_the_version_of_a_module_is_kept_and_reaches_its_loading(tmp_path):
    first = nn.ModuleDict({"old": nn.Linear(2, 2)})
    save_checkpoint(first, str(tmp_path / "first.pth"))
    model = Renamed()
    load_checkpoint(model, str(tmp_path / "first.pth"), strict=True)
    assert torch.equal(model.new.weight, first["old"].weight)
    save_checkpoint(model, str(tmp_path / "second.pth"))
    other = Renamed()
    load_checkpoint(other, str(tmp_path / "second.pth"), strict=True)
    assert torch.equal(other.new.weight, model.new.weight)
    assert other.loaded_version == 2


def test_a_resumed_run_keeps_the_versions_of_its_modules(tmp_path):
    def runner_of(folder):
        model = Classifier()
        model.part = Renamed()
        return make_runner(tmp_path / folder, model=model, max_epochs=2)

    first = runner_of("first")
    first.register_training_hooks({"policy": "fixed"}, None, {"interval": 1}, None)
    first.run([loader()], [("train", 1)])
    resumed = runner_of("resumed")
    resumed.resume(str(tmp_path / "first" / "epoch_1.pth"))
    assert resumed.model.part.loaded_version == 2
    assert_same(resumed.model.part.state_dict(), first.model.part.state_dict())


def test_wrappers_inside_a_model_do_not_change_the_names_of_its_weights():
    model = Classifier()
    names = list(model.state_dict())
    model.net[0] = nn.DataParallel(model.net[0])
    assert list(get_state_dict(model)) == names


def test_a_checkpoint_that_a_script_has_edited_is_loaded_with_a_warning(tmp_path, caplog):
    runner = make_runner(tmp_path)
    runner.register_checkpoint_hook({"interval": 1})
    runner.run([loader()], [("train", 1)])
    path = tmp_path / "epoch_2.pth"
    content = torch.load(path)
    content["state_dict"]["net.0.bias"].fill_(7)
    path.unlink()
    torch.save(content, path)
    resumed = make_runner(tmp_path)
    with caplog.at_level(logging.WARNING):
        resumed.resume(str(path))
    assert resumed.model.net[0].bias.eq(7).all()
    assert "epoch_2.pth" in caplog.text
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(CheckpointError, match="epoch_2.pth"):
        make_runner(tmp_path).resume(str(path))


def test_the_log_is_the_only_visible_json_file_of_a_run(tmp_path):
    runner = make_runner(tmp_path, max_epochs=2)
    runner.register_training_hooks(
        {"policy": "step", "step": [1]},
        {},
        {"interval": 1, "max_keep_ckpts": 1},
        {"interval": 1, "hooks": [{"type": "TextLoggerHook"}]},
    )
    runner.run([loader()], [("train", 1)])
    save_checkpoint(runner.model, str(tmp_path / "by_hand.pth"))
    names = [path.name for path in tmp_path.glob("*.json") if not path.name.startswith(".")]
    assert len(names) == 1
    assert names[0].endswith(".log.json")
    assert {entry.name for entry in CheckpointStore(tmp_path).entries()} == {
        "epoch_2.pth",
        "by_hand.pth",
    }


def test_latest_is_a_link_that_survives_a_move_of_the_directory(tmp_path):
    runner = make_runner(tmp_path / "one")
    runner.register_checkpoint_hook({"interval": 1, "max_keep_ckpts": 1})
    runner.run([loader()], [("train", 1)])
    shutil.move(tmp_path / "one", tmp_path / "two")
    latest = tmp_path / "two" / "latest.pth"
    assert latest.is_symlink()
    assert latest.resolve() == (tmp_path / "two" / "epoch_2.pth").resolve()
    resumed = make_runner(tmp_path / "two", max_epochs=3)
    resumed.resume(str(latest))
    assert resumed.epoch == 2


class Upload(Hook):
    """Reads the newest checkpoint, as a hook that uploads it would."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def read(self, runner) -> None:
        path = runner.meta["hook_msgs"]["last_ckpt"]
        self.seen.append((Path(path).name, torch.load(path)["meta"]["iter"]))


class UploadByEpoch(Upload):
    def after_train_epoch(self, runner):
        self.read(runner)


class UploadByIteration(Upload):
    def after_train_iter(self, runner):
        if self.every_n_iters(runner, 6):
            self.read(runner)


@pytest.mark.parametrize(
    ("upload", "config", "names"),
    [
        (UploadByEpoch(), {"interval": 1}, ["epoch_1.pth", "epoch_2.pth"]),
        (UploadByIteration(), {"interval": 6, "by_epoch": False}, ["iter_6.pth", "iter_12.pth"]),
    ],
)
def test_a_hook_after_the_checkpoint_hook_sees_its_file(tmp_path, upload, config, names):
    runner = make_runner(tmp_path)
    runner.register_hook(CheckpointHook(**config))
    runner.register_hook(upload, priority="LOW")
    runner.run([loader()], [("train", 1)])
    assert upload.seen == list(zip(names, [6, 12], strict=True))


def test_ranges_and_sets_in_meta_are_stored_as_lists(tmp_path):
    runner = make_runner(tmp_path, meta={"config_dict": {"gpu_ids": range(2)}, "names": {"a"}})
    runner.save_checkpoint(str(tmp_path))
    meta = torch.load(tmp_path / "epoch_1.pth")["meta"]
    assert (meta["config_dict"]["gpu_ids"], meta["names"]) == ([0, 1], ["a"])
