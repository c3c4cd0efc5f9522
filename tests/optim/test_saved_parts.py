"""State beside the model: trainable losses, metrics, services, and parameter groups of hooks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.engine import BaseHook, state
from hookline.errors import ConfigError, HooklineError
from tests.helpers import batches, small_model
from tests.problems import logged, raises_problem


class CenterLoss(nn.Module):
    """A loss with a parameter and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return nn.functional.cross_entropy(predictions * self.scale, targets) + self.scale**2


class Counting:
    """A metric and a service with state."""

    def __init__(self) -> None:
        self.total = 0

    def update(self, predictions: Any, targets: Any) -> None:
        self.total += 1

    def compute(self) -> float:
        return float(self.total)

    def reset(self) -> None: ...

    def state_dict(self) -> dict[str, int]:
        return {"total": self.total}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.total = state["total"]


def make_run(folder: Path, *hooks: Any, epochs: int, **parts: Any) -> Runner:
    model = parts.pop("model", None) or small_model()
    loss_fn = parts.pop("loss_fn", None) or nn.CrossEntropyLoss()
    trained = [*model.parameters()]
    if isinstance(loss_fn, nn.Module):
        trained += loss_fn.parameters()
    optimizer = parts.pop("optimizer", None) or torch.optim.SGD(trained, lr=0.1, momentum=0.9)
    return Runner(
        model, train_loader=batches(), optimizer=optimizer, loss_fn=loss_fn, max_epochs=epochs, seed=0, work_dir=folder,
        hooks=[{"type": "CheckpointHook", "interval": 3, "by_epoch": False}, *hooks], drop_hooks=["LoggerHook", "ReportHook"], **parts,
    )  # fmt: skip


def weights(*modules: nn.Module) -> list[torch.Tensor]:
    return [value for module in modules for value in module.state_dict().values()]


def assert_equal(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a, b)


def test_a_trainable_loss_resumes_exactly(tmp_path: Path) -> None:
    straight = make_run(tmp_path / "a", epochs=4, loss_fn=CenterLoss()).train()
    make_run(tmp_path / "b", epochs=2, loss_fn=CenterLoss()).train()
    resumed = make_run(tmp_path / "b", epochs=4, loss_fn=CenterLoss(), resume="auto").train()
    assert_equal(weights(straight.model, straight.loss_fn), weights(resumed.model, resumed.loss_fn))


def test_a_test_uses_the_loss_of_the_checkpoint(tmp_path: Path) -> None:
    trained = make_run(tmp_path / "a", epochs=2, loss_fn=CenterLoss()).train()
    checkpoint = tmp_path / "a" / "last.pth"
    tested = make_run(
        tmp_path / "b", epochs=2, loss_fn=CenterLoss(), load_from=checkpoint, test_loader=batches()
    )
    tested.test()
    assert torch.equal(tested.loss_fn.scale, trained.loss_fn.scale)


def test_metrics_and_services_with_state_are_restored(tmp_path: Path) -> None:
    for epochs in (2, 3):
        metric = Counting()
        run = make_run(
            tmp_path, epochs=epochs, metrics={"count": metric}, val_loader=batches(1), resume="auto"
        )
        service = Counting()
        run.register_service("scaler", service)
        run.train()
        assert (metric.total, service.total) == (epochs, 0 if epochs == 2 else 7)
        service.total = 7
        run.checkpointer.open(tmp_path, background=False)
        run.request_save()
        run.checkpointer.save()
        run.checkpointer.close()


def test_state_that_fits_no_object_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_run(tmp_path, epochs=1, loss_fn=CenterLoss()).train()
    model = small_model()
    loss = CenterLoss()
    optimizer = torch.optim.SGD([*model.parameters(), loss.scale], lr=0.1)
    run = make_run(tmp_path, epochs=2, model=model, optimizer=optimizer, resume="auto")
    run.register_service("loss", loss)
    run.train()
    assert logged(caplog, "loss_fn")
    assert logged(caplog, "services.loss")


def test_state_of_another_loss_is_an_error(tmp_path: Path) -> None:
    make_run(tmp_path, epochs=1, loss_fn=CenterLoss()).train()
    loss = nn.CrossEntropyLoss(weight=torch.ones(3))
    with raises_problem(HooklineError, parameter="loss_fn"):
        make_run(tmp_path, epochs=2, loss_fn=loss, resume="auto").train()


def test_parameters_that_nothing_saves_are_refused_before_training(tmp_path: Path) -> None:
    model = small_model()
    head = nn.Linear(3, 2)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    run = make_run(tmp_path, epochs=1, model=model, optimizer=optimizer)
    with raises_problem(HooklineError, parameter="optimizer"):
        run.train()
    assert run.iter == 0


@pytest.mark.parametrize("way", ["state_dict", "before_save_checkpoint", "service"])
def test_parameters_that_a_hook_or_a_service_saves_are_accepted(tmp_path: Path, way: str) -> None:
    model = small_model()
    head = nn.Linear(3, 2)

    class Keeps(BaseHook):
        def state_dict(self) -> dict[str, Any]:
            return dict(head.state_dict())

    class Writes(BaseHook):
        def __init__(self) -> None:
            self.head = head

        def before_save_checkpoint(self, runner: Runner) -> None:
            runner.checkpoint["head"] = dict(head.state_dict())

    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    hooks = {"state_dict": [Keeps()], "before_save_checkpoint": [Writes()], "service": []}[way]
    run = make_run(tmp_path, *hooks, epochs=1, model=model, optimizer=optimizer)
    if way == "service":
        run.register_service("head", head)
    run.train()
    assert run.iter == 4


def test_lazy_modules_are_refused_before_training(tmp_path: Path) -> None:
    model = nn.Sequential(nn.LazyLinear(3))
    run = make_run(tmp_path, epochs=1, model=model)
    with raises_problem(HooklineError, parameter="model"):
        run.train()
    assert run.iter == 0


def test_lazy_modules_are_refused_before_training_with_all_default_hooks(tmp_path: Path) -> None:
    model = nn.Sequential(nn.LazyLinear(8), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
    loss_fn = nn.CrossEntropyLoss()
    run = Runner(
        model,
        train_loader=batches(),
        optimizer=optimizer,
        loss_fn=loss_fn,
        max_epochs=1,
        work_dir=tmp_path,
    )
    with raises_problem(HooklineError, parameter="model"):
        run.train()
    assert run.iter == 0


def test_hook_state_that_cannot_be_stored_is_reported_before_training(tmp_path: Path) -> None:
    @dataclass
    class Collecting(BaseHook):
        seen: Any = state(None)

        def before_train(self, runner: Runner) -> None:
            self.seen = {1, 2}

    run = make_run(tmp_path, Collecting(), epochs=1)
    with pytest.raises(ConfigError) as caught:
        run.train()
    assert caught.value.problems[0].path == ("hooks", "Collecting", "seen")
    assert run.iter == 0


def test_a_run_without_the_optimizers_state_warns_before_training_and_on_resume(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hook = {"type": "CheckpointHook", "save_optimizer": False}
    Runner(**parts(tmp_path), hooks=[hook], max_epochs=1).train()
    assert logged(caplog, "optimizer", "exactly")
    caplog.clear()
    Runner(**parts(tmp_path), max_epochs=2, resume="auto").train()
    assert logged(caplog, "optimizer", "exact resume")


def parts(folder: Path) -> dict[str, Any]:
    model = small_model()
    return {
        "model": model,
        "train_loader": batches(),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        "loss_fn": nn.CrossEntropyLoss(),
        "work_dir": folder,
        "drop_hooks": ["LoggerHook", "ReportHook"],
    }


class Unfreeze(BaseHook):
    """Adds the second layer to the optimizer, at a site and an iteration."""

    def __init__(self, site: str, at: int) -> None:
        self.at = at
        self.disable_sites(*({"before_train", "before_train_epoch", "after_train_iter"} - {site}))

    def before_train(self, runner: Runner) -> None:
        self.add(runner)

    def before_train_epoch(self, runner: Runner) -> None:
        if runner.epoch == self.at // 4:
            self.add(runner)

    def after_train_iter(self, runner: Runner) -> None:
        if runner.iter == self.at:
            self.add(runner)

    def add(self, runner: Runner) -> None:
        runner.model[2].requires_grad_(True)
        runner.optimizer.add_param_group({"params": runner.model[2].parameters(), "lr": 0.05})


@pytest.mark.parametrize("site", ["before_train", "before_train_epoch", "after_train_iter"])
@pytest.mark.parametrize("optimizer_hook", ["OptimizerHook", "GradientCumulativeOptimizerHook"])
@pytest.mark.parametrize("stop", [1, 6, 10])
def test_a_parameter_group_that_a_hook_adds_is_resumed_exactly(
    tmp_path: Path, site: str, optimizer_hook: str, stop: int
) -> None:
    def make(folder: Path, length: int, resume: str | None = None) -> Runner:
        model = small_model()
        model[2].requires_grad_(False)
        optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1, momentum=0.9)
        steps = {"type": optimizer_hook, "grad_clip": {"max_norm": 0.5}}
        save = {"type": "CheckpointHook", "interval": 1, "by_epoch": False, "max_keep_ckpts": 1}
        return Runner(
            model, train_loader=batches(), optimizer=optimizer, loss_fn=nn.CrossEntropyLoss(), max_iters=length, seed=0, work_dir=folder,
            hooks=[save, steps, Unfreeze(site, 4)], drop_hooks=["LoggerHook", "ReportHook"], resume=resume,
        )  # fmt: skip

    straight = make(tmp_path / "a", 12).train()
    make(tmp_path / "b", stop).train()
    resumed = make(tmp_path / "b", 12, "auto").train()
    assert len(resumed.optimizer.param_groups) == 2
    assert [group["lr"] for group in resumed.optimizer.param_groups] == [0.1, 0.05]
    assert_equal(weights(straight.model), weights(resumed.model))


def test_an_added_group_whose_parameters_are_gone_is_an_error(tmp_path: Path) -> None:
    class Add(BaseHook):
        def after_train_iter(self, runner: Runner) -> None:
            if runner.iter == 0:
                self.extra = nn.Parameter(torch.ones(2))
                runner.optimizer.add_param_group({"params": [self.extra]})

    make_run(tmp_path, Add(), epochs=1).train()
    with raises_problem(HooklineError, parameter="optimizer"):
        make_run(tmp_path, epochs=2, resume="auto").train()


class UnfreezeOnce(BaseHook):
    """Unfreezes the second layer at an iteration."""

    def after_train_iter(self, runner: Runner) -> None:
        if runner.iter == 2:
            runner.model[2].requires_grad_(True)


def test_a_layer_that_a_hook_has_unfrozen_stays_so_after_a_resume(tmp_path: Path) -> None:
    def make(folder: Path, epochs: int, freeze: bool = True, resume: str | None = None) -> Runner:
        model = small_model()
        model[2].requires_grad_(not freeze)
        return make_run(folder, UnfreezeOnce(), epochs=epochs, model=model, resume=resume)

    straight = make(tmp_path / "a", 3).train()
    make(tmp_path / "b", 1).train()
    resumed = make(tmp_path / "b", 3, resume="auto").train()
    assert all(parameter.requires_grad for parameter in resumed.model.parameters())
    assert_equal(weights(straight.model), weights(resumed.model))


def test_a_layer_that_the_user_freezes_before_a_resume_stays_frozen(tmp_path: Path) -> None:
    make_run(tmp_path, epochs=1).train()
    model = small_model()
    model[0].requires_grad_(False)
    resumed = make_run(tmp_path, epochs=2, model=model, resume="auto").train()
    frozen = [name for name, each in resumed.model.named_parameters() if not each.requires_grad]
    assert frozen == ["0.weight", "0.bias"]
