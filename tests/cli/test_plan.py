"""`hookline plan`: the order of hooks, its reasons, and costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from hookline.cli.main import main
from hookline.runner import Runner
from tests.cli.helpers import error_of, write_config

HOOKS = """\
  - {type: IterTimerHook, name: twin, priority: 10}
  - {type: IterTimerHook, priority: LOW}
"""
OWN = """
from hookline import BaseHook

class Chooser(BaseHook):
    def __init__(self) -> None:
        self.priority = 33

    def before_run(self, runner): ...

class Idle(BaseHook):
    pass
"""


def planned(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["plan", *arguments, "--json"]) == 0
    result: dict[str, object] = json.loads(capsys.readouterr().out)
    return result


@pytest.mark.parametrize("order", ["nested", "flat"])
def test_the_plan_is_what_the_runner_would_do(
    order: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides = [f"hook_order={order}", "hooks.eval=null"]
    plan = planned([write_config(tmp_path, HOOKS), *overrides], capsys)
    runner = Runner.from_config(tmp_path / "config.yaml", overrides)
    assert plan["hook_order"] == order
    assert plan["sites"] == {
        site: [hook.name for hook in hooks] for site, hooks in runner.sites.hooks.items()
    }


def test_the_origin_of_every_hook_and_priority_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path, HOOKS)
    hooks = {
        hook["name"]: hook for hook in planned([config, "hooks.eval.interval=2"], capsys)["hooks"]
    }  # type: ignore[attr-defined]
    assert hooks["OptimizerHook"]["origin"] == "default hook"
    assert hooks["OptimizerHook"]["priority_from"] == "class"
    assert hooks["twin"] == {
        "name": "twin",
        "type": "IterTimerHook",
        "priority": 10,
        "priority_from": "config",
        "registered": 6,
        "origin": f"{config}:10",
    }
    # The config repeats the priority of the class.
    assert hooks["IterTimerHook"]["priority_from"] == "config"
    assert hooks["EvalHook"]["origin"] == "command line"


def test_the_table_shows_sites_hooks_and_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path, HOOKS)
    assert main(["plan", config]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:2] == ["hook_order:", "nested"]
    first = next(index for index, line in enumerate(lines) if line[:1] == ["before_train_epoch"])
    assert lines[first] == [
        "before_train_epoch",
        "1",
        "twin",
        "(IterTimerHook)",
        "VERY_HIGH",
        "10",
        "(config)",
        "7",
        f"{config}:10",
    ]
    assert lines[first + 1] == ["2", "IterTimerHook", "LOW", "70", "(config)", "8", f"{config}:11"]


def test_a_hook_that_sets_its_priority_and_one_without_sites_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    assert (
        main(
            [
                "plan",
                write_config(
                    tmp_path, f"  - {name}.Chooser\n  - {{type: {name}.Idle, name: lazy}}\n"
                ),
            ]
        )
        == 0
    )
    text = capsys.readouterr().out
    assert "33 (constructor)" in text
    assert "at no site: lazy (Idle)" in text


def test_planning_needs_no_data_and_makes_no_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path)
    before = set(tmp_path.rglob("*"))
    assert planned([config, "dataset={type: mnist, root: /no/such/folder}"], capsys)["sites"]
    assert set(tmp_path.rglob("*")) == before


def test_a_broken_config_has_no_plan(tmp_path: Path) -> None:
    error = error_of("plan", write_config(tmp_path, "  - {type: LogerHook}\n"))
    assert error.problems[0].line == 10
    assert error.suggestion.nearest == "LoggerHook"


def test_two_owners_of_a_site_are_an_error_at_the_second_one(tmp_path: Path) -> None:
    hooks = "  - OptimizerHook\n  - {type: AmpOptimizerHook, name: half}\n"
    (problem,) = error_of("plan", write_config(tmp_path, hooks)).problems
    assert problem.line == 11
    assert "AmpOptimizerHook" in problem.component


def train(tmp_path: Path, *overrides: str) -> Path:
    assert main(["train", write_config(tmp_path), "training.epochs=2", *overrides]) == 0
    return tmp_path / "run"


def test_the_costs_of_a_run_are_shown_beside_the_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(tmp_path)
    capsys.readouterr()
    assert main(["plan", "--cost", str(run)]) == 0
    text = capsys.readouterr().out
    head = next(line for line in text.splitlines() if line.startswith("site"))
    assert head.split()[:7] == ["site", "hook", "per", "call", "of", "the", "run"]
    (optimize,) = [line for line in text.splitlines() if line.startswith("optimize")]
    assert optimize.split()[2] == "OptimizerHook"
    assert optimize.split()[4] == "ms"
    assert optimize.split()[5].endswith("%")
    unused = next(line for line in text.splitlines() if line.startswith("after_test "))
    assert unused.split()[3:5] == ["-", "-"]
    assert "an iteration took" in text


def test_the_costs_of_a_run_may_be_shown_for_another_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(tmp_path)
    capsys.readouterr()
    plan = planned([str(tmp_path / "config.yaml"), "hook_order=flat", "--cost", str(run)], capsys)
    assert plan["hook_order"] == "flat"
    assert {row["hook"] for row in plan["costs"]["hooks"]} >= {"OptimizerHook", "LoggerHook"}  # type: ignore[index]


def test_the_costs_of_a_script_are_shown_without_a_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = torch.nn.Linear(4, 2)
    Runner(
        model,
        train_loader=[(torch.randn(8, 4), torch.randint(2, (8,)))] * 10,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=torch.nn.CrossEntropyLoss(),
        max_epochs=1,
        work_dir=tmp_path,
    ).train()
    capsys.readouterr()
    assert main(["plan", "--cost", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["hook", "site", "per", "call", "of", "the", "run"]
    assert any(line.split()[:2] == ["OptimizerHook", "optimize"] for line in lines)
    costs = planned(["--cost", str(tmp_path)], capsys)["costs"]
    shares = [row["share"] for row in costs["hooks"]]  # type: ignore[index]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("content", [None, "{"])
def test_missing_and_damaged_costs_are_errors(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "hook_costs.json").write_text(content)
    error = error_of("plan", "--cost", str(tmp_path))
    assert error.parameter == "--cost"
    assert "hook_costs.json" in str(error)


def test_a_plan_needs_a_config_or_a_run() -> None:
    assert error_of("plan").parameter == "CONFIG"


def test_the_plan_lists_parameter_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path, HOOKS)
    plan = planned([config, "optimizer.no_decay=[bias]"], capsys)
    rows: list[dict[str, object]] = plan["groups"]  # type: ignore[assignment]
    assert [row["group"] for row in rows] == ["decay", "no_decay"]
    assert rows[1]["weight_decay"] == 0.0
    assert main(["plan", config, "optimizer.no_decay=[bias]"]) == 0
    assert "no_decay" in capsys.readouterr().out
