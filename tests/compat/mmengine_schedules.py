"""Print the rates and momenta of every parameter scheduler as JSON.

Run `python mmengine_schedules.py mmengine` or `python mmengine_schedules.py hookline`.
"""

import json
import sys

if sys.argv[1:2] == ["hookline"]:
    from hookline.compat import install

    install("mmengine")

import torch
from mmengine import optim

STEPS = 12
LR = {
    "ConstantLR": {"factor": 0.5, "begin": 1, "end": 6},
    "CosineAnnealingLR": {"T_max": 4, "eta_min": 0.01},
    "CosineRestartLR": {"periods": [3, 5], "restart_weights": [1, 0.5], "eta_min": 0.01},
    "ExponentialLR": {"gamma": 0.8, "begin": 2, "end": 9},
    "LinearLR": {"start_factor": 0.2, "begin": 0, "end": 5},
    "MultiStepLR": {"milestones": [2, 5, 5], "gamma": 0.5},
    "OneCycleLR": {"eta_max": 0.3, "total_steps": 12},
    "PolyLR": {"power": 0.9, "eta_min": 0.001, "begin": 1, "end": 10},
    "ReduceOnPlateauLR": {"monitor": "loss", "patience": 1, "factor": 0.5},
    "StepLR": {"step_size": 3, "gamma": 0.3},
}
VARIANTS = {
    "OneCycleLR linear": (
        "OneCycleLR",
        {"eta_max": 0.3, "total_steps": 12, "anneal_strategy": "linear", "three_phase": True},
    ),
    "OneCycleLR up to its last step": (
        "OneCycleLR",
        {"eta_max": [0.3, 0.2, 0.1], "total_steps": 11, "pct_start": 0.55, "begin": 1},
    ),
    "OneCycleLR linear up to its last step": (
        "OneCycleLR",
        {"eta_max": 0.3, "total_steps": 11, "anneal_strategy": "linear", "begin": 1},
    ),
    "CosineRestartLR ratio": (
        "CosineRestartLR",
        {"periods": [2, 4, 3], "restart_weights": [1, 0.5, 2], "eta_min_ratio": 0.1},
    ),
    "CosineAnnealingLR ratio": ("CosineAnnealingLR", {"begin": 2, "end": 10, "eta_min_ratio": 0.1}),
    "ReduceOnPlateauLR greater": (
        "ReduceOnPlateauLR",
        {"monitor": "loss", "rule": "greater", "threshold_rule": "abs", "patience": 0},
    ),
}
MOMENTUM = [name for name in LR if name != "OneCycleLR"]


def values(kind, options, momentum=False, adam=False, epoch_length=None):
    parameter = torch.nn.Parameter(torch.zeros(1))
    groups = [{"params": [parameter]}, {"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 0.05}]
    optimizer = (
        torch.optim.Adam(groups, lr=0.1) if adam else torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    )
    wrapper = optim.OptimWrapper(optimizer)
    cls = getattr(optim.scheduler, kind)
    scheduler = (
        cls.build_iter_from_epoch(wrapper, epoch_length=epoch_length, **options)
        if epoch_length
        else cls(wrapper, **options)
    )
    found = []
    for step in range(STEPS):
        found.append(
            [
                group["betas"][0] if momentum and adam else group["momentum" if momentum else "lr"]
                for group in optimizer.param_groups
            ]
        )
        optimizer.step()
        scheduler.step()
        if "Plateau" in kind:
            scheduler.step(
                {"loss": [5.0, 4.0, 4.0, 4.0, 3.9, 3.9, 3.9, 3.9, 3.9, 1.0, 1.0, 1.0][step]}
            )
    return found


def all_values():
    found = {name: values(name, options) for name, options in LR.items()}
    found.update({label: values(kind, options) for label, (kind, options) in VARIANTS.items()})
    for name in MOMENTUM:
        kind = name.removesuffix("LR") + "Momentum"
        if hasattr(optim.scheduler, kind) and "Plateau" not in kind:
            found[kind] = values(kind, LR[name], momentum=True)
            found[f"{kind} of Adam"] = values(kind, LR[name], momentum=True, adam=True)
    for name in ("StepLR", "MultiStepLR", "LinearLR", "CosineAnnealingLR", "CosineRestartLR"):
        found[f"{name} by iteration"] = values(name, LR[name], epoch_length=2)
    return found


if __name__ == "__main__":
    print("JOB " + json.dumps(all_values()))
