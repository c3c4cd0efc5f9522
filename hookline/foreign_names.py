"""Names that users of Lightning, transformers and Keras expect, and their counterparts here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hookline.errors import Suggestion, suggest

ANY = "…"  # stands for the user's value

# Arguments of Lightning's and Hugging Face's Trainer, other usual names, and those of Runner.
ARGUMENTS = {
    "accelerator": "device",
    "callbacks": "hooks",
    "ckpt_path": "resume",
    "compute_metrics": "metrics",
    "criterion": "loss_fn",
    "data_seed": "seed",
    "dataset": "train_loader",
    "default_root_dir": "work_dir",
    "eval_dataset": "val_loader",
    "full_determinism": "deterministic",
    "limit_train_batches": "max_train_batches",
    "limit_val_batches": "max_val_batches",
    "logging_dir": "work_dir",
    "lr_scheduler": "scheduler",
    "max_steps": "max_iters",
    "net": "model",
    "network": "model",
    "num_sanity_val_steps": "sanity_val_batches",
    "num_train_epochs": "max_epochs",
    "optimizers": "optimizer",
    "output_dir": "work_dir",
    "resume_from_checkpoint": "resume",
    "save_dir": "work_dir",
    "sync_batchnorm": "sync_bn",
    "test_dataset": "test_loader",
    "torch_compile": "compile",
    "train_dataset": "train_loader",
    "val_dataset": "val_loader",
}

# Arguments of Runner that have another name in a config.
CONFIG_KEYS = {
    "loss_fn": "training.loss",
    "max_epochs": "training.epochs",
    "max_iters": "training.iters",
    "max_train_batches": "training.max_train_batches",
    "max_val_batches": "training.max_val_batches",
    "metrics": "training.metrics",
    "overfit_batches": "training.overfit_batches",
    "sanity_val_batches": "training.sanity_val_batches",
    "test_loader": "dataset.test",
    "train_loader": "dataset.train",
    "val_loader": "dataset.val",
}


class HookOption(NamedTuple):
    """A hook with the parameters that mean the same as an option of another framework."""

    hook: str
    parameters: Mapping[str, Any]

    def in_python(self) -> str:
        """Return the call, such as `EvalHook(interval=…, by_epoch=False)`."""
        given = [f"{name}={_python_value(value)}" for name, value in self.parameters.items()]
        return f"{self.hook}({', '.join(given)})"

    def in_yaml(self) -> str:
        """Return the item of a config, such as `{type: EvalHook, interval: …}`."""
        return _yaml_value({"type": self.hook, **self.parameters})


_BFLOAT16 = HookOption("AmpOptimizerHook", {"dtype": "bfloat16"})
_CLIP = HookOption("OptimizerHook", {"grad_clip": {"max_norm": ANY}})
_ACCUMULATE = HookOption("GradientCumulativeOptimizerHook", {"cumulative_iters": ANY})
_EVALUATE = HookOption("EvalHook", {"interval": ANY})
_EVALUATE_BY_ITERATIONS = HookOption("EvalHook", {"interval": ANY, "by_epoch": False})
_LOG = HookOption("LoggerHook", {"interval": ANY})
_SAVE = HookOption("CheckpointHook", {"interval": ANY, "by_epoch": False})
_TRACK = HookOption("TensorBoardHook", {})
_STOP_EARLY = HookOption("EarlyStoppingHook", {"monitor": "val_loss", "patience": ANY})
_BEST = HookOption("CheckpointHook", {"best_metric": ANY})
_COSINE = HookOption(
    "CosineAnnealingLrUpdaterHook", {"min_lr": 0.0, "warmup": "linear", "warmup_iters": ANY}
)

HOOK_OPTIONS = {
    "accumulate_grad_batches": _ACCUMULATE,
    "amp": _BFLOAT16,
    "bf16": _BFLOAT16,
    "check_val_every": _EVALUATE,
    "check_val_every_n_epoch": _EVALUATE,
    "clip_grad": _CLIP,
    "early_stopping": _STOP_EARLY,
    "early_stopping_patience": _STOP_EARLY,
    "ema": HookOption("EMAHook", {"momentum": ANY}),
    "eval_steps": _EVALUATE_BY_ITERATIONS,
    "eval_strategy": _EVALUATE_BY_ITERATIONS,
    "evaluation_strategy": _EVALUATE_BY_ITERATIONS,
    "fp16": HookOption("AmpOptimizerHook", {"dtype": "float16"}),
    "grad_clip": _CLIP,
    "gradient_accumulation_steps": _ACCUMULATE,
    "gradient_checkpointing": HookOption("ActivationCheckpointHook", {"modules": ANY}),
    "gradient_clip_algorithm": _CLIP,
    "gradient_clip_val": _CLIP,
    "load_best_model_at_end": HookOption("EarlyStoppingHook", {"restore_best_weights": True}),
    "log_every_n_steps": _LOG,
    "logger": _TRACK,
    "logging_steps": _LOG,
    "logging_strategy": _LOG,
    "lr_scheduler_type": _COSINE,
    "max_grad_norm": _CLIP,
    "max_time": HookOption("TimeLimitHook", {"limit": ANY}),
    "metric_for_best_model": _BEST,
    "monitor": _BEST,
    "patience": _STOP_EARLY,
    "precision": _BFLOAT16,
    "profiler": HookOption("ProfilerHook", {}),
    "report_to": _TRACK,
    "save_steps": _SAVE,
    "save_strategy": _SAVE,
    "save_top_k": HookOption("CheckpointHook", {"best_metric": ANY, "keep_best": ANY}),
    "save_total_limit": HookOption("CheckpointHook", {"max_keep_ckpts": ANY}),
    "use_amp": _BFLOAT16,
    "val_check_interval": _EVALUATE_BY_ITERATIONS,
    "val_interval": _EVALUATE,
    "warmup_ratio": _COSINE,
    "warmup_steps": _COSINE,
}


class Advice(NamedTuple):
    """What to do in a script, and in a project with a config."""

    in_python: str
    in_config: str


_BATCH_SIZE = Advice(
    "pass train_loader=make_loader(dataset, batch_size=…)", "write loader: {batch_size: …}"
)
_BATCH_SIZE_OF_VALIDATION = Advice(
    "pass val_loader=make_loader(dataset, batch_size=…)", "write loader: {val: {batch_size: …}}"
)
_PROCESSES = Advice(
    "start the processes with torchrun, or with hookline.launch(function, nproc=…)",
    "run `hookline train CONFIG --nproc …`, or torchrun",
)
_CPU = Advice('pass device="cpu"', "write device: cpu")
_WORKERS = Advice(
    "pass train_loader=make_loader(dataset, num_workers=…)", "write loader: {num_workers: …}"
)
_COLLATE = Advice(
    "pass train_loader=make_loader(dataset, collate_fn=…)",
    "write loader: {collate_fn: my_project.data.collate}",
)
_QUIET = Advice(
    'call logging.getLogger("hookline").setLevel("WARNING"); hookline.log has the lines',
    "log lines are the only output; hookline.log has them, too",
)
_SMOOTHING = Advice(
    "pass loss_fn=nn.CrossEntropyLoss(label_smoothing=…)",
    "write training: {loss: {type: CrossEntropyLoss, label_smoothing: …}}",
)
_LR = Advice(
    "pass optimizer=torch.optim.AdamW(model.parameters(), lr=…)",
    "write optimizer: {type: AdamW, lr: …}",
)
_TOKENIZER = Advice(
    "tokenize in the data set, or in make_loader(dataset, collate_fn=…)",
    "write loader: {collate_fn: my_project.data.collate}",
)

ADVICE = {
    "batch_size": _BATCH_SIZE,
    "benchmark": Advice(
        "set torch.backends.cudnn.benchmark = True", "a script sets torch.backends.cudnn.benchmark"
    ),
    "collate_fn": _COLLATE,
    "data_collator": _COLLATE,
    "dataloader_num_workers": _WORKERS,
    "datamodule": Advice(
        "pass train_loader=…, val_loader=… and test_loader=…",
        "write dataset: {train: …, val: …, test: …}",
    ),
    "deepspeed": Advice('pass strategy="fsdp"', "write strategy: fsdp"),
    "detect_anomaly": Advice(
        "call torch.autograd.set_detect_anomaly(True); a NaN loss ends a run in any case",
        "a NaN loss ends a run in any case",
    ),
    "devices": _PROCESSES,
    "disable_tqdm": _QUIET,
    "enable_checkpointing": Advice(
        'pass drop_hooks=["CheckpointHook"]', "write drop_hooks: [CheckpointHook]"
    ),
    "enable_model_summary": _QUIET,
    "enable_progress_bar": _QUIET,
    "fast_dev_run": Advice("call runner.dry_run()", "run `hookline dry-run CONFIG`"),
    "fsdp": Advice('pass strategy="fsdp"', "write strategy: fsdp"),
    "gpus": _PROCESSES,
    "hparams": Advice("pass config={…}; checkpoints have it", "checkpoints have the whole config"),
    "label_smoothing_factor": _SMOOTHING,
    "learning_rate": _LR,
    "limit_test_batches": Advice(
        "pass a torch.utils.data.Subset to test_loader", "use a smaller data set for dataset.test"
    ),
    "lr": _LR,
    "min_epochs": Advice(
        "pass a larger patience to EarlyStoppingHook", "give EarlyStoppingHook a larger patience"
    ),
    "no_cuda": _CPU,
    "num_nodes": Advice("start the processes with torchrun", "start the processes with torchrun"),
    "num_processes": _PROCESSES,
    "num_workers": _WORKERS,
    "per_device_eval_batch_size": _BATCH_SIZE_OF_VALIDATION,
    "per_device_train_batch_size": _BATCH_SIZE,
    "processing_class": _TOKENIZER,
    "reload_dataloaders_every_n_epochs": Advice(
        "call runner.set_train_loader(…) in before_train_epoch of a hook",
        "call runner.set_train_loader(…) in before_train_epoch of a hook",
    ),
    "remove_unused_columns": _COLLATE,
    "tokenizer": _TOKENIZER,
    "train_batch_size": _BATCH_SIZE,
    "use_cpu": _CPU,
    "weight_decay": Advice(
        "pass optimizer=torch.optim.AdamW(model.parameters(), weight_decay=…)",
        "write optimizer: {type: AdamW, weight_decay: …}",
    ),
}

# Attributes and methods of Lightning's and Hugging Face's Trainer, and those of a runner.
ATTRIBUTES = {
    "add_callback": "register_hook(…)",
    "callback_metrics": "metrics",
    "callbacks": "hooks",
    "checkpoint_callback": "best, and the files best_<metric>.pth in work_dir",
    "current_epoch": "epoch",
    "datamodule": "train_loader",
    "default_root_dir": "work_dir",
    "estimated_stepping_batches": "max_iters",
    "eval_dataloader": "val_loader",
    "eval_dataset": "val_loader",
    "evaluate": "validate()",
    "get_train_dataloader": "train_loader",
    "global_rank": "world.rank",
    "global_step": "optimizer_steps",
    "is_global_zero": "is_main",
    "is_world_process_zero": "is_main",
    "lightning_module": "model",
    "log": 'events.put_scalar("name", value)',
    "log_dict": 'events.put_scalar("name", value)',
    "log_dir": "work_dir",
    "log_history": "history",
    "logged_metrics": "metrics",
    "lr_scheduler": "scheduler",
    "lr_schedulers": "scheduler",
    "max_steps": "max_iters",
    "num_training_batches": "epoch_length",
    "optimizers": "optimizer",
    "progress_bar_metrics": "metrics",
    "remove_callback": "unregister_hook(name)",
    "save_checkpoint": "request_save() in a hook; at the end of a run, last.pth is there",
    "save_model": "model.state_dict(), to save with torch.save",
    "should_stop": 'request_stop("why")',
    "state": "epoch, .iter, .metrics and .history",
    "test_dataloaders": "test_loader",
    "train_dataloader": "train_loader",
    "train_dataset": "train_loader",
    "val_dataloaders": "val_loader",
    "world_size": "world.size",
}

# Parameters of callbacks, and those of our hooks.
PARAMETERS = {
    "decay": "momentum",
    "dirpath": "out_dir",
    "early_stopping_patience": "patience",
    "early_stopping_threshold": "min_delta",
    "eval_steps": "interval",
    "every_n_epochs": "interval",
    "every_n_steps": "interval",
    "every_n_train_steps": "interval",
    "filename": "filename_tmpl",
    "log_every_n_steps": "interval",
    "logging_interval": "interval",
    "logging_steps": "interval",
    "metric": "monitor",
    "metric_for_best_model": "best_metric",
    "mode": "rule",
    "monitor": "best_metric",
    "save_steps": "interval",
    "save_top_k": "keep_best",
    "save_total_limit": "max_keep_ckpts",
    "val_check_interval": "interval",
    "val_interval": "interval",
}

# Callbacks and loggers, and our hooks.
CALLBACKS = {
    "BackboneFinetuning": "FreezeHook",
    "CSVLogger": "PeriodicWriterHook",
    "DeviceStatsMonitor": "SystemMonitorHook",
    "EMAWeightAveraging": "EMAHook",
    "GradientAccumulationScheduler": "GradientCumulativeOptimizerHook",
    "LearningRateMonitor": "LoggerHook",
    "MLFlowLogger": "MLflowHook",
    "NeptuneLogger": "NeptuneHook",
    "StochasticWeightAveraging": "EMAHook",
    "TensorBoard": "TensorBoardHook",
    "TensorBoardLogger": "TensorBoardHook",
    "TerminateOnNaN": "CheckInvalidLossHook",
    "Timer": "TimeLimitHook",
    "WandbCallback": "WandbHook",
    "WandbLogger": "WandbHook",
    "WeightAveraging": "EMAHook",
}


def suggest_argument(name: str) -> Suggestion:
    """Suggest the argument of Runner, or the hook, for an argument of another framework.

    Return an empty suggestion for any other name.
    """
    if name in ARGUMENTS:
        return Suggestion(ARGUMENTS[name])
    if name in HOOK_OPTIONS:
        return Suggestion(advice=f"pass hooks=[{HOOK_OPTIONS[name].in_python()}]")
    if name in ADVICE:
        return Suggestion(advice=ADVICE[name].in_python)
    return Suggestion()


def suggest_config_key(name: str) -> Suggestion:
    """Suggest the counterpart in a config of an argument of Runner or of another framework.

    Return an empty suggestion for any other name.
    """
    own = ARGUMENTS.get(name, name)
    if own in CONFIG_KEYS or name in ARGUMENTS:
        return Suggestion(CONFIG_KEYS.get(own, own))
    if name in HOOK_OPTIONS:
        return Suggestion(advice=f"write hooks: [{HOOK_OPTIONS[name].in_yaml()}]")
    if name in ADVICE:
        return Suggestion(advice=ADVICE[name].in_config)
    return Suggestion()


def missing_attribute(runner: object, name: str) -> AttributeError:
    """Return the error for an attribute that a runner lacks, with that of another framework."""
    message = f"{type(runner).__name__!r} object has no attribute {name!r}"
    if name in ATTRIBUTES:
        message += str(Suggestion(advice=f"a runner has .{ATTRIBUTES[name]}"))
    return AttributeError(message, name=name, obj=runner)  # Python adds the nearest name.


class RefusedAttribute:
    """An attribute that scripts for another framework set, and that has no effect on a runner."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, runner: object, owner: type) -> Any:
        if runner is None:
            return self
        raise missing_attribute(runner, self._name)

    def __set__(self, runner: object, value: Any) -> None:
        raise missing_attribute(runner, self._name)


def suggest_parameter(name: str, known: Iterable[str]) -> Suggestion:
    """Suggest the parameter that another framework calls by this name, or else the nearest one."""
    options = list(known)
    own = PARAMETERS.get(name)
    return Suggestion(own) if own in options else suggest(name, options)


def suggest_class(name: str, known: Iterable[str]) -> Suggestion:
    """Suggest the hook for a callback of another framework, or else the nearest class."""
    options = list(known)
    own = CALLBACKS.get(name)
    return Suggestion(own) if own in options else suggest(name, options)


def _python_value(value: Any) -> str:
    if isinstance(value, Mapping):
        items = [f"{json.dumps(name)}: {_python_value(each)}" for name, each in value.items()]
        return f"{{{', '.join(items)}}}"
    if value == ANY or not isinstance(value, str):
        return str(value)
    return json.dumps(value)


def _yaml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        items = [f"{name}: {_yaml_value(each)}" for name, each in value.items()]
        return f"{{{', '.join(items)}}}"
    return str(value).lower() if isinstance(value, bool) else str(value)
