"""`register_hook` and its kin: what is built from a config, and with which priority."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, SITES, Hook
from hookline.compat.mmcv.utils.registry import build_from_cfg
from hookline.engine import BaseHook, Priority, get_priority
from hookline.engine.sites import SITE_NAMES


class Registering:
    """Hooks of a runner, in the order of their priorities."""

    hooks: list[Any]
    logger: Any

    def register_hook(self, hook: Any, priority: Any = "NORMAL") -> BaseHook:
        """Add a hook, or one built from `{'type': …}`."""
        if isinstance(hook, dict):
            hook = build_from_cfg({key: value for key, value in hook.items() if key != "priority"}, HOOKS)
        if not isinstance(hook, BaseHook):
            raise TypeError(f"a hook is an instance of mmcv.runner.Hook or a dict with its type, got {hook!r}")
        self._admit_own_sites(hook)
        if isinstance(hook, Hook) and "frequency" in vars(hook):  # a word of the hook's own, and none of ours
            hook.should_trigger = lambda step: True  # type: ignore[method-assign]
        registered = super().register_hook(hook, priority=get_priority(priority))  # type: ignore[misc]
        self.hooks.sort(key=lambda each: get_priority(each.priority))
        return registered  # type: ignore[no-any-return]

    def register_hook_from_cfg(self, hook_cfg: dict[str, Any]) -> None:
        self.register_hook(hook_cfg, priority=hook_cfg.get("priority", "NORMAL"))

    def register_lr_hook(self, lr_config: Any) -> None:
        self._register(_by_policy(lr_config, "LrUpdaterHook"), "VERY_HIGH")

    def register_momentum_hook(self, momentum_config: Any) -> None:
        self._register(_by_policy(momentum_config, "MomentumUpdaterHook"), "HIGH")

    def register_optimizer_hook(self, optimizer_config: Any) -> None:
        self._register(_typed(optimizer_config, "OptimizerHook"), "ABOVE_NORMAL")

    def register_checkpoint_hook(self, checkpoint_config: Any) -> None:
        self._register(_typed(checkpoint_config, "CheckpointHook"), "NORMAL")

    def register_timer_hook(self, timer_config: Any) -> None:
        self._register(timer_config, "LOW")

    def register_logger_hooks(self, log_config: Any) -> None:
        """One logger for each of `log_config['hooks']`, all with its `interval` unless they have their own."""
        if log_config is None:
            return
        common = {"interval": log_config["interval"]} if "interval" in log_config else {}
        for info in log_config["hooks"]:
            self._register({**common, **info} if isinstance(info, dict) else info, "VERY_LOW")

    def register_profiler_hook(self, profiler_config: Any) -> None:
        self._register(_typed(profiler_config, "ProfilerHook"), "NORMAL")

    def register_custom_hooks(self, custom_config: Any) -> None:
        if custom_config is None:
            return
        for item in custom_config if isinstance(custom_config, list) else [custom_config]:
            if isinstance(item, dict):
                self.register_hook_from_cfg(item)
            else:
                self.register_hook(item, priority="NORMAL")

    def register_training_hooks(
        self,
        lr_config: Any,
        optimizer_config: Any = None,
        checkpoint_config: Any = None,
        log_config: Any = None,
        momentum_config: Any = None,
        timer_config: Any = {"type": "IterTimerHook"},  # noqa: B006  # never changed
        custom_hooks_config: Any = None,
    ) -> None:
        """The default hooks, each if it is given a config, and custom ones."""
        self.register_lr_hook(lr_config)
        self.register_momentum_hook(momentum_config)
        self.register_optimizer_hook(optimizer_config)
        self.register_checkpoint_hook(checkpoint_config)
        self.register_timer_hook(timer_config)
        self.register_logger_hooks(log_config)
        self.register_custom_hooks(custom_hooks_config)

    def get_hook_info(self) -> str:
        """For each stage the hooks that run there, in their order."""
        blocks = []
        for stage in Hook.stages:
            here = [hook for hook in self.hooks if hook.site_method(stage) is not None]
            if here:
                rows = [f"({_label(hook):<12}) {type(hook).__name__:<35}" for hook in here]
                blocks.append("\n".join([f"{stage}:", *rows, " -------------------- "]))
        return "\n".join(blocks)

    def _register(self, config: Any, priority: str) -> None:
        if config is not None:
            self.register_hook(config, priority)

    def _admit_own_sites(self, hook: BaseHook) -> None:
        """Methods that look like sites and are none: a custom runner may call them, so it is said and not refused."""
        known = {*SITE_NAMES, *SITES, *hook.site_aliases, *hook.extra_sites}
        own = [name for name in dir(type(hook)) if name.startswith(("before_", "after_")) and name not in known]
        if own and isinstance(hook, Hook):
            self.logger.warning("%s: only a runner's own call_hook calls %s", type(hook).__name__, ", ".join(own))
            hook.extra_sites = (*hook.extra_sites, *own)  # type: ignore[misc]


def _by_policy(config: Any, suffix: str) -> Any:
    if not isinstance(config, dict):
        return config
    if "policy" not in config:
        raise ValueError(f"the config of a {suffix} needs a 'policy' such as 'step', got {dict(config)!r}")
    policy = config["policy"]
    name = policy.title() if policy == policy.lower() else policy  # 'step' is short for 'Step'
    return {**{key: value for key, value in config.items() if key != "policy"}, "type": f"{name}{suffix}"}


def _typed(config: Any, default: str) -> Any:
    return {"type": default, **config} if isinstance(config, dict) else config


def _label(hook: BaseHook) -> str:
    value = get_priority(hook.priority)
    return next((priority.name for priority in Priority if priority == value), str(value))
