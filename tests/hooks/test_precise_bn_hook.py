"""Batch norm statistics are the true averages, and training does not notice."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from hookline import make_loader
from hookline.hooks import AmpOptimizerHook, PreciseBNHook, build_hook
from hookline.hooks.precise_bn_hook import precise_bn
from tests.helpers import Tracer, batches, make_runner
from tests.problems import logged, raises_problem


def normed() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3), nn.BatchNorm1d(3)
    )


def loader(**options):
    return make_loader(
        TensorDataset(*batches(1, size=48)[0]), batch_size=8, shuffle=True, seed=1, **options
    )


def true_averages(model, data) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance of what comes into the first batch norm layer, averaged over the batches."""
    with torch.no_grad():
        inputs = [model[0](x).double() for x, _ in data]
    return torch.stack([x.mean(0) for x in inputs]).mean(0), torch.stack(
        [x.var(0) for x in inputs]
    ).mean(0)


def test_the_statistics_are_the_true_averages(tmp_path):
    model, data = normed(), loader()
    make_runner(
        tmp_path, PreciseBNHook(num_iter=4), model=model, train_loader=data, max_epochs=2
    ).train()
    mean, var = true_averages(model, list(data.whole_epoch())[:4])
    torch.testing.assert_close(model[1].running_mean.double(), mean, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(model[1].running_var.double(), var, rtol=1e-5, atol=1e-6)


def test_it_runs_every_period_and_after_the_last_iteration(tmp_path, caplog):
    caplog.set_level("INFO", "hookline")
    make_runner(
        tmp_path,
        PreciseBNHook(num_iter=2, period=5),
        model=normed(),
        train_loader=loader(),
        max_epochs=2,
    ).train()
    # After iterations 5, 10 and 12.
    assert len(logged(caplog, "PreciseBNHook", "2 batches", level="INFO")) == 3


@pytest.mark.parametrize("workers", [0, 2])
def test_training_is_not_disturbed(tmp_path, workers):
    """Weights, random numbers (dropout) and data are those of a run without it."""
    plain, precise = normed(), normed()
    torch.manual_seed(1)
    make_runner(
        tmp_path / "a", model=plain, train_loader=loader(num_workers=workers), max_epochs=2
    ).train()
    torch.manual_seed(1)
    tracer, hook = Tracer(), PreciseBNHook(num_iter=3, period=4)
    make_runner(
        tmp_path / "b",
        hook,
        tracer,
        model=precise,
        train_loader=loader(num_workers=workers),
        max_epochs=2,
    ).train()
    for one, two in zip(plain.parameters(), precise.parameters(), strict=True):
        assert torch.equal(one, two)
    assert precise[1].num_batches_tracked == plain[1].num_batches_tracked == 12
    assert precise[1].momentum == 0.1
    assert tracer.log.count("after_train_iter") == 12


def test_the_statistics_are_of_the_precision_of_evaluations(tmp_path):
    types = set()
    model = normed()
    model[0].register_forward_hook(lambda module, inputs, output: types.add(output.dtype))
    hook = PreciseBNHook(num_iter=2, dataloader=batches(2))
    make_runner(tmp_path, hook, AmpOptimizerHook(), model=model, max_epochs=1).train()
    assert types == {torch.bfloat16}


def test_a_model_without_batch_norm_disables_it_with_a_message(tmp_path, caplog):
    caplog.set_level("INFO", "hookline")
    make_runner(tmp_path, PreciseBNHook()).train()
    assert logged(caplog, "PreciseBNHook", level="INFO")


def test_frozen_layers_are_left_alone(tmp_path):
    model = normed()
    model[1].eval()
    before = model[1].running_mean.clone()
    precise_bn(model, lambda batch: model(batch[0]), batches(3))
    assert torch.equal(model[1].running_mean, before)
    assert not torch.equal(model[4].running_mean, torch.zeros(3))


def test_by_hand_with_other_data(tmp_path):
    model, data = normed(), batches(5, seed=3)
    hook = PreciseBNHook(dataloader=data)
    make_runner(tmp_path, hook, model=model)
    hook.update_stats()
    mean, _ = true_averages(model, data)
    torch.testing.assert_close(model[1].running_mean.double(), mean, rtol=1e-5, atol=1e-6)


def test_statistics_stay_as_they_were_if_there_is_no_data_or_it_fails():
    model = normed()
    model(batches(1)[0][0])
    before = {key: value.clone() for key, value in model.state_dict().items()}

    def fail(batch):
        model(batch[0])
        raise RuntimeError("boom")

    assert precise_bn(model, fail, []) == 0
    with pytest.raises(RuntimeError, match="boom"):
        precise_bn(model, fail, batches(1, seed=4))
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize("parameter, value", [("num_iter", 0), ("period", -1)])
def test_wrong_parameters_are_rejected(parameter, value):
    with raises_problem(component="PreciseBNHook", parameter=parameter, value=value):
        build_hook({"type": "PreciseBNHook", parameter: value})
