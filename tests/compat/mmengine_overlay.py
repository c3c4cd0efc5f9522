"""Jobs for the overlay of an installed MMEngine: `python mmengine_overlay.py mmengine|hookline JOB …` prints JSON."""

import json
import os
import signal
import sys

if sys.argv[1:2] == ["hookline"]:
    from hookline.compat import install

    install("mmengine")

import importlib
import pkgutil
from pathlib import Path

import mmengine
import mmengine_job
import torch
from mmengine.hooks import EMAHook, Hook
from mmengine.optim import OptimWrapper
from mmengine.registry import HOOKS, MODELS, OPTIM_WRAPPER_CONSTRUCTORS, Registry
from mmengine.runner import Priority, Runner, get_priority


def names():
    """The public names of every package."""
    found = {}
    for each in pkgutil.walk_packages(mmengine.__path__, "mmengine."):
        if not each.ispkg or "original_" in each.name:
            continue
        module = importlib.import_module(each.name)
        found[each.name] = sorted(getattr(module, "__all__", []))
    found["mmengine"] = sorted(name for name in dir(mmengine) if not name.startswith("_"))
    return found


def weights(runner):
    return {key: value.double().sum().item() for key, value in runner.model.state_dict().items()}


class Killer(Hook):
    """Ends the process as a power cut would."""

    priority = "LOWEST"

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter == 15:
            os.kill(os.getpid(), signal.SIGKILL)


def train(kind, work_dir, how):
    """Train, until a kill or after a resume; checkpoints are written inside epochs too."""
    hooks = [{"type": "EMAHook", "momentum": 0.1}]
    if how == "killed":
        hooks.append(Killer())
    checkpoints = {"type": "CheckpointHook", "interval": 7, "by_epoch": False, "max_keep_ckpts": 1}
    runner = mmengine_job.runner(
        kind,
        work_dir,
        mmengine_job.Probe(),
        custom_hooks=hooks,
        default_hooks={"checkpoint": checkpoints},
        resume=how == "resumed",
    )
    runner.train()
    return {"weights": weights(runner), "iter": runner.iter, "resumed": runner._resume}


class OwnRunner(Runner):
    """A runner with the two methods of MMEngine's document on hooks."""

    def call_hook(self, fn_name, **kwargs):
        for hook in self._hooks:
            if hasattr(hook, fn_name):
                getattr(hook, fn_name)(self, **kwargs)

    def register_hook(self, hook, priority=None):
        _priority = None
        if isinstance(hook, dict):
            _priority = hook.pop("priority", None)
            hook_obj = HOOKS.build(hook)
        else:
            hook_obj = hook
        if priority is not None:
            hook_obj.priority = priority
        elif _priority is not None:
            hook_obj.priority = _priority
        inserted = False
        for i in range(len(self._hooks) - 1, -1, -1):
            if get_priority(hook_obj.priority) >= get_priority(self._hooks[i].priority):
                self._hooks.insert(i + 1, hook_obj)
                inserted = True
                break
        if not inserted:
            self._hooks.insert(0, hook_obj)


def own_dispatch(kind, work_dir):
    """Train with a runner that overrides the dispatch of hooks."""
    mmengine_job.Runner = OwnRunner
    probe = mmengine_job.Probe()
    runner = mmengine_job.runner(kind, work_dir, probe)
    runner.train()
    files = sorted(path.name for path in Path(work_dir).glob("*.pth"))
    return {"losses": probe.losses, "calls": probe.calls, "files": files}


class Reader(Hook):
    """Reads the checkpoint of its stage, and changes the model after it."""

    priority = "LOWEST"

    def __init__(self):
        self.seen = []

    def after_train_epoch(self, runner):
        path = runner.message_hub.get_info("last_ckpt")
        if path is not None and os.path.isfile(path):
            self.seen.append([os.path.basename(path), runner.epoch])
        runner.model.head.bias.data.fill_(runner.epoch + 10.0)


def later_hooks(work_dir):
    """Train with a hook that follows CheckpointHook."""
    reader = Reader()
    runner = mmengine_job.runner("epochs", work_dir, mmengine_job.Probe(), custom_hooks=[reader])
    runner.train()
    saved = torch.load(Path(work_dir, "epoch_4.pth"), weights_only=True)["state_dict"]["head.bias"]
    return {"seen": reader.seen, "saved": saved.tolist()}


def project_hooks(work_dir):
    """Register a hook of a project under a name that Hookline has too."""
    project = Registry("hook", parent=HOOKS, scope="project")

    @project.register_module()
    class CheckInvalidLossHook(Hook):
        """The project's."""

    runner = mmengine_job.runner("epochs", work_dir, mmengine_job.Probe(), default_scope="project")
    runner.register_hook({"type": "CheckInvalidLossHook"}, priority=Priority.LOW)
    runner.register_hook({"type": "ThroughputHook"})  # Hookline's
    return [f"{type(hook).__module__}.{type(hook).__name__}" for hook in runner.hooks[-4:]]


class NoCopy:
    """A value that cannot be copied."""

    def __deepcopy__(self, memo):
        raise TypeError("no copies")


def checkpoints(work_dir):
    """Save with a value that cannot be copied, edit the file, and load it again."""
    from mmengine.runner.checkpoint import _load_checkpoint  # the stand-ins lack it

    swaps = []

    class Swapping(EMAHook):
        def _swap_ema_state_dict(self, checkpoint):
            swaps.append(sorted(checkpoint))
            super()._swap_ema_state_dict(checkpoint)

    runner = mmengine_job.runner(
        "epochs", work_dir, mmengine_job.Probe(), custom_hooks=[Swapping()]
    )
    runner.message_hub.update_info("open", NoCopy())
    runner.train()
    path = Path(work_dir, "epoch_4.pth")
    checkpoint = torch.load(path, weights_only=True)
    versions = _load_checkpoint(str(path))["state_dict"]._metadata["body.1"]
    checkpoint["state_dict"]["head.bias"].fill_(7.0)
    torch.save(checkpoint, path)
    Path(work_dir, "last_checkpoint").write_text(f"/elsewhere/{path.name}")  # a moved directory
    runner.load_checkpoint(str(path))
    resumed = mmengine_job.runner("epochs", work_dir, mmengine_job.Probe(), resume=True)
    resumed.train()
    return {
        "swaps": len(swaps),
        "versions": versions,
        "edited": runner.model.head.bias.tolist(),
        "resumed": resumed.iter,
    }


def early_stopping(work_dir):
    """Train two epochs, and resume with a longer run that stops early."""
    from mmengine.hooks import EarlyStoppingHook  # the stand-ins lack it

    found = []
    for epochs in (2, 9):
        stopping = EarlyStoppingHook("val/accuracy", rule="greater", min_delta=1.0, patience=3)
        runner = mmengine_job.runner(
            "epochs",
            work_dir,
            mmengine_job.Probe(),
            custom_hooks=[stopping],
            train_cfg={"by_epoch": True, "max_epochs": epochs, "val_interval": 1},
            resume=epochs > 2,
        )
        runner.train()
        found.append([runner.epoch, stopping.wait_count])
    return found


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class TwoOptimizers:
    """An optimizer for each part of the model."""

    def __init__(self, optim_wrapper_cfg, paramwise_cfg=None):
        self.rates = optim_wrapper_cfg["rates"]

    def __call__(self, model):
        from mmengine.optim import OptimWrapperDict  # the stand-ins lack it

        wrappers = {}
        for name, rate in self.rates.items():
            optimizer = torch.optim.SGD(getattr(model, name).parameters(), lr=rate)
            wrappers[name] = OptimWrapper(optimizer)
        return OptimWrapperDict(**wrappers)


@MODELS.register_module()
class TwoSteps(mmengine_job.JobNet):
    """A model that steps its optimizers itself."""

    def train_step(self, data, optim_wrapper):
        inputs, labels = self.data_preprocessor(data, True)
        for name, wrapper in optim_wrapper.items():
            loss = self(inputs, labels, mode="loss")["loss_cls"]
            wrapper.backward(loss, inputs=list(getattr(self, name).parameters()))
            wrapper.step()
            wrapper.zero_grad()
        return {"loss": loss}


def several_optimizers(work_dir, epochs, resume):
    """Train a model with two optimizers."""
    runner = mmengine_job.runner(
        "epochs",
        work_dir,
        mmengine_job.Probe(),
        model={"type": "TwoSteps"},
        optim_wrapper={"constructor": "TwoOptimizers", "rates": {"body": 0.1, "head": 0.2}},
        param_scheduler={
            "body": {"type": "StepLR", "step_size": 1, "end": 9},
            "head": {"type": "ExponentialLR", "gamma": 0.5, "end": 9},
        },
        custom_hooks=[],
        default_hooks={"checkpoint": {"type": "CheckpointHook", "interval": 1}},
        train_cfg={"by_epoch": True, "max_epochs": int(epochs), "val_interval": 1},
        resume=resume == "resume",
    )
    runner.train()
    return {"rates": runner.optim_wrapper.get_lr(), "weights": weights(runner)}


class Counting(Hook):
    """Keeps a whole number in a buffer of the model, another one on each rank."""

    priority = "HIGH"  # before EMAHook copies the model

    def before_run(self, runner):
        runner.model.module.register_buffer("count", torch.tensor(0))

    def before_train_epoch(self, runner):
        runner.model.module.count += 2 + 4 * runner.rank


def two_processes(work_dir, epochs, resume):
    """Train in the processes of torchrun; their buffers, also whole numbers, are averaged."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    runner = mmengine_job.runner(
        "epochs",
        work_dir,
        mmengine_job.Probe(),
        launcher="pytorch",
        cfg={"model_wrapper_cfg": {"device_ids": None, "broadcast_buffers": False}},
        custom_hooks=[{"type": "SyncBuffersHook"}, {"type": "EMAHook", "momentum": 0.1}],
        default_hooks={"checkpoint": {"type": "CheckpointHook", "interval": 1}},
        train_cfg={"by_epoch": True, "max_epochs": int(epochs), "val_interval": 1},
        resume=resume == "resume",
    )
    runner.register_hook(Counting())
    runner.train()
    state = runner.model.module.state_dict()
    found = {key: value.double().sum().item() for key, value in state.items()}
    everywhere = [None, None]
    torch.distributed.all_gather_object(everywhere, found)
    torch.distributed.destroy_process_group()
    return everywhere


JOBS = {
    "names": names,
    "early_stopping": early_stopping,
    "several_optimizers": several_optimizers,
    "train": train,
    "own_dispatch": own_dispatch,
    "later_hooks": later_hooks,
    "project_hooks": project_hooks,
    "checkpoints": checkpoints,
    "two_processes": two_processes,
}

if __name__ == "__main__":
    outcome = JOBS[sys.argv[2]](*sys.argv[3:])
    if os.environ.get("RANK", "0") == "0":
        print("JOB " + json.dumps(outcome))
