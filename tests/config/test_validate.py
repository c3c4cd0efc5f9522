from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hookline.config import check, load_config, validate
from hookline.config.schema import LOADER
from hookline.errors import ConfigError, Problem, dotted
from tests.problems import fields

ROOT = Path(__file__).parents[2]
GOOD: dict[str, Any] = {"model": "cnn", "dataset": "digits", "training": {"epochs": 1}}


def problems(**changes: Any) -> list[Problem]:
    return validate({**GOOD, **changes})


def paths(found: list[Problem]) -> list[str]:
    return [dotted(problem.path) for problem in found]


def test_the_least_config_is_good() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"dataset": {"train": "digits", "val": {"type": "digits", "split": "test"}}},
        {"dataset": {"type": None, "train": "digits"}},
        {"dataset": {"type": "tests.config.my_parts.Numbers", "length": 3}},
        {"model": {"type": "tests.config.my_parts.Net"}},
        {"loader": {"batch_size": 4, "drop_last": None, "train": {"batch_size": 2}, "val": None}},
        {"loader": {"num_workers": 2, "persistent_workers": True}},
        {
            "loader": {
                "collate_fn": "tests.config.my_parts.padded",
                "val": {"collate_fn": None},
                "test": {"collate_fn": "torch.utils.data.default_collate"},
            }
        },
        {
            "training": {
                "iters": 10,
                "epochs": None,
                "loss": "mse",
                "metrics": ["accuracy", {"type": "f1", "name": "score"}],
            }
        },
        {"training": {"epochs": 1, "loss": {"label_smoothing": 0.1}}},
        {"compile": True},
        {"compile": {"regions": "Conv2d", "options": {"max_autotune": True, "cpp.threads": 2}}},
        {"compile": {"backend": "eager", "options": None}},
        {"optimizer": {"lr": 0.1}},
        {"optimizer": "sgd"},
        {"optimizer": None, "loader": None, "hooks": None, "seed": None},
        {
            "hooks": [
                {"type": "LoggerHook", "priority": "low", "name": "x", "frequency": 2},
                "EvalHook",
            ]
        },
        {"hooks": [{"type": "EvalHook", "priority": 100}]},
        {"hooks": [{"type": "tests.config.my_parts.PatientHook", "patience": 1}]},
        {"drop_hooks": ["CheckpointHook"]},
        {"device": "cuda:1"},
        {"resume": "auto", "load_from": __file__, "hook_order": "flat"},
    ],
)
def test_all_these_are_good_too(changes: dict[str, Any]) -> None:
    assert problems(**changes) == []


def test_a_compiler_that_torch_does_not_have_is_an_error_with_the_nearest_one() -> None:
    (problem,) = problems(compile={"backend": "inducter"})
    assert (problem.path, problem.value) == (("compile", "backend"), "inducter")
    assert problem.suggestion.nearest == "inductor"
    assert len(problems(compile={"backend": ["inductor"]})) == 1


def test_all_problems_are_found_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "model: {type: cnn, widht: 8}\n"
        "dataset: {type: digitz}\n"
        "training:\n"
        "  epochs: -1\n"
        "  loss: CrossEntropyLos\n"
        "  metrics: [acuracy, {type: accuracy, top: 5}]\n"
        "loader: {batch_size: 0, val: {num_worker: 1}}\n"
        "optimizer: {type: AdamW, lr: 0, wieght_decay: 0.1}\n"
        "sede: 1\n"
        "hooks:\n"
        "  - type: EvalHook\n"
        "  - {type: tests.config.my_parts.PatientHook}\n"
        "  - type: tests.config.my_parts.PatientHook\n"
        "    patiance: 3\n"
        "    priority: 200\n"
    )
    found = [
        (problem.line, dotted(problem.path), problem.component, problem.suggestion.nearest)
        for problem in validate(load_config(path, ["device=gpuu"]))
    ]
    assert found == [
        (1, "model.widht", "CNN", "width"),
        (2, "dataset.type", "", "digits"),
        (4, "training.epochs", "", None),
        (5, "training.loss.type", "", "CrossEntropyLoss"),
        (6, "training.metrics[0]", "", "accuracy"),
        (6, "training.metrics[1].top", "Accuracy", "top_k"),
        (7, "loader.batch_size", "loader", None),
        (7, "loader.val.num_worker", "", "num_workers"),
        (8, "optimizer.wieght_decay", "AdamW", "weight_decay"),
        (8, "optimizer.lr", "", None),
        (9, "sede", "", "seed"),
        (14, "hooks[2].patiance", "PatientHook", "patience"),
        (15, "hooks[2].priority", "PatientHook", None),
        (None, "device", "", "cuda"),
    ]


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("tests.config.my_parts.paded", "padded"),
        ("tests.config.my_parts.annotations", None),
        ("my_dta.padded", "my_data.padded"),
        ("padded", None),
        (len, None),
        (3, None),
    ],
)
def test_a_collate_fn_must_exist_and_be_a_function(
    given: Any, nearest: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_data.py").touch()
    for loader, path in (
        ({"collate_fn": given}, ("loader", "collate_fn")),
        ({"val": {"collate_fn": given}}, ("loader", "val", "collate_fn")),
    ):
        (found,) = problems(loader=loader)
        assert fields(found, "path", "parameter", "nearest") == {
            "path": path,
            "parameter": "collate_fn",
            "nearest": nearest,
        }


def test_a_collate_fn_is_reported_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "model: cnn\ndataset: digits\ntraining: {epochs: 1}\nloader:\n  collate_fn: tests.config.my_parts.paded\n"
    )
    (found,) = validate(load_config(tmp_path / "config.yaml"))
    assert (found.line, found.path) == (5, ("loader", "collate_fn"))


def test_the_page_of_configs_lists_every_option_of_a_loader() -> None:
    (rows,) = re.findall(
        r"^\| option \|.*\n\| --- .*\n((?:\|.*\n)+)",
        (ROOT / "docs/config.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert {
        name for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split(" | ")[0])
    } == LOADER


@pytest.mark.parametrize(
    "loss", [{"type": "CrossEntropyLoss", "label_smoothing": 3}, {"label_smoothing": 3}]
)
def test_label_smoothing_is_checked_before_the_first_batch(loss: dict[str, Any]) -> None:
    (found,) = problems(training={"epochs": 1, "loss": loss})
    assert found.path == ("training", "loss", "label_smoothing")
    assert (found.parameter, found.value) == ("label_smoothing", 3)


def test_label_smoothing_may_be_one() -> None:
    loss = {"type": "cross_entropy", "label_smoothing": 1}
    assert problems(training={"epochs": 1, "loss": loss}) == []


def test_check_raises_all_problems_and_stays_on_one_screen() -> None:
    hooks = [{"type": f"No{index}Hook"} for index in range(50)]
    with pytest.raises(ConfigError) as caught:
        check({**GOOD, "hooks": hooks})
    assert len(caught.value.problems) == 21
    assert "30" in caught.value.problems[-1].message


def test_custom_imports_come_first_so_that_what_they_register_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "hookline_test_custom_import"
    (tmp_path / f"{name}.py").write_text(
        "from hookline.hooks import HOOKS, BaseHook\n\n@HOOKS.register()\nclass FromCustomImportHook(BaseHook):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert problems(custom_imports=[name], hooks=["FromCustomImportHook"]) == []


def test_an_import_that_fails_names_the_line_of_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hookline_test_failing.py").write_text("x = 1\nraise RuntimeError('not today')\n")
    monkeypatch.syspath_prepend(tmp_path)
    configs: dict[str, dict[str, Any]] = {
        "custom_imports[0]": {"custom_imports": ["hookline_test_failing"]},
        "model.type": {"model": "hookline_test_failing.Model"},
        "loader.collate_fn": {"loader": {"collate_fn": "hookline_test_failing.collate"}},
        "training.metrics[0]": {
            "training": {"epochs": 1, "metrics": ["hookline_test_failing.Metric"]}
        },
    }
    for path, changes in configs.items():
        (found,) = problems(**changes)
        assert dotted(found.path) == path
        assert f"{tmp_path}/hookline_test_failing.py:2" in found.message


def test_a_url_needs_a_package_that_can_open_it() -> None:
    assert problems(load_from="memory://bucket/x.pth", resume="memory://bucket/run") == []
    (found,) = problems(resume="gs://bucket/x.pth")
    assert (found.parameter, found.suggestion.advice) == ("resume", "pip install 'hookline[gcs]'")


def test_a_work_directory_may_be_a_url_that_can_be_written_to() -> None:
    assert problems(work_dir="memory://bucket/run") == []
    for url in ("http://host/run", "gs://bucket/run", "s3://me:hunter2@bucket/run"):
        (found,) = problems(work_dir=url)
        assert found.path == ("work_dir",)
        assert "hunter2" not in str(found)


def test_a_secret_is_not_repeated_in_an_error() -> None:
    (found,) = problems(hooks=[{"type": "tests.config.my_parts.PatientHook", "token": "hunter2"}])
    assert found.parameter == "token"
    assert "hunter2" not in str(found)
    (found,) = problems(load_from="nonsense://me:hunter2@host/x.pth")
    assert "hunter2" not in str(found)


def test_a_huge_value_does_not_fill_the_screen() -> None:
    (found,) = problems(seed=list(range(10_000)))
    assert len(str(found)) < 450


def test_two_hooks_with_one_name_are_rejected() -> None:
    (found,) = problems(
        hooks=[{"type": "EvalHook", "name": "a"}, {"type": "LoggerHook", "name": "a"}]
    )
    assert found.path == ("hooks", 1, "name")


def test_a_key_that_belongs_into_a_section_is_suggested_there() -> None:
    found = problems(epochs=3, batch_size=8, lr=0.1)
    assert paths(found) == ["epochs", "batch_size", "lr"]
    assert [problem.suggestion.nearest for problem in found] == [
        "training.epochs",
        "loader.batch_size",
        "optimizer.lr",
    ]


def test_for_a_number_in_quotes_the_advice_is_to_leave_them_out() -> None:
    hooks = [
        {"type": "LoggerHook", "interval": "2"},
        {"type": "LoggerHook", "name": "x", "interval": "two"},
    ]
    seed, lr, interval, word = problems(seed="7", optimizer={"lr": "1e-3"}, hooks=hooks)
    for problem, value in ((seed, "7"), (lr, "1e-3"), (interval, "2")):
        assert problem.value == value
        assert "quotes" in problem.suggestion.advice
    assert (word.value, word.suggestion.advice) == ("two", "")


@pytest.mark.parametrize(
    "optimizer",
    [
        {"type": "SGD", "momentum": -1},
        {"type": "Adam", "betas": [2.0, 0.9]},
        {"type": "SGD", "nesterov": True},
    ],
)
def test_an_optimizer_checks_its_values_itself(optimizer: dict[str, Any]) -> None:
    (found,) = problems(optimizer=optimizer)
    assert (found.component, found.path) == (optimizer["type"], ("optimizer",))


def test_a_class_name_in_the_wrong_place_is_suggested_as_the_type() -> None:
    hooks = [{"EMAHook": {"momentum": 0.9}}, {"name": "LoggerHook", "interval": 2}, {"interval": 2}]
    found = problems(hooks=hooks)
    assert paths(found) == ["hooks[0]", "hooks[1]", "hooks[2]"]
    assert {problem.parameter for problem in found} == {"type"}
    assert [problem.suggestion.nearest for problem in found] == [
        "type: EMAHook",
        "type: LoggerHook",
        None,
    ]


@pytest.mark.parametrize(("device", "nearest"), [("gpu", "cuda"), ("GPU:0", "cuda:0")])
def test_for_a_gpu_cuda_is_suggested(device: str, nearest: str) -> None:
    (found,) = problems(device=device)
    assert fields(found, "path", "value", "nearest") == {
        "path": ("device",),
        "value": device,
        "nearest": nearest,
    }
