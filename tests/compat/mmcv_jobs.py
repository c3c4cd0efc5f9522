"""Training jobs for MMCV's interface, and what can be seen of them from outside.

`mmcv_reference.json` is what they gave under MMCV 1.7.2 itself, and `mmcv_1_7_2_epoch_2.pth` a checkpoint of the first one. Both come of
`python tests/compat/mmcv_jobs.py tests/compat/mmcv_reference.json` in an environment where `mmcv` is that.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SITES = [
    f"{when}_{what}"
    for when in ("before", "after")
    for what in ("run", "epoch", "train_epoch", "val_epoch", "train_iter", "val_iter")
]
RESUMED = "resumed from a file of MMCV"
EPOCHS, ITERATIONS = "EpochBasedRunner", "IterBasedRunner"


class Points(Dataset):
    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randn(24, 4, generator=generator)
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"x": self.x[index] + 0.01 * torch.randn(4), "y": self.y[index]}

    def evaluate(self, results, logger=None):
        return {
            "acc": sum(
                int(scores.argmax()) == int(label)
                for scores, label in zip(results, self.y, strict=True)
            )
            / len(self.y)
        }


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))

    def forward(self, x, y=None, return_loss=True):
        scores = self.net(x)
        return nn.functional.cross_entropy(scores, y) if return_loss else list(scores)

    def train_step(self, data, optimizer, **kwargs):
        loss = self(**data)
        return {"loss": loss, "log_vars": {"loss": loss.item()}, "num_samples": len(data["x"])}

    def val_step(self, data, optimizer=None, **kwargs):
        return self.train_step(data, optimizer)


def jobs() -> dict[str, dict[str, Any]]:
    """The jobs by name: the arguments of `run_job`."""
    clip, warm = (
        {"grad_clip": {"max_norm": 1}},
        {"warmup": "constant", "warmup_iters": 7, "warmup_ratio": 0.3},
    )
    cosine = {
        "policy": "CosineAnnealing",
        "min_lr": 0,
        "by_epoch": False,
        "warmup": "exp",
        "warmup_iters": 1,
        "warmup_by_epoch": True,
    }
    result: dict[str, dict[str, Any]] = {
        "epochs with EMA, evaluation and clipping": {
            "lr": {"policy": "step", "step": [2], "warmup": "linear", "warmup_iters": 5}, "optimizer": clip, "ema": True, "evaluate": 1,
            "length": {"max_epochs": 4}},
        "epochs of training and validation in turn": {
            "lr": cosine, "ema": True, "workflow": [("train", 2), ("val", 1)], "length": {"max_epochs": 3}},
        "iterations with accumulation and evaluation": {
            "cls": ITERATIONS, "length": {"max_iters": 20}, "workflow": [("train", 3), ("val", 2)], "lr": {"policy": "poly", "power": 2},
            "optimizer": {"type": "GradientCumulativeOptimizerHook", "cumulative_iters": 3}, "evaluate": 5,
            "checkpoint": {"interval": 4, "max_keep_ckpts": 2}},
    }  # fmt: skip
    policies: dict[str, dict[str, Any]] = {
        "fixed": {}, "exp": {"gamma": 0.9}, "inv": {"gamma": 0.1, "power": 2}, "poly": {"power": 0.5, "min_lr": 0.01},
        "CosineAnnealing": {"min_lr_ratio": 0.1}, "LinearAnnealing": {"min_lr": 0.01},
        "step": {"step": [2, 4], "gamma": 0.3, "min_lr": 0.02}, "FlatCosineAnnealing": {"min_lr": 0.01, "start_percent": 0.4},
    }  # fmt: skip
    for policy, options in policies.items():
        for by_epoch in (True, False):
            name = f"{policy} by {'epoch' if by_epoch else 'iteration'}"
            result[name] = {
                "lr": {"policy": policy, "by_epoch": by_epoch, **warm, **options},
                "length": {"max_epochs": 6},
            }
    restart = {
        "policy": "CosineRestart",
        "periods": [2, 4],
        "restart_weights": [1, 0.5],
        "min_lr": 0.001,
    }
    cyclic = {"policy": "cyclic", "target_ratio": (10, 1e-3), "cyclic_times": 2, "gamma": 0.8}
    for config in ({**restart, **warm}, cyclic, {"policy": "OneCycle", "max_lr": 0.5}):
        result[config["policy"]] = {"lr": config, "length": {"max_epochs": 6}}
    one_cycle = {"policy": "OneCycle", "max_lr": 0.2, "three_phase": True}
    for config in (
        {"policy": "step", "step": [2], "gamma": 0.5, "min_momentum": 0.3}, {"policy": "CosineAnnealing", "min_momentum": 0.1},
        {"policy": "LinearAnnealing", "min_momentum_ratio": 0.1}, {"policy": "cyclic", "target_ratio": (0.85 / 0.95, 1), "cyclic_times": 2},
        {"policy": "OneCycle", "base_momentum": 0.8, "three_phase": True},
    ):  # fmt: skip
        result[f"momentum {config['policy']}"] = {
            "lr": one_cycle,
            "momentum": config,
            "length": {"max_epochs": 4},
        }
    return result


def run_job(
    api: Any, folder: Any, lr: dict[str, Any], length: dict[str, int], cls: str = EPOCHS, workflow: Any = (("train", 1),),
    optimizer: Any = None, momentum: Any = None, ema: bool = False, evaluate: int = 0, checkpoint: Any = None, resume: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train with `api` (the module `mmcv.runner`); return the records of a probe and the files."""
    torch.manual_seed(0), random.seed(0), np.random.seed(0)
    model, seen, lines = Model(), {"calls": [], "losses": [], "rates": [], "momenta": []}, []
    logger = logging.Logger("job")
    logger.addHandler(
        type(
            "Keep",
            (logging.Handler,),
            {"emit": lambda self, record: lines.append(record.getMessage())},
        )()
    )
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    runner = getattr(api, cls)(
        model, optimizer=sgd, work_dir=str(folder), logger=logger, meta={"seed": 0}, **length
    )
    log = {"interval": 2, "hooks": [{"type": "TextLoggerHook"}]}
    runner.register_training_hooks(
        dict(lr),
        dict(optimizer or {}),
        dict(checkpoint or {"interval": 1}),
        log,
        momentum and dict(momentum),
    )
    if ema:
        runner.register_hook(api.EMAHook(momentum=0.1, resume_from=resume), priority="ABOVE_NORMAL")
    elif resume:
        runner.resume(resume)
    if evaluate:
        hook = api.EvalHook(
            DataLoader(Points(), batch_size=4),
            by_epoch=cls == EPOCHS,
            interval=evaluate,
            save_best="acc",
        )
        runner.register_hook(hook, priority="LOW")
    runner.register_hook(make_probe(api, seen), priority="VERY_LOW")
    loaders = [DataLoader(Points(), batch_size=4, shuffle=mode == "train") for mode, _ in workflow]
    runner.run(loaders, list(workflow))
    (path,) = Path(folder).glob("*.log.json")
    rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return {
        **seen,
        "weights": {key: value.double().sum().item() for key, value in model.state_dict().items()},
        "hooks": [type(hook).__name__ for hook in runner.hooks],
        "messages": {
            key: os.path.basename(str(value)) for key, value in runner.meta["hook_msgs"].items()
        },
        "files": sorted(path.name for path in Path(folder).glob("*.pth")),
        "rows": [
            {key: value for key, value in row.items() if key not in ("time", "data_time", "memory")}
            for row in rows
        ],
        "lines": [
            re.sub(r"eta: [\d:]+|time: [\d.]+", "", line)
            for line in lines
            if re.match("Epoch|Iter|Saving|Best", line)
        ],
    }


def make_probe(api: Any, seen: dict[str, list[Any]]) -> Any:
    """A hook that writes down each call with the counters, and loss, learning rate and momentum of each iteration."""

    def at(site: str) -> Any:
        def method(self: Any, runner: Any) -> None:
            seen["calls"].append(
                " ".join(
                    map(str, (site, runner.mode, runner.epoch, runner.iter, runner.inner_iter))
                )
            )
            if site == "after_train_iter":
                seen["losses"].append(runner.outputs["loss"].item())
                seen["rates"].append(runner.current_lr()[0])
                seen["momenta"].append(runner.current_momentum()[0])

        return method

    return type("Probe", (api.Hook,), {site: at(site) for site in SITES})()


def shortened(result: dict[str, Any], name: str) -> dict[str, Any]:
    """Of the many jobs that differ in a schedule only, just what that changes."""
    return (
        result
        if name in list(jobs())[:3]
        else {key: result[key] for key in ("rates", "momenta", "weights")}
    )


if __name__ == "__main__":
    import mmcv.runner

    time.sleep = lambda seconds: None  # MMCV waits two seconds at each epoch
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as where:
        results = {
            name: shortened(run_job(mmcv.runner, Path(where) / str(i), **job), name)
            for i, (name, job) in enumerate(jobs().items())
        }
        file = target.with_name("mmcv_1_7_2_epoch_2.pth")
        file.write_bytes((Path(where) / "0" / "epoch_2.pth").read_bytes())
        first = next(iter(jobs().values()))
        results[RESUMED] = run_job(mmcv.runner, Path(where) / "resumed", **first, resume=str(file))
    target.write_text(json.dumps(results, separators=(",", ":")) + "\n")
