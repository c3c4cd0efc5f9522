"""Which files a run leaves behind, when, and what they hold."""

from __future__ import annotations

import json
import os
import shutil

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.checkpoint import CheckpointError, FileSystem
from hookline.engine import BaseHook
from hookline.errors import ConfigError
from hookline.hooks import CheckpointHook, build_hook
from tests.helpers import batches
from tests.problems import logged


class Scores:
    """A metric whose values are written down beforehand."""

    def __init__(self, *values: float) -> None:
        self.values = list(values)

    def update(self, preds, targets): ...

    def reset(self): ...

    def compute(self):
        return self.values.pop(0)


def run(folder, *hooks, scores=None, **parts) -> Runner:
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    metrics = {name: Scores(*values) for name, values in (scores or {}).items()}
    parts = {
        "max_epochs": 6,
        "train_loader": batches(2),
        "val_loader": batches(1) if metrics else None,
        **parts,
    }
    runner = Runner(
        model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), loss_fn=nn.CrossEntropyLoss(), work_dir=folder, metrics=metrics,
        drop_hooks=["LoggerHook", "CheckInvalidLossHook"], hooks=hooks, **parts,
    )  # fmt: skip
    runner.train()
    return runner


def files(folder) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix == ".pth"}


def epoch_of(path) -> int:
    return torch.load(path, weights_only=True)["meta"]["epoch"]


def test_the_newest_are_kept_and_best_and_last_do_not_count(tmp_path):
    run(
        tmp_path,
        CheckpointHook(max_keep_ckpts=2),
        scores={"accuracy": [0.1, 0.9, 0.2, 0.3, 0.4, 0.5]},
    )
    assert files(tmp_path) == {"epoch_5.pth", "epoch_6.pth", "last.pth", "best_accuracy.pth"}
    assert epoch_of(tmp_path / "best_accuracy.pth") == 2
    assert epoch_of(tmp_path / "last.pth") == 6


def test_the_defaults_are_the_documented_ones():
    hook = CheckpointHook()
    assert (
        hook.interval,
        hook.by_epoch,
        hook.save_optimizer,
        hook.save_scheduler,
        hook.max_keep_ckpts,
    ) == (1, True, True, True, 5)
    assert (hook.save_last, hook.save_best, hook.best_metric, hook.rule) == (
        True,
        True,
        "accuracy",
        "greater",
    )
    assert (hook.out_dir, hook.filename_tmpl) == (None, "epoch_{}.pth")


@pytest.mark.parametrize(
    "config, expected",
    [
        ({"interval": 2}, {"epoch_2.pth", "epoch_4.pth", "epoch_6.pth", "last.pth"}),
        ({"interval": 4}, {"epoch_4.pth", "last.pth"}),
        ({"interval": 4, "save_last": False}, {"epoch_4.pth"}),
        ({"interval": -1}, {"last.pth"}),
        (
            {"interval": 2, "save_begin": 3, "max_keep_ckpts": -1},
            {"epoch_3.pth", "epoch_5.pth", "last.pth"},
        ),
        ({"interval": 5, "by_epoch": False}, {"iter_5.pth", "iter_10.pth", "last.pth"}),
        ({"interval": 3, "filename_tmpl": "e{:03d}.pth"}, {"e003.pth", "e006.pth", "last.pth"}),
        ({"interval": 1, "max_keep_ckpts": 1, "save_last": False}, {"epoch_6.pth"}),
    ],
)
def test_intervals_names_and_beginnings(tmp_path, config, expected):
    run(tmp_path, {"type": "CheckpointHook", **config})
    assert files(tmp_path) == expected


def test_files_go_to_out_dir(tmp_path):
    run(tmp_path / "run", CheckpointHook(out_dir=str(tmp_path / "elsewhere"), interval=6))
    assert files(tmp_path / "elsewhere") == {"epoch_6.pth", "last.pth"}
    assert files(tmp_path / "run") == set()


@pytest.mark.parametrize("async_save", [True, False])
def test_what_is_not_wanted_is_not_in_the_file(tmp_path, async_save):
    run(
        tmp_path,
        CheckpointHook(save_optimizer=False, save_param_scheduler=False, async_save=async_save),
    )
    checkpoint = torch.load(tmp_path / "last.pth", weights_only=True)
    assert "optimizer" not in checkpoint
    assert "scheduler" not in checkpoint
    assert "state_dict" in checkpoint


@pytest.mark.parametrize(
    "config, best",
    [
        ({"save_best": False}, {}),
        ({"save_best": True, "best_metric": "error", "rule": "less"}, {"best_error.pth": 2}),
        ({"save_best": "error"}, {"best_error.pth": 2}),
        ({"save_best": "auto"}, {"best_accuracy.pth": 3}),
        ({"save_best": ["accuracy", "error"]}, {"best_accuracy.pth": 3, "best_error.pth": 2}),
        ({"save_best": "accuracy", "rule": "less"}, {"best_accuracy.pth": 1}),
        ({"save_best": ["odd"]}, {"best_odd.pth": 3}),
        ({"save_best": ["odd"], "less_keys": ["odd"]}, {"best_odd.pth": 4}),
        ({"save_best": ["error"], "greater_keys": ["error"]}, {"best_error.pth": 1}),
    ],
)
def test_the_best_is_kept_by_the_rule_of_its_metric(tmp_path, config, best):
    scores = {"accuracy": [0.1, 0.2, 0.9, 0.4], "error": [0.9, 0.0, 0.2, 0.3], "odd": [1, 2, 3, 0]}
    hooks = [{"type": "CheckpointHook", **config}, {"type": "EvalHook"}]
    if not isinstance(config["save_best"], bool):
        hooks[1]["save_best"] = False
    run(tmp_path, *hooks, scores=scores, max_epochs=4)
    found = {name: epoch_of(tmp_path / name) for name in files(tmp_path) if name.startswith("best")}
    assert found == best


@pytest.mark.parametrize(
    "checkpoint, evaluation, best",
    [
        ({}, {}, {"best_accuracy.pth": 3}),
        ({"save_best": False}, {}, {}),
        ({}, {"save_best": False}, {}),
        ({"best_metric": "error"}, {}, {"best_error.pth": 2}),
        ({}, {"metric": "error"}, {"best_error.pth": 2}),
        ({"best_metric": "error", "rule": "greater"}, {}, {"best_error.pth": 1}),
        ({}, {"metric": "error", "rule": "greater"}, {"best_error.pth": 1}),
    ],
)
def test_one_setting_of_two_hooks_decides_about_the_best(tmp_path, checkpoint, evaluation, best):
    scores = {"accuracy": [0.1, 0.2, 0.9, 0.4], "error": [0.9, 0.0, 0.2, 0.3]}
    hooks = [{"type": "CheckpointHook", **checkpoint}, {"type": "EvalHook", **evaluation}]
    run(tmp_path, *hooks, scores=scores, max_epochs=4)
    found = {name: epoch_of(tmp_path / name) for name in files(tmp_path) if name.startswith("best")}
    assert found == best


def test_a_rule_against_the_usual_direction_is_obeyed_with_a_warning(tmp_path, caplog):
    hook = {"type": "CheckpointHook", "best_metric": "error", "rule": "greater"}
    run(tmp_path, hook, scores={"error": [0.9, 0.0]}, max_epochs=2)
    assert logged(caplog, "CheckpointHook", "error", "greater")
    assert epoch_of(tmp_path / "best_error.pth") == 1


def best_names(folder, metric="accuracy") -> list[str]:
    """Return the files that best.json lists, the best one first."""
    listed = json.loads((folder / "best.json").read_text())["metrics"][metric]["checkpoints"]
    return [each["file"] for each in listed]


def test_the_k_best_are_kept_under_names_with_their_score(tmp_path):
    scores = {"accuracy": [0.5, 0.25, 0.75, float("nan"), 0.5, 0.625]}
    hook = CheckpointHook(interval=-1, save_last=False, keep_best=3)
    run(tmp_path, hook, scores=scores)
    best = [
        "best_accuracy_0.75_iter_6.pth",
        "best_accuracy_0.625_iter_12.pth",
        "best_accuracy_0.5_iter_10.pth",
    ]
    assert best_names(tmp_path) == best
    assert files(tmp_path) == {*best, "best_accuracy.pth"}
    assert epoch_of(tmp_path / "best_accuracy.pth") == 3


def test_each_metric_has_its_k_best(tmp_path):
    hook = CheckpointHook(interval=-1, save_best=["accuracy", "error"], keep_best=2)
    scores = {"accuracy": [0.1, 0.2, 0.3], "error": [3.0, 2.0, 4.0]}
    run(tmp_path, hook, scores=scores, max_epochs=3)
    assert best_names(tmp_path) == ["best_accuracy_0.3_iter_6.pth", "best_accuracy_0.2_iter_4.pth"]
    assert best_names(tmp_path, "error") == ["best_error_2_iter_4.pth", "best_error_3_iter_2.pth"]


def test_metrics_whose_names_give_the_same_files_lose_none(tmp_path):
    hook = CheckpointHook(save_best=["a/b", "a_b"], rule="greater", interval=-1, keep_best=2)
    scores = {"a/b": [1.0, 2.0, 3.0, 4.0], "a_b": [1.0, 2.0, 0.5, 0.4]}
    run(tmp_path, hook, scores=scores, max_epochs=4)
    assert {*best_names(tmp_path, "a/b"), *best_names(tmp_path, "a_b")} <= files(tmp_path)


def test_a_smaller_number_of_best_ones_takes_effect_on_resume(tmp_path):
    hook = {"type": "CheckpointHook", "interval": -1, "keep_best": 3}
    run(tmp_path, hook, scores={"accuracy": [0.1, 0.2, 0.3]}, max_epochs=3)
    hook["keep_best"] = 1
    run(tmp_path, hook, scores={"accuracy": [0.25, 0.4]}, max_epochs=5, resume="auto")
    assert best_names(tmp_path) == ["best_accuracy_0.4_iter_10.pth"]
    assert files(tmp_path) == {*best_names(tmp_path), "best_accuracy.pth", "last.pth"}


def test_another_direction_takes_effect_on_resume(tmp_path):
    hook = {"type": "CheckpointHook", "best_metric": "error", "rule": "less", "keep_best": 2}
    run(tmp_path, hook, scores={"error": [0.2, 0.1]}, max_epochs=2)
    hook["rule"] = "greater"
    run(tmp_path, hook, scores={"error": [0.3, 0.4]}, max_epochs=4, resume="auto")
    assert best_names(tmp_path, "error") == [
        "best_error_0.4_iter_8.pth",
        "best_error_0.3_iter_6.pth",
    ]


def test_the_k_best_continue_after_a_kill_before_the_removal(tmp_path, monkeypatch):
    hook = {"type": "CheckpointHook", "keep_best": 2, "max_keep_ckpts": -1, "async_save": False}
    run(tmp_path, hook, scores={"accuracy": [0.1, 0.2]}, max_epochs=2)
    monkeypatch.setattr(FileSystem, "unlink", kill_before_removal)
    with pytest.raises(Killed):
        run(tmp_path, hook, scores={"accuracy": [0.3]}, max_epochs=3, resume="auto")
    assert "best_accuracy_0.1_iter_2.pth" in files(tmp_path)
    monkeypatch.undo()
    run(tmp_path, hook, scores={"accuracy": [0.25, 0.4]}, max_epochs=5, resume="auto")
    best = {"best_accuracy_0.3_iter_6.pth", "best_accuracy_0.4_iter_10.pth"}
    assert set(best_names(tmp_path)) == best
    assert {name for name in files(tmp_path) if name.startswith("best_accuracy_")} == best


def test_a_list_of_the_best_does_not_overwrite_a_file_of_the_user(tmp_path):
    (tmp_path / "best.json").write_text('{"mine": 1}')
    run(tmp_path, CheckpointHook(keep_best=2), scores={"accuracy": [0.1]}, max_epochs=1)
    assert json.loads((tmp_path / "best.1.json").read_text()) == {"mine": 1}
    assert best_names(tmp_path) == ["best_accuracy_0.1_iter_2.pth"]


def test_checkpoints_of_every_nth_epoch_are_never_removed(tmp_path):
    run(tmp_path, CheckpointHook(max_keep_ckpts=1, keep_every_n_epochs=2, save_best=False))
    assert files(tmp_path) == {f"epoch_{n}.pth" for n in (2, 4, 5, 6)} | {"last.pth"}


def test_a_score_of_zero_counts(tmp_path):
    run(
        tmp_path,
        CheckpointHook(best_metric="error", rule="less"),
        scores={"error": [0.5, 0.0, 0.1]},
        max_epochs=3,
    )
    assert epoch_of(tmp_path / "best_error.pth") == 2


def test_the_names_of_one_seam_are_one_file(tmp_path):
    run(tmp_path, scores={"accuracy": [0.1]}, max_epochs=1)
    inodes = {
        (tmp_path / name).stat().st_ino for name in ("epoch_1.pth", "last.pth", "best_accuracy.pth")
    }
    assert len(inodes) == 1


def test_a_metrics_name_cannot_lead_out_of_the_directory(tmp_path):
    run(
        tmp_path / "run",
        CheckpointHook(best_metric="../../evil"),
        scores={"../../evil": [1.0]},
        max_epochs=1,
    )
    assert files(tmp_path / "run") == {
        "epoch_1.pth",
        "last.pth",
        "best__.._evil.pth",
    } or "best_" in " ".join(files(tmp_path / "run"))
    assert not [path for path in tmp_path.rglob("*evil*") if path.parent != tmp_path / "run"]


@pytest.mark.parametrize(
    "config, word",
    [
        ({"interval": 0}, "interval"),
        ({"filename_tmpl": "same.pth"}, "same.pth"),
        ({"filename_tmpl": "{:0999999999d}.pth"}, "filename_tmpl"),
        ({"every": "soon"}, "'soon'"),
        ({"intervall": 1}, "'interval'"),
        ({"rule": "bigger"}, "'bigger'"),
    ],
)
def test_wrong_parameters_are_rejected(config, word):
    with pytest.raises(ConfigError, match=word) as error:
        build_hook({"type": "CheckpointHook", **config})
    assert error.value.component == "CheckpointHook"


def test_a_template_that_leads_out_is_refused_before_training(tmp_path):
    with pytest.raises(ConfigError, match=r"\.\./"):
        build_hook({"type": "CheckpointHook", "filename_tmpl": "../{}.pth"})


def test_files_of_other_runs_are_not_touched_and_retention_continues_after_a_resume(tmp_path):
    (tmp_path / "epoch_0.pth").write_bytes(b"someone else's")
    run(tmp_path, CheckpointHook(max_keep_ckpts=2), max_epochs=3)
    run(tmp_path, CheckpointHook(max_keep_ckpts=2), max_epochs=5, resume="auto")
    assert files(tmp_path) == {"epoch_0.pth", "epoch_4.pth", "epoch_5.pth", "last.pth"}
    assert (tmp_path / "epoch_0.pth").read_bytes() == b"someone else's"


class Killed(BaseException):
    """Stands for a kill in the background thread."""


def kill_before_removal(fs, path):
    """Stand for a kill after the commit of a checkpoint, before surplus files are removed."""
    if path.name.startswith(("iter_", "best_accuracy_")):
        raise Killed
    os.unlink(path)


def test_retention_catches_up_after_runs_that_were_killed_before_the_removal(tmp_path, monkeypatch):
    hook = {"type": "CheckpointHook", "interval": 1, "by_epoch": False, "max_keep_ckpts": 2}
    hook["async_save"] = False
    run(tmp_path, hook, max_iters=2, max_epochs=None)
    for last in (3, 4):
        monkeypatch.setattr(FileSystem, "unlink", kill_before_removal)
        with pytest.raises(Killed):
            run(tmp_path, hook, max_iters=last, max_epochs=None, resume="auto")
        assert f"iter_{last - 2}.pth" in files(tmp_path)
    monkeypatch.undo()
    run(tmp_path, hook, max_iters=5, max_epochs=None, resume="auto")
    assert files(tmp_path) == {"iter_4.pth", "iter_5.pth", "last.pth"}


def test_a_copied_checkpoint_without_a_manifest_is_resumed_from(tmp_path, caplog):
    run(tmp_path / "a", CheckpointHook(), max_epochs=2)
    (tmp_path / "b").mkdir()
    for name in ("epoch_1.pth", "last.pth"):
        shutil.copy(tmp_path / "a" / name, tmp_path / "b")
    runner = run(tmp_path / "b", CheckpointHook(), max_epochs=3, resume="auto")
    assert logged(caplog, "last.pth")
    run(tmp_path / "a", CheckpointHook(), max_epochs=3, resume="auto")
    assert runner.iter == 6
    assert epoch_of(tmp_path / "b" / "epoch_1.pth") == 1
    expected = torch.load(tmp_path / "a" / "last.pth", weights_only=True)["state_dict"]
    found = torch.load(tmp_path / "b" / "last.pth", weights_only=True)["state_dict"]
    assert torch.equal(found["weight"], expected["weight"])


def test_a_new_run_that_is_killed_before_its_first_save_starts_over(tmp_path):
    run(tmp_path, CheckpointHook(), max_epochs=2)

    class Kill(BaseHook):
        def after_train_iter(self, runner):
            raise Killed

    with pytest.raises(Killed):
        run(tmp_path, CheckpointHook(), Kill(), max_epochs=2)
    seen = []

    class Count(BaseHook):
        def after_train_iter(self, runner):
            seen.append(runner.iter)

    run(tmp_path, CheckpointHook(), Count(), max_epochs=2, resume="auto")
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("every", "saves"), [(1e-9, list(range(1, 11))), ("1000h", [])], ids=["short", "long"]
)
def test_time_can_be_the_interval(tmp_path, every, saves):
    seen = []

    class Count(BaseHook):
        def after_save_checkpoint(self, runner):
            seen.append(runner.iter)

    hook = CheckpointHook(interval=-1, every=every, save_last=False)
    run(tmp_path, hook, Count(), max_epochs=5, train_loader=batches(2))
    assert seen == saves
    assert files(tmp_path) == ({"last.pth"} if saves else set())


def test_published_files_hold_the_chosen_parts_only(tmp_path):
    run(
        tmp_path,
        CheckpointHook(published_keys=["meta", "state_dict"]),
        scores={"accuracy": [0.1, 0.2]},
        max_epochs=2,
    )
    published = [
        path for path in tmp_path.iterdir() if path.name.startswith(("last-", "best_accuracy-"))
    ]
    assert len(published) == 2
    for path in published:
        assert set(torch.load(path, weights_only=True)) == {"meta", "state_dict"}


class Break(BaseHook):
    def __init__(self, at: int) -> None:
        self.at = at

    def after_forward(self, runner):
        if runner.iter == self.at:
            raise RuntimeError("broken")


def test_on_an_exception_the_state_can_be_kept_for_looking_at_but_is_not_resumed_from(tmp_path):
    with pytest.raises(RuntimeError, match="broken"):
        run(tmp_path, CheckpointHook(save_on_exception=True), Break(5))
    assert torch.load(tmp_path / "exception.pth", weights_only=True)["meta"]["iter"] == 5
    resumed = []

    class Look(BaseHook):
        def before_train(self, runner):
            resumed.append(runner.iter)

    run(tmp_path, CheckpointHook(), Look(), resume="auto")
    assert resumed == [4]


class FullDisk(FileSystem):
    def write(self, *args, **kwargs):
        raise OSError(28, "No space left on device")


def test_a_full_disk_does_not_hide_the_first_error(tmp_path):
    class Fill(BaseHook):
        def on_exception(self, runner):
            runner.checkpointer.store._fs = FullDisk()

    fill = Fill()
    fill.priority = "LOWEST"  # at on_exception it comes first
    with pytest.raises(RuntimeError, match="broken") as caught:
        run(tmp_path, CheckpointHook(save_on_exception=True), fill, Break(5))
    assert any("disk" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("async_save", [True, False])
def test_a_failed_save_stops_the_run_with_the_file_and_the_cause_and_the_old_one_stays_good(
    tmp_path, async_save
):
    class Fill(BaseHook):
        def after_epoch(self, runner):
            if runner.epoch == 2:
                runner.checkpointer.store._fs = FullDisk()

    with pytest.raises(CheckpointError, match=r"epoch_\d.pth.*"):
        run(tmp_path, CheckpointHook(async_save=async_save), Fill(), train_loader=batches(20))
    assert run(tmp_path, CheckpointHook(), resume="auto", train_loader=batches(20)).iter == 120


def test_weights_that_are_not_finite_never_become_last_or_best(tmp_path):
    class Spoil(BaseHook):
        def after_train_iter(self, runner):
            if runner.epoch == 2:
                runner.model.weight.data.fill_(float("nan"))

    run(
        tmp_path,
        CheckpointHook(max_keep_ckpts=1),
        Spoil(),
        scores={"accuracy": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]},
    )
    for name in ("last.pth", "best_accuracy.pth"):
        assert torch.isfinite(
            torch.load(tmp_path / name, weights_only=True)["state_dict"]["weight"]
        ).all()
    assert epoch_of(tmp_path / "last.pth") == 2


def test_weights_that_were_never_finite_are_neither_last_nor_best_nor_resumed_from(
    tmp_path, caplog
):
    class Spoil(BaseHook):
        def after_train_iter(self, runner):
            runner.model.weight.data.fill_(float("nan"))

    run(
        tmp_path,
        CheckpointHook(interval=-1, published_keys="state_dict"),
        Spoil(),
        scores={"accuracy": [0.1, 0.2]},
        max_epochs=2,
    )
    assert files(tmp_path) == {"not_finite_best_accuracy.pth", "not_finite_last.pth"}
    assert "not_finite_last.pth" in caplog.text
    caplog.clear()
    run(tmp_path, CheckpointHook(), resume="auto", max_epochs=1)
    assert logged(caplog, str(tmp_path))


def test_a_new_run_among_the_checkpoints_of_another_is_reported(tmp_path, caplog):
    for resume in (None, "auto"):
        run(tmp_path, CheckpointHook(), max_epochs=1, resume=resume)
    assert not logged(caplog)
    run(tmp_path, CheckpointHook(), max_epochs=2)
    (warning,) = logged(caplog)
    assert "epoch_1.pth" in warning.getMessage()


def test_a_file_is_named_by_the_iteration_that_it_holds(tmp_path):
    accumulate = {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": 3}
    saves = CheckpointHook(by_epoch=False, interval=2, max_keep_ckpts=2)
    assert run(tmp_path, saves, accumulate, train_loader=batches(9), max_epochs=1).iter == 9
    assert files(tmp_path) == {"iter_6.pth", "iter_9.pth", "last.pth"}  # asked for at 2, 4, 6 and 8
    for name in ("iter_6.pth", "iter_9.pth"):
        checkpoint = torch.load(tmp_path / name, weights_only=True)
        assert name == f"iter_{checkpoint['meta']['iter']}.pth"
        assert checkpoint["hooks"]["CheckpointHook"]["kept"][-1] == name


def test_a_second_run_in_the_same_directory_is_refused_at_once(tmp_path):
    class Again(BaseHook):
        def before_train(self, runner):
            run(tmp_path)

    with pytest.raises(CheckpointError, match="in use"):
        run(tmp_path, CheckpointHook(), Again())


def test_a_save_asked_for_by_name_is_written_under_it(tmp_path):
    class Ask(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 2:
                runner.request_save("before/surgery")

    run(tmp_path, CheckpointHook(interval=-1, save_last=False), Ask())
    assert files(tmp_path) == {"before_surgery.pth"}


def test_a_hook_may_add_plain_data_and_what_cannot_be_stored_is_refused_with_its_path(tmp_path):
    class Add(BaseHook):
        def __init__(self, value):
            self.value = value

        def before_save_checkpoint(self, checkpoint):
            checkpoint["mine"] = {"list": [1, self.value]}

    run(tmp_path, CheckpointHook(), Add("text"))
    assert torch.load(tmp_path / "last.pth", weights_only=True)["mine"] == {"list": [1, "text"]}
    with pytest.raises(ConfigError, match=r"mine\.list\[1\]"):
        run(tmp_path / "other", CheckpointHook(), Add(object()))


def test_secrets_of_the_config_are_masked_in_the_file(tmp_path):
    run(tmp_path, config={"tracker": {"api_key": "hunter2"}}, max_epochs=1)
    assert b"hunter2" not in (tmp_path / "last.pth").read_bytes()
