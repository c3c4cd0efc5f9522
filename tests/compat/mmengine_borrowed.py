"""What projects use of MMEngine beside its runner: `python mmengine_borrowed.py mmengine|hookline WORK_DIR` prints JSON."""

import json
import sys

if sys.argv[1:2] == ["hookline"]:
    from hookline.compat import install

    install("mmengine")

import argparse
import logging
from pathlib import Path

import mmengine_job
import numpy as np
import torch
from mmengine.config import Config, DictAction
from mmengine.dataset import BaseDataset
from mmengine.hooks import Hook
from mmengine.logging import MMLogger
from mmengine.model import BaseModule
from mmengine.structures import BaseDataElement, InstanceData, PixelData
from torch import nn


class Sample(BaseDataElement):
    """A data sample with a property, as in the projects."""

    @property
    def gt(self):
        return self._gt

    @gt.setter
    def gt(self, value):
        self.set_field(value, "_gt", dtype=int)

    @gt.deleter
    def gt(self):
        del self._gt


def error_of(function):
    """The type of the error of a call, and its text, or its result."""
    try:
        return str(function())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def samples(folder):
    """Properties of samples, and the rules of InstanceData and PixelData."""
    sample = Sample(metainfo={"size": (4, 4)})
    before = "gt" in sample
    sample.gt = 3
    boxes = InstanceData(boxes=torch.zeros(3, 4), labels=torch.tensor([0, 1, 2]))
    pixels = PixelData(metainfo={"size": (4, 5)}, mask=np.ones((2, 4, 5)))
    return {
        "contains": [before, "gt" in sample, "size" in sample],
        "to_dict": {key: str(value) for key, value in sample.to_dict().items()},
        "wrong_field": error_of(lambda: setattr(sample, "gt", "three")),
        "instances": [len(boxes), boxes[boxes.labels > 0].labels.tolist()],
        "joined": len(InstanceData.cat([boxes, boxes])),
        "other_length": error_of(lambda: setattr(boxes, "scores", torch.zeros(2))),
        "shape": list(pixels.shape),
        "cut": list(pixels[1:3, 0:2].mask.shape),
        "other_shape": error_of(lambda: setattr(pixels, "depth", np.ones((2, 4, 4)))),
        "two_dimensions": error_of(
            lambda: setattr(pixels, "plane", torch.ones(4, 5)) or pixels.plane.shape
        ),
    }


def datasets(folder):
    """A data set with serialized samples, parts of it, and classes in a file."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / "classes.txt").write_text("cat\ndog\n")
    rows = [{"img_path": f"{index}.png", "label": index % 2} for index in range(5)]
    annotations = {"metainfo": {"task": "cls", "classes": ["a"]}, "data_list": rows}
    (path / "ann.json").write_text(json.dumps(annotations))
    found = {}
    for serialize in (True, False):
        data = BaseDataset(
            ann_file="ann.json",
            data_root=folder,
            metainfo={"classes": str(path / "classes.txt")},
            serialize_data=serialize,
        )
        part = data.get_subset([0, 2, 4])
        data.get_subset_(2)
        found[str(serialize)] = {
            "metainfo": data.metainfo,
            "stored": [data.serialize_data, len(data.data_list), hasattr(data, "data_bytes")],
            "part": [part.get_data_info(index)["label"] for index in range(len(part))],
            "whole": [len(data), data[1]["sample_idx"]],
        }
    return found


def options(folder):
    """Nested brackets on the command line, merged into a config."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cfg-options", nargs="+", action=DictAction)
    given = ["a.b=[(1,2),[3,(4,5.5)],x]", "c=1,2", "d=[]", 'e="[(a,b),(c,d)]"', "f.0.type=B"]
    cfg = Config({"a": {"b": 1}, "f": [{"type": "A"}]})
    cfg.merge_from_dict(parser.parse_args(["--cfg-options", *given]).cfg_options)
    imbalanced = error_of(lambda: DictAction._parse_iterable("[(1,2),(3"))
    return {"merged": repr(cfg.to_dict()), "imbalanced": imbalanced}


def levels(folder):
    """A logger whose level changes after its first line."""
    logger = MMLogger.get_instance("levels", log_level="DEBUG")
    enabled = [logger.isEnabledFor(logging.INFO)]
    logger.setLevel(logging.ERROR)
    enabled.append(logger.isEnabledFor(logging.INFO))
    logger.setLevel("INFO")
    return [*enabled, logger.isEnabledFor(logging.INFO)]


class Block(BaseModule):
    """A child that initializes its weights to a constant."""

    def __init__(self, value):
        super().__init__(init_cfg={"type": "Constant", "layer": "Linear", "val": value})
        self.fc = nn.Linear(2, 2)


class Parent(BaseModule):
    """A parent whose weights come from a file, or from its children."""

    def __init__(self, init_cfg=None):
        super().__init__(init_cfg)
        self.first = Block(1.0)
        self.second = Block(2.0)


def weights(folder):
    """The initialization of children, alone and under a parent with pretrained weights."""
    found = {}
    alone = Parent()
    alone.init_weights()
    found["alone"] = [block.fc.weight.sum().item() for block in alone.children()]
    file = Path(folder, "pretrained.pth")
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.save({key: value + 5 for key, value in alone.state_dict().items()}, file)
    parent = Parent({"type": "Pretrained", "checkpoint": str(file)})
    parent.init_weights()
    found["pretrained"] = [block.fc.weight.sum().item() for block in parent.children()]
    both = Parent([{"type": "Constant", "layer": "Linear", "val": 9.0}])
    both.init_weights()
    found["children_last"] = [block.fc.weight.sum().item() for block in both.children()]
    return found


class Count(Hook):
    """Counts the iterations that it sees."""

    def __init__(self):
        self.calls = 0

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.calls += 1


class Adding(Hook):
    """Adds a hook in the third iteration."""

    def __init__(self, hook):
        self.hook = hook

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == 2:
            runner._hooks.append(self.hook)


def hook_list(folder):
    """Change the list of a runner's hooks before and during training."""
    kept, removed, added, first, late = Count(), Count(), Count(), Count(), Count()
    runner = mmengine_job.runner(
        "epochs",
        folder,
        mmengine_job.Probe(),
        train_cfg={"by_epoch": True, "max_epochs": 1},
        custom_hooks=[kept, removed, Adding(late)],
    )
    runner._hooks.remove(removed)
    runner.hooks.append(added)
    runner._hooks.insert(0, first)
    runner.train()
    return [each.calls for each in (kept, removed, added, first, late)]


PARTS = (samples, datasets, options, levels, weights, hook_list)

if __name__ == "__main__":
    print("JOB " + json.dumps({part.__name__: part(sys.argv[2]) for part in PARTS}))
