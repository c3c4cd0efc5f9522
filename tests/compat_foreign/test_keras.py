"""Unmodified callbacks of Keras on torch, compared with runs in `model.fit`."""

from __future__ import annotations

import csv
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import h5py
import keras
import numpy as np
import pytest
import torch
from keras import callbacks as cb
from torch import nn

from hookline.compat.foreign import MissingAttribute
from hookline.compat.keras import wrap
from hookline.engine import BaseRunner
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook
from tests.compat_foreign.matrix import CANNOT, DIFFERS, UNTRIED, shows
from tests.compat_foreign.problem import Net, batches, run_here

NAME = "Keras (torch backend)"


def keras_net():
    """The same network, with the same weights, of Keras' own layers."""
    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3)]
    )
    source = Net()
    pairs = (source.backbone[0], source.head)
    model.set_weights(
        [array.detach().numpy() for layer in pairs for array in (layer.weight.T, layer.bias)]
    )
    return model


def arrays(data):
    return torch.cat([x for x, _ in data]).numpy(), torch.cat([y for _, y in data]).numpy()


def run_there(*callbacks, epochs=8, data=None):
    model = keras_net()
    model.compile(
        keras.optimizers.SGD(0.5), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    x, y = arrays(data or batches())
    model.fit(
        x, y, batch_size=8, epochs=epochs, shuffle=False, verbose=0, validation_data=arrays(batches(2, seed=1)),
        validation_batch_size=8, callbacks=list(callbacks),
    )  # fmt: skip
    return model


def same_as(model, runner):
    ours = runner.model.state_dict()
    wanted = [
        ours["backbone.0.weight"].T,
        ours["backbone.0.bias"],
        ours["head.weight"].T,
        ours["head.bias"],
    ]
    return all(
        np.allclose(theirs, mine, atol=1e-5)
        for theirs, mine in zip(model.get_weights(), wanted, strict=True)
    )


@shows(
    NAME,
    "EarlyStopping",
    "the same stop epoch, best value and weights, also with restore_best_weights",
)
@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2},
        {"patience": 3, "restore_best_weights": True},
        {"min_delta": 0.1, "start_from_epoch": 2},
    ],
)
def test_early_stopping_stops_at_the_same_epoch(tmp_path, options):
    there, here = cb.EarlyStopping("val_loss", **options), cb.EarlyStopping("val_loss", **options)
    model, runner = run_there(there, epochs=12), run_here(tmp_path, here, epochs=12)
    assert here.stopped_epoch == there.stopped_epoch < 11
    assert runner.epoch == here.stopped_epoch + 1
    assert here.best == pytest.approx(there.best, rel=1e-4)
    assert same_as(model, runner)


def test_the_direction_of_a_metric_is_known_by_its_name(tmp_path):
    callback = cb.EarlyStopping("val_accuracy", patience=1)
    assert run_here(tmp_path, callback, epochs=12).epoch < 12
    assert callback.monitor_op is keras.ops.greater


def test_a_metric_has_all_its_names(tmp_path):
    seen = []
    run_here(
        tmp_path,
        cb.LambdaCallback(
            on_epoch_end=lambda epoch, logs: seen.append((logs["val_acc"], logs.get("accuracy")))
        ),
        epochs=1,
    )
    assert seen[0][0] == seen[0][1] is not None
    assert (
        run_here(tmp_path, cb.EarlyStopping("val_acc", patience=1, mode="max"), epochs=12).epoch
        < 12
    )


def test_a_resumed_run_keeps_its_patience_although_keras_resets_it(tmp_path):
    def stopping():
        return cb.EarlyStopping("val_loss", patience=4, min_delta=0.01, restore_best_weights=True)

    whole = run_here(tmp_path / "whole", stopping(), epochs=12)
    run_here(tmp_path / "run", stopping(), CheckpointHook(), epochs=3)
    resumed = run_here(tmp_path / "run", stopping(), CheckpointHook(), epochs=12, resume="auto")
    assert resumed.epoch == whole.epoch < 12
    assert all(
        torch.equal(a, b)
        for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True)
    )


def test_a_changed_patience_is_in_force_after_a_resume(tmp_path):
    run_here(tmp_path, cb.EarlyStopping("val_loss", patience=50), CheckpointHook(), epochs=3)
    later = cb.EarlyStopping("val_loss", patience=1)
    run_here(tmp_path, later, CheckpointHook(), epochs=12, resume="auto")
    assert later.patience == 1


@shows(
    NAME,
    "ModelCheckpoint",
    "the same names and epochs: HDF5 with weights, or a Hookline checkpoint (`.keras`)",
    DIFFERS,
)
@pytest.mark.parametrize("best", [False, True])
def test_model_checkpoint_writes_files_of_the_same_names(tmp_path, best):
    def saving(folder):
        (tmp_path / folder).mkdir()
        return cb.ModelCheckpoint(
            tmp_path / folder / "{epoch:02d}-{val_loss:.2f}.weights.h5",
            save_weights_only=True,
            save_best_only=best,
        )

    run_there(saving("a"), epochs=4)
    runner = run_here(tmp_path / "run", saving("b"), epochs=4)
    names = sorted(path.name for path in (tmp_path / "b").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "a").iterdir()) != []
    assert len(names) < 4 or not best
    if not best:
        with h5py.File(tmp_path / "b" / names[-1]) as file:
            assert np.array_equal(
                file["state_dict/head.weight"], runner.model.head.weight.detach().numpy()
            )


def test_a_whole_model_is_one_of_our_checkpoints(tmp_path):
    run_here(tmp_path / "run", cb.ModelCheckpoint(tmp_path / "whole.keras"), epochs=2)
    resumed = run_here(tmp_path / "more", epochs=3, resume=tmp_path / "whole.keras")
    assert resumed.iter == 18


@shows(NAME, "ReduceLROnPlateau", "the same learning rate at the end, and weights")
def test_reduce_lr_on_plateau(tmp_path):
    def reducing():
        return cb.ReduceLROnPlateau("val_loss", factor=0.3, patience=2, cooldown=1)

    model, runner = run_there(reducing()), run_here(tmp_path, reducing())
    assert runner.optimizer.param_groups[0]["lr"] == pytest.approx(
        float(model.optimizer.learning_rate), rel=1e-5
    )
    assert runner.optimizer.param_groups[0]["lr"] < 0.5
    assert same_as(model, runner)


@shows(NAME, "LearningRateScheduler", "the same weights")
def test_learning_rate_scheduler(tmp_path):
    def scheduling():
        return cb.LearningRateScheduler(lambda epoch, lr: lr * 0.7 if epoch else lr)

    model, runner = run_there(scheduling(), epochs=4), run_here(tmp_path, scheduling(), epochs=4)
    assert runner.optimizer.param_groups[0]["lr"] == pytest.approx(0.5 * 0.7**3)
    assert same_as(model, runner)


@shows(NAME, "CSVLogger", "the same rows and values, and validation metrics")
def test_csv_logger(tmp_path):
    run_there(cb.CSVLogger(tmp_path / "a.csv"), epochs=3)
    run_here(tmp_path / "run", cb.CSVLogger(tmp_path / "b.csv"), epochs=3)
    theirs, ours = (
        list(csv.DictReader((tmp_path / name).read_text().splitlines()))
        for name in ("a.csv", "b.csv")
    )
    assert [row["epoch"] for row in ours] == ["0", "1", "2"]
    for column in ("loss", "val_loss"):
        assert [float(row[column]) for row in ours] == pytest.approx(
            [float(row[column]) for row in theirs], rel=1e-4
        )


@shows(NAME, "TerminateOnNaN", "stops at the same batch, without ending the epoch first", DIFFERS)
def test_terminate_on_nan(tmp_path):
    data = batches()
    data[3] = (data[3][0] * float("nan"), data[3][1])
    seen = []
    run_there(
        cb.TerminateOnNaN(),
        cb.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch)),
        data=data,
    )
    runner = run_here(tmp_path, cb.TerminateOnNaN(), train_loader=data)
    assert seen[-1] == 3
    assert runner.iter == 4
    assert runner.stop_reason.hook == "TerminateOnNaN"


@shows(NAME, "LambdaCallback", "the same calls in the same order, with the same values")
@shows(NAME, "Callback", "the same calls in the same order, with the same values")
def test_calls_come_in_the_same_order_with_the_same_values(tmp_path):
    class Everything(cb.Callback):
        def __init__(self):
            super().__init__()
            self.log = []

    def record(name):
        def method(self, *args, logs=None):
            given = next((arg for arg in args if isinstance(arg, dict)), logs) or {}
            losses = {
                key: float(value) for key, value in given.items() if key in ("loss", "val_loss")
            }
            self.log.append((name, [arg for arg in args if isinstance(arg, int)], losses))

        return method

    for name in (
        "train_begin",
        "epoch_begin",
        "train_batch_begin",
        "train_batch_end",
        "epoch_end",
        "test_begin",
        "test_end",
        "train_end",
    ):
        setattr(Everything, f"on_{name}", record(name))
    there, here = Everything(), Everything()
    run_there(there, epochs=2)
    run_here(tmp_path, here, epochs=2)
    assert [entry[:2] for entry in here.log] == [entry[:2] for entry in there.log]
    for ours, theirs in zip(here.log, there.log, strict=True):
        assert ours[2] == pytest.approx(theirs[2], rel=1e-4)
    seen = []
    run_here(
        tmp_path, cb.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(epoch)), epochs=2
    )
    assert seen == [0, 1]


@shows(NAME, "History", "the same history")
def test_history(tmp_path):
    there, here = cb.History(), cb.History()
    run_there(there, epochs=2)
    run_here(tmp_path, here, epochs=2)
    assert here.epoch == there.epoch == [0, 1]
    assert here.history["loss"] == pytest.approx(there.history["loss"], rel=1e-4)


@shows(NAME, "ProgbarLogger", "draws its bars")
def test_progbar_logger(tmp_path, capsys):
    run_here(tmp_path, cb.ProgbarLogger(), epochs=2)
    shown = capsys.readouterr().out
    assert "Epoch 2/2" in shown
    assert "6/6" in shown


@shows(NAME, "RemoteMonitor", "posts its logs")
def test_remote_monitor(tmp_path):
    posted = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args): ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        run_here(
            tmp_path,
            cb.RemoteMonitor(root=f"http://127.0.0.1:{server.server_port}", send_as_json=True),
            epochs=2,
        )
    finally:
        server.shutdown()
    assert [row["epoch"] for row in posted] == [0, 1]
    assert {"loss", "val_loss"} <= set(posted[0])


@shows(
    NAME,
    "BackupAndRestore",
    'backs up after each epoch; resume with `resume="auto"` instead',
    DIFFERS,
)
def test_backup_and_restore(tmp_path):
    run_here(
        tmp_path / "run",
        cb.BackupAndRestore(tmp_path / "backup", delete_checkpoint=False),
        epochs=2,
    )
    assert sorted(path.name for path in (tmp_path / "backup").iterdir()) == [
        "latest.weights.h5",
        "training_metadata.json",
    ]
    with pytest.raises(HooklineError) as caught:
        run_here(tmp_path / "run", cb.BackupAndRestore(tmp_path / "backup"), epochs=3)
    assert caught.value.component == "BackupAndRestore"
    assert caught.value.parameter == "_initial_epoch"


@shows(
    NAME,
    "SwapEMAWeights",
    "needs the average of a Keras optimizer; use EMAHook",
    CANNOT,
)
def test_swap_ema_weights_reports_the_missing_attribute(tmp_path):
    with pytest.raises(MissingAttribute, match=r"SwapEMAWeights needs `model\.optimizer\.use_ema`"):
        run_here(tmp_path, cb.SwapEMAWeights())


@shows(NAME, "TensorBoard", "needs TensorFlow; use TensorBoardHook", CANNOT)
def test_tensorboard_needs_tensorflow(tmp_path):
    with pytest.raises(ModuleNotFoundError, match="tensorflow"):
        run_here(tmp_path, cb.TensorBoard(str(tmp_path)))


@shows(NAME, "OrbaxCheckpoint", "needs orbax-checkpoint", UNTRIED)
def test_orbax_is_not_here(tmp_path):
    with pytest.raises(ImportError, match="orbax"):
        run_here(tmp_path, cb.OrbaxCheckpoint(str(tmp_path)))


def test_results_of_an_earlier_epoch_are_not_taken_for_this_one(tmp_path):
    seen = []
    callback = cb.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append("val_loss" in logs))
    runner = run_here(tmp_path, callback, epochs=4, train=False)
    runner.hook("EvalHook").interval = 2
    runner.train()
    assert seen == [False, True, False, True]


def test_a_missing_attribute_names_callback_attribute_and_version(tmp_path):
    class Curious(cb.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.summary()

    with pytest.raises(
        MissingAttribute, match=rf"Curious needs `model\.summary` of keras {keras.__version__}"
    ):
        run_here(tmp_path, Curious())


def test_only_sites_that_the_callback_overrides_are_hooked():
    stages = set(wrap(cb.LearningRateScheduler(lambda epoch: 0.1)).get_triggered_stages())
    assert stages == {
        "before_run",
        "before_train_epoch",
        "after_train_iter",
        "after_epoch",
        "after_train",
    }


def test_a_run_of_several_optimizers_is_rejected(tmp_path):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def train_step(self, batch):
            return {"loss": self.net(batch[0]).mean()}

    model = Own()
    optimizers = {"a": torch.optim.SGD(model.parameters(), 0.1)}

    runner = BaseRunner(
        model,
        batches(),
        optimizer=optimizers,
        max_epochs=1,
        work_dir=tmp_path,
        hooks=[cb.LearningRateScheduler(lambda e: 0.1)],
    )
    with pytest.raises(HooklineError) as caught:
        runner.train()
    assert caught.value.component == "LearningRateScheduler"
