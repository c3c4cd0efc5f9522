"""When validation happens, on what, and what it calls the best."""

from __future__ import annotations

import gc

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from hookline import Runner
from hookline.checkpoint import load_checkpoint
from hookline.engine import BaseHook
from hookline.errors import ConfigError, HooklineError
from hookline.hooks import CheckpointHook, DistEvalHook, EvalHook, StopAtHook, build_hook
from hookline.metrics import build_metrics
from tests.helpers import Tracer, batches, make_runner, small_model
from tests.problems import logged, raises_problem


class Notes(BaseHook):
    """Notes after how many iterations validations happen, and what they give."""

    def __init__(self) -> None:
        self.iters: list[int] = []
        self.metrics: list[dict[str, float]] = []

    def after_val_epoch(self, runner):
        self.iters.append(runner.iter)
        self.metrics.append(dict(runner.metrics))


def train(tmp_path, *hooks, metrics=("accuracy",), **parts):
    notes = Notes()
    parts = {"train_loader": batches(2), "val_loader": batches(2, seed=5), "max_epochs": 6, **parts}
    runner = make_runner(tmp_path, *hooks, notes, metrics=build_metrics(list(metrics)), **parts)
    runner.train()
    return runner, notes


@pytest.mark.parametrize(
    "options, iters",
    [
        ({}, [2, 4, 6, 8, 10, 12]),
        ({"interval": 2}, [4, 8, 12]),
        ({"start": 4}, [8, 10, 12]),
        ({"start": 3, "interval": 2}, [6, 10]),
        ({"by_epoch": False, "interval": 5}, [5, 10]),
        ({"by_epoch": False, "interval": 4, "start": 3}, [3, 7, 11]),
    ],
)
def test_validation_comes_at_its_interval_from_the_start_on(tmp_path, options, iters):
    assert train(tmp_path, EvalHook(**options))[1].iters == iters


@pytest.mark.parametrize("start, looked", [(2, True), (3, True), (4, False), (0, False)])
def test_a_resumed_run_is_validated_for_display_only_before_it_continues(tmp_path, start, looked):
    def run(folder, *more, **parts):
        return train(folder, EvalHook(start=start), CheckpointHook(save_best=False), *more, **parts)

    straight, _ = run(tmp_path / "straight")
    run(tmp_path / "cut", StopAtHook(epoch=3))
    tracer = Tracer()
    resumed, notes = run(tmp_path / "cut", tracer, resume="auto")
    assert (tracer.log.index("before_val") < tracer.log.index("before_train_iter")) is looked
    assert (notes.iters[0] == 6) is looked
    assert resumed.best == straight.best
    assert torch.equal(resumed.model[0].weight, straight.model[0].weight)


def test_its_own_loader_takes_the_place_of_the_runners(tmp_path):
    other = batches(1, seed=8)
    a, _ = train(tmp_path / "a", EvalHook(other))
    b, _ = train(tmp_path / "b", EvalHook(), val_loader=other)
    assert a.metrics == b.metrics


def test_several_loaders_give_metrics_with_their_names(tmp_path):
    loaders = {"clean": batches(2, seed=5), "noisy": batches(3, seed=6)}
    tracer = Tracer()
    runner, _ = train(
        tmp_path,
        EvalHook(loaders, metric="noisy/loss"),
        CheckpointHook(save_best=False),
        tracer,
        max_epochs=1,
    )
    assert list(runner.metrics) == ["clean/accuracy", "clean/loss", "noisy/accuracy", "noisy/loss"]
    assert runner.metrics["val_clean_accuracy"] == runner.metrics["clean/accuracy"]
    assert tracer.log.count("before_val_epoch") == 1
    assert tracer.log.count("after_val_iter") == 5
    assert runner.best["noisy/loss"]["rule"] == "less"
    for name, loader in loaders.items():
        alone, _ = train(tmp_path / name, EvalHook(loader), max_epochs=1)
        assert alone.metrics["accuracy"] == runner.metrics[f"{name}/accuracy"]
        assert alone.metrics["val_loss"] == runner.metrics[f"{name}/loss"]


def test_a_loader_may_come_from_a_config(tmp_path):
    hook = build_hook(
        {
            "type": "EvalHook",
            "dataloader": {
                "some": {"dataset": {"type": "digits", "split": "val"}, "batch_size": 64}
            },
        }
    )
    assert next(iter(hook.dataloader["some"]))[0].shape[0] == 64


def test_one_look_up_serves_all_names_of_a_metric(tmp_path):
    runner, _ = train(tmp_path, EvalHook(), max_epochs=1)
    values = {runner.metrics[name] for name in ("accuracy", "val_accuracy", "val/accuracy", "acc")}
    assert len(values) == 1
    assert runner.metrics["val/loss"] == runner.metrics["val_loss"] == runner.metrics["loss"]


@pytest.mark.parametrize("options", [{"metric": "acuracy"}, {"save_best": "acuracy"}])
def test_a_misspelled_metric_is_found_before_training(tmp_path, options):
    with raises_problem(component="EvalHook", parameter="metric", nearest="accuracy"):
        train(tmp_path, EvalHook(**options))
    parts = {"val_loader": batches(1), "metrics": build_metrics(["accuracy"])}
    with raises_problem(component="CheckpointHook", nearest=None):
        make_runner(tmp_path, EvalHook(), CheckpointHook(best_metric="nonsense"), **parts).train()


def test_a_metric_that_no_hook_has_added_is_reported_after_the_first_validation(tmp_path, caplog):
    train(tmp_path, EvalHook(), CheckpointHook(best_metric="nonsense"))
    assert len(logged(caplog, "CheckpointHook", "'nonsense'")) == 1


def test_a_default_metric_that_is_not_measured_is_replaced_and_a_choice_is_logged(tmp_path, caplog):
    caplog.set_level("INFO", "hookline")
    runner, notes = train(tmp_path / "loss", EvalHook(), CheckpointHook(), metrics=())
    lowest = min(metrics["val_loss"] for metrics in notes.metrics)
    assert runner.best["val_loss"]["value"] == lowest
    assert (tmp_path / "loss" / "best_val_loss.pth").exists()
    assert not logged(caplog, "best", level="INFO")
    train(tmp_path / "f1", EvalHook(), CheckpointHook(), metrics=("f1",))
    assert (tmp_path / "f1" / "best_f1.pth").exists()
    assert len(logged(caplog, "best", "f1", level="INFO")) == 1


class Scripted:
    """A custom metric with a number for each epoch."""

    def __init__(self, *values, higher_is_better=None):
        self.values, self.higher_is_better = iter(values), higher_is_better

    def update(self, predictions, targets): ...

    def compute(self):
        return next(self.values)

    def reset(self): ...


def best_of(tmp_path, *hooks, values=(1.0, 0.5, 2.0, 1.5), **options):
    """The epoch of the best checkpoint of a run that measures these values."""
    fake = Scripted(*values, **options)
    runner = make_runner(
        tmp_path,
        *hooks,
        metrics={"fake": fake},
        val_loader=batches(1),
        train_loader=batches(1),
        max_epochs=4,
    )
    runner.train()
    assert list(runner.best) == ["fake"]
    return load_checkpoint(tmp_path / "best_fake.pth")["meta"]["epoch"]


@pytest.mark.parametrize(
    "evaluate, save, epoch",
    [
        ({}, {"rule": "less"}, 2),
        ({"rule": "less"}, {}, 2),
        ({"rule": "less"}, {"rule": "less"}, 2),
        ({}, {"less_keys": ["fake"]}, 2),
    ],
)
def test_the_rule_of_one_hook_holds_for_all(tmp_path, caplog, evaluate, save, epoch):
    assert best_of(tmp_path, EvalHook(**evaluate), CheckpointHook(**save)) == epoch
    assert not logged(caplog, "'fake'")


def test_rules_that_contradict_each_other_are_rejected(tmp_path):
    with raises_problem(component="EvalHook", parameter="rule"):
        best_of(tmp_path, CheckpointHook(greater_keys=["fake"]), EvalHook(rule="less"))


def test_an_unknown_direction_is_reported_once(tmp_path, caplog):
    assert best_of(tmp_path, EvalHook(), CheckpointHook()) == 3
    assert len(logged(caplog, "'fake'", "rule")) == 1


@pytest.mark.parametrize("higher, epoch", [(True, 3), (False, 2)])
def test_a_metric_may_declare_its_direction(tmp_path, caplog, higher, epoch):
    assert best_of(tmp_path, EvalHook(), CheckpointHook(), higher_is_better=higher) == epoch
    assert not logged(caplog, "'fake'")


def test_the_metric_that_a_validation_is_judged_by_judges_the_checkpoints_too(tmp_path):
    runner, _ = train(tmp_path, EvalHook(metric="val_loss"), CheckpointHook(), max_epochs=2)
    assert list(runner.best) == ["val_loss"]
    assert [path.name for path in tmp_path.glob("best_*")] == ["best_val_loss.pth"]


def test_of_several_sets_a_hook_knows_which_one_it_is_in(tmp_path):
    class Look(BaseHook):
        def after_val_iter(self, runner):
            seen.append(runner.evaluation.set_name)

    seen: list[str] = []
    train(tmp_path, EvalHook({"calm": batches(1), "storm": batches(2)}), Look(), max_epochs=1)
    assert seen == ["calm", "storm", "storm"]


@pytest.mark.parametrize(
    "options", [{"metric": "auto"}, {"save_best": "auto"}, {"save_best": "acc"}]
)
def test_auto_is_the_first_metric(tmp_path, options):
    runner, notes = train(
        tmp_path, EvalHook(**options), CheckpointHook(), metrics=("accuracy", "f1")
    )
    ((name, best),) = runner.best.items()
    assert name in ("accuracy", "acc")
    assert best["value"] == max(metrics["accuracy"] for metrics in notes.metrics)
    assert (tmp_path / f"best_{name}.pth").exists()


def test_a_loss_is_best_when_it_is_least_even_if_the_rule_was_forgotten(tmp_path):
    runner, notes = train(tmp_path, EvalHook(metric="val_loss"))
    assert runner.best["val_loss"]["value"] == min(metrics["val_loss"] for metrics in notes.metrics)


def test_without_save_best_the_best_is_known_but_not_saved(tmp_path):
    runner, _ = train(tmp_path, EvalHook(save_best=False), CheckpointHook(save_best=False))
    assert "accuracy" in runner.best
    assert not (tmp_path / "best_accuracy.pth").exists()


def test_elements_of_a_metric_with_several_can_be_asked_for(tmp_path):
    metric = {"type": "Recall", "average": "none", "name": "recall"}
    runner, _ = train(tmp_path, EvalHook(metric="recall_2"), metrics=[metric])
    assert runner.best["recall_2"]["value"] >= 0


def test_any_callable_can_be_a_metric(tmp_path):
    def margin(preds, targets):
        return preds.max(1).values - preds.min(1).values

    model = small_model()
    runner = Runner(
        model, train_loader=batches(2), val_loader=batches(1), optimizer=torch.optim.SGD(model.parameters(), lr=0.1), max_epochs=1,
        loss_fn=torch.nn.CrossEntropyLoss(), metrics=[margin], work_dir=tmp_path, hooks=[EvalHook(metric="margin")],
    )  # fmt: skip
    runner.train()
    assert runner.best["margin"]["value"] > 0


def test_a_test_function_replaces_the_pass_over_the_data(tmp_path):
    calls = []

    def test_fn(model, loader):
        calls.append((model.training, loader))
        return {"quality": torch.tensor(0.5), "accuracy": len(calls) / 10}

    loader = batches(1)
    tracer = Tracer()
    runner, notes = train(
        tmp_path, EvalHook(loader, test_fn=test_fn, metric="quality"), tracer, max_epochs=3
    )
    assert [training for training, _ in calls] == [False] * 3
    assert all(given is loader for _, given in calls)
    assert notes.metrics[-1] == {"quality": 0.5, "accuracy": 0.3}
    assert "before_val_iter" not in tracer.log
    assert runner.best["quality"]["value"] == 0.5


def test_a_test_function_must_give_metrics(tmp_path):
    with pytest.raises(HooklineError, match="list"):
        train(tmp_path, EvalHook(test_fn=lambda model, loader: [1, 2]))
    with pytest.raises(ConfigError, match="test_fn"):
        build_hook({"type": "EvalHook", "test_fn": "mine"})


class Judging(TensorDataset):
    """A data set that judges predictions itself, as those of MMCV do."""

    seen: list[torch.Tensor]

    def evaluate(self, results, logger=None):
        assert logger is not None
        self.seen = results
        return {"mean": float(torch.stack(list(results)).mean())}


def judging_loader():
    inputs = torch.randn(20, 6, generator=torch.Generator().manual_seed(1))
    return DataLoader(Judging(inputs, torch.zeros(20, dtype=torch.long)), batch_size=8)


def test_a_data_set_that_can_judges_the_predictions_itself(tmp_path):
    loader = judging_loader()
    runner, _ = train(tmp_path, EvalHook(loader, metric="mean"), max_epochs=1)
    with torch.no_grad():
        wanted = runner.model(loader.dataset.tensors[0])
    assert len(loader.dataset.seen) == 20
    torch.testing.assert_close(torch.stack(loader.dataset.seen), wanted)
    assert runner.metrics["mean"] == pytest.approx(float(wanted.mean()), rel=1e-4)
    assert "accuracy" in runner.metrics


def test_a_test_functions_predictions_are_judged_by_the_data_set(tmp_path):
    runner, _ = train(
        tmp_path,
        EvalHook(judging_loader(), test_fn=lambda model, loader: [torch.ones(3)] * 4),
        max_epochs=1,
    )
    assert runner.metrics == {"mean": 1.0}


def test_an_efficient_test_keeps_no_predictions(tmp_path):
    alive = []

    class Count(BaseHook):
        def after_val_iter(self, runner):
            gc.collect()
            kept = [
                obj for obj in gc.get_objects() if type(obj) is torch.Tensor and obj.shape == (3,)
            ]
            alive.append(len(kept))

    loader = judging_loader()
    runner, _ = train(tmp_path / "a", EvalHook(loader, efficient_test=True), Count(), max_epochs=1)
    assert "mean" not in runner.metrics
    assert not hasattr(loader.dataset, "seen")
    efficient, alive[:] = list(alive), []
    train(tmp_path / "b", EvalHook(judging_loader()), Count(), max_epochs=1)
    assert efficient[0] == efficient[-1]
    assert alive[-1] >= alive[0] + 12


def test_a_distributed_evaluation_works_on_one_process_too(tmp_path):
    a, notes = train(tmp_path / "a", DistEvalHook(interval=2))
    b, _ = train(tmp_path / "b", EvalHook(interval=2))
    assert notes.iters == [4, 8, 12]
    assert a.metrics == b.metrics
    assert "before_val_epoch" not in DistEvalHook(broadcast_bn_buffer=False).get_triggered_stages()


def test_the_distributed_one_takes_the_place_of_the_default_one(tmp_path):
    runner = Runner(small_model(), work_dir=tmp_path, hooks=[{"type": "DistEvalHook"}])
    assert [hook.name for hook in runner.hooks if isinstance(hook, EvalHook)] == ["DistEvalHook"]


@pytest.mark.parametrize(
    "wrong, message",
    [({"interval": 0}, "interval"), ({"dataloader": 3}, "dataloader"), ({"rule": "most"}, "rule")],
)
def test_wrong_parameters_are_rejected(wrong, message):
    with pytest.raises(ConfigError, match=message):
        build_hook({"type": "EvalHook", **wrong})
