"""Event files, read back with TensorBoard's own reader."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from PIL import Image
from torch import nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.errors import HooklineError
from hookline.events.describe import describe_model
from hookline.hooks import build_hook
from tests.events.parts import BreakAt, PutEverything, image_run
from tests.problems import logged, raises_problem

pytest.importorskip("tensorboard")


def read(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(
        str(folder), size_guidance={"scalars": 0, "images": 0, "histograms": 0, "tensors": 0}
    )
    events.Reload()
    return events


def steps(events, tag):
    return [event.step for event in events.Scalars(tag)]


def test_all_kinds_of_content_come_back(tmp_path):
    hooks = [
        {
            "type": "TensorBoardHook",
            "interval": 5,
            "log_graph": True,
            "log_images": True,
            "image_interval": 10,
            "log_model": True,
        },
        {"type": "HistogramHook", "interval": 10},
        {"type": "FeatureMapHook", "frequency": 10},
        PutEverything(),
    ]
    runner = image_run(tmp_path, *hooks)
    events = read(tmp_path / "tensorboard")
    assert steps(events, "train/loss") == [5, 10, 15, 20]
    assert steps(events, "val/accuracy") == [1, 2]
    assert {"train/lr", "train/time", "train/data_time", "system/memory_mb", "val/loss"} <= set(
        events.Tags()["scalars"]
    )
    assert events.Scalars("val/accuracy")[-1].value == pytest.approx(runner.metrics["accuracy"])
    assert {"train/inputs", "pictures/ramp"} <= set(events.Tags()["images"])
    assert any(name.startswith("FeatureMapHook") for name in events.Tags()["images"])
    picture = Image.open(io.BytesIO(events.Images("pictures/ramp")[0].encoded_image_string))
    assert (picture.size, picture.getpixel((7, 7))) == ((8, 8), (255, 255, 255))
    assert {"weights/0/weight", "gradients/3/bias", "numbers"} <= set(events.Tags()["histograms"])
    numbers = events.Histograms("numbers")[0].histogram_value
    assert (numbers.num, numbers.min, numbers.max) == (100, 0, 99)
    assert numbers.sum == pytest.approx(4950, rel=0.02)
    texts = {
        tag: events.Tensors(tag)[0].tensor_proto.string_val[0].decode()
        for tag in events.Tags()["tensors"]
    }
    assert "lr: 0.1" in texts["config/text_summary"]
    assert describe_model(runner.model) in texts["model/text_summary"]
    assert "a <b>note</b>" in texts["note/text_summary"]
    assert "last.pth" in texts["files/checkpoints/last.pth/text_summary"]
    assert any("Conv2d" in node.op or "conv" in node.op for node in graph(events).node)


def graph(events):
    assert events.Tags()["graph"]
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    found = events.Graph()
    return found if isinstance(found, GraphDef) else GraphDef.FromString(found)


def test_a_resumed_run_continues_in_the_same_files_without_double_points(tmp_path):
    hook = {"type": "TensorBoardHook", "interval": 2}
    with pytest.raises(RuntimeError):
        image_run(tmp_path, hook, BreakAt(17))
    assert steps(read(tmp_path / "tensorboard"), "train/loss")[-1] == 16
    resumed = image_run(tmp_path, hook, resume="auto")
    straight = image_run(tmp_path / "straight", hook)
    one, two = read(tmp_path / "tensorboard"), read(tmp_path / "straight" / "tensorboard")
    assert [(e.step, e.value) for e in one.Scalars("train/loss")] == [
        (e.step, e.value) for e in two.Scalars("train/loss")
    ]
    assert [(e.step, e.value) for e in one.Scalars("val/loss")] == [
        (e.step, e.value) for e in two.Scalars("val/loss")
    ]
    assert resumed.hook("TensorBoardHook").run_id != straight.hook("TensorBoardHook").run_id


class RecordAhead(BaseHook):
    """Records a value in each iteration, at a step beyond the run."""

    def after_train_iter(self, runner):
        runner.events.put_scalar("ahead", runner.iter + 1, global_step=runner.iter + 101)


@pytest.mark.parametrize("is_torn", [False, True])
def test_a_tensorboard_that_is_open_shows_repeated_points_once(tmp_path, is_torn):
    hook = {"type": "TensorBoardHook", "interval": 2}
    with pytest.raises(RuntimeError):
        image_run(tmp_path, hook, RecordAhead(), BreakAt(17))
    (path,) = (tmp_path / "tensorboard").glob("events.*")
    path = path.rename(path.with_name("events.out.tfevents.0000000001.before.1.0"))
    if is_torn:
        path.write_bytes(path.read_bytes()[:-7])
    is_open = read(tmp_path / "tensorboard")
    image_run(tmp_path, hook, RecordAhead(), resume="auto")
    is_open.Reload()
    for events in (is_open, read(tmp_path / "tensorboard")):
        assert steps(events, "train/loss") == list(range(2, 21, 2))
        assert steps(events, "train/ahead") == list(range(101, 121))
        assert steps(events, "val/loss") == [1, 2]


def test_event_files_of_other_programs_are_left_alone(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    hook = {"type": "TensorBoardHook", "interval": 2}
    with pytest.raises(RuntimeError):
        image_run(tmp_path, hook, BreakAt(17))
    with SummaryWriter(str(tmp_path / "tensorboard"), filename_suffix=".other") as other:
        other.add_scalar("other", 1.0, 15)
    (path,) = (tmp_path / "tensorboard").glob("*.other")
    before = path.read_bytes()
    image_run(tmp_path, hook, resume="auto")
    assert path.read_bytes() == before


def test_a_new_run_in_the_same_folder_replaces_the_points_of_the_old_one(tmp_path):
    hook = {"type": "TensorBoardHook", "interval": 5, "log_dir": str(tmp_path / "board")}
    image_run(tmp_path / "one", hook, epochs=2)
    image_run(tmp_path / "two", hook, epochs=1)
    assert steps(read(tmp_path / "board"), "train/loss") == [5, 10]


@pytest.mark.parametrize("folder", ["run", "elsewhere"])
def test_a_test_of_a_checkpoint_is_added_to_the_run_that_it_is_of(tmp_path, folder):
    hook = {"type": "TensorBoardHook", "interval": 5, "log_dir": str(tmp_path / "board")}
    trained = image_run(tmp_path / "run", hook, epochs=2)
    note = tmp_path / "run" / "TensorBoardHook.run_id"
    model, loader = copy.deepcopy(trained.model), trained.val_loader
    tester = Runner(
        model, test_loader=loader, hooks=[hook], work_dir=tmp_path / folder, load_from=tmp_path / "run" / "epoch_1.pth",
        loss_fn=nn.CrossEntropyLoss(), drop_hooks=["CheckpointHook"],
    )  # fmt: skip
    tester.test()
    assert (
        tester.hook("TensorBoardHook").run_id
        == trained.hook("TensorBoardHook").run_id
        == note.read_text()
    )
    assert (tester.iter, tester.epoch) == (0, 0)
    events = read(tmp_path / "board")
    assert steps(events, "train/loss") == [5, 10, 15, 20]
    assert [(e.step, e.value) for e in events.Scalars("test/epoch")] == [(1, 1)]
    configs = [e.tensor_proto.string_val[0].decode() for e in events.Tensors("config/text_summary")]
    assert len(configs) == 1
    assert "lr: 0.1" in configs[0]


def test_a_test_of_a_run_without_checkpoints_finds_it_by_its_directory(tmp_path):
    hook = {"type": "TensorBoardHook", "interval": 5}
    trained = image_run(tmp_path, hook, epochs=1)
    tester = Runner(
        copy.deepcopy(trained.model),
        test_loader=trained.val_loader,
        hooks=[hook],
        work_dir=tmp_path,
        loss_fn=nn.CrossEntropyLoss(),
    )
    tester.test()
    assert tester.hook("TensorBoardHook").run_id == trained.hook("TensorBoardHook").run_id
    assert steps(read(tmp_path / "tensorboard"), "train/loss") == [5, 10]


def test_writing_the_graph_changes_neither_random_numbers_nor_the_model(tmp_path):
    hook = {"type": "TensorBoardHook", "log_graph": True, "log_images": True, "image_interval": 3}
    with_graph = image_run(tmp_path / "with", hook, seed=3)
    without = image_run(tmp_path / "without", seed=3)
    assert all(
        torch.equal(a, b)
        for a, b in zip(with_graph.model.parameters(), without.model.parameters(), strict=True)
    )


def test_a_model_that_cannot_be_traced_is_reported_and_trained(tmp_path, caplog):
    class Stubborn(torch.nn.Linear):
        def forward(self, x):
            if torch.jit.is_tracing():
                raise TypeError("not me")
            return super().forward(x.flatten(1))

    model = Stubborn(64, 3)
    data = [(torch.randn(2, 1, 8, 8), torch.randint(3, (2,))) for _ in range(2)]
    from hookline import Runner

    hooks = [{"type": "TensorBoardHook", "log_graph": True}]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Runner(
        model,
        train_loader=data,
        optimizer=optimizer,
        loss_fn=torch.nn.CrossEntropyLoss(),
        max_epochs=1,
        work_dir=tmp_path,
        hooks=hooks,
    ).train()
    assert logged(caplog, "TensorBoardHook", "not me")


def test_a_scalar_recorded_only_now_and_then_has_points_only_there(tmp_path):
    class Rare(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 7:
                runner.events.put_scalar("rare", 1.0)

    image_run(tmp_path, {"type": "TensorBoardHook", "interval": 5}, Rare())
    assert steps(read(tmp_path / "tensorboard"), "train/rare") == [8]


def test_for_a_missing_package_the_extra_to_install_is_suggested(tmp_path, monkeypatch):
    from hookline.hooks import TensorBoardHook

    monkeypatch.setattr(TensorBoardHook, "module", "not_there_at_all")
    with raises_problem(HooklineError, advice="pip install 'hookline[tensorboard]'"):
        image_run(tmp_path, {"type": "TensorBoardHook"})


@pytest.mark.parametrize("log_graph", [True, False])
def test_iterations_are_watched_only_for_the_graph(log_graph):
    sites = build_hook({"type": "TensorBoardHook", "log_graph": log_graph}).get_triggered_stages()
    assert ("before_train_iter" in sites) == log_graph
