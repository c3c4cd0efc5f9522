"""Callbacks of transformers that talk to a service, to a job or to a notebook: with what of these can be had without an account."""

from __future__ import annotations

import contextlib
import io
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import torch
from transformers import TrainerCallback, integrations

from hookline.hooks import CheckpointHook
from tests.compat_foreign.matrix import shows
from tests.compat_foreign.problem import run_here
from tests.compat_foreign.test_trackers import curves, run, same_curves
from tests.compat_foreign.test_transformers import NAME


@shows(
    NAME,
    "AzureMLCallback",
    "the same values in the same order, outside an Azure job",
)
def test_azureml_callback(tmp_path):
    pytest.importorskip("azureml.core")
    found = []
    for place in ("there", "here"):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            run(place, tmp_path / place, integrations.AzureMLCallback())
        rows = re.findall(r"Attempted to log scalar metric (\w+):\n(\S+)", text.getvalue())
        found.append(curves((name, 0, float(value)) for name, value in rows))
    assert same_curves(*found, ("loss", "learning_rate", "eval_loss"))


class Fields(TrainerCallback):
    """Notes the names of the fields of a Neptune run before it is closed."""

    def __init__(self, callback):
        self.callback = callback
        self.names = []

    def on_log(self, args, state, control, **kwargs):
        self.names = sorted(_leaves(self.callback.run.get_structure()["finetuning"]))


def _leaves(structure, path=""):
    for name, value in structure.items():
        yield from (
            _leaves(value, f"{path}{name}/") if isinstance(value, dict) else [f"{path}{name}"]
        )


@shows(
    NAME,
    "NeptuneCallback",
    "the same fields in Neptune's debug mode; offline it fails, in the Trainer too",
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_neptune_callback(tmp_path, monkeypatch):
    neptune = pytest.importorskip("neptune")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(neptune.exceptions.MissingFieldException):
        run(
            "there",
            tmp_path / "offline",
            integrations.NeptuneCallback(mode="offline", project="a/b"),
        )
    there, here = (
        Fields(integrations.NeptuneCallback(mode="debug", project="a/b")) for _ in range(2)
    )
    run("there", tmp_path / "there", there.callback, there)
    run("here", tmp_path / "here", here.callback, here)
    logged = {"train/loss", "train/learning_rate", "train/epoch", "eval/loss"}
    assert logged <= set(here.names)
    assert logged <= set(there.names)
    parameters = [
        {name for name in names if name.startswith("trainer_parameters/")}
        for names in (there.names, here.names)
    ]
    assert parameters[0] == parameters[1]


@shows(
    NAME,
    "KubeflowCallback",
    "reports the same progress and values to a server like Kubeflow's",
)
def test_kubeflow_callback(tmp_path, monkeypatch):
    posted: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(
                json.loads(self.rfile.read(int(self.headers["Content-Length"])))["trainerStatus"]
            )
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args): ...

    (tmp_path / "token").write_text("secret")
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("KUBEFLOW_TRAINER_SERVER_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("KUBEFLOW_TRAINER_SERVER_TOKEN", str(tmp_path / "token"))
    try:
        for place in ("there", "here"):
            run(place, tmp_path / place, integrations.KubeflowCallback())
    finally:
        server.shutdown()
    reports = [
        (
            status["progressPercentage"],
            {row["name"]: float(row["value"]) for row in status["metrics"]},
        )
        for status in posted
    ]
    begins, ends = (
        [metrics for progress, metrics in reports if progress == part] for part in (0, 100)
    )
    assert all(metrics == {"total_steps": 12} for metrics in begins)
    assert len(ends) == len(begins) == 3  # the Trainer adds one
    for name in ("loss", "learning_rate", "eval_loss"):
        assert ends[2][name] == pytest.approx(ends[0][name], rel=1e-4)


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """IPython as a notebook has it: what is displayed can be seen."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    interactiveshell = pytest.importorskip("IPython.core.interactiveshell")
    from traitlets.config import Config

    yield interactiveshell.InteractiveShell.instance(
        config=Config(HistoryManager={"enabled": False})
    )
    interactiveshell.InteractiveShell.clear_instance()


@shows(NAME, "NotebookProgressCallback", "displays the same table and bar")
def test_notebook_progress_callback(tmp_path, shell):
    from IPython.utils.capture import capture_output
    from transformers.utils.notebook import NotebookProgressCallback

    shown = []
    for place in ("there", "here"):
        with capture_output() as captured:
            run(place, tmp_path / place, NotebookProgressCallback())
        shown.append(captured.outputs[-1].data["text/html"])
    there, here = (
        [
            re.findall(r"<td>(.*?)</td>", row)
            for row in re.findall(r"<tr.*?</tr>", html, re.DOTALL)[1:]
        ]
        for html in shown
    )
    assert [row[0] for row in here] == ["1", "2"]
    assert [row[:3] for row in here] == [
        row[:3] for row in there
    ]  # epoch, training loss and validation loss, as they are printed
    assert all("[12/12" in html and "Epoch 2/2" in html for html in shown)


@shows(
    NAME,
    "FlyteCallback",
    "in a local Flyte task: its checkpoints contain ours, its deck the same values",
)
def test_flyte_callback(tmp_path):
    flytekit = pytest.importorskip("flytekit")
    pandas = pytest.importorskip("pandas")

    @flytekit.task
    def train(place: str, folder: str) -> str:
        callback = integrations.FlyteCallback()
        run(place, Path(folder), callback)
        (deck,) = [deck for deck in flytekit.current_context().decks if deck.name == "Log History"]
        (Path(folder) / "deck.html").write_text(deck.html)
        return str(callback.cp._checkpoint_dest)

    stored = {
        place: Path(train(place=place, folder=str(tmp_path / place))) for place in ("there", "here")
    }
    there, here = (
        pandas.read_html(io.StringIO((tmp_path / place / "deck.html").read_text()))[0]
        for place in ("there", "here")
    )
    for name in ("loss", "eval_loss"):
        ours, theirs = (
            {row["step"]: row[name] for _, row in table.iterrows() if row[name] == row[name]}
            for table in (here, there)
        )
        assert ours == pytest.approx(theirs, rel=1e-3)
    assert len(here["step"]) == 8
    assert any(path.name == "model.safetensors" for path in stored["there"].rglob("*"))
    (checkpoint,) = stored["here"].rglob("checkpoint.pth")
    assert torch.load(checkpoint, weights_only=True)["meta"]["optimizer_steps"] == 12


def test_what_a_tracker_knows_of_its_process_is_not_taken_over_by_a_resumed_run(
    tmp_path, monkeypatch
):
    monkeypatch.setenv(
        "KUBEFLOW_TRAINER_SERVER_URL", "http://127.0.0.1:9"
    )  # nothing is sent: there is no token
    run_here(tmp_path, integrations.KubeflowCallback(), CheckpointHook(), epochs=1)
    begin = time.time()
    callback = integrations.KubeflowCallback()
    runner = run_here(tmp_path, callback, CheckpointHook(), epochs=2, resume="auto")
    assert runner.iter == 12
    assert callback._start_time >= begin


def test_a_callback_that_only_observes_saves_sees_the_position_of_the_run(tmp_path):
    class Saves(TrainerCallback):
        def __init__(self):
            self.seen = []

        def on_save(self, args, state, control, **kwargs):
            self.list_files(Path(args.output_dir) / f"checkpoint-{state.global_step}", state)

        def list_files(self, folder, state):
            files = sorted(path.name for path in folder.iterdir())
            self.seen.append((state.global_step, state.epoch, files))

    saves = Saves()
    run_here(tmp_path, saves, CheckpointHook(), epochs=2)
    files = ["checkpoint.pth", "trainer_state.json"]
    assert saves.seen == [(6, 1.0, files), (12, 2.0, files)]


def test_what_is_logged_is_in_the_history_once(tmp_path):
    class Reader(TrainerCallback):
        def on_train_end(self, args, state, control, **kwargs):
            self.history = list(state.log_history)

    one, other = Reader(), Reader()
    run("here", tmp_path, one, other)
    assert [row["step"] for row in one.history if "loss" in row] == [2, 4, 6, 8, 10, 12]
    assert [row["step"] for row in one.history if "eval_loss" in row] == [6, 12]
    assert other.history == one.history
