"""The smaller parts of MMEngine's names: registries, models, structures, drawing, backends, and the hooks besides the default ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hookline.compat.mmengine.dataset import (
    BaseDataset,
    ConcatDataset,
    RepeatDataset,
    pseudo_collate,
)
from hookline.compat.mmengine.evaluator import Evaluator, get_metric_value
from hookline.compat.mmengine.hooks import (
    EarlyStoppingHook,
    Hook,
    NaiveVisualizationHook,
    PrepareTTAHook,
)
from hookline.compat.mmengine.logging import HistoryBuffer, MessageHub
from hookline.compat.mmengine.model import BaseModel, BaseModule, BaseTTAModel, ImgDataPreprocessor
from hookline.compat.mmengine.registry import MODELS, Registry
from hookline.compat.mmengine.runner import load_checkpoint, save_checkpoint
from hookline.compat.mmengine.structures import BaseDataElement, InstanceData
from hookline.compat.mmengine.utils import digit_version
from hookline.compat.mmengine.visualization import Visualizer
from tests.compat.mmengine_parts import Accuracy, Net, data, loader, make_runner


def test_a_child_registry_finds_its_own_first_and_then_its_parent_s() -> None:
    child = Registry("model", parent=MODELS, scope="mychild")

    @child.register_module()
    class OnlyHere:
        pass

    assert isinstance(child.build({"type": "OnlyHere"}), OnlyHere)
    assert isinstance(MODELS.build({"type": "mychild.OnlyHere"}), OnlyHere)
    assert isinstance(MODELS.build({"type": "OnlyHere", "_scope_": "mychild"}), OnlyHere)
    assert type(child.build({"type": "BaseDataPreprocessor"})).__name__ == "BaseDataPreprocessor"
    assert isinstance(
        MODELS.build({"type": "torch.nn.Linear", "in_features": 2, "out_features": 1}), nn.Linear
    )
    with pytest.raises(KeyError, match="already registered"):
        child.register_module(name="OnlyHere", module=Net)
    with pytest.raises(ImportError, match="may not be used"):
        MODELS.build({"type": "os.system", "command": "true"})


def test_init_cfg_initializes_layers_by_kind_and_by_name() -> None:
    class Part(BaseModule):
        def __init__(self) -> None:
            override = {"type": "Constant", "name": "head", "val": 3.0, "bias": 4.0}
            super().__init__(
                {
                    "type": "Constant",
                    "layer": "Linear",
                    "val": 1.0,
                    "bias": 2.0,
                    "override": override,
                }
            )
            self.body, self.head = nn.Linear(2, 2), nn.Linear(2, 2)

    part = Part()
    part.init_weights()
    assert (part.body.weight == 1).all()
    assert (part.body.bias == 2).all()
    assert (part.head.weight == 3).all()
    assert (part.head.bias == 4).all()


def test_images_are_normalized_padded_and_stacked() -> None:
    preprocessor = ImgDataPreprocessor(mean=[1.0], std=[2.0], pad_size_divisor=4, pad_value=9)
    batch = preprocessor({"inputs": [torch.ones(1, 3, 2), torch.full((1, 2, 4), 5)]})
    assert batch["inputs"].shape == (2, 1, 4, 4)
    assert (batch["inputs"][0, 0, :3, :2] == 0).all()
    assert (batch["inputs"][1, 0, :2] == 2).all()
    assert (batch["inputs"][0, 0, 3] == 9).all()


def test_losses_are_summed_by_their_names() -> None:
    loss, logged = BaseModel().parse_losses(
        {
            "loss_a": torch.tensor([1.0, 3.0]),
            "loss_b": [torch.tensor(1.0)],
            "accuracy": torch.tensor(0.5),
        }
    )
    assert float(loss) == 3.0
    assert list(logged) == ["loss", "loss_a", "loss_b", "accuracy"]


def test_data_elements_keep_data_and_metainfo_apart() -> None:
    element = BaseDataElement(metainfo={"size": (4, 4)}, boxes=torch.ones(2, 4))
    element.label = torch.tensor(1)
    assert (element.keys(), element.metainfo) == (["boxes", "label"], {"size": (4, 4)})
    assert element.to("cpu").boxes.shape == (2, 4)
    assert set(element.to_dict()) == {"size", "boxes", "label"}
    instances = InstanceData(boxes=torch.arange(8).reshape(2, 4), names=["a", "b"])
    assert instances[torch.tensor([False, True])].names == ["b"]
    assert len(InstanceData.cat([instances, instances])) == 4


def test_a_history_stays_cheap_and_keeps_its_longest_length() -> None:
    history = HistoryBuffer(max_length=50)
    for value in range(200):
        history.update(float(value))
    assert (len(history.data[0]), history.min(), history.current()) == (50, 150.0, 199.0)
    assert history.mean(10) == 194.5
    again = HistoryBuffer.from_plain(history.to_plain())
    assert again.data[0].tolist() == history.data[0].tolist()
    hub = MessageHub.get_instance("of a test")
    hub.update_scalars({"a": torch.tensor(2.0), "b": {"value": np.float32(4), "count": 2}})
    assert (hub.get_scalar("a").current(), hub.get_scalar("b").mean()) == (2.0, 2.0)
    with pytest.raises(AssertionError, match="resumed"):
        hub.update_scalar("a", 1.0, resumed=False)


def test_pictures_are_drawn_and_written(tmp_path: Path) -> None:
    backends = [{"type": "LocalVisBackend"}, {"type": "TensorboardVisBackend"}]
    visualizer = Visualizer(
        image=np.zeros((20, 30, 3), np.uint8), vis_backends=backends, save_dir=str(tmp_path)
    )
    visualizer.draw_bboxes(torch.tensor([[2, 2, 10, 10]]), edge_colors=(255, 0, 0)).draw_texts(
        "x", torch.tensor([[15, 5]])
    )
    visualizer.draw_circles(torch.tensor([[20, 10]]), torch.tensor([3])).draw_lines(
        torch.tensor([[1, 9]]), torch.tensor([[1, 9]])
    )
    mask = np.zeros((20, 30), bool)
    mask[15:] = True
    visualizer.draw_binary_masks(mask, colors=(0, 0, 255), alphas=1.0)
    image = visualizer.get_image()
    assert image.shape == (20, 30, 3)
    assert image[2:4, 5, 0].max() > 100
    assert (image[18, 5] == [0, 0, 255]).all()
    visualizer.add_image("picture", image, step=3)
    visualizer.add_scalars({"loss": torch.tensor(0.5), "step": 7})
    visualizer.close()
    assert (tmp_path / "vis_data" / "vis_image" / "picture_3.png").is_file()
    assert json.loads((tmp_path / "vis_data" / "scalars.json").read_text()) == {
        "step": 7,
        "loss": 0.5,
    }
    assert list((tmp_path / "vis_data").glob("events.out.tfevents.*"))
    with pytest.raises(ValueError, match="outside"):
        visualizer.get_backend("LocalVisBackend").add_image("../../x", image)
    assert visualizer.draw_featmap(torch.rand(4, 5, 6)).shape == (5, 6, 3)


def test_the_other_hooks_do_their_work_in_a_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    hooks: list[Any] = [
        {
            "type": "ProfilerHook",
            "by_epoch": False,
            "profile_times": 2,
            "json_trace_path": str(trace),
        },
        {"type": "EmptyCacheHook", "before_epoch": True, "after_iter": True},
        {"type": "SyncBuffersHook"},
        {
            "type": "EMAHook",
            "ema_type": "MomentumAnnealingEMA",
            "gamma": 10,
            "begin_epoch": 2,
            "update_buffers": True,
        },
    ]
    logger = {"type": "LoggerHook", "interval": 2, "out_dir": str(tmp_path / "logs")}
    runner = make_runner(
        tmp_path / "run", custom_hooks=hooks, default_hooks={"logger": logger}, log_level="INFO"
    )
    runner.train()
    assert trace.is_file()
    copied = sorted(path.suffix for path in (tmp_path / "logs").rglob("*") if path.is_file())
    assert ".log" in copied
    assert ".json" in copied
    rows = [
        json.loads(line)
        for line in next((tmp_path / "run").rglob("vis_data/scalars.json")).read_text().splitlines()
    ]
    assert [row["step"] for row in rows if "loss" in row] == [2, 4, 6, 8]
    assert [row["accuracy"] for row in rows if "accuracy" in row]


def test_the_model_gets_its_own_weights_back_when_a_validation_with_the_average_fails(
    tmp_path: Path,
) -> None:
    class Failing(Hook):
        def after_val_iter(
            self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
        ) -> None:
            self.inside = runner.model.fc[0].weight.clone()
            raise RuntimeError("no")

        def before_val(self, runner: Any) -> None:
            self.before = runner.model.fc[0].weight.clone()

    failing = Failing()
    runner = make_runner(tmp_path, custom_hooks=[{"type": "EMAHook"}, failing])
    with pytest.raises(RuntimeError) as caught:
        runner.train()
    assert any(
        "Failing at after_val_iter" in note
        for note in getattr(caught.value, "__notes__", ["Failing at after_val_iter"])
    )
    assert not torch.equal(failing.inside, failing.before)
    assert torch.equal(runner.model.fc[0].weight, failing.before)


def test_attributes_of_a_hook_that_hookline_uses_too_keep_their_own_meaning(tmp_path: Path) -> None:
    class Mine(Hook):
        def __init__(self) -> None:
            self.frequency, self.calls = 3, 0

        def after_train_iter(self, runner: Any, *args: Any, **kwargs: Any) -> None:
            self.calls += "outputs" in kwargs

        def cleanup(self, something: int) -> None:
            raise AssertionError("this is not one of MMEngine's stages")

    mine = Mine()
    make_runner(tmp_path, custom_hooks=[mine]).train()
    assert (mine.calls, mine.frequency) == (8, 3)


def test_early_stopping_follows_its_rule() -> None:
    hook = EarlyStoppingHook("loss", min_delta=0.0, patience=2)
    assert [hook._check_stop_condition(score)[0] for score in (3.0, 2.0, 2.5, 2.5)] == [
        False,
        False,
        False,
        True,
    ]
    assert EarlyStoppingHook("acc")._check_stop_condition(float("nan"))[0]
    with pytest.raises(ValueError, match="Cannot infer"):
        EarlyStoppingHook("mystery")


def test_data_sets_and_evaluators_work_by_themselves(tmp_path: Path) -> None:
    annotations = {
        "metainfo": {"classes": ["a"]},
        "data_list": [{"img_path": "1.jpg", "label": 0}, {"img_path": "2.jpg", "label": 1}],
    }
    (tmp_path / "ann.json").write_text(json.dumps(annotations))
    options: dict[str, Any] = {
        "ann_file": "ann.json",
        "data_root": str(tmp_path),
        "data_prefix": {"img_path": "img"},
    }
    dataset = BaseDataset(**options, pipeline=[lambda item: {**item, "seen": True}])
    assert dataset[1] == {
        "img_path": str(tmp_path / "img" / "2.jpg"),
        "label": 1,
        "sample_idx": 1,
        "seen": True,
    }
    assert dataset.metainfo == {"classes": ["a"]}
    assert (len(ConcatDataset([dataset, dataset])), len(RepeatDataset(dataset, 3))) == (4, 6)
    assert pseudo_collate([{"a": 1}, {"a": 2}]) == {"a": [1, 2]}
    evaluator = Evaluator(Accuracy(prefix="p"))
    evaluator.process((torch.eye(3), torch.tensor([0, 1, 0])))
    metrics = evaluator.evaluate(3)
    assert get_metric_value("accuracy", metrics) == pytest.approx(2 / 3)


def test_weights_are_saved_and_loaded_by_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = Net(), Net()
    save_checkpoint(
        {
            "state_dict": {f"module.{key}": value for key, value in one.state_dict().items()},
            "odd": object(),
        },
        tmp_path / "x.pth",
    )
    assert "odd (object)" in capsys.readouterr().out
    load_checkpoint(other, tmp_path / "x.pth", strict=True)
    assert torch.equal(one.fc[0].weight, other.fc[0].weight)
    with pytest.raises(RuntimeError, match="missing keys"):
        load_checkpoint(nn.Linear(2, 2), tmp_path / "x.pth", strict=True)
    with pytest.raises(ValueError, match="only local files"):
        load_checkpoint(other, "https://example.org/x.pth")


def test_versions_compare() -> None:
    assert digit_version("1.10.0rc1") < digit_version("1.10.0") < digit_version("1.11")
    assert len(data()) == 32
    assert "cv2" not in sys.modules


def two_versions(samples: list[Any]) -> list[Any]:
    """A batch in two versions: as it is, and with all inputs mirrored."""
    inputs, labels = (
        torch.stack([sample[0] for sample in samples]),
        torch.stack([sample[1] for sample in samples]),
    )
    return [[inputs, -inputs], [labels, labels]]


class MeanOfVersions(BaseTTAModel):
    def merge_preds(self, data_samples_list: list[Any]) -> Any:
        outputs, labels = data_samples_list
        return torch.stack(outputs).mean(0), labels[0]


def test_test_time_augmentation_merges_the_predictions_of_all_versions(tmp_path: Path) -> None:
    runner = make_runner(
        tmp_path, test_dataloader={**loader(data(16, 2), shuffle=False), "collate_fn": two_versions}
    )
    runner.register_hook(PrepareTTAHook({"type": MeanOfVersions}))
    net = runner.model
    inputs, labels = data(16, 2).tensors
    measured = runner.test()
    assert isinstance(runner.model, MeanOfVersions)
    net.eval()
    merged = (net(inputs) + net(-inputs)) / 2
    assert measured["accuracy"] == pytest.approx((merged.argmax(1) == labels).float().mean().item())


def test_the_naive_visualization_hook_hands_images_of_their_old_size_to_the_visualizer() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.drawn: list[tuple[Any, ...]] = []

        def add_datasample(self, *given: Any) -> None:
            self.drawn.append(given)

    recorder, hook = Recorder(), NaiveVisualizationHook(interval=2, draw_gt=False)
    sample = BaseDataElement(
        metainfo={"ori_height": 6, "ori_width": 8, "img_path": "folder/cat.png"}
    )
    batch = [{"inputs": torch.full((3, 3, 4), 300.0), "data_sample": sample}]
    for index in range(4):
        hook.after_test_iter(SimpleNamespace(visualizer=recorder), index, batch, ["result"])
    assert len(recorder.drawn) == 2
    name, image, given, output, draw_gt, draw_pred = recorder.drawn[0]
    assert (name, image.shape, image.max(), given, output, draw_gt, draw_pred) == (
        "cat.png",
        (6, 8, 3),
        255,
        sample,
        "result",
        False,
        True,
    )
