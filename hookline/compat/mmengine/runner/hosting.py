"""Hooks of a runner: registering, calling, and settling what they ask for when all hooks of a stage have run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookline.compat.mmengine.hooks import Hook
from hookline.compat.mmengine.optim import OptimWrapper, OptimWrapperDict
from hookline.compat.mmengine.registry import HOOKS
from hookline.compat.mmengine.runner.base_loop import BaseLoop
from hookline.engine import HOOKS as OWN_HOOKS
from hookline.engine import BaseHook
from hookline.engine.metrics import Metrics
from hookline.engine.priority import get_priority
from hookline.engine.registration import HookHost

DEFAULT_HOOKS: dict[str, Any] = {
    "runtime_info": {"type": "RuntimeInfoHook"},
    "timer": {"type": "IterTimerHook"},
    "sampler_seed": {"type": "DistSamplerSeedHook"},
    "logger": {"type": "LoggerHook"},
    "param_scheduler": {"type": "ParamSchedulerHook"},
    "checkpoint": {"type": "CheckpointHook", "interval": 1},
}
SEAMS = frozenset({"after_train_iter", "after_train_epoch", "after_val_epoch", "after_val", "after_train"})
PLACES = {"data_batch": "batch", "outputs": "outputs", "batch_idx": "batch_idx", "metrics": "metrics", "checkpoint": "checkpoint"}


class Hosting(HookHost):
    """The hook-related methods of the runner."""

    call_arguments: dict[str, Any]  # what the hooks of the stage that runs now are given
    _requests: list[Callable[[], object]]
    stop_reason: str | None
    saver: Callable[[str | None], Callable[[], None]] | None
    optim_wrapper: Any
    _train_loop: Any
    _resumed_from: dict[str, Any] | None
    finish_resume: Callable[[], None]

    def call_hook(self, fn_name: str, **kwargs: Any) -> None:  # type: ignore[override]
        """Call every hook that has a method of this name, in order; then settle what they asked for."""
        if fn_name == "before_train_iter" and self._resumed_from is not None:
            self.finish_resume()  # a loop that knows nothing of it; ours have done it by now
        outer, self.call_arguments = self.call_arguments, kwargs
        for name, value in kwargs.items():
            if name in PLACES:  # where Hookline's own hooks look for it
                setattr(self, PLACES[name], Metrics(value or {}) if name == "metrics" else value)
        try:
            if fn_name in Hook.stages:
                for call in self.sites.calls(fn_name):
                    call(self)
            else:
                for hook in self.hooks:
                    if _has_own(hook, fn_name):
                        getattr(hook, fn_name)(self, **kwargs)
        finally:
            self.call_arguments = outer
        if self._requests and fn_name in SEAMS:
            self._settle(fn_name)

    def register_hook(self, hook: Any, priority: int | str | None = None) -> BaseHook:
        """Add a hook, or one built from `dict(type=…)`; `priority` wins over the config's, and that over the class's."""
        if not isinstance(hook, (BaseHook, Mapping)):
            raise TypeError(f"hook should be an instance of Hook or dict, but got {hook}")
        if isinstance(hook, Mapping):
            options = dict(hook)
            configured = options.pop("priority", None)
            priority = configured if priority is None else priority
            kind = options["type"]
            known = not isinstance(kind, str) or HOOKS.get(kind) is not None or kind not in OWN_HOOKS
            hook = HOOKS.build(options) if known else OWN_HOOKS.build(options)
        registered = super().register_hook(hook, priority)
        self.hooks.sort(key=lambda each: get_priority(each.priority))  # stable: registration breaks ties
        return registered

    def register_default_hooks(self, hooks: dict[str, Any] | None = None) -> None:
        """The six default hooks, changed as `hooks` says; None drops one."""
        wanted = {**DEFAULT_HOOKS, **(hooks or {})}
        for name, hook in wanted.items():
            if hook is None and name not in DEFAULT_HOOKS:
                raise AssertionError(f"default_hooks: {name}=None drops nothing; the default hooks are {', '.join(DEFAULT_HOOKS)}")
            if hook is not None:
                self.register_hook(hook)

    def register_custom_hooks(self, hooks: Sequence[Any]) -> None:
        for hook in hooks:
            self.register_hook(hook)

    def register_hooks(self, default_hooks: dict[str, Any] | None = None, custom_hooks: Sequence[Any] | None = None) -> None:  # type: ignore[override]
        self.register_default_hooks(default_hooks)
        self.register_custom_hooks(custom_hooks or ())

    def request_save(self, name: str | None = None, *, write: Callable[[], None] | None = None) -> None:
        """Ask for a checkpoint, to be taken when all hooks of this stage have run."""
        if write is None:
            if self.saver is None:
                raise RuntimeError("request_save: nobody writes checkpoints here; register a CheckpointHook")
            write = self.saver(name)
        self._requests.append(write)

    def request_stop(self, reason: str) -> None:
        """Ask to stop training after this iteration."""
        self._requests.append(lambda: self._stop(reason))

    def _settle(self, stage: str) -> None:
        """Do what was asked for. In the middle of an accumulation nothing is saved: half a gradient cannot be."""
        wrapper = self.optim_wrapper
        single = isinstance(wrapper, OptimWrapper) and not isinstance(wrapper, OptimWrapperDict)
        if single and stage.startswith("after_train_") and not wrapper.should_update() and self.stop_reason is None:
            return
        requests, self._requests, self._stage = self._requests, [], stage
        for request in requests:
            request()
        self._stage = ""

    def _stop(self, reason: str) -> None:
        self.stop_reason = self.stop_reason or reason
        if isinstance(self._train_loop, BaseLoop):
            self._train_loop.stop_training = True  # type: ignore[attr-defined]


def _has_own(hook: BaseHook, name: str) -> bool:
    """Whether a hook has a method that is no stage: for custom loops, which may call what they like."""
    method = getattr(hook, name, None)
    return callable(method) and getattr(method, "__func__", method) is not getattr(BaseHook, name, None)
