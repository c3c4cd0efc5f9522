"""Checkpoints of the trained part of a model: their content, their base, and exact resumes."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.checkpoint import CheckpointError, load_checkpoint, trainable
from hookline.checkpoint.adoption import describe_unlisted
from hookline.checkpoint.trainable import (
    BASE,
    TAG,
    FrozenBase,
    describe_base,
    is_partial,
    trained_names,
    with_base,
)
from hookline.cli.main import main
from hookline.hooks import CheckpointHook, EarlyStoppingHook, EMAHook, EvalHook, LambdaHook
from tests.helpers import batches

FROZEN = ("0.weight", "0.bias")


def model_with_frozen_layer(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 64), nn.BatchNorm1d(64), nn.Dropout(0.2), nn.Linear(64, 3))
    model[0].requires_grad_(False)
    return model


def make(folder, *hooks, model=None, **parts) -> Runner:
    model = model or model_with_frozen_layer()
    save = CheckpointHook(
        by_epoch=False, interval=2, trainable_only=True, **parts.pop("options", {})
    )
    return Runner(
        model,
        train_loader=batches(4),
        val_loader=batches(2, seed=1),
        optimizer=torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        metrics=["accuracy"],
        work_dir=folder,
        hooks=[save, EvalHook(by_epoch=False, interval=2), *hooks],
        resume="auto",
        seed=3,
        **{"max_iters": 12, **parts},
    )


def fail_at(iteration: int) -> LambdaHook:
    def fail(runner) -> None:
        if runner.iter == iteration:
            raise ArithmeticError

    return LambdaHook(after_forward=fail)


def equal(first, second) -> bool:
    pairs = zip(first.values(), second.values(), strict=True)
    return list(first) == list(second) and all(torch.equal(*pair) for pair in pairs)


def test_a_checkpoint_holds_trained_weights_and_a_hash_of_the_base(tmp_path):
    make(tmp_path).train()
    checkpoint = load_checkpoint(tmp_path / "last.pth")
    assert is_partial(checkpoint)
    assert not set(FROZEN) & set(checkpoint["state_dict"])
    assert {"1.running_mean", "3.weight"} <= set(checkpoint["state_dict"])
    assert checkpoint[BASE]["tensors"] == 2
    assert checkpoint[BASE]["bytes"] == 4 * (6 * 64 + 64)


def test_running_statistics_beside_frozen_weights_belong_to_the_trained_part():
    model = model_with_frozen_layer()
    model[1].requires_grad_(False)
    names = trained_names(model.state_dict(keep_vars=True))
    assert {"1.running_mean", "1.running_var", "1.num_batches_tracked"} <= names
    assert "1.weight" not in names


@pytest.mark.parametrize("hooks", [list, lambda: [EMAHook(momentum=0.9)]], ids=["plain", "ema"])
def test_a_resumed_run_ends_with_the_same_bits(tmp_path, hooks):
    straight = make(tmp_path / "straight", *hooks()).train()
    with pytest.raises(ArithmeticError):
        make(tmp_path / "broken", *hooks(), fail_at(7)).train()
    resumed = make(tmp_path / "broken", *hooks()).train()
    assert equal(straight.model.state_dict(), resumed.model.state_dict())
    for name in ("last.pth", "best_accuracy.pth"):
        one, other = (load_checkpoint(tmp_path / run / name) for run in ("straight", "broken"))
        assert equal(one["state_dict"], other["state_dict"])
        if hooks():
            assert equal(one["ema_state_dict"], other["ema_state_dict"])
            assert not set(FROZEN) & set(one["ema_state_dict"])


def test_a_run_continues_from_its_mirror_on_an_empty_disk(tmp_path):
    options = {"mirror": "memory://trainable/run"}
    straight = make(tmp_path / "straight").train()
    with pytest.raises(ArithmeticError):
        make(tmp_path / "run", fail_at(7), options=options).train()
    shutil.rmtree(tmp_path / "run")
    runner = make(tmp_path / "run", options=options)
    started = []
    runner.register_hook(LambdaHook(before_train=lambda runner: started.append(runner.iter)))
    runner.train()
    assert started[0] > 0
    assert equal(straight.model.state_dict(), runner.model.state_dict())


def test_a_resume_with_another_base_is_refused_and_changes_nothing(tmp_path):
    make(tmp_path, max_iters=4).train()
    model = model_with_frozen_layer()
    with torch.no_grad():
        model[0].bias[3] += 1
    before = {name: value.clone() for name, value in model.state_dict().items()}
    runner = make(tmp_path, model=model)
    with pytest.raises(CheckpointError, match=r"the base model differs: first in '0\.bias'"):
        runner.train()
    assert equal(before, model.state_dict())
    assert runner.iter == 0


def test_a_model_with_other_frozen_weights_is_refused(tmp_path):
    make(tmp_path, max_iters=4).train()
    torch.manual_seed(0)
    model = nn.Sequential(*model_with_frozen_layer(), nn.Linear(3, 3))
    with pytest.raises(CheckpointError, match="4 weights of the model are not in the checkpoint"):
        make(tmp_path, model=model).train()


def test_the_base_is_found_again_through_load_from(tmp_path):
    torch.save(model_with_frozen_layer(5).state_dict(), tmp_path / "base.pth")
    source = {"load_from": tmp_path / "base.pth"}
    straight = make(tmp_path / "straight", **source).train()
    make(tmp_path / "run", max_iters=6, **source).train()
    resumed = make(tmp_path / "run", **source).train()
    assert equal(straight.model.state_dict(), resumed.model.state_dict())


def test_load_from_checks_the_base_unless_it_need_not_fit(tmp_path, caplog):
    make(tmp_path / "run").train()
    path = tmp_path / "run" / "last.pth"
    make(tmp_path / "same", load_from=path).validate()
    with pytest.raises(CheckpointError, match="base model differs"):
        make(tmp_path / "other", model=model_with_frozen_layer(1), load_from=path).validate()
    model = model_with_frozen_layer(1)
    make(tmp_path / "loose", model=model, load_from=path, load_strict=False).validate()
    assert "base model differs" in caplog.text
    assert torch.equal(model[3].weight, load_checkpoint(path)["state_dict"]["3.weight"])


def test_frozen_weights_that_change_all_the_same_are_saved(tmp_path):
    def change(runner) -> None:
        if runner.iter == 5:
            with torch.no_grad():
                runner.model[0].bias.add_(1)

    straight = make(tmp_path / "straight", LambdaHook(after_train_iter=change)).train()
    make(tmp_path / "run", LambdaHook(after_train_iter=change), max_iters=8).train()
    assert "0.bias" in load_checkpoint(tmp_path / "run" / "last.pth")["state_dict"]
    resumed = make(tmp_path / "run", LambdaHook(after_train_iter=change)).train()
    assert equal(straight.model.state_dict(), resumed.model.state_dict())


def test_weights_that_are_frozen_during_a_run_stay_in_its_checkpoints(tmp_path):
    def freeze(runner) -> None:
        if runner.iter == 5:
            runner.model[1].requires_grad_(False)

    hook = LambdaHook(before_train_iter=freeze)
    straight = make(tmp_path / "straight", hook).train()
    make(tmp_path / "run", LambdaHook(before_train_iter=freeze), max_iters=8).train()
    resumed = make(tmp_path / "run", LambdaHook(before_train_iter=freeze)).train()
    assert "1.weight" in load_checkpoint(tmp_path / "run" / "last.pth")["state_dict"]
    assert equal(straight.model.state_dict(), resumed.model.state_dict())


def test_the_best_weights_of_a_hook_are_reduced_and_restored(tmp_path):
    def stop() -> EarlyStoppingHook:
        return EarlyStoppingHook(monitor="accuracy", patience=50, restore_best_weights=True)

    straight = make(tmp_path / "straight", stop()).train()
    make(tmp_path / "run", stop(), max_iters=8).train()
    saved = load_checkpoint(tmp_path / "run" / "last.pth")["hooks"]["EarlyStoppingHook"]["best"]
    assert not set(FROZEN) & set(saved["state_dict"])
    resumed = make(tmp_path / "run", stop()).train()
    assert equal(straight.model.state_dict(), resumed.model.state_dict())


def test_a_tensor_is_hashed_once_unless_it_was_written(monkeypatch):
    hashed = []
    digest = trainable._digest
    monkeypatch.setattr(trainable, "_digest", lambda each: hashed.append(each) or digest(each))
    model = model_with_frozen_layer()
    base = FrozenBase()
    base.start_hashing(model)
    for _ in range(3):
        base.reduce(model, {"state_dict": model.state_dict()})
    assert len(hashed) == 2
    model.load_state_dict(model_with_frozen_layer().state_dict())
    reduced = base.reduce(model, {"state_dict": model.state_dict()})
    assert len(hashed) == 4
    assert reduced[BASE]["tensors"] == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.bool])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_frozen_weight_that_is_written_through_its_data_joins_the_trained_part(dtype, size):
    model = nn.Linear(2, 2)
    whole = torch.zeros(size + 1, dtype=dtype)
    model.register_parameter("frozen", nn.Parameter(whole[1:], requires_grad=False))
    base = FrozenBase()
    base.start_hashing(model)
    first = base.reduce(model, {"state_dict": model.state_dict()})
    model.frozen.data[-1] = 1
    second = base.reduce(model, {"state_dict": model.state_dict()})
    assert "frozen" not in first["state_dict"]
    assert torch.equal(second["state_dict"]["frozen"], model.frozen)


def test_tied_weights_have_an_entry_for_each_name():
    model = nn.ModuleDict({"one": nn.Linear(3, 3), "two": nn.Linear(3, 3)})
    model["two"].weight = model["one"].weight
    model.requires_grad_(False)
    reduced = FrozenBase().reduce(model, {"state_dict": model.state_dict()})
    assert reduced[BASE]["tensors"] == 4
    assert reduced["state_dict"] == {}


def test_a_base_of_a_wrong_form_is_an_error_of_the_checkpoint():
    model = model_with_frozen_layer()
    reduced = FrozenBase().reduce(model, {"state_dict": model.state_dict()})
    reduced[BASE] = {}
    with pytest.raises(CheckpointError, match="base cannot be restored"):
        FrozenBase().check(model, reduced)


def test_weights_become_whole_with_the_base_of_a_model():
    model = model_with_frozen_layer()
    reduced = FrozenBase().reduce(model, {"state_dict": model.state_dict()})
    assert equal(dict(with_base(model, reduced)["state_dict"]), dict(model.state_dict()))


def test_the_commands_report_a_checkpoint_of_the_trained_part(tmp_path, capsys):
    make(tmp_path, max_iters=2).train()
    capsys.readouterr()
    path = tmp_path / "last.pth"
    assert main(["ckpt", "show", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)[BASE]
    assert shown == describe_base(load_checkpoint(path)[BASE])
    assert main(["ckpt", "verify", str(tmp_path)]) == 0
    assert f"last.pth: good ({TAG})" in capsys.readouterr().out
    assert main(["ckpt", "ls", str(tmp_path)]) == 0
    assert TAG in capsys.readouterr().out


def test_a_copied_checkpoint_is_still_one_of_the_trained_part(tmp_path):
    make(tmp_path, max_iters=4).train()
    copied = tmp_path / "copied"
    copied.mkdir()
    shutil.copy(tmp_path / "last.pth", copied)
    adopted = describe_unlisted(copied, [])
    assert [entry.tags for entry in adopted] == [("adopted", TAG)]
