"""Register hooks with their priorities, as objects or from configs."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, SITES, Hook
from hookline.compat.mmcv.utils.registry import build_from_cfg
from hookline.compat.openmmlab import format_stages
from hookline.engine import BaseHook, get_priority
from hookline.engine.sites import SITE_NAMES


class HookRegistration:
    """The methods of a runner that register hooks."""

    hooks: list[Any]
    logger: Any

    def register_hook(self, hook: Any, priority: Any = "NORMAL") -> BaseHook:
        """Register a hook, or build one from `{'type': …}`."""
        if isinstance(hook, dict):
            config = {key: value for key, value in hook.items() if key != "priority"}
            hook = build_from_cfg(config, HOOKS)
        if not isinstance(hook, BaseHook):
            raise TypeError(
                f"a hook is an instance of mmcv.runner.Hook or a dict with its type, got {hook!r}"
            )
        self.prepare_hook(hook)
        number = get_priority(priority)
        registered: BaseHook = super().register_hook(hook, priority=number)  # type: ignore[misc]
        self.hooks.sort(key=lambda each: get_priority(each.priority))
        return registered

    def prepare_hook(self, hook: BaseHook) -> None:
        """Declare the hook's own sites, and note that it has its own frequency."""
        self._declare_extra_sites(hook)
        if isinstance(hook, Hook) and "frequency" in vars(hook):
            hook.owns_frequency = True

    def register_hook_from_cfg(self, hook_cfg: dict[str, Any]) -> None:
        self.register_hook(hook_cfg, priority=hook_cfg.get("priority", "NORMAL"))

    def register_lr_hook(self, lr_config: Any) -> None:
        self._register(_by_policy(lr_config, "LrUpdaterHook"), "VERY_HIGH")

    def register_momentum_hook(self, momentum_config: Any) -> None:
        self._register(_by_policy(momentum_config, "MomentumUpdaterHook"), "HIGH")

    def register_optimizer_hook(self, optimizer_config: Any) -> None:
        self._register(_with_type(optimizer_config, "OptimizerHook"), "ABOVE_NORMAL")

    def register_checkpoint_hook(self, checkpoint_config: Any) -> None:
        self._register(_with_type(checkpoint_config, "CheckpointHook"), "NORMAL")

    def register_timer_hook(self, timer_config: Any) -> None:
        self._register(timer_config, "LOW")

    def register_logger_hooks(self, log_config: Any) -> None:
        """Register the loggers in `log_config['hooks']`; its `interval` is their default."""
        if log_config is None:
            return
        common = {"interval": log_config["interval"]} if "interval" in log_config else {}
        for hook in log_config["hooks"]:
            if isinstance(hook, dict):
                hook = {**common, **hook}
            self._register(hook, "VERY_LOW")

    def register_profiler_hook(self, profiler_config: Any) -> None:
        self._register(_with_type(profiler_config, "ProfilerHook"), "NORMAL")

    def register_custom_hooks(self, custom_config: Any) -> None:
        if custom_config is None:
            return
        hooks = custom_config if isinstance(custom_config, list) else [custom_config]
        for hook in hooks:
            if isinstance(hook, dict):
                self.register_hook_from_cfg(hook)
            else:
                self.register_hook(hook, priority="NORMAL")

    def register_training_hooks(
        self,
        lr_config: Any,
        optimizer_config: Any = None,
        checkpoint_config: Any = None,
        log_config: Any = None,
        momentum_config: Any = None,
        timer_config: Any = {"type": "IterTimerHook"},  # noqa: B006  # not modified
        custom_hooks_config: Any = None,
    ) -> None:
        """Register the default hooks that have a config, and the custom ones."""
        self.register_lr_hook(lr_config)
        self.register_momentum_hook(momentum_config)
        self.register_optimizer_hook(optimizer_config)
        self.register_checkpoint_hook(checkpoint_config)
        self.register_timer_hook(timer_config)
        self.register_logger_hooks(log_config)
        self.register_custom_hooks(custom_hooks_config)

    def get_hook_info(self) -> str:
        """Return a table of the hooks at each stage, in their order."""
        by_stage = {}
        for stage in Hook.stages:
            by_stage[stage] = [hook for hook in self.hooks if hook.site_method(stage) is not None]
        return format_stages(by_stage)

    def _register(self, config: Any, priority: str) -> None:
        if config is not None:
            self.register_hook(config, priority)

    def _declare_extra_sites(self, hook: BaseHook) -> None:
        """Declare methods with the names of unknown sites, which a custom runner may call."""
        if not isinstance(hook, Hook):
            return
        known = {*SITE_NAMES, *SITES, *hook.site_aliases, *hook.extra_sites}
        extra = []
        for name in dir(type(hook)):
            if name.startswith(("before_", "after_")) and name not in known:
                extra.append(name)
        if not extra:
            return
        self.logger.warning(
            "%s: the runner does not call %s; only call_hook does",
            type(hook).__name__,
            ", ".join(extra),
        )
        hook.extra_sites = (*hook.extra_sites, *extra)  # type: ignore[misc]


def _by_policy(config: Any, suffix: str) -> Any:
    """Return the config of the hook for a policy: `step` or `Step` for `StepLrUpdaterHook`."""
    if not isinstance(config, dict):
        return config
    if "policy" not in config:
        raise ValueError(
            f"the config of a {suffix} needs a 'policy' such as 'step', got {dict(config)!r}"
        )
    hook = dict(config)
    policy = hook.pop("policy")
    if policy == policy.lower():
        policy = policy.title()
    hook["type"] = f"{policy}{suffix}"
    return hook


def _with_type(config: Any, default: str) -> Any:
    return {"type": default, **config} if isinstance(config, dict) else config
