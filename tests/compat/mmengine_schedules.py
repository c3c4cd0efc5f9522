"""Print the rates of every scheduler of the stand-ins, together with a warm-up, as JSON.

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
SCHEDULES = {
    "CosineAnnealingLR": {"T_max": 4, "eta_min": 0.01, "begin": 0},
    "LinearLR": {"start_factor": 0.2, "begin": 0, "end": 5},
    "MultiStepLR": {"milestones": [2, 5, 5], "gamma": 0.5},
    "StepLR": {"step_size": 3, "gamma": 0.3},
}


def rates(names):
    """Return the rates at each step, of two groups, with several schedulers of one optimizer."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    groups = [{"params": [parameter]}, {"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 0.05}]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    wrapper = optim.OptimWrapper(optimizer)
    schedulers = [getattr(optim, name)(wrapper, **SCHEDULES[name]) for name in names]
    found = []
    for _ in range(STEPS):
        found.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
    return found


if __name__ == "__main__":
    print("JOB " + json.dumps({name: rates([name, "LinearLR"]) for name in SCHEDULES}))
