"""Code for MMCV 1.x that uses both its own parts and ours. Prints findings as JSON."""

from __future__ import annotations

import json
import logging
import sys

import mmcv
import torch
from mmcv.cnn import ConvModule
from mmcv.fileio import BaseStorageBackend, FileClient
from mmcv.parallel import MMDataParallel
from mmcv.runner import (
    HOOKS,
    BaseModule,
    EpochBasedRunner,
    Hook,
    PaviLoggerHook,
    build_optimizer,
    load_checkpoint,
)
from mmcv.utils import build_from_cfg

FILES: dict[str, bytes] = {}


@FileClient.register_backend("memory", prefixes="memory")
class MemoryBackend(BaseStorageBackend):
    """A storage that is not a disk."""

    def get(self, filepath):
        return FILES[filepath]

    def get_text(self, filepath):
        return FILES[filepath].decode()

    def put(self, obj, filepath):
        FILES[filepath] = obj

    def isfile(self, filepath):
        return filepath in FILES

    def remove(self, filepath):
        del FILES[filepath]

    def join_path(self, filepath, *filepaths):
        return "/".join([filepath, *filepaths])


class Model(BaseModule):
    def __init__(self):
        super().__init__(init_cfg={"type": "Constant", "layer": "Linear", "val": 0.5})
        self.conv = ConvModule(1, 1, 1, norm_cfg={"type": "BN"})
        self.fc = torch.nn.Linear(2, 1)

    def train_step(self, data, optimizer):
        loss = self.fc(data).mean() + self.conv(data.reshape(-1, 1, 1, 1)).mean()
        return {"loss": loss, "log_vars": {"loss": loss.item()}, "num_samples": len(data)}


@HOOKS.register_module()
class Count(Hook):
    calls = 0

    def after_train_iter(self, runner):
        self.calls += 1


work_dir = sys.argv[1]
model = Model()
model.init_weights()
optimizer = build_optimizer(
    model,
    {"type": "SGD", "lr": 0.1, "weight_decay": 0.1, "paramwise_cfg": {"norm_decay_mult": 0}},
)
runner = EpochBasedRunner(
    MMDataParallel(model, device_ids=[]),
    optimizer=optimizer,
    work_dir=work_dir,
    logger=logging.getLogger("job"),
    meta={},
    max_epochs=3,
)
runner.register_training_hooks(
    lr_config={"policy": "step", "step": [2]},
    optimizer_config={},
    checkpoint_config={"interval": 1, "max_keep_ckpts": 2, "out_dir": "memory://runs"},
)
count = build_from_cfg({"type": "Count"}, HOOKS)
runner.register_hook(count)
runner.run([torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2)], [("train", 1)])
with open(f"{work_dir}/copy.pth", "wb") as file:
    file.write(FILES[runner.meta["hook_msgs"]["last_ckpt"]])
other = Model()
load_checkpoint(other, f"{work_dir}/copy.pth", strict=True)
findings = {
    "version": mmcv.__version__,
    "modules": {
        kind.__name__: kind.__module__.split(".")[0]
        for kind in (mmcv.Config, BaseModule, PaviLoggerHook, EpochBasedRunner, Hook)
    },
    "groups": len({group["weight_decay"] for group in optimizer.param_groups}),
    "calls": count.calls,
    "files": sorted(FILES),
    "equal": torch.equal(other.fc.weight, model.fc.weight),
    "torchvision": "torchvision" in sys.modules,
}
print("JOB " + json.dumps(findings))
