"""The owners of `optimize`: plain, accumulating, in half precision."""

from __future__ import annotations

import logging
from itertools import combinations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hookline import ConfigError, Runner, make_loader
from hookline.engine import HOOKS, BaseHook
from hookline.errors import RegistrationError
from hookline.hooks import (
    AmpOptimizerHook,
    Fp16OptimizerHook,
    GradientCumulativeFp16OptimizerHook,
    GradientCumulativeOptimizerHook,
    OptimizerHook,
)
from hookline.optim.fp16 import auto_fp16
from tests.helpers import batches, make_runner, small_model
from tests.problems import logged

OWNERS = [
    OptimizerHook,
    GradientCumulativeOptimizerHook,
    Fp16OptimizerHook,
    GradientCumulativeFp16OptimizerHook,
    AmpOptimizerHook,
]


def data(samples: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    return TensorDataset(
        torch.randn(samples, 6, generator=generator),
        torch.randint(3, (samples,), generator=generator),
    )


def weights(runner) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in runner.model.parameters()])


class Count(BaseHook):
    """Counts the sites inside `optimize`, and notes the gradients that are about to be used."""

    def __init__(self) -> None:
        self.backwards = self.steps = 0
        self.norms: list[float] = []

    def after_backward(self, runner):
        self.backwards += 1
        self.norms.append(
            float(torch.nn.utils.get_total_norm([p.grad for p in runner.model.parameters()]))
        )

    def after_optimizer_step(self):
        self.steps += 1


class Half(nn.Module):
    """A model with a decorated forward."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Linear(6, 3)
        self.types: list[torch.dtype] = []

    @auto_fp16()
    def forward(self, inputs):
        result = self.net(inputs)
        self.types.append(result.dtype)
        return result


@pytest.mark.parametrize(("one", "other"), [*combinations(OWNERS, 2)])
def test_two_owners_are_rejected_by_name(tmp_path, one, other):
    with pytest.raises(RegistrationError, match=f"{other.__name__}.*{one.__name__}"):
        make_runner(tmp_path, one(), other())


@pytest.mark.parametrize("owner", OWNERS)
def test_an_owner_takes_the_place_of_the_default_one(tmp_path, owner):
    model = small_model()
    runner = Runner(
        model,
        train_loader=batches(1),
        optimizer=torch.optim.SGD(model.parameters()),
        hooks=[owner()],
        max_epochs=1,
        work_dir=tmp_path,
    )
    assert [type(hook) for hook in runner.hooks if hook.site_method("optimize")] == [owner]


# Clipping


@pytest.mark.parametrize("norm_type", [1, 2, 3.5, "inf"])
def test_gradients_are_clipped_by_norm_and_the_norm_before_is_recorded(tmp_path, norm_type):
    class Check(BaseHook):
        def before_run(self, runner):
            runner.optimizer.register_step_pre_hook(self.look)

        def look(self, optimizer, args, kwargs):
            grads = [p.grad for p in optimizer.param_groups[0]["params"]]
            norms.append(float(torch.nn.utils.get_total_norm(grads, float(norm_type))))

    norms: list[float] = []
    count = Count()
    runner = make_runner(
        tmp_path,
        OptimizerHook(grad_clip={"max_norm": 0.01, "norm_type": norm_type}),
        Check(),
        count,
        max_iters=2,
    )
    runner.train()
    assert norms == pytest.approx([0.01, 0.01], rel=1e-3)
    assert runner.events.latest()["grad_norm"] > 0.01
    if norm_type == 2:
        assert runner.events.latest()["grad_norm"] == pytest.approx(count.norms[-1], rel=1e-6)


def test_clipping_gives_the_bits_of_a_plain_loop_also_with_other_groups(tmp_path):
    def make():
        model = small_model()
        groups = [
            {"params": [p for p in model.parameters() if p.ndim > 1]},
            {"params": [p for p in model.parameters() if p.ndim == 1]},
        ]
        return model, torch.optim.SGD(groups, lr=0.1)

    model, optimizer = make()
    for inputs, targets in batches(20):
        nn.functional.cross_entropy(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad()
    expected = [p.detach().clone() for p in model.parameters()]

    model, optimizer = make()
    hook = OptimizerHook(grad_clip={"max_norm": 0.1})
    parts = {"model": model, "optimizer": optimizer, "train_loader": batches(20), "max_epochs": 1}
    make_runner(tmp_path, hook, **parts).train()
    assert all(map(torch.equal, model.parameters(), expected))


def test_gradients_are_clipped_by_value_and_the_norm_before_is_recorded(tmp_path):
    seen = []

    class Check(BaseHook):
        def before_run(self, runner):
            runner.optimizer.register_step_pre_hook(
                lambda optimizer, *_: seen.append(
                    max(float(p.grad.abs().max()) for p in runner.model.parameters())
                )
            )

    count = Count()
    runner = make_runner(
        tmp_path, OptimizerHook(grad_clip={"clip_value": 0.003}), Check(), count, max_iters=1
    )
    runner.train()
    assert seen == [pytest.approx(0.003)]
    assert runner.events.latest()["grad_norm"] == pytest.approx(count.norms[0], rel=1e-6)


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        ({"type": "OptimizerHook", "grad_clip": {"max_nrom": 1}}, "'max_nrom'.*'max_norm'"),
        ({"type": "OptimizerHook", "grad_clip": {"norm_type": 2}}, "grad_clip.*'max_norm'"),
        (
            {"type": "OptimizerHook", "grad_clip": {"max_norm": 1, "clip_value": 1}},
            "grad_clip.*'clip_value'",
        ),
        ({"type": "AmpOptimizerHook", "grad_clip": {"max_norm": -1}}, "max_norm.*-1"),
        (
            {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": 0},
            "cumulative_iters",
        ),
        ({"type": "Fp16OptimizerHook", "loss_scale": "dynamik"}, "loss_scale"),
        ({"type": "Fp16OptimizerHook", "loss_scale": 0.0}, "loss_scale"),
        (
            {"type": "Fp16OptimizerHook", "loss_scale": {"init_scael": 3}},
            "'init_scael'.*'init_scale'",
        ),
        ({"type": "AmpOptimizerHook", "dtype": "float8"}, "'dtype'"),
    ],
)
def test_wrong_parameters_are_rejected_when_the_hook_is_built(hook, words):
    with pytest.raises(ConfigError, match=words) as error:
        HOOKS.build(hook)
    assert error.value.component == hook["type"]


# Anomalous parameters


def test_parameters_outside_the_graph_and_those_without_gradient_are_named_once(tmp_path, caplog):
    class NoGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value.clone()

        @staticmethod
        def backward(ctx, gradient):
            return None

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle, self.lost = nn.Linear(6, 3), nn.Linear(6, 3), nn.Linear(6, 3)
            self.cut = nn.Parameter(torch.ones(3))
            self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)

        def forward(self, inputs):
            self.lost(inputs)  # takes part in the forward, but not in the loss
            return self.used(inputs) + NoGradient.apply(self.cut) + self.frozen

    with caplog.at_level(logging.ERROR, "hookline"):
        make_runner(tmp_path, OptimizerHook(detect_anomalous_params=True), model=Odd()).train()
    outside, without = [record.getMessage() for record in caplog.records]
    unused = "idle.weight, idle.bias, lost.weight, lost.bias"
    assert outside.endswith(f": {unused}")
    assert without.endswith(f": cut, {unused}")


@pytest.mark.parametrize(
    "owner",
    [
        GradientCumulativeOptimizerHook(cumulative_iters=2, detect_anomalous_params=True),
        AmpOptimizerHook(detect_anomalous_params=True),
    ],
)
def test_every_owner_finds_anomalous_parameters_and_is_silent_without_any(tmp_path, caplog, owner):
    with caplog.at_level(logging.ERROR, "hookline"):
        make_runner(tmp_path, owner).train()
    assert not caplog.records
    model = nn.Sequential(nn.Linear(6, 3), nn.Identity())
    model[1].idle = nn.Parameter(torch.ones(1))
    with caplog.at_level(logging.ERROR, "hookline"):
        make_runner(
            tmp_path,
            type(owner)(detect_anomalous_params=True),
            model=model,
            train_loader=batches(1),
        ).train()
    assert logged(caplog, "1.idle", level="ERROR")


# Accumulation


@pytest.mark.parametrize("samples", [64, 80, 77, 3, 33])
@pytest.mark.parametrize("clip", [None, {"max_norm": 0.05}])
def test_four_batches_of_8_are_one_of_32_also_when_the_epoch_does_not_divide(
    tmp_path, samples, clip
):
    def run(size, hook):
        return make_runner(
            tmp_path, hook, train_loader=DataLoader(data(samples), size), max_epochs=3
        ).train()

    large = run(32, OptimizerHook(grad_clip=clip))
    small = run(8, GradientCumulativeOptimizerHook(cumulative_iters=4, grad_clip=clip))
    assert torch.allclose(weights(small), weights(large), atol=1e-6, rtol=0)
    assert not torch.equal(weights(small), weights(make_runner(tmp_path)))
    assert small.optimizer_steps == large.optimizer_steps == 3 * -(-samples // 32)
    assert small.iter == 3 * -(-samples // 8)


def test_the_number_of_samples_comes_from_the_model_or_else_from_the_batch(tmp_path):
    def run(size, hook, counted):
        model = small_model()

        def train_step(batch):
            loss = nn.functional.cross_entropy(model(batch["x"]), batch["y"])
            return {"loss": loss, "num_samples": len(batch["y"])} if counted else {"loss": loss}

        model.train_step = train_step
        loader = [{"x": x, "y": y} for x, y in DataLoader(data(45), size)]
        return make_runner(tmp_path, hook, model=model, train_loader=loader).train()

    large = run(32, OptimizerHook(), True)
    for counted in (True, False):
        small = run(8, GradientCumulativeOptimizerHook(cumulative_iters=4), counted)
        assert torch.allclose(weights(small), weights(large), atol=1e-6, rtol=0)


def test_the_end_of_the_run_and_of_a_loader_without_length_complete_a_group(tmp_path):
    cut = make_runner(
        tmp_path,
        GradientCumulativeOptimizerHook(cumulative_iters=4),
        train_loader=batches(10),
        max_iters=6,
    ).train()
    assert (cut.optimizer_steps, cut.loop.accumulating) == (2, False)

    class NoLength:
        def __iter__(self):
            return iter(batches(6))

    count = Count()
    endless = make_runner(
        tmp_path,
        GradientCumulativeOptimizerHook(cumulative_iters=4),
        count,
        train_loader=NoLength(),
    ).train()
    known = make_runner(
        tmp_path, GradientCumulativeOptimizerHook(cumulative_iters=4), train_loader=batches(6)
    ).train()
    assert endless.optimizer_steps == known.optimizer_steps == count.steps == 4
    assert torch.equal(weights(endless), weights(known))


def test_hooks_see_complete_gradients_only_and_the_loss_as_it_was(tmp_path):
    class Losses(BaseHook):
        def after_train_iter(self, loss):
            losses.append(loss.item())

    losses: list[float] = []
    count, large = Count(), Count()
    make_runner(
        tmp_path,
        GradientCumulativeOptimizerHook(cumulative_iters=4),
        count,
        Losses(),
        train_loader=batches(8),
        max_epochs=1,
    ).train()
    assert (count.backwards, count.steps, len(losses)) == (2, 2, 8)
    first = [batches(8)[index] for index in range(4)]
    joined = [(torch.cat([x for x, _ in first]), torch.cat([y for _, y in first]))]
    make_runner(tmp_path, large, train_loader=joined, max_epochs=1).train()
    assert count.norms[0] == pytest.approx(large.norms[0], rel=1e-5)
    assert losses[0] == pytest.approx(
        nn.functional.cross_entropy(small_model()(first[0][0]), first[0][1]).item()
    )


def test_a_save_asked_for_amid_a_group_waits_for_its_step(tmp_path):
    saved = []

    class Ask(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter + 1 == 2:
                runner.request_save(
                    write=lambda checkpoint: saved.append(checkpoint["meta"]["iter"])
                )

    make_runner(
        tmp_path,
        GradientCumulativeOptimizerHook(cumulative_iters=4),
        Ask(),
        train_loader=batches(8),
    ).train()
    assert saved == [4]


def test_gradients_are_synchronised_once_in_a_group(tmp_path):
    synchronised = []

    def watch(state, bucket):
        synchronised.append(bucket.index())
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1
    )
    try:
        model = nn.parallel.DistributedDataParallel(small_model())
        model.register_comm_hook(None, watch)
        runner = make_runner(
            tmp_path,
            GradientCumulativeOptimizerHook(cumulative_iters=4),
            model=model,
            train_loader=batches(10),
        )
        runner.train()
    finally:
        torch.distributed.destroy_process_group()
    alone = make_runner(
        tmp_path, GradientCumulativeOptimizerHook(cumulative_iters=4), train_loader=batches(10)
    ).train()
    assert len(synchronised) == runner.optimizer_steps == 6
    assert torch.equal(weights(runner), weights(alone))


# Half precision


class Spike(BaseHook):
    """Makes the loss infinite in some iterations."""

    def __init__(self, *iters: int) -> None:
        self.iters = iters

    def after_forward(self, runner):
        if runner.iter in self.iters:
            runner.outputs["loss"] = runner.outputs["loss"] * float("inf")


@pytest.mark.parametrize(
    "owner",
    [
        lambda: Fp16OptimizerHook(loss_scale="dynamic"),
        lambda: Fp16OptimizerHook(loss_scale={"init_scale": 1024.0, "growth_interval": 3}),
        lambda: Fp16OptimizerHook(),
        lambda: AmpOptimizerHook(dtype="float16"),
        lambda: GradientCumulativeFp16OptimizerHook(loss_scale="dynamic", cumulative_iters=2),
    ],
)
@pytest.mark.parametrize("fused", [False, True])
def test_the_scaler_leaves_a_step_with_infinite_gradients_out_and_recovers(tmp_path, owner, fused):
    hook, count, model = owner(), Count(), Half()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    groups = getattr(hook, "cumulative_iters", 1)
    runner = make_runner(
        tmp_path,
        hook,
        count,
        Spike(2 * groups),
        model=model,
        optimizer=optimizer,
        train_loader=batches(6 * groups),
        max_epochs=1,
    )
    runner.train()
    assert torch.isfinite(weights(runner)).all()
    assert not torch.equal(
        weights(runner), torch.cat([p.detach().flatten() for p in Half().parameters()])
    )
    assert (runner.optimizer_steps, count.steps, count.backwards) == (5, 5, 6)
    assert runner.events.latest()["skipped_steps"] == 1
    scale = hook._scaler.get_scale()
    if hook.loss_scale == "dynamic":
        assert scale == 65536 / 2
    else:
        assert (
            scale == 512 if hook.loss_scale == 512 else scale == 1024
        )  # halved, and doubled again after three good steps


def test_skipped_steps_are_counted_across_a_resume(tmp_path):
    save = {"type": "CheckpointHook", "interval": 1, "by_epoch": False}
    for length in (4, 8):
        model = Half()
        runner = make_runner(
            tmp_path, AmpOptimizerHook(dtype="float16"), Spike(2), Spike(6), save,
            model=model, train_loader=batches(8), max_iters=length, resume="auto",
        )  # fmt: skip
        runner.train()
    assert runner.events.latest()["skipped_steps"] == 2


def test_the_scale_does_not_change_the_weights(tmp_path):
    plain = make_runner(tmp_path, model=Half()).train()
    scaled = Half()
    runner = make_runner(tmp_path, Fp16OptimizerHook(loss_scale=512.0), model=scaled).train()
    assert scaled.types[0] is torch.bfloat16  # what autocast takes on a CPU
    assert torch.allclose(weights(plain), weights(runner), atol=2e-3)
    accumulated = make_runner(
        tmp_path, GradientCumulativeFp16OptimizerHook(cumulative_iters=2), model=Half()
    ).train()
    large = [
        (torch.cat([a[0], b[0]]), torch.cat([a[1], b[1]]))
        for a, b in zip(batches()[::2], batches()[1::2], strict=True)
    ]
    assert torch.allclose(
        weights(accumulated),
        weights(make_runner(tmp_path, model=Half(), train_loader=large).train()),
        atol=2e-3,
    )


def test_fp16_without_a_decorated_method_is_reported(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "hookline"):
        make_runner(tmp_path, Fp16OptimizerHook(), max_iters=1).train()
    assert logged(caplog, "auto_fp16")


@pytest.mark.parametrize("evaluate", [True, False])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_amp_runs_the_step_of_any_model_in_half_precision_and_nothing_else(
    tmp_path, dtype, evaluate
):
    seen: dict[str, bool] = {}

    class Look(BaseHook):
        priority = "LOWEST"

        def before_train_iter(self):
            seen["before"] = torch.is_autocast_enabled("cpu")

        def after_forward(self):
            seen["after"] = torch.is_autocast_enabled("cpu")

        def after_val_iter(self, outputs):
            seen["val"] = outputs["predictions"].dtype is not torch.float32
            seen["after_val"] = torch.is_autocast_enabled("cpu")

    class Typed(nn.Sequential):
        def forward(self, inputs):
            result = super().forward(inputs)
            if self.training:
                types.add(result.dtype)
            return result

    types: set[torch.dtype] = set()
    torch.manual_seed(0)
    model = Typed(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    runner = make_runner(
        tmp_path,
        Look(),
        AmpOptimizerHook(dtype=dtype, evaluate=evaluate),
        {"type": "EvalHook"},
        model=model,
        val_loader=batches(1),
    )
    runner.train()
    assert types == {getattr(torch, dtype)}
    assert seen == {"before": False, "after": False, "val": evaluate, "after_val": False}
    assert all(p.dtype is torch.float32 for p in model.parameters())
    assert torch.allclose(weights(runner), weights(make_runner(tmp_path).train()), atol=5e-3)


def test_a_forward_that_fails_under_amp_leaves_autocast(tmp_path):
    class Broken(nn.Linear):
        def forward(self, inputs):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        make_runner(tmp_path, AmpOptimizerHook(), model=Broken(6, 3)).train()
    assert not torch.is_autocast_enabled("cpu")


def test_amp_accumulates(tmp_path):
    runner = make_runner(
        tmp_path, AmpOptimizerHook(cumulative_iters=3), train_loader=batches(7), max_epochs=1
    ).train()
    assert runner.optimizer_steps == 3


# Resume


@pytest.mark.parametrize("owner", [
    lambda: GradientCumulativeOptimizerHook(cumulative_iters=3, grad_clip={"max_norm": 0.1}),
    lambda: GradientCumulativeFp16OptimizerHook(cumulative_iters=2, loss_scale={"init_scale": 4.0, "growth_interval": 2}),
    lambda: Fp16OptimizerHook(loss_scale={"init_scale": 4.0, "growth_interval": 2}),
    lambda: AmpOptimizerHook(dtype="float16", cumulative_iters=2),
])  # fmt: skip
@pytest.mark.parametrize("stop", [2, 4, 7, 8])
def test_stopped_amid_a_group_and_resumed_it_ends_bit_identical(tmp_path, owner, stop):
    class StopAt(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter + 1 == stop:
                runner.request_save()
                runner.request_stop("test")

    def run(folder, *more, **parts):
        model, hook = Half(), owner()
        loader = make_loader(data(27), batch_size=4, shuffle=True, seed=5)
        spikes = [Spike(4)] if isinstance(hook, Fp16OptimizerHook) else []
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        runner = Runner(model, train_loader=loader, optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), max_epochs=2, seed=1,
                        work_dir=folder, hooks=[hook, *spikes, *more], **parts)  # fmt: skip
        runner.train()
        scaler = hook._scaler.state_dict() if hasattr(hook, "_scaler") else {}
        return weights(runner), (runner.iter, runner.optimizer_steps), scaler

    straight = run(tmp_path / "straight")
    cut = run(tmp_path / "cut", StopAt())
    resumed = run(tmp_path / "cut", resume="auto")
    assert stop <= cut[1][0] < resumed[1][0]
    assert torch.equal(straight[0], resumed[0])
    assert torch.isfinite(straight[0]).all()
    assert straight[1:] == resumed[1:]


@pytest.mark.parametrize(
    "owner",
    [OptimizerHook, lambda: GradientCumulativeOptimizerHook(cumulative_iters=2), Fp16OptimizerHook],
)
@pytest.mark.parametrize(("loss_fn", "what"), [
    (nn.CrossEntropyLoss(reduction="none"), "a tensor [8] (float32)"),
    (lambda predictions, targets: nn.functional.cross_entropy(predictions, targets).item(), "a float"),
    (lambda predictions, targets: nn.functional.cross_entropy(predictions, targets).detach(), "a tensor [] (float32) without grad"),
])  # fmt: skip
def test_a_loss_that_cannot_be_backpropagated_is_described(tmp_path, owner, loss_fn, what):
    with pytest.raises(
        (RuntimeError, AttributeError, AssertionError, TypeError, ValueError)
    ) as error:
        make_runner(tmp_path, owner(), loss_fn=loss_fn).train()
    assert what in error.value.__notes__[0]


def test_a_model_whose_parameters_are_all_frozen_is_named_as_the_reason(tmp_path):
    model = small_model().requires_grad_(False)
    with pytest.raises(RuntimeError) as error:
        make_runner(tmp_path, model=model).train()
    assert any("frozen" in note for note in error.value.__notes__)


def test_a_backward_that_fails_with_a_good_loss_gets_no_note_about_the_loss(tmp_path):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, loss):
            return loss.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise RuntimeError("no way")

    with pytest.raises(RuntimeError, match="no way") as error:
        make_runner(
            tmp_path, loss_fn=lambda *both: Fails.apply(nn.functional.cross_entropy(*both))
        ).train()
    (note,) = error.value.__notes__
    assert "OptimizerHook at optimize" in note
