"""MMEngine's Runner: its documented quick start, custom parts of every kind, and runs that go on exactly where they were."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset

from hookline.compat.mmengine.config import Config
from hookline.compat.mmengine.evaluator import BaseMetric, Evaluator
from hookline.compat.mmengine.hooks import CheckpointHook, EarlyStoppingHook, Hook
from hookline.compat.mmengine.model import BaseModel
from hookline.compat.mmengine.optim import OptimWrapper, OptimWrapperDict, _ParamScheduler
from hookline.compat.mmengine.registry import (
    EVALUATOR,
    LOOPS,
    METRICS,
    MODELS,
    OPTIM_WRAPPER_CONSTRUCTORS,
    PARAM_SCHEDULERS,
    RUNNERS,
)
from hookline.compat.mmengine.runner import (
    BaseLoop,
    EpochBasedTrainLoop,
    Runner,
    find_latest_checkpoint,
)
from hookline.engine import BaseHook, Interrupted
from tests.compat.mmengine_parts import Accuracy, Net, data, loader, make_runner, parts


class DigitsNet(BaseModel):
    """The quick start's model, with a smaller network in it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, imgs: Any, labels: Any, mode: str) -> Any:
        x = self.net(imgs)
        if mode == "loss":
            return {"loss": F.cross_entropy(x, labels)}
        elif mode == "predict":
            return x, labels
        return None


class PercentRight(BaseMetric):
    """The quick start's metric, as it stands."""

    def process(self, data_batch: Any, data_samples: Any) -> None:
        score, gt = data_samples
        self.results.append(
            {"batch_size": len(gt), "correct": (score.argmax(dim=1) == gt).sum().cpu()}
        )

    def compute_metrics(self, results: Any) -> Any:
        total_correct = sum(item["correct"] for item in results)
        total_size = sum(item["batch_size"] for item in results)
        return {"accuracy": 100 * total_correct / total_size}


def digits(train: bool) -> DataLoader[Any]:
    from hookline.data.digits import Digits

    dataset = Digits(split="train" if train else "val")
    return DataLoader(dataset, batch_size=64, shuffle=train)


def quick_start(work_dir: Path, **changes: Any) -> Runner:
    given = {
        "model": DigitsNet(),
        "work_dir": str(work_dir),
        "train_dataloader": digits(True),
        "optim_wrapper": {"optimizer": {"type": SGD, "lr": 0.05, "momentum": 0.9}},
        "train_cfg": {"by_epoch": True, "max_epochs": 5, "val_interval": 1},
        "val_dataloader": digits(False),
        "val_cfg": {},
        "val_evaluator": {"type": PercentRight},
        "test_dataloader": digits(False),
        "test_cfg": {},
        "test_evaluator": {"type": PercentRight},
        "log_level": "WARNING",
    }
    return Runner(**{**given, **changes})


def test_the_documented_quick_start_trains_validates_tests_and_resumes(tmp_path: Path) -> None:
    runner = quick_start(tmp_path)
    runner.train()
    accuracy = runner.message_hub.get_scalar("val/accuracy").current()
    assert accuracy > 90
    assert float(runner.test()["accuracy"]) == pytest.approx(accuracy)
    assert float(runner.val()["accuracy"]) == pytest.approx(accuracy)
    longer = quick_start(
        tmp_path, train_cfg={"by_epoch": True, "max_epochs": 6, "val_interval": 1}, resume=True
    )
    longer.train()
    assert (longer.epoch, len(longer.message_hub.get_scalar("val/accuracy").data[0])) == (6, 6)
    tested = quick_start(tmp_path, load_from=str(tmp_path / "epoch_5.pth"))
    assert float(tested.test()["accuracy"]) == pytest.approx(accuracy)


class Watcher(Hook):
    """Keeps the loss of every iteration, and may end the run at one of them."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.losses: dict[int, float] = {}
        self.fail_at = fail_at

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self.losses[runner.iter] = outputs["loss"].item()
        if runner.iter == self.fail_at:
            raise RuntimeError("pulled the plug")


def weights(runner: Runner) -> list[float]:
    return [value.double().sum().item() for value in runner.model.state_dict().values()]


PLAIN = DataLoader(data(), batch_size=8, shuffle=True)  # shuffled by torch's global random numbers
BY_EPOCH: dict[str, Any] = {
    "train_dataloader": PLAIN,
    "default_hooks": {"checkpoint": {"type": "CheckpointHook", "interval": 1}},
}
INSIDE = {
    "train_dataloader": PLAIN,
    "default_hooks": {"checkpoint": {"type": "CheckpointHook", "interval": 3, "by_epoch": False}},
}
BY_ITERS: dict[str, Any] = {
    "train_dataloader": loader(sampler="InfiniteSampler"),
    "train_cfg": {"by_epoch": False, "max_iters": 16, "val_interval": 4},
    "default_hooks": {"checkpoint": {"type": "CheckpointHook", "interval": 3, "by_epoch": False}},
}


@pytest.mark.parametrize(
    "kind", [BY_EPOCH, INSIDE, BY_ITERS], ids=["epochs", "inside an epoch", "iterations"]
)
@pytest.mark.parametrize("fail_at", [5, 10])
def test_a_failed_run_resumes_as_if_it_had_not_failed(
    tmp_path: Path, kind: dict[str, Any], fail_at: int
) -> None:
    schedule = [
        {"type": "LinearLR", "by_epoch": False, "end": 6},
        {"type": "MultiStepLR", "milestones": [2]},
    ]
    common = {**kind, "param_scheduler": schedule}
    ema = {"type": "EMAHook", "momentum": 0.1}
    whole = Watcher()
    unbroken = make_runner(tmp_path / "whole", 4, custom_hooks=[ema, whole], **common)
    unbroken.train()
    first, second = Watcher(fail_at), Watcher()
    with pytest.raises(RuntimeError, match="pulled the plug"):
        make_runner(tmp_path / "broken", 4, custom_hooks=[ema, first], **common).train()
    resumed = make_runner(tmp_path / "broken", 4, custom_hooks=[ema, second], resume=True, **common)
    resumed.train()
    assert {**first.losses, **second.losses} == whole.losses
    assert min(second.losses) > 0  # it was resumed
    assert weights(resumed) == weights(unbroken)
    accuracies = [
        each.message_hub.get_scalar("val/accuracy").data[0].tolist() for each in (resumed, unbroken)
    ]
    assert accuracies[0] == accuracies[1]


def test_ctrl_c_saves_inside_of_the_epoch_and_the_run_continues_there(tmp_path: Path) -> None:
    class Impatient(Watcher):
        def after_train_iter(
            self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
        ) -> None:
            super().after_train_iter(runner, batch_idx, data_batch, outputs)
            if runner.iter == 5:
                os.kill(os.getpid(), signal.SIGINT)

    whole, first, second = Watcher(), Impatient(), Watcher()
    make_runner(tmp_path / "whole", 3, custom_hooks=[whole], **BY_EPOCH).train()
    with pytest.raises(Interrupted):
        make_runner(tmp_path / "broken", 3, custom_hooks=[first], **BY_EPOCH).train()
    assert Path(find_latest_checkpoint(tmp_path / "broken") or "").name == "iter_6.pth"
    make_runner(tmp_path / "broken", 3, custom_hooks=[second], resume=True, **BY_EPOCH).train()
    assert min(second.losses) == 6
    assert {**first.losses, **second.losses} == whole.losses


def test_early_stopping_keeps_its_patience_across_a_resume(tmp_path: Path) -> None:
    def stopping() -> EarlyStoppingHook:
        return EarlyStoppingHook("accuracy", min_delta=1.0, patience=3)

    make_runner(tmp_path, 2, custom_hooks=[stopping()]).train()
    hook = stopping()
    runner = make_runner(tmp_path, 9, custom_hooks=[hook], resume=True)
    runner.train()
    assert runner.epoch == 4
    assert hook.wait_count == 3


def test_resuming_a_finished_run_trains_nothing(tmp_path: Path) -> None:
    make_runner(tmp_path).train()
    watcher = Watcher()
    make_runner(tmp_path, resume=True, custom_hooks=[watcher]).train()
    assert watcher.losses == {}


def test_a_moved_work_directory_and_a_damaged_last_file_do_not_stop_a_resume(
    tmp_path: Path,
) -> None:
    make_runner(tmp_path / "here", 3).train()
    (tmp_path / "here").rename(tmp_path / "there")
    with open(tmp_path / "there" / "epoch_3.pth", "r+b") as file:
        file.seek(100)
        file.write(b"\0\1\2")
    assert find_latest_checkpoint(tmp_path / "there") == str(tmp_path / "there" / "epoch_2.pth")


class GAN(BaseModel):
    """Steps two optimizers by itself, as MMEngine's documentation shows it."""

    def __init__(self) -> None:
        super().__init__()
        self.generator, self.discriminator = nn.Linear(2, 4), nn.Linear(4, 1)

    def forward(self, inputs: Any, labels: Any = None, mode: str = "tensor") -> Any:
        return (self.discriminator(inputs), labels) if mode == "predict" else self.generator(inputs)

    def train_step(self, data: Any, optim_wrapper: Any) -> Any:
        inputs, _ = self.data_preprocessor(data, True)
        with optim_wrapper["discriminator"].optim_context(self.discriminator):
            fake = self.generator(torch.randn(len(inputs), 2)).detach()
            loss_d = (
                F.softplus(self.discriminator(fake)).mean()
                + F.softplus(-self.discriminator(inputs)).mean()
            )
        optim_wrapper["discriminator"].update_params(loss_d)
        self.discriminator.requires_grad_(False)
        loss_g = F.softplus(-self.discriminator(self.generator(torch.randn(len(inputs), 2)))).mean()
        optim_wrapper["generator"].update_params(loss_g)
        self.discriminator.requires_grad_(True)
        return {"loss_d": loss_d, "loss_g": loss_g}


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class TwoOptimizers:
    def __init__(self, optim_wrapper_cfg: Any, paramwise_cfg: Any = None) -> None:
        self.rates = optim_wrapper_cfg

    def __call__(self, model: Any) -> OptimWrapperDict:
        made = {
            name: OptimWrapper(SGD(getattr(model, name).parameters(), **options))
            for name, options in self.rates.items()
        }
        return OptimWrapperDict(**made)


def test_a_gan_with_its_own_train_step_trains_and_resumes(tmp_path: Path) -> None:
    rates = {"generator": {"lr": 0.1}, "discriminator": {"lr": 0.2}}
    given: dict[str, Any] = {
        "optim_wrapper": {"constructor": "TwoOptimizers", **rates},
        "param_scheduler": {
            "generator": {"type": "StepLR", "step_size": 1},
            "discriminator": {"type": "ExponentialLR", "gamma": 0.5},
        },
        **dict.fromkeys(("val_dataloader", "val_cfg", "val_evaluator")),
    }
    torch.manual_seed(0)
    whole = make_runner(tmp_path / "whole", 3, **given, model=GAN())
    whole.train()
    assert whole.optim_wrapper.get_lr() == {
        "generator.lr": [pytest.approx(1e-3)],
        "discriminator.lr": [pytest.approx(0.05)],
    }
    assert whole.message_hub.get_scalar("train/loss_g").data[0].shape == (12,)
    torch.manual_seed(0)
    with pytest.raises(RuntimeError, match="pulled the plug"):
        make_runner(tmp_path / "broken", 3, **given, model=GAN(), custom_hooks=[Breaker()]).train()
    resumed = make_runner(tmp_path / "broken", 3, **given, model=GAN(), resume=True)
    resumed.train()
    assert resumed.optim_wrapper.get_lr() == whole.optim_wrapper.get_lr()
    assert weights(resumed) == weights(whole)


class Breaker(Hook):
    """Ends the run in its second epoch."""

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        if runner.iter == 6:
            raise RuntimeError("pulled the plug")


@LOOPS.register_module()
class TwiceLoop(EpochBasedTrainLoop):
    """Trains on every batch twice, and calls a custom stage."""

    def run_iter(self, idx: int, data_batch: Any) -> None:
        self.runner.call_hook("before_twice", batch=idx)
        super().run_iter(idx, data_batch)
        self.runner.model.train_step(data_batch, optim_wrapper=self.runner.optim_wrapper)


@LOOPS.register_module()
class WholeLoop(BaseLoop):
    """A loop from nothing, as the documentation writes one."""

    def __init__(self, runner: Any, dataloader: Any, max_epochs: int) -> None:
        super().__init__(runner, dataloader)
        self._max_epochs, self._epoch, self._iter = max_epochs, 0, 0

    max_epochs = property(lambda self: self._max_epochs)
    max_iters = property(lambda self: self._max_epochs * len(self.dataloader))
    epoch = property(lambda self: self._epoch)
    iter = property(lambda self: self._iter)

    def run(self) -> None:
        self.runner.call_hook("before_train")
        while self._epoch < self._max_epochs:
            self.runner.call_hook("before_train_epoch")
            for idx, batch in enumerate(self.dataloader):
                self.runner.call_hook("before_train_iter", batch_idx=idx, data_batch=batch)
                outputs = self.runner.model.train_step(batch, self.runner.optim_wrapper)
                self.runner.call_hook(
                    "after_train_iter", batch_idx=idx, data_batch=batch, outputs=outputs
                )
                self._iter += 1
            self.runner.call_hook("after_train_epoch")
            self._epoch += 1
        self.runner.call_hook("after_train")


def test_custom_loops_run_and_may_have_stages_of_their_own(tmp_path: Path) -> None:
    calls: list[int] = []

    class Twice(Hook):
        def before_twice(self, runner: Any, batch: int) -> None:
            calls.append(batch)

    runner = make_runner(
        tmp_path / "twice", train_cfg={"type": "TwiceLoop", "max_epochs": 2}, custom_hooks=[Twice()]
    )
    runner.train()
    assert calls == [0, 1, 2, 3] * 2
    assert runner.optim_wrapper.inner_count == 16
    whole = make_runner(tmp_path / "whole", train_cfg={"type": "WholeLoop", "max_epochs": 2})
    whole.train()
    assert {path.name for path in (tmp_path / "whole").glob("*.pth")} == {
        "epoch_1.pth",
        "epoch_2.pth",
    }
    resumed = make_runner(
        tmp_path / "whole", train_cfg={"type": "WholeLoop", "max_epochs": 3}, resume=True
    )
    resumed.train()
    assert (resumed.epoch, resumed.iter) == (3, 12)


class OwnEpochs(EpochBasedTrainLoop):
    """A custom epoch loop, written as MMEngine's is."""

    def run_epoch(self) -> None:
        self.runner.call_hook("before_train_epoch")
        self.runner.model.train()
        for idx, data_batch in enumerate(self.dataloader):
            self.run_iter(idx, data_batch)
        self.runner.call_hook("after_train_epoch")
        self._epoch += 1


@pytest.mark.parametrize("loop", [WholeLoop, OwnEpochs])
def test_hooks_keep_their_state_in_loops_that_know_nothing_of_it(
    tmp_path: Path, loop: type
) -> None:
    class Counting(Hook):
        count = 0

        def after_train_iter(
            self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
        ) -> None:
            self.count += 1

        def state_dict(self) -> dict[str, Any]:
            return {"count": self.count}

        def load_state_dict(self, state: Mapping[str, Any]) -> None:
            self.count = state["count"]

    make_runner(
        tmp_path, train_cfg={"type": loop, "max_epochs": 2}, custom_hooks=[Counting()]
    ).train()
    counting = Counting()
    make_runner(
        tmp_path, train_cfg={"type": loop, "max_epochs": 3}, custom_hooks=[counting], resume=True
    ).train()
    assert counting.count == 12


@pytest.mark.parametrize("loss_scale", ["dynamic", 512.0])
def test_mixed_precision_trains_and_resumes_where_there_is_only_a_cpu(
    tmp_path: Path, loss_scale: Any
) -> None:
    wrapper = {
        "type": "AmpOptimWrapper",
        "optimizer": {"type": "SGD", "lr": 0.1},
        "dtype": "bfloat16",
        "loss_scale": loss_scale,
    }
    make_runner(tmp_path, 2, optim_wrapper=wrapper, val_cfg={"fp16": True}).train()
    runner = make_runner(tmp_path, 3, optim_wrapper=wrapper, resume=True)
    runner.train()
    assert runner.iter == 12


@PARAM_SCHEDULERS.register_module()
class HalvingLR(_ParamScheduler):
    """A custom scheduler that halves the rate at every step."""

    def __init__(self, optimizer: Any, **kwargs: Any) -> None:
        super().__init__(optimizer, "lr", **kwargs)

    def _get_value(self) -> list[float]:
        return [base * 0.5**self.last_step for base in self.base_values]


@EVALUATOR.register_module()
class Doubling(Evaluator):
    """A custom evaluator that adds a metric made of another."""

    def evaluate(self, size: int) -> dict[str, Any]:
        metrics = super().evaluate(size)
        return {**metrics, "twice": 2 * metrics["accuracy"]}


def test_a_custom_scheduler_and_a_custom_evaluator_are_used(tmp_path: Path) -> None:
    evaluator = {"type": "Doubling", "metrics": [{"type": Accuracy}]}
    runner = make_runner(
        tmp_path, 3, param_scheduler={"type": "HalvingLR"}, val_evaluator=evaluator
    )
    runner.train()
    assert runner.optim_wrapper.get_lr()["lr"] == [
        pytest.approx(0.1 / 4)
    ]  # its end is the run's, so the last step is not taken
    metrics = runner.val()
    assert metrics["twice"] == 2 * metrics["accuracy"]


def test_a_whole_config_makes_a_runner(tmp_path: Path) -> None:
    for registry, part in ((MODELS, Net), (METRICS, Accuracy)):
        registry.register_module(module=part, force=True)
    given = parts(
        tmp_path,
        model={"type": "Net", "dropout": 0.0},
        val_evaluator={"type": "Accuracy"},
        test_evaluator={"type": "Accuracy"},
    )
    cfg = Config({**given, "custom_hooks": [{"type": "EMAHook"}], "api_token": "s3cr3t"})
    runner = RUNNERS.build(cfg)
    assert isinstance(runner, Runner)
    runner.train()
    checkpoint = torch.load(tmp_path / "epoch_2.pth", weights_only=True)
    assert "s3cr3t" not in str(checkpoint["meta"]) + str(checkpoint["message_hub"]["runtime_info"])


def test_none_drops_a_default_hook_and_other_parts_must_fit(tmp_path: Path) -> None:
    runner = make_runner(
        tmp_path,
        default_hooks={"logger": None, "checkpoint": {"type": "CheckpointHook", "interval": 2}},
    )
    assert "LoggerHook" not in [type(hook).__name__ for hook in runner.hooks]
    assert next(hook for hook in runner.hooks if isinstance(hook, CheckpointHook)).interval == 2
    with pytest.raises(ValueError, match="either all None or not None"):
        make_runner(tmp_path, val_cfg=None)
    with pytest.raises(KeyError, match="'EMAHook'"):
        make_runner(tmp_path, custom_hooks=[{"type": "EMAHok"}])


def test_the_learning_rate_is_scaled_by_the_batch_size_if_wanted(tmp_path: Path) -> None:
    runner = make_runner(tmp_path, 1, auto_scale_lr={"base_batch_size": 4, "enable": True})
    runner.train()
    assert runner.optim_wrapper.get_lr()["lr"] == [pytest.approx(0.2)]


def test_hookline_s_own_hooks_run_beside_mmengine_s(tmp_path: Path) -> None:
    class Own(BaseHook):
        seen: Any = None

        def after_train_iter(self, runner: Any, iter: int, loss: Any = None) -> None:
            self.seen = iter

        def after_val_epoch(self, metrics: Mapping[str, float]) -> None:
            self.metrics = dict(metrics)

    own = Own()
    runner = make_runner(tmp_path, custom_hooks=[own, {"type": "ThroughputHook"}])
    runner.train()
    assert own.seen == 7
    assert set(own.metrics) == {"accuracy"}


def test_mmengine_s_hooks_run_in_hookline_s_own_runner(tmp_path: Path) -> None:
    from tests.helpers import make_runner as own_runner

    calls: list[Any] = []

    class Theirs(Hook):
        def _after_iter(
            self,
            runner: Any,
            batch_idx: int,
            data_batch: Any = None,
            outputs: Any = None,
            mode: str = "train",
        ) -> None:
            calls.append((batch_idx, mode, "loss" in outputs))

    own_runner(tmp_path, Theirs(), max_epochs=1).train()
    assert calls == [(index, "train", True) for index in range(4)]


def test_two_runners_of_the_same_second_do_not_share_their_numbers(tmp_path: Path) -> None:
    one, other = make_runner(tmp_path / "one", 1), make_runner(tmp_path / "other", 1)
    one.train()
    assert "train/loss" not in other.message_hub.log_scalars
    assert len(one.message_hub.get_scalar("train/loss").data[0]) == 4


def test_a_save_in_the_middle_of_an_accumulation_waits_for_the_step(tmp_path: Path) -> None:
    wrapper = {"optimizer": {"type": "SGD", "lr": 0.1}, "accumulative_counts": 2}
    hooks = {"checkpoint": {"type": "CheckpointHook", "interval": 3, "by_epoch": False}}
    make_runner(tmp_path, 2, optim_wrapper=wrapper, default_hooks=hooks).train()
    assert torch.load(tmp_path / "iter_3.pth", weights_only=True)["meta"]["iter"] == 4


def test_the_metainfo_of_a_dataset_reaches_metrics_and_checkpoints(tmp_path: Path) -> None:
    class Named(TensorDataset):
        metainfo = {"classes": ("a", "b", "c")}

    dataset = Named(*data().tensors)
    runner = make_runner(
        tmp_path, train_dataloader=loader(dataset), val_dataloader=loader(dataset, shuffle=False)
    )
    runner.train()
    assert runner.val_evaluator.dataset_meta == {"classes": ("a", "b", "c")}
    assert torch.load(tmp_path / "epoch_1.pth", weights_only=True)["meta"]["dataset_meta"] == {
        "classes": ("a", "b", "c")
    }
