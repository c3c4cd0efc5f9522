"""MMEngine's Runner: its documented quick start, custom parts of every kind, and runs that go on exactly where they were."""

from __future__ import annotations

import logging
import os
import random
import signal
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hookline.compat.mmengine.config import Config
from hookline.compat.mmengine.evaluator import BaseMetric
from hookline.compat.mmengine.hooks import CheckpointHook, Hook
from hookline.compat.mmengine.model import BaseModel
from hookline.compat.mmengine.registry import HOOKS, LOOPS, METRICS, MODELS
from hookline.compat.mmengine.runner import (
    BaseLoop,
    EpochBasedTrainLoop,
    Runner,
    find_latest_checkpoint,
    get_priority,
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


class Noisy(Dataset[Any]):
    """Adds random numbers of Python, NumPy and torch to its samples."""

    def __init__(self) -> None:
        self.plain = data()

    def __len__(self) -> int:
        return len(self.plain)

    def __getitem__(self, index: int) -> Any:
        inputs, label = self.plain[index]
        return inputs + torch.randn(4) + random.random() + np.random.rand(), label


PERSISTENT = {**loader(Noisy()), "num_workers": 2, "persistent_workers": True}
WORKERS_BY_EPOCH = {**BY_EPOCH, "train_dataloader": PERSISTENT}
WORKERS_INSIDE = {**INSIDE, "train_dataloader": PERSISTENT}
PERSISTENT_VAL = {
    **loader(data(16, 1), shuffle=False),
    "num_workers": 1,
    "persistent_workers": True,
}
OWN_WORKERS_INSIDE = {
    **INSIDE,
    "train_dataloader": DataLoader(data(), 8, shuffle=True, num_workers=1, persistent_workers=True),
    "val_dataloader": DataLoader(data(16, 1), 8, num_workers=1, persistent_workers=True),
}


def fresh(kind: dict[str, Any]) -> dict[str, Any]:
    """The same options, with loaders whose workers no other runner has started."""
    return {key: copy(value) for key, value in kind.items()}


@pytest.mark.parametrize(
    "kind",
    [
        BY_EPOCH,
        INSIDE,
        BY_ITERS,
        WORKERS_BY_EPOCH,
        WORKERS_INSIDE,
        {**BY_ITERS, "val_dataloader": PERSISTENT_VAL},
        OWN_WORKERS_INSIDE,
    ],
    ids=[
        "epochs",
        "inside an epoch",
        "iterations",
        "persistent workers",
        "persistent workers inside an epoch",
        "persistent workers for validation",
        "persistent workers of own loaders",
    ],
)
@pytest.mark.parametrize("fail_at", [5, 10])
def test_a_failed_run_resumes_as_if_it_had_not_failed(
    tmp_path: Path, kind: dict[str, Any], fail_at: int
) -> None:
    schedule = [
        {"type": "LinearLR", "by_epoch": False, "end": 6},
        {"type": "MultiStepLR", "milestones": [2]},
    ]
    ema = {"type": "EMAHook", "momentum": 0.1}

    def prepare(folder: str, watcher: Watcher, **changes: Any) -> Runner:
        options = {**fresh(kind), "param_scheduler": schedule, **changes}
        return make_runner(tmp_path / folder, 4, custom_hooks=[ema, watcher], **options)

    whole = Watcher()
    unbroken = prepare("whole", whole)
    unbroken.train()
    first, second = Watcher(fail_at), Watcher()
    with pytest.raises(RuntimeError, match="pulled the plug"):
        prepare("broken", first).train()
    resumed = prepare("broken", second, resume=True)
    resumed.train()
    assert {**first.losses, **second.losses} == whole.losses
    assert min(second.losses) > 0  # it was resumed
    assert weights(resumed) == weights(unbroken)
    accuracies = [
        each.message_hub.get_scalar("val/accuracy").data[0].tolist() for each in (resumed, unbroken)
    ]
    assert accuracies[0] == accuracies[1]


def test_another_number_of_persistent_workers_is_announced_on_resume(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_runner(tmp_path, 2, **WORKERS_BY_EPOCH).train()
    changed = {**WORKERS_BY_EPOCH, "train_dataloader": {**PERSISTENT, "num_workers": 1}}
    runner = make_runner(tmp_path, 3, resume=True, **changed)
    runner.train()
    assert runner.epoch == 3
    warnings = [record for record in caplog.records if "number of workers" in record.getMessage()]
    assert len(warnings) == 1


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


@pytest.mark.parametrize(
    ("own", "persistent", "epochs", "count"),
    [(True, True, 2, 1), (False, True, 2, 0), (True, True, 1, 0), (True, False, 2, 0)],
)
def test_a_loader_whose_workers_keep_their_random_numbers_is_announced_before_training(
    own: bool, persistent: bool, epochs: int, count: int, tmp_path: Path
) -> None:
    given: Any = {**loader(), "num_workers": 1, "persistent_workers": persistent}
    if own:
        given = DataLoader(data(), 8, num_workers=1, persistent_workers=persistent)
    runner = make_runner(tmp_path, epochs, train_dataloader=given)
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    runner.logger.addHandler(handler)
    runner.train()
    assert sum("persistent_workers" in record.getMessage() for record in records) == count


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
    runner = Runner.from_cfg(cfg)
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


class OwnRunner(Runner):
    """A runner with the methods that MMEngine's document lists."""

    def call_hook(self, fn_name: str, **kwargs: Any) -> None:
        for hook in self._hooks:
            if hasattr(hook, fn_name):
                getattr(hook, fn_name)(self, **kwargs)

    def register_hook(self, hook: Any, priority: Any = None) -> Any:
        built = HOOKS.build(hook) if isinstance(hook, dict) else hook
        if priority is not None:
            built.priority = priority
        for index in range(len(self._hooks) - 1, -1, -1):
            if get_priority(built.priority) >= get_priority(self._hooks[index].priority):
                self._hooks.insert(index + 1, built)
                return
        self._hooks.insert(0, built)


@pytest.mark.parametrize(
    "length",
    [{"by_epoch": True, "max_epochs": 2}, {"by_epoch": False, "max_iters": 8, "val_interval": 4}],
)
def test_a_runner_with_the_documented_call_hook_and_register_hook_trains_as_before(
    length: dict[str, Any], tmp_path: Path
) -> None:
    checkpoint = {"type": "CheckpointHook", "interval": 1, "by_epoch": length["by_epoch"]}
    losses, files = [], []
    for number, kind in enumerate((Runner, OwnRunner)):
        watcher, folder = Watcher(), tmp_path / str(number)
        given = parts(
            folder,
            train_cfg=dict(length),
            custom_hooks=[watcher, {"type": "EMAHook"}],
            default_hooks={"checkpoint": dict(checkpoint)},
        )
        runner = kind(**given)
        runner.train()
        losses.append((watcher.losses, weights(runner)))
        files.append(sorted(path.name for path in folder.glob("*.pth")))
    assert losses[0] == losses[1]
    assert len(losses[1][0]) == 8
    assert files[0] == files[1]
    assert files[1]
