from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hookline.config import check, load_config, validate
from hookline.config.schema import LOADER
from hookline.errors import ConfigError

ROOT = Path(__file__).parents[2]
GOOD: dict[str, Any] = {"model": "cnn", "dataset": "digits", "training": {"epochs": 1}}


def problems(**changes: Any) -> list[str]:
    return [str(problem) for problem in validate({**GOOD, **changes})]


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
        {"loader": {"collate_fn": "tests.config.my_parts.padded", "val": {"collate_fn": None}, "test": {"collate_fn": "json.dumps"}}},
        {"training": {"iters": 10, "epochs": None, "loss": "mse", "metrics": ["accuracy", {"type": "f1", "name": "score"}]}},
        {"training": {"epochs": 1, "loss": {"label_smoothing": 0.1}}},
        {"optimizer": {"lr": 0.1}},
        {"optimizer": "sgd"},
        {"optimizer": None, "loader": None, "hooks": None, "seed": None},
        {"hooks": [{"type": "LoggerHook", "priority": "low", "name": "x", "frequency": 2}, "EvalHook"]},
        {"hooks": [{"type": "EvalHook", "priority": 100}]},
        {"hooks": [{"type": "tests.config.my_parts.PatientHook", "patience": 1}]},
        {"drop_hooks": ["CheckpointHook"]},
        {"device": "cuda:1"},
        {"resume": "auto", "load_from": __file__, "hook_order": "flat"},
    ],
)
def test_all_these_are_good_too(changes: dict[str, Any]) -> None:
    assert problems(**changes) == []


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
    found = [line.removeprefix(f"{tmp_path}/") for line in map(str, validate(load_config(path, ["device=gpuu"])))]
    assert found == [
        "config.yaml:1: model CNN: unknown parameter 'widht'; did you mean 'width'?",
        "config.yaml:2: dataset.type: unknown dataset 'digitz'; did you mean 'digits'?",
        "config.yaml:4: training.epochs: must be at least 1, got -1",
        "config.yaml:5: training.loss.type: unknown loss 'CrossEntropyLos'; did you mean 'CrossEntropyLoss'?",
        "config.yaml:6: training.metrics[0]: unknown metric 'acuracy'; did you mean 'accuracy'?",
        "config.yaml:6: training.metrics[1] Accuracy: unknown parameter 'top'; did you mean 'top_k'?",
        "config.yaml:7: loader: 'batch_size' must be at least 1, got 0",
        "config.yaml:7: loader.val.num_worker: unknown key; did you mean 'num_workers'?",
        "config.yaml:8: optimizer AdamW: unknown parameter 'wieght_decay'; did you mean 'weight_decay'?",
        "config.yaml:8: optimizer.lr: must be a number above 0, got 0",
        "config.yaml:9: sede: unknown key; did you mean 'seed'?",
        "config.yaml:14: hooks[2] PatientHook: unknown parameter 'patiance'; did you mean 'patience'?",
        "config.yaml:15: hooks[2] PatientHook: a priority lies between 0 and 100, got 200",
        found[-1],
    ]
    assert found[-1].startswith("command line: device: must be 'auto' or a device of torch, got 'gpuu'")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("tests.config.my_parts.paded", "module 'tests.config.my_parts' (MY_PARTS) has no 'paded'; did you mean 'padded'?"),
        ("tests.config.my_parts.annotations", "must be a function or the dotted path of one, got 'tests.config.my_parts.annotations'"),
        ("my_dta.padded", "unknown function 'my_dta.padded': there is no module 'my_dta'; did you mean 'my_data.padded'?"),
        ("padded", "must be the dotted path of a function, such as my_project.data.collate, got 'padded'"),
        (len, "must be the dotted path of a function, got <built-in function len>"),
        (3, "must be the dotted path of a function, got 3"),
    ],
)
def test_a_collate_fn_must_be_there_and_be_a_function(given: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_data.py").touch()
    message = message.replace("MY_PARTS", str(ROOT / "tests/config/my_parts.py"))
    for loader, place in (({"collate_fn": given}, "loader"), ({"val": {"collate_fn": given}}, "loader.val")):
        (found,) = problems(loader=loader)
        assert found.startswith(f"{place}.collate_fn: ")
        assert message in found


def test_a_collate_fn_is_told_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: cnn\ndataset: digits\ntraining: {epochs: 1}\nloader:\n  collate_fn: json.dmps\n")
    (found,) = validate(load_config(tmp_path / "config.yaml"))
    assert (found.line, found.path) == (5, ("loader", "collate_fn"))


def test_the_page_of_configs_lists_every_option_of_a_loader() -> None:
    (rows,) = re.findall(r"^\| option \|.*\n\| --- .*\n((?:\|.*\n)+)", (ROOT / "docs/config.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split(" | ")[0])} == LOADER


def test_the_smoothing_of_labels_is_judged_before_the_first_batch() -> None:
    def told(loss: Any) -> list[str]:
        return problems(training={"epochs": 1, "loss": loss})

    wrong = "training.loss.label_smoothing: must lie between 0 and 1, got 3"
    assert told({"type": "CrossEntropyLoss", "label_smoothing": 3}) == told({"label_smoothing": 3}) == [wrong]
    assert told({"type": "cross_entropy", "label_smoothing": 1}) == []


def test_check_raises_all_problems_and_stays_on_one_screen() -> None:
    hooks = [{"type": f"No{index}Hook"} for index in range(50)]
    with pytest.raises(ConfigError) as caught:
        check({**GOOD, "hooks": hooks})
    lines = str(caught.value).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "… and 30 more problems"


def test_custom_imports_come_first_so_that_what_they_register_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "hookline_test_custom_import"
    (tmp_path / f"{name}.py").write_text(
        "from hookline.hooks import HOOKS, BaseHook\n\n@HOOKS.register()\nclass FromCustomImportHook(BaseHook):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert problems(custom_imports=[name], hooks=["FromCustomImportHook"]) == []


def test_an_import_that_fails_names_the_line_of_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hookline_test_failing.py").write_text("x = 1\nraise RuntimeError('not today')\n")
    monkeypatch.syspath_prepend(tmp_path)
    wanted = rf"RuntimeError: not today \({re.escape(str(tmp_path))}/hookline_test_failing.py:2\)"
    (found,) = problems(custom_imports=["hookline_test_failing"])
    assert re.search(rf"custom_imports\[0\]: cannot import 'hookline_test_failing': {wanted}", found)
    (found,) = problems(model="hookline_test_failing.Model")
    assert re.search(rf"model.type: cannot import 'hookline_test_failing.Model': {wanted}", found)
    (found,) = problems(training={"epochs": 1, "metrics": ["hookline_test_failing.Metric"]})
    assert re.search(wanted, found)


def test_a_secret_is_not_repeated_in_an_error() -> None:
    (found,) = problems(hooks=[{"type": "tests.config.my_parts.PatientHook", "token": "hunter2"}])
    assert "'token' must be a whole number" in found
    assert "hunter2" not in found
    (found,) = problems(load_from="https://me:hunter2@host/x.pth")
    assert "hunter2" not in found


def test_a_huge_value_does_not_fill_the_screen() -> None:
    (found,) = problems(seed=list(range(10_000)))
    assert len(found) < 450


def test_a_hook_that_takes_anything_but_its_name_twice_is_refused() -> None:
    (found,) = problems(hooks=[{"type": "EvalHook", "name": "a"}, {"type": "LoggerHook", "name": "a"}])
    assert found == "hooks[1].name: the name 'a' is that of hooks[0] already"


def test_a_key_that_belongs_into_a_section_is_told_so() -> None:
    told = problems(epochs=3, batch_size=8, lr=0.1)
    assert told == [
        "epochs: unknown key; did you mean 'training.epochs'?",
        "batch_size: unknown key; did you mean 'loader.batch_size'?",
        "lr: unknown key; did you mean 'optimizer.lr'?",
    ]


def test_a_number_in_quotes_is_told_to_be_text() -> None:
    hooks = [{"type": "LoggerHook", "interval": "2"}, {"type": "LoggerHook", "name": "x", "interval": "two"}]
    seed, lr, interval, word = problems(seed="7", optimizer={"lr": "1e-3"}, hooks=hooks)
    assert seed.endswith("got '7', which is text: leave out the quotes")
    assert lr.endswith("got '1e-3', which is text: leave out the quotes")
    assert interval.endswith("got '2', which is text: leave out the quotes")
    assert word.endswith("got 'two'")


def test_the_values_of_an_optimizer_are_judged_by_itself() -> None:
    assert problems(optimizer={"type": "SGD", "momentum": -1}) == ["optimizer SGD: Invalid momentum value: -1"]
    assert problems(optimizer={"type": "Adam", "betas": [2.0, 0.9]}, seed=-1)[0] == "optimizer Adam: Invalid beta parameter at index 0: 2.0"
    assert problems(optimizer={"type": "SGD", "nesterov": True})[0].startswith("optimizer SGD: Nesterov momentum requires a momentum")


def test_a_class_that_stands_where_its_type_should_is_told_how_to_be_written() -> None:
    hooks = [{"EMAHook": {"momentum": 0.9}}, {"name": "LoggerHook", "interval": 2}, {"interval": 2}]
    assert problems(hooks=hooks) == [
        "hooks[0]: missing 'type': the name of a hook; did you mean 'type: EMAHook'?",
        "hooks[1]: missing 'type': the name of a hook; did you mean 'type: LoggerHook'?",
        "hooks[2]: missing 'type': the name of a hook",
    ]


def test_a_gpu_is_called_cuda() -> None:
    assert problems(device="gpu") == ["device: must be 'auto' or a device of torch, got 'gpu'; did you mean 'cuda'?"]
    assert problems(device="GPU:0")[0].endswith("did you mean 'cuda:0'?")
