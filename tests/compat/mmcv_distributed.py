"""Run by torchrun: two processes train under MMCV's interface, evaluate, save, and resume."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch.utils.data import DataLoader, DistributedSampler

from hookline.compat.mmcv.engine import multi_gpu_test
from hookline.compat.mmcv.parallel import MMDistributedDataParallel
from hookline.compat.mmcv.runner import DistEvalHook, get_dist_info, init_dist
from tests.compat.mmcv_parts import Classifier, Points, make_runner


def train(folder: Path, resume: str | None = None) -> dict[str, torch.Tensor]:
    runner = make_runner(folder, model=MMDistributedDataParallel(Classifier(bn=True)), max_epochs=3)
    torch.manual_seed(
        get_dist_info()[0] + (100 if resume else 0)
    )  # each process drops out other units
    runner.register_training_hooks({"policy": "step", "step": [1]}, {}, {"interval": 1, "sync_buffer": True},
                                   {"interval": 2, "hooks": [{"type": "TextLoggerHook"}]})  # fmt: skip
    data = Points(count=32)
    runner.register_hook({"type": "DistSamplerSeedHook"})
    held_out = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, shuffle=False))
    runner.register_hook(DistEvalHook(held_out, save_best="auto"), priority="LOW")
    if resume:
        runner.resume(resume)
    runner.run([DataLoader(data, batch_size=4, sampler=DistributedSampler(data))], [("train", 1)])
    results = multi_gpu_test(runner.model, held_out)
    if get_dist_info()[0] == 0:
        (folder / "results.json").write_text(
            json.dumps([len(results), data.evaluate(results)["acc"], runner.meta["hook_msgs"]])
        )
    return {key: value.clone() for key, value in runner.model.module.state_dict().items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    root = Path(sys.argv[1])
    init_dist("pytorch", backend="gloo")
    whole = train(root / "whole")
    resumed = train(root / "resumed", str(root / "whole" / "epoch_1.pth"))
    different = [key for key in whole if not torch.equal(whole[key], resumed[key])]
    (root / f"rank_{get_dist_info()[0]}.json").write_text(
        json.dumps([different, float(whole["net.0.weight"].sum())])
    )
    torch.distributed.destroy_process_group()
