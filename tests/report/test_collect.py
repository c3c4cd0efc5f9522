"""From folders to data."""

from __future__ import annotations

import json
import re

import pytest
from PIL import Image

from hookline.errors import HooklineError
from hookline.hooks import get_default_hooks
from hookline.metrics import build_metrics
from hookline.report.collect import collect
from hookline.report.page import as_script_data, page
from hookline.report.pictures import embedded, find_pictures
from tests.helpers import batches, make_runner


def make_run(folder, config="optimizer: {lr: 0.1}\n"):
    folder.mkdir(parents=True)
    (folder / "log.jsonl").write_text(json.dumps({"mode": "train", "iter": 1, "epoch": 1, "wall_time": 1.0, "loss": 1.0}) + "\n")
    (folder / "config.yaml").write_text(config)
    return folder


def test_a_folder_without_a_run_is_told():
    with pytest.raises(HooklineError, match="give the work directory of a run"):
        collect(["/no/such/run"])


def test_a_run_of_an_earlier_release_without_a_timeline_is_shown_as_far_as_it_goes(tmp_path):
    (run,) = collect([make_run(tmp_path / "old")])["runs"]
    assert run["state"]["name"] == "unknown"
    assert run["curves"]["train/loss"]["y"] == [1.0]


def test_the_difference_of_configs_is_by_setting(tmp_path):
    one = make_run(tmp_path / "a/run", "optimizer: {lr: 0.1, type: SGD}\nseed: 1\n")
    two = make_run(tmp_path / "b/run", "optimizer: {lr: 0.2, type: SGD}\n")
    data = collect([one, two / "log.jsonl"])
    assert [run["name"] for run in data["runs"]] == ["a/run", "b/run"]
    assert data["differences"] == [{"key": "optimizer.lr", "values": ["0.1", "0.2"]}, {"key": "seed", "values": ["1", None]}]


@pytest.mark.parametrize(
    "config", ["a: &a [x]\nb: [*a, *a]\n", "!!python/object/apply:os.system [true]", "{", "- 1", "\x00", "[" * 5000], ids=range(6)
)
def test_a_config_that_is_none_is_shown_as_text_only(tmp_path, config):
    (run,) = collect([make_run(tmp_path / "run", config)])["runs"]
    assert (run["config"], run["settings"]) == (config, {})


def test_damaged_files_are_told_and_the_rest_is_shown(tmp_path):
    folder = make_run(tmp_path / "run")
    for name in ("checkpoints.json", "hook_costs.json", "timeline.jsonl"):
        (folder / name).write_bytes(b"\xff{broken")
    (run,) = collect([folder])["runs"]
    assert (run["checkpoints"], run["costs"], run["sessions"]) == ([], None, [])
    assert any("checkpoints.json" in warning["text"] for warning in run["warnings"])


def test_pictures_are_thinned_to_their_budget_evenly_with_the_last_one_kept(tmp_path):
    for step in range(20):
        path = tmp_path / f"visualizations/A/b/step_{step:06d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((40, 40), 99).save(path)
    (tmp_path / "visualizations/A/other.png").write_text("x")
    (tmp_path / "visualizations/A/b/step_000099.png").symlink_to("/etc/passwd")
    found = find_pictures(tmp_path)
    assert [picture.step for picture in found["A/b"]] == list(range(20))
    (series,) = embedded(found, budget=sum(picture.size for picture in found["A/b"]) // 2)
    steps = [frame["step"] for frame in series["frames"]]
    assert steps[-1] == 19
    assert 5 <= len(steps) <= 10
    assert series["left_out"] == 20 - len(steps)
    assert embedded(found, budget=10)[0]["frames"] == []


def test_the_main_facts_are_there_without_scripts(tmp_path):
    runner = make_runner(
        tmp_path / "a<b>run", *get_default_hooks(without=["OptimizerHook"]), metrics=build_metrics(["accuracy"]),
        train_loader=batches(2), val_loader=batches(1), max_epochs=1,
    ).train()  # fmt: skip
    html = (tmp_path / "a<b>run" / "report.html").read_text()
    plain = html.partition("<noscript>")[2].partition("</noscript>")[0]
    assert "<h1>a&lt;b&gt;run</h1>" in plain
    assert "<b>" not in plain
    rows = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", plain))
    assert rows["state"] == "finished: reached max_epochs=1"
    assert rows["best"].startswith(f"val/accuracy {runner.metrics['accuracy']:.4g} (iteration 2)")
    assert rows["checkpoint"].startswith("last.pth, best_accuracy.pth (iteration 2, accuracy ")
    assert "JavaScript" in plain


def test_no_text_can_leave_its_script_element():
    text = as_script_data({"</script>": "<!--<script>&\u2028\u2029"})
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == {"</script>": "<!--<script>&\u2028\u2029"}
    html = page({"made": 0, "version": "0", "runs": [], "differences": []}, title="<b>&\"'")
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
