"""The report page."""

from __future__ import annotations

import base64
import hashlib
import json
import re

from hookline.hooks import get_default_hooks
from hookline.metrics import build_metrics
from hookline.report.page import content_policy, encode_for_script, render_page, write_report
from tests.helpers import batches, make_runner
from tests.report.folders import make_run

EMPTY = {"made": 0, "version": "0", "runs": [], "differences": []}


def test_the_summary_can_be_read_without_scripts(tmp_path):
    folder = tmp_path / "a<b>run"
    runner = make_runner(
        folder,
        *get_default_hooks(without=["OptimizerHook"]),
        metrics=build_metrics(["accuracy"]),
        train_loader=batches(2),
        val_loader=batches(1),
        max_epochs=1,
    )
    runner.train()
    html = (folder / "report.html").read_text()
    plain = html.partition("<noscript>")[2].partition("</noscript>")[0]
    assert "<h1>a&lt;b&gt;run</h1>" in plain
    assert "<b>" not in plain
    rows = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", plain))
    assert rows["state"].startswith("finished: ")
    assert rows["best"].startswith(f"val/accuracy {runner.metrics['accuracy']:.4g} (iteration 2)")
    assert rows["checkpoint"].startswith("last.pth, best_accuracy.pth (iteration 2, accuracy ")


def test_no_text_can_end_its_script_element():
    value = {"</script>": "<!--<script>&\u2028\u2029\udcff"}
    text = encode_for_script(value)
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == {"</script>": "<!--<script>&\u2028\u2029?"}


def test_the_title_is_escaped():
    html = render_page(EMPTY, title="<b>&\"'")
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_the_policy_admits_the_scripts_of_the_page_and_no_others():
    html = render_page(EMPTY, title="")
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in content_policy(live=False)


def test_only_the_live_page_may_connect_to_its_server():
    assert "connect-src" not in content_policy(live=False)
    assert "connect-src 'self'" in content_policy(live=True)


def test_a_report_is_written_with_the_data_of_all_runs(tmp_path):
    folders = [make_run(tmp_path / name) for name in ("one", "two")]
    html = write_report(folders, tmp_path / "report.html").read_text()
    data = html.partition('id="data">')[2].partition("</script>")[0]
    assert [run["name"] for run in json.loads(data)["runs"]] == ["one", "two"]
