from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import SequentialSampler

import hookline
from hookline.config import Config, build, load_config
from hookline.errors import ConfigError
from hookline.hooks import CheckpointHook, EvalHook
from tests.problems import raises_problem

GOOD: dict[str, Any] = {"model": "cnn", "dataset": "digits", "training": {"epochs": 1}}


def built(**changes: Any) -> dict[str, Any]:
    return build({**GOOD, **changes})


def test_the_least_config_builds_a_whole_run() -> None:
    parts = built()
    assert (parts["max_epochs"], parts["seed"], parts["device"], parts["hook_order"]) == (
        1,
        0,
        "auto",
        "nested",
    )
    assert "max_iters" not in parts
    assert parts["max_val_batches"] is None
    assert built(training={"epochs": 1, "max_val_batches": 7})["max_val_batches"] == 7
    assert isinstance(parts["optimizer"], torch.optim.AdamW)
    assert parts["optimizer"].param_groups[0]["lr"] == 1e-3
    assert isinstance(parts["loss_fn"], torch.nn.CrossEntropyLoss)
    assert list(parts["metrics"]) == ["accuracy"]
    assert parts["hooks"] == []
    assert parts["drop_hooks"] == []
    assert (parts["resume"], parts["load_from"]) == (None, None)
    assert parts["work_dir"] == "runs/default"
    assert isinstance(parts["config"], Config)


def test_a_run_from_a_config_trains(tmp_path: Path) -> None:
    config = {
        **GOOD,
        "work_dir": str(tmp_path),
        "training": {"iters": 2},
        "loader": {"batch_size": 16},
        "device": "cpu",
    }
    runner = hookline.Runner.from_config(load_config({**config, "drop_hooks": ["EvalHook"]}))
    runner.train()
    assert runner.iter == 2


def test_one_data_set_gives_all_its_splits() -> None:
    parts = built()
    sizes = [len(parts[f"{split}_loader"].dataset) for split in ("train", "val", "test")]
    assert sum(sizes) == 1797
    assert sizes[0] > sizes[1] > 0
    first = [next(iter(parts[f"{split}_loader"]))[0] for split in ("val", "test")]
    assert not torch.equal(*first)


def test_a_data_set_per_split_gets_its_split() -> None:
    parts = built(dataset={"train": "digits", "val": {"type": "digits"}})
    assert len(parts["val_loader"].dataset) < len(parts["train_loader"].dataset)
    assert parts["test_loader"] is None


def test_a_split_that_is_given_is_kept() -> None:
    parts = built(dataset={"type": "digits", "split": "all"})
    assert len(parts["train_loader"].dataset) == 1797
    assert parts["val_loader"] is None


def test_a_data_set_without_splits_is_for_training() -> None:
    parts = built(dataset={"type": "tests.config.my_parts.Numbers", "length": 6})
    assert len(parts["train_loader"].dataset) == 6
    assert parts["val_loader"] is parts["test_loader"] is None


def test_a_stream_is_not_shuffled() -> None:
    inputs, _ = next(
        iter(
            built(dataset="tests.config.my_parts.Stream", loader={"batch_size": 3})["train_loader"]
        )
    )
    assert inputs[:, 0, 0, 0].tolist() == [0.0, 1.0, 2.0]


def test_only_training_is_shuffled_and_leaves_out_samples() -> None:
    numbers = "tests.config.my_parts.Numbers"
    parts = built(
        dataset={"train": numbers, "val": numbers, "test": numbers},
        loader={
            "batch_size": 4,
            "shuffle": True,
            "drop_last": True,
            "shuffle_method": "feistel",
        },
    )
    assert parts["train_loader"].sampler.find_method() == "feistel"
    train = torch.cat([batch[0][:, 0, 0, 0] for batch in parts["train_loader"]]).tolist()
    val = torch.cat([batch[0][:, 0, 0, 0] for batch in parts["val_loader"]]).tolist()
    assert len(train) == 8
    assert train != sorted(train)
    assert val == list(range(10))


def test_a_split_may_have_its_options() -> None:
    parts = built(loader={"batch_size": 32, "val": {"batch_size": 64}, "train": {"shuffle": False}})
    assert [parts[f"{split}_loader"].batch_size for split in ("train", "val", "test")] == [
        32,
        64,
        32,
    ]
    data = parts["train_loader"].dataset
    order = list(SequentialSampler(data))[:32]
    assert torch.equal(
        next(iter(parts["train_loader"]))[1],
        torch.stack([torch.as_tensor(data[index][1]) for index in order]),
    )


def test_a_function_of_the_users_makes_batches_of_samples_of_different_lengths() -> None:
    words = "tests.config.my_parts.Words"
    loader = {
        "batch_size": 3,
        "collate_fn": "tests.config.my_parts.padded",
        "val": {"collate_fn": "tests.config.my_parts.labels"},
    }
    parts = built(
        model={"type": "mlp", "num_classes": 2, "input_shape": [6]},
        dataset={"train": words, "val": words},
        loader=loader,
    )
    texts, labels = next(iter(parts["train_loader"]))
    assert texts.shape == (3, int(texts.sum(1).max()))
    assert labels.shape == (3,)
    assert next(iter(parts["val_loader"])) == [0, 1, 0]


def test_a_metric_by_its_dotted_path_is_called_as_its_class() -> None:
    metrics = [
        "tests.config.my_parts.Count",
        {"type": "tests.config.my_parts.Count", "name": "other"},
    ]
    assert list(built(training={"epochs": 1, "metrics": metrics})["metrics"]) == ["Count", "other"]


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("model: cnn\nloader: {batch_size: 64}\ntraining:\n  iters: 1\n  metrics:\n    - {type: accuracy, top_k: 20}", 9,
         {"path": ("training", "metrics", 0, "top_k"), "component": "Accuracy", "value": 20}),
        ("model: cnn\nloader: {batch_size: 64}\ntraining:\n  iters: 1\n  metrics:\n    - {type: MulticlassAccuracy, num_classes: 4}", 9,
         {"path": ("training", "metrics", 0), "component": "MulticlassAccuracy"}),
        ("training: {iters: 1}\nloader: {batch_size: 256}\nmodel:\n  type: cnn\n  num_classes: 5", 8,
         {"path": ("model", "num_classes"), "component": "model", "value": 9}),
    ],
)  # fmt: skip
def test_a_mistake_that_the_first_batch_shows_is_reported_at_its_line(
    tmp_path: Path, text: str, line: int, expected: dict[str, Any]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"work_dir: {tmp_path}/run\ndevice: cpu\ndataset: digits\n{text}\n")
    with raises_problem(file=str(path), line=line, **expected):
        hookline.Runner.from_config(path, ["hooks=[{type: EvalHook, by_epoch: false}]"]).train()


def test_a_metric_of_a_config_measures_all_its_batches() -> None:
    metric = built()["metrics"]["accuracy"]
    for right in (1, 0, 1, 1):
        metric.update(torch.eye(2), torch.tensor([1 - right, right]))
    assert float(metric.compute()) == 0.75


def test_targets_that_a_loss_ignores_are_no_classes() -> None:
    def loss_of(target: int) -> float:
        loss = {"type": "CrossEntropyLoss", "ignore_index": 255}
        return float(
            built(training={"epochs": 1, "loss": loss})["loss_fn"](
                torch.zeros(2, 3), torch.tensor([target, 2])
            )
        )

    assert loss_of(255) == loss_of(1)
    with raises_problem(component="model", parameter="num_classes", value=3):
        loss_of(3)


def test_the_first_weights_are_a_function_of_the_seed_alone() -> None:
    def weights(seed: int, **changes: Any) -> torch.Tensor:
        torch.manual_seed(random.getrandbits(30))
        return torch.cat(
            [p.detach().flatten() for p in built(seed=seed, **changes)["model"].parameters()]
        )

    assert torch.equal(
        weights(1),
        weights(1, loader={"batch_size": 3}, dataset={"type": "digits", "augment": True}),
    )
    assert not torch.equal(weights(1), weights(2))


def test_python_numpy_and_torch_are_seeded() -> None:
    draws = []
    for _ in range(2):
        built(seed=5)
        draws.append((random.random(), float(np.random.rand()), float(torch.rand(()))))
    assert draws[0] == draws[1]


def test_what_a_model_leaves_open_is_taken_from_the_data() -> None:
    assert built(model="tests.config.my_parts.Net")["model"].layers[-1].out_features == 10
    assert (
        built(model={"type": "tests.config.my_parts.Net", "num_classes": 4})["model"]
        .layers[-1]
        .out_features
        == 4
    )
    assert built(model={"type": "mlp", "hidden": [4]})["model"](torch.zeros(2, 1, 8, 8)).shape == (
        2,
        10,
    )


def test_an_unknown_number_of_classes_is_reported_as_missing() -> None:
    with raises_problem(component="Net", parameter="num_classes", path=("model",)):
        built(model="tests.config.my_parts.Net", dataset="tests.config.my_parts.Numbers")


def test_hooks_are_built_in_their_order() -> None:
    hooks = [
        {"type": "EvalHook", "interval": 2, "name": "e"},
        {"type": "CheckpointHook", "priority": 3},
    ]
    found = built(hooks=hooks, drop_hooks=["IterTimerHook"])
    assert [type(hook) for hook in found["hooks"]] == [EvalHook, CheckpointHook]
    assert (found["hooks"][0].name, found["hooks"][0].interval, found["hooks"][1].priority) == (
        "e",
        2,
        3,
    )
    assert found["drop_hooks"] == ["IterTimerHook"]


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("dataset: {type: cifar10, root: NOWHERE}", 2, {"component": "CIFAR10"}),
        (
            "dataset: {type: tensors, inputs: NOWHERE/x.npy, targets: NOWHERE/y.npy}",
            2,
            {"component": "Tensors"},
        ),
        (
            "dataset: {type: digits}\noptimizer: {type: SGD, lr: 1, nesterov: true}",
            3,
            {"component": "SGD", "path": ("optimizer",)},
        ),
        (
            "dataset: {type: digits}\nhooks:\n  - {type: EvalHook}\n  - {type: LoggerHook, name: x, interval: 0}",
            5,
            {"component": "x (LoggerHook)", "path": ("hooks", 1, "interval"), "value": 0},
        ),
        (
            "dataset: {type: digits}\ntraining: {epochs: 1, metrics: [accuracy, accuracy]}",
            3,
            {"path": ("training", "metrics", 1), "parameter": "name"},
        ),
        (
            "dataset: {type: tests.config.my_parts.Numbers, length: 0}",
            2,
            {"component": "Numbers"},
        ),
        (
            "dataset: {type: digits}\nloader:\n  batch_size: 8\nmodel: {type: cnn, width: -1}",
            5,
            {"component": "CNN"},
        ),
    ],
)
def test_a_part_that_cannot_be_built_is_reported_at_its_line(
    tmp_path: Path, text: str, line: int, expected: dict[str, Any]
) -> None:
    path = tmp_path / "config.yaml"
    training = "" if "training" in text else "\ntraining: {epochs: 1}"
    model = "seed: 1" if "model" in text else "model: {type: cnn}"
    path.write_text(f"{model}\n{text}{training}\n".replace("NOWHERE", str(tmp_path / "nowhere")))
    with raises_problem(file=str(path), line=line, **expected):
        build(load_config(path))


def test_the_work_dir_is_named_after_the_config(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text("model: cnn\ndataset: digits\ntraining: {iters: 5}\n")
    parts = build(load_config(tmp_path / "tiny.yaml"))
    assert parts["work_dir"] == "runs/tiny"
    assert parts["max_iters"] == 5
    assert "max_epochs" not in parts


def test_hooks_that_cannot_be_registered_are_all_named_at_their_own_lines(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    hooks = [
        "OptimizerHook",
        "tests.config.my_parts.Misspelt",
        "tests.config.my_parts.Unknowing",
        "AmpOptimizerHook",
    ]
    file.write_text(
        "model: cnn\ndataset: digits\ntraining: {epochs: 1}\nhooks:\n"
        + "".join(f"  - {{type: {hook}}}\n" for hook in hooks)
    )
    with pytest.raises(ConfigError) as error:
        build(load_config(file))
    problems = error.value.problems
    assert [problem.path for problem in problems] == [("hooks", 1), ("hooks", 2), ("hooks", 3)]
    assert [problem.line for problem in problems] == [6, 7, 8]
    assert (problems[0].site, problems[0].suggestion.nearest) == (
        "after_train_itr",
        "after_train_iter",
    )
    assert (problems[1].parameter, problems[1].suggestion.nearest) == ("lss", "loss")
    assert problems[2].component == "AmpOptimizerHook"


def test_the_default_loss_rejects_targets_that_are_not_class_numbers(tmp_path: Path) -> None:
    parts = {
        "model": {"type": "tests.config.my_parts.Regressor", "num_classes": 2},
        "work_dir": str(tmp_path),
        "device": "cpu",
    }
    config = {
        **parts,
        "dataset": {"train": "tests.config.my_parts.Measures"},
        "training": {"epochs": 1, "metrics": []},
    }
    with raises_problem(component="CrossEntropyLoss", parameter="loss", path=("training",)):
        hookline.Runner.from_config(load_config(config)).train()
    chosen = {
        **config,
        "training": {"epochs": 1, "metrics": [], "loss": "CrossEntropyLoss"},
    }  # as probabilities, if the loss is explicit
    assert hookline.Runner.from_config(load_config(chosen)).train().iter == 1


@pytest.mark.parametrize("loss", ["MSELoss", "BCEWithLogitsLoss"])
def test_an_elementwise_loss_rejects_class_numbers_at_its_line(loss: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        f"work_dir: {tmp_path}/run\ndevice: cpu\nmodel: cnn\ndataset: digits\ntraining:\n  iters: 1\n  loss: {loss}\n"
    )
    with raises_problem(component=loss, path=("training", "loss"), file=str(path), line=7) as error:
        hookline.Runner.from_config(path, ["loader.batch_size=10"]).train()
    assert "CrossEntropyLoss" in error.value.suggestion.advice


def test_an_elementwise_loss_needs_a_target_for_each_prediction() -> None:
    def loss_of(predictions: list[int], targets: list[int]) -> float:
        return float(
            built(training={"epochs": 1, "loss": "mse"})["loss_fn"](
                torch.zeros(predictions), torch.ones(targets)
            )
        )

    assert loss_of([4, 2], [4, 2]) == 1.0
    with pytest.warns(UserWarning, match="Using a target size"):
        assert (
            loss_of([4, 2], [4, 1]) == 1.0
        )  # one target for all of a sample's predictions may be meant
    for predictions, targets in (
        ([4, 1], [4]),
        ([4], [4, 1]),
        ([4, 2], [4, 3]),
    ):  # the first two would compare all with all
        with raises_problem(component="MSELoss", path=("training", "loss")):
            loss_of(predictions, targets)


@pytest.mark.parametrize(
    ("training", "metrics"),
    [
        ({}, ["accuracy"]),
        ({"loss": None}, ["accuracy"]),
        ({"loss": {"label_smoothing": 0.1}}, ["accuracy"]),
        ({"loss": "nll"}, ["accuracy"]),
        ({"loss": "MultiMarginLoss"}, ["accuracy"]),
        ({"loss": "mse"}, []),
        ({"loss": {"type": "BCEWithLogitsLoss"}}, []),
        ({"loss": "mse", "metrics": ["accuracy"]}, ["accuracy"]),
        ({"metrics": []}, []),
    ],
)
def test_accuracy_is_measured_unasked_only_where_the_loss_is_for_class_numbers(
    training: dict[str, Any], metrics: list[str]
) -> None:
    assert list(built(training={"epochs": 1, **training})["metrics"]) == metrics


def test_with_a_loss_of_numbers_the_best_model_is_the_one_with_the_least_loss(
    tmp_path: Path,
) -> None:
    data = "tests.config.my_parts.Measures"
    config = {
        "model": {"type": "tests.config.my_parts.Regressor", "num_classes": 2},
        "dataset": {"train": data, "val": data},
        "training": {"epochs": 2, "loss": "mse"},
        "work_dir": str(tmp_path),
        "device": "cpu",
    }
    runner = hookline.Runner.from_config(load_config(config)).train()
    assert (list(runner.metrics), list(runner.best)) == (["val_loss"], ["val_loss"])
    assert (tmp_path / "best_val_loss.pth").exists()
