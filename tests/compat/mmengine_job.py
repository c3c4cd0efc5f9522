"""One training job written for MMEngine, run by the test that compares the real package with ours.

`python mmengine_job.py mmengine|hookline epochs|iters WORK_DIR` prints the losses, the learning rates, the metrics and every
hook call as JSON. The only difference between the two is what `import mmengine` means.
"""

import json
import sys

if sys.argv[1:2] == ["hookline"]:
    from hookline.compat import install

    install("mmengine")

import torch
import torch.nn.functional as F
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.optim import OptimWrapper
from mmengine.registry import HOOKS, METRICS, MODELS, OPTIM_WRAPPER_CONSTRUCTORS
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import TensorDataset


@MODELS.register_module()
class JobNet(BaseModel):
    def __init__(self, width=16, dropout=0.2, data_preprocessor=None, init_cfg=None):
        super().__init__(data_preprocessor, init_cfg)
        self.body = nn.Sequential(
            nn.Linear(8, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(dropout)
        )
        self.head = nn.Linear(width, 3)

    def forward(self, inputs, labels, mode="tensor"):
        out = self.head(self.body(inputs))
        if mode == "loss":
            return {
                "loss_cls": F.cross_entropy(out, labels),
                "accuracy": (out.argmax(1) == labels).float().mean(),
            }
        return (out, labels) if mode == "predict" else out


@METRICS.register_module()
class JobAccuracy(BaseMetric):
    default_prefix = "val"

    def process(self, data_batch, data_samples):
        out, labels = data_samples
        self.results.append({"right": int((out.argmax(1) == labels).sum()), "all": len(labels)})

    def compute_metrics(self, results):
        return {
            "accuracy": sum(each["right"] for each in results)
            / sum(each["all"] for each in results)
        }


@HOOKS.register_module()
class Probe(Hook):
    """Records every call, with where the run was and what was passed."""

    def __init__(self):
        self.calls, self.losses, self.rates, self.metrics = [], [], [], []

    def note(self, runner, stage, **given):
        self.calls.append([stage, runner.epoch, runner.iter, sorted(given), given.get("batch_idx")])
        if stage == "after_train_iter":
            self.losses.append(given["outputs"]["loss"].item())
            self.rates.append(runner.optim_wrapper.get_lr()["lr"])
        if stage in ("after_val_epoch", "after_test_epoch"):
            self.metrics.append({key: float(value) for key, value in given["metrics"].items()})


def _recorder(stage):
    def method(self, runner, **kwargs):
        self.note(runner, stage, **kwargs)

    return method


for _stage in Hook.stages:
    setattr(Probe, _stage, _recorder(_stage))


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class JobConstructor:
    """A group for each parameter; no decay of the norm, and half the rate of the head."""

    def __init__(self, optim_wrapper_cfg, paramwise_cfg=None):
        self.options = dict(optim_wrapper_cfg)

    def __call__(self, model):
        optimizer = dict(self.options["optimizer"])
        groups = []
        for name, parameter in model.named_parameters():
            group = {"params": [parameter]}
            if name.startswith("body.1."):
                group["weight_decay"] = 0.0
            if name.startswith("head."):
                group["lr"] = 0.5 * optimizer["lr"]
            groups.append(group)
        options = {key: self.options[key] for key in self.options if key != "optimizer"}
        return OptimWrapper(torch.optim.AdamW(groups, **optimizer), **options)


def data(count, seed):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 8, generator=generator)
    return TensorDataset(inputs, inputs[:, :3].argmax(1))


def loader(dataset, sampler, shuffle):
    return {
        "batch_size": 16,
        "num_workers": 0,
        "sampler": {"type": sampler, "shuffle": shuffle},
        "dataset": dataset,
        "collate_fn": {"type": "default_collate"},
    }


def runner(kind, work_dir, probe, **changes):
    by_epoch = kind == "epochs"
    length = (
        {"max_epochs": 4, "val_interval": 2} if by_epoch else {"max_iters": 25, "val_interval": 10}
    )
    warm_up = {"type": "LinearLR", "start_factor": 0.1, "by_epoch": False, "begin": 0, "end": 5}
    decay = {"type": "CosineAnnealingLR", "by_epoch": False, "begin": 5, "end": 24, "eta_min": 1e-4}
    options = {
        "model": {"type": "JobNet"},
        "work_dir": work_dir,
        "train_dataloader": loader(
            data(96, 0), "DefaultSampler" if by_epoch else "InfiniteSampler", True
        ),
        "val_dataloader": loader(data(40, 1), "DefaultSampler", False),
        "test_dataloader": loader(data(24, 2), "DefaultSampler", False),
        "train_cfg": {"by_epoch": by_epoch, **length},
        "val_cfg": {},
        "test_cfg": {},
        "val_evaluator": {"type": "JobAccuracy"},
        "test_evaluator": {"type": "JobAccuracy"},
        "optim_wrapper": {
            "constructor": "JobConstructor",
            "optimizer": {"lr": 0.02, "weight_decay": 0.05},
            "clip_grad": {"max_norm": 1.0},
            "accumulative_counts": 1 if by_epoch else 2,
        },
        "param_scheduler": [
            warm_up,
            decay if not by_epoch else {"type": "MultiStepLR", "milestones": [2, 3], "gamma": 0.5},
        ],
        "default_hooks": {
            "checkpoint": {
                "type": "CheckpointHook",
                "interval": 2 if by_epoch else 10,
                "by_epoch": by_epoch,
            }
        },
        "custom_hooks": [{"type": "EMAHook", "momentum": 0.1}, probe],
        "randomness": {"seed": 3},
        "log_level": "WARNING",
        "default_scope": "mmengine",
    }
    return Runner(**{**options, **changes})


if __name__ == "__main__":
    seen = Probe()
    job = runner(sys.argv[2], sys.argv[3], seen)
    job.train()
    job.test()
    weights = {key: value.double().sum().item() for key, value in job.model.state_dict().items()}
    found = {
        "hooks": job.get_hooks_info(),
        "calls": seen.calls,
        "losses": seen.losses,
        "rates": seen.rates,
        "metrics": seen.metrics,
        "weights": weights,
    }
    print("JOB " + json.dumps(found))
