"""The average is what the document's formula gives, and only validation and test ever see it."""

from __future__ import annotations

import signal

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_swa_multi_avg_fn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.hooks import EMAHook, build_hook
from tests.dist.processes import Job
from tests.helpers import batches, make_runner, small_model
from tests.optim import loops
from tests.optim.schedule_free import ScheduleFreeSGD
from tests.problems import raises_problem


class Weights(BaseHook):
    """Keeps the weights as they are after each iteration."""

    def __init__(self) -> None:
        self.seen: list[list[torch.Tensor]] = []

    def before_train(self, model):
        self.first = [p.detach().double().clone() for p in model.parameters()]

    def after_train_iter(self, model):
        self.seen.append([p.detach().double().clone() for p in model.parameters()])


def train(tmp_path, *hooks, **parts):
    watch = Weights()
    runner = make_runner(
        tmp_path, *hooks, watch, **{"train_loader": batches(10), "max_iters": 50, **parts}
    )
    runner.train()
    return runner, watch


def test_500_iterations_with_warm_up_equal_the_formula_in_float64(tmp_path):
    hook = EMAHook(momentum=0.99, warm_up=100)
    _, watch = train(tmp_path, hook, max_iters=500)
    expected = watch.first
    for iteration, weights in enumerate(watch.seen):
        momentum = min(0.99, (1 + iteration) / (100 + iteration))
        expected = [
            momentum * old + (1 - momentum) * new
            for old, new in zip(expected, weights, strict=True)
        ]
    for average, wanted in zip(hook.average.average, expected, strict=True):
        torch.testing.assert_close(average.double(), wanted, rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("iteration, momentum", [(0, 0.01), (9, 10 / 109), (10**6, 0.9999)])
def test_the_momentum_grows_during_warm_up(tmp_path, iteration, momentum):
    hook = EMAHook()
    make_runner(tmp_path, hook).iter = iteration
    assert hook.current_momentum == pytest.approx(momentum)


def test_without_warm_up_the_momentum_is_the_given_one_from_the_start(tmp_path):
    hook = EMAHook(momentum=0.9, warm_up=0)
    make_runner(tmp_path, hook)
    assert hook.current_momentum == 0.9


def test_stochastic_weight_averaging_equals_torchs(tmp_path):
    model = small_model()
    theirs, one_by_one = (
        AveragedModel(model, multi_avg_fn=get_swa_multi_avg_fn()),
        AveragedModel(model),
    )

    class Torch(BaseHook):
        def after_train_iter(self, runner):
            theirs.update_parameters(model)
            one_by_one.update_parameters(model)

    hook = EMAHook(ema_type="StochasticWeightAverage")
    train(tmp_path, hook, Torch(), model=model)
    assert hook.updates == 50
    for ours, fused, single in zip(
        hook.average.average, theirs.parameters(), one_by_one.parameters(), strict=True
    ):
        assert torch.equal(ours, fused)
        torch.testing.assert_close(ours, single.detach())


def test_momentum_annealing_follows_its_formula(tmp_path):
    hook = EMAHook(momentum=0.9, ema_type="MomentumAnnealingEMA", gamma=10)
    _, watch = train(tmp_path, hook)
    expected = watch.first
    for updates, weights in enumerate(watch.seen):
        new = max(1 - 0.9, 10 / (10 + updates))
        expected = [(1 - new) * old + new * now for old, now in zip(expected, weights, strict=True)]
    for average, wanted in zip(hook.average.average, expected, strict=True):
        torch.testing.assert_close(average.double(), wanted, rtol=2e-6, atol=2e-7)


def test_the_interval_leaves_iterations_out(tmp_path):
    hook = EMAHook(momentum=0.5, warm_up=0, interval=20)
    _, watch = train(tmp_path, hook)
    expected = watch.first
    for weights in (watch.seen[19], watch.seen[39]):
        expected = [0.5 * old + 0.5 * now for old, now in zip(expected, weights, strict=True)]
    assert hook.updates == 2
    torch.testing.assert_close(hook.average.average[0].double(), expected[0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("begin", [{"begin_iter": 41}, {"begin_epoch": 5}])
def test_averaging_begins_late_with_a_copy_of_the_weights_of_that_moment(tmp_path, begin):
    hook = EMAHook(ema_type="StochasticWeightAverage", **begin)
    _, watch = train(tmp_path, hook)
    mean = torch.stack([weights[0] for weights in watch.seen[40:]]).mean(0)
    torch.testing.assert_close(hook.average.average[0].double(), mean, rtol=1e-6, atol=1e-7)


def test_before_it_begins_validation_uses_the_models_own_weights(tmp_path):
    seen = []

    class Look(BaseHook):
        def before_val_iter(self, model):
            seen.append(hook.average.swapped)

    hook = EMAHook(begin_epoch=2)
    train(tmp_path, hook, Look(), {"type": "EvalHook"}, max_iters=20, val_loader=batches(1))
    assert seen == [False, True]


def test_validation_and_test_use_the_average_and_training_never_does(tmp_path):
    plain, plain_watch = train(tmp_path / "plain", {"type": "EvalHook"}, val_loader=batches(2))
    hook, seen = EMAHook(momentum=0.9), []

    class Look(BaseHook):
        def before_val_iter(self, model):
            seen.append(torch.equal(next(model.parameters()), hook.average.average[0]))

        before_test_iter = before_val_iter

    runner, watch = train(
        tmp_path / "ema",
        hook,
        Look(),
        {"type": "EvalHook"},
        val_loader=batches(2),
        test_loader=batches(1),
    )
    assert seen == [True] * 10
    for with_ema, without in zip(watch.seen, plain_watch.seen, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(with_ema, without, strict=True))
    assert runner.metrics["val_loss"] != plain.metrics["val_loss"]
    runner.test()
    assert seen == [True] * 11
    assert torch.equal(next(runner.model.parameters()).double(), watch.seen[-1][0])


@pytest.mark.parametrize(
    "site", ["before_val_epoch", "before_val_iter", "after_val_iter", "after_val_epoch"]
)
def test_the_models_own_weights_come_back_when_validation_fails_before_anyone_can_save_them(
    tmp_path, site
):
    hook = EMAHook(momentum=0.9)

    def fail(runner):
        raise RuntimeError("boom")

    saving = {"type": "CheckpointHook", "save_on_exception": True, "save_best": False}
    hooks = [
        hook,
        {"type": "EvalHook"},
        saving,
        build_hook({"type": "LambdaHook", "fn_name": site, "fn": fail}),
    ]
    watch = Weights()
    runner = make_runner(tmp_path, *hooks, watch, val_loader=batches(1))
    with pytest.raises(RuntimeError, match="boom"):
        runner.train()
    assert torch.equal(next(runner.model.parameters()).double(), watch.seen[-1][0])
    saved = torch.load(tmp_path / "exception.pth", weights_only=True)
    assert torch.equal(saved["state_dict"]["0.weight"].double(), watch.seen[-1][0])


def test_the_checkpoint_holds_the_weights_and_beside_them_the_average(tmp_path):
    hook = EMAHook(momentum=0.9)
    saving = {"type": "CheckpointHook", "save_best": "val_loss"}
    _, watch = train(
        tmp_path, hook, {"type": "EvalHook"}, saving, val_loader=batches(1), max_iters=20
    )
    for name in ("last.pth", "best_val_loss.pth"):
        checkpoint = torch.load(tmp_path / name, weights_only=True)
        weights = watch.seen[checkpoint["meta"]["iter"] - 1]
        assert torch.equal(checkpoint["state_dict"]["0.weight"].double(), weights[0])
        assert not torch.equal(checkpoint["ema_state_dict"]["0.weight"].double(), weights[0])
    assert torch.equal(
        torch.load(tmp_path / "last.pth", weights_only=True)["ema_state_dict"]["0.weight"],
        hook.average.average[0],
    )
    small_model(1).load_state_dict(checkpoint["ema_state_dict"])  # it fits the model as it is


@pytest.mark.parametrize(
    "kind", ["ExponentialMovingAverage", "StochasticWeightAverage", "MomentumAnnealingEMA"]
)
@pytest.mark.parametrize("begin_iter", [0, 15])
def test_a_resumed_run_has_the_same_average(tmp_path, kind, begin_iter):
    def run(folder, max_iters, **parts):
        hook = EMAHook(momentum=0.9, ema_type=kind, begin_iter=begin_iter)
        return hook, train(folder, hook, {"type": "CheckpointHook"}, max_iters=max_iters, **parts)[
            0
        ]

    straight, _ = run(tmp_path / "straight", 30)
    run(tmp_path / "cut", 13)
    resumed, runner = run(tmp_path / "cut", 30, resume="auto")
    assert runner.iter == 30
    assert resumed.state_dict() == straight.state_dict()
    assert all(
        torch.equal(a, b)
        for a, b in zip(resumed.average.average, straight.average.average, strict=True)
    )


def test_resume_from_takes_the_average_of_another_checkpoint(tmp_path):
    first = EMAHook(momentum=0.9)
    train(tmp_path / "first", first, {"type": "CheckpointHook"}, max_iters=20)
    second = EMAHook(resume_from=str(tmp_path / "first" / "last.pth"))
    seen = []

    class Look(BaseHook):
        def before_train(self, runner):
            seen.extend(average.clone() for average in second.average.average)

    train(tmp_path / "second", second, Look(), max_iters=1)
    assert all(torch.equal(a, b) for a, b in zip(seen, first.average.average, strict=True))


def test_weights_from_elsewhere_are_where_the_average_starts(tmp_path):
    torch.save(small_model(7).state_dict(), tmp_path / "weights.pth")
    hook = EMAHook(momentum=0.5, warm_up=0)
    _, watch = train(tmp_path / "run", hook, max_iters=1, load_from=tmp_path / "weights.pth")
    start = small_model(7)[0].weight.double()
    torch.testing.assert_close(
        hook.average.average[0].double(), 0.5 * start + 0.5 * watch.seen[0][0]
    )


def test_a_test_of_a_saved_run_uses_its_average(tmp_path):
    hook = EMAHook(momentum=0.9)
    train(tmp_path, hook, {"type": "CheckpointHook"}, max_iters=20)
    again = EMAHook()
    make_runner(
        tmp_path / "test", again, load_from=tmp_path / "last.pth", test_loader=batches(1)
    ).test()
    assert torch.equal(again.average.average[0], hook.average.average[0])


def test_switching_by_hand_gives_the_weights_back_whatever_happens(tmp_path):
    hook = EMAHook(momentum=0.9)
    runner, watch = train(tmp_path, hook)
    weight = next(runner.model.parameters())
    with hook.averaged():
        assert torch.equal(weight, hook.average.average[0])
        with hook.averaged():
            pass
        assert torch.equal(weight, hook.average.average[0])
    assert torch.equal(weight.double(), watch.seen[-1][0])
    with pytest.raises(RuntimeError, match="boom"), hook.averaged():
        raise RuntimeError("boom")
    assert torch.equal(weight.double(), watch.seen[-1][0])


def normed() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))


@pytest.mark.parametrize("update_buffers", [False, True])
def test_running_statistics_are_averaged_only_if_wanted(tmp_path, update_buffers):
    hook = EMAHook(momentum=0.9, update_buffers=update_buffers)
    runner, _ = train(tmp_path, hook, model=normed(), max_iters=5)
    state, own = hook.average.state_dict(), runner.model.state_dict()
    assert torch.equal(state["1.running_mean"], own["1.running_mean"]) is not update_buffers
    assert state["1.num_batches_tracked"] == own["1.num_batches_tracked"] == 5
    with hook.averaged():
        assert torch.equal(runner.model[1].running_mean, state["1.running_mean"])
    assert torch.equal(runner.model[1].running_mean, own["1.running_mean"])


def test_weights_with_two_names_are_averaged_under_both(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(6, 6)
            self.b = nn.Linear(6, 6)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    hook = EMAHook(momentum=0.9)
    train(tmp_path, hook, model=Tied(), max_iters=5)
    state = hook.average.state_dict()
    assert torch.equal(state["a.weight"], state["b.weight"])


@pytest.mark.parametrize(
    "parameter, value",
    [("momentum", 1.0), ("interval", 0), ("warm_up", -1), ("gamma", 0), ("ema_type", "EMA")],
)
def test_wrong_parameters_are_rejected(parameter, value):
    with raises_problem(component="EMAHook", parameter=parameter, value=value):
        build_hook({"type": "EMAHook", parameter: value})


def test_there_is_no_average_before_the_run():
    with pytest.raises(RuntimeError, match="EMAHook"):
        _ = EMAHook().average


def test_with_the_default_hooks_the_average_is_best_and_saved_without_being_swapped(tmp_path):
    model = small_model()
    runner = Runner(
        model, train_loader=batches(4), val_loader=batches(2), optimizer=torch.optim.SGD(model.parameters(), lr=0.1), max_epochs=3,
        loss_fn=nn.CrossEntropyLoss(), metrics=["accuracy"], work_dir=tmp_path, hooks=[EMAHook(momentum=0.9)],
    )  # fmt: skip
    runner.train()
    last = torch.load(tmp_path / "last.pth", weights_only=True)
    assert torch.equal(last["state_dict"]["0.weight"], model[0].weight)


VAL = batches(2, seed=1)


def loss_with(model, weights):
    """Return the validation loss of the model with other weights."""
    kept = [each.detach().clone() for each in model.parameters()]
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), weights, strict=True):
            parameter.copy_(value)
        losses = [nn.functional.cross_entropy(model(x), y).item() for x, y in VAL]
        for parameter, value in zip(model.parameters(), kept, strict=True):
            parameter.copy_(value)
    return sum(losses) / len(losses)


def muon_and_adam(model):
    return {
        "matrices": torch.optim.Muon([model[0].weight, model[2].weight], lr=0.02),
        "rest": torch.optim.AdamW([model[0].bias, model[2].bias], lr=0.01),
    }


def schedule_free_and_adam(model):
    return {
        "free": ScheduleFreeSGD([model[0].weight, model[2].weight], beta=0.7),
        "rest": torch.optim.AdamW([model[0].bias, model[2].bias], lr=0.01),
    }


class ValidationLosses(BaseHook):
    """Keeps the loss of every validation."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def after_val(self, metrics):
        self.seen.append(metrics["val_loss"])


@pytest.mark.parametrize("make_optimizers", [muon_and_adam, schedule_free_and_adam])
def test_the_average_of_several_optimizers_is_evaluated(tmp_path, make_optimizers):
    model = small_model()
    ours, seen = EMAHook(momentum=0.8, warm_up=0), ValidationLosses()
    parts = {"model": model, "optimizer": make_optimizers(model), "val_loader": VAL}
    loss_fn = nn.CrossEntropyLoss()
    drop = ["ReportHook", "LoggerHook", "CheckpointHook"]
    Runner(
        **parts,
        train_loader=batches(),
        loss_fn=loss_fn,
        hooks=[ours, seen],
        max_epochs=2,
        work_dir=tmp_path,
        sanity_val_batches=0,
        drop_hooks=drop,
    ).train()
    by_hand = small_model()
    optimizers = list(make_optimizers(by_hand).values())
    modes = [each for each in optimizers if isinstance(each, ScheduleFreeSGD)]
    average = [each.detach().clone() for each in by_hand.parameters()]
    losses = []
    for _ in range(2):
        for x, y in batches():
            for optimizer in modes:
                optimizer.train()
            loss_fn(by_hand(x), y).backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
            for optimizer in modes:
                optimizer.eval()
            for mean, weight in zip(average, by_hand.parameters(), strict=True):
                mean.lerp_(weight.detach(), 1 - 0.8)
        losses.append(loss_with(by_hand, average))
    assert seen.seen == pytest.approx(losses, rel=1e-5)
    for mean, other in zip(ours.average.average, average, strict=True):
        torch.testing.assert_close(mean, other, rtol=1e-5, atol=1e-6)
    for one, other in zip(model.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_the_average_of_several_optimizers_continues_after_a_kill(tmp_path):
    job = Job(1, loops.train_averaged_until_killed, tmp_path / "killed").wait()
    assert job.processes[0].exitcode == -signal.SIGKILL, job.errors()
    straight, expected = loops.make_averaged_run(tmp_path / "straight")
    straight.train()
    resumed, hook = loops.make_averaged_run(tmp_path / "killed", resume="auto")
    resumed.train()
    assert resumed.metrics["val_loss"] == straight.metrics["val_loss"]
    assert hook.updates == expected.updates
    for one, other in zip(hook.average.average, expected.average.average, strict=True):
        assert torch.equal(one, other)
    for one, other in zip(resumed.model.parameters(), straight.model.parameters(), strict=True):
        assert torch.equal(one, other)
